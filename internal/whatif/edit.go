package whatif

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/foretell"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// changed is a cluster that is being changed: its objects, and why its claims go.
type changed struct {
	objects []object
	sets    map[string]string // the Deployment of each ReplicaSet
	going   map[string]plan.DisruptionReason
	now     metav1.Time
	sizes   map[string]int64 // nodes by pool
	notes   []string
}

// with returns the cluster of these objects after the edits, without the named nodes. It does not change the given
// objects. The error names nodes that do not exist.
func (w *World) with(objects []client.Object, edits []edit, nodes []string) (*World, map[string]plan.DisruptionReason,
	error) {
	c := &changed{sets: w.replicaSets(), going: map[string]plan.DisruptionReason{}, now: metav1.NewTime(w.now),
		sizes: map[string]int64{}}
	stored := map[id]bool{}
	for _, o := range w.objects {
		stored[idOf(o)] = o.stored
	}
	for _, o := range objects {
		own := o.DeepCopyObject().(client.Object)
		c.objects = append(c.objects, object{where: "the cluster", stored: stored[idOf(o)], Object: own})
		if claim, isClaim := own.(*karpenterv1.NodeClaim); isClaim {
			c.sizes[translate.PoolOf(claim)]++
		}
	}
	for _, e := range edits {
		c.edit(e)
	}
	for _, name := range nodes {
		switch found, err := c.removeNode(name); {
		case found:
		case !w.hasNode(name):
			return nil, nil, err
		default:
			c.notes = append(c.notes, "node "+name+" goes without the change as well, before it")
		}
	}
	after := empty(Input{Catalogue: w.catalogue, Estimated: w.estimated, Now: w.now}, w.config)
	after.spotToSpot, after.objects = w.spotToSpot, c.objects
	if err := after.fill(Input{Catalogue: w.catalogue, Now: w.now}); err != nil {
		return nil, nil, err
	}
	after.Notes = append(after.Notes, c.notes...)
	return after, c.going, nil
}

// hasNode reports whether a node or NodeClaim has that name.
func (w *World) hasNode(name string) bool {
	return slices.ContainsFunc(w.objects, func(o object) bool {
		kind := kindOf(o)
		return (kind == "Node" || kind == "NodeClaim") && o.GetName() == name
	})
}

func (c *changed) edit(e edit) {
	about := idOf(e.about())
	at := slices.IndexFunc(c.objects, func(o object) bool { return idOf(o) == about })
	if at < 0 {
		if e.fresh != nil {
			c.objects = append(c.objects,
				object{where: e.fresh.where, Object: e.fresh.DeepCopyObject().(client.Object)})
			c.classesChanged(e)
		}
		return
	}
	now := c.objects[at]
	if e.fresh == nil {
		c.objects = slices.Delete(c.objects, at, at+1)
		c.gone(now)
		c.classesChanged(e)
		return
	}
	fresh := object{where: e.fresh.where, Object: e.fresh.DeepCopyObject().(client.Object)}
	fresh.SetUID(now.GetUID())
	if pool, isPool := fresh.Object.(*karpenterv1.NodePool); isPool {
		c.mark(now.Object.(*karpenterv1.NodePool), pool)
	}
	c.objects[at] = fresh
	c.rescale(fresh, e.remade)
	c.classesChanged(e)
}

// classesChanged clears the Ready condition of pools if a node class comes or goes, or a pool refers to another class.
func (c *changed) classesChanged(e edit) {
	switch kindOf(e.about()) {
	case "EC2NodeClass", "KWOKNodeClass":
		if e.old != nil && e.fresh != nil {
			return
		}
	case "NodePool":
		if e.old == nil || e.fresh == nil || !slices.ContainsFunc(e.diff, func(d Difference) bool {
			return strings.HasPrefix(d.Path, "spec.template.spec.nodeClassRef")
		}) {
			return
		}
	default:
		return
	}
	for _, o := range c.objects {
		if pool, isPool := o.Object.(*karpenterv1.NodePool); isPool {
			condition.Clear(&pool.Status.Conditions, karpenterv1.ConditionTypeReady)
		}
	}
}

// mark marks a pool whose soft limit is lowered, as a running Joiner would: the pool is then reduced at once (L-40).
func (c *changed) mark(old, fresh *karpenterv1.NodePool) {
	bound := func(pool *karpenterv1.NodePool) (int64, bool) {
		value, err := translate.Pool(resources.NewSpace(), pool)
		if err != nil {
			return limit.None, false
		}
		return translate.SoftBound(value)
	}
	before, was := bound(old)
	most, is := bound(fresh)
	settled := !was || c.sizes[old.Name] <= before ||
		old.Annotations[karpenterv1.AboveLimitAnnotationKey] == translate.AtOnce(before)
	if is && (settled || most < before) {
		if fresh.Annotations == nil {
			fresh.Annotations = map[string]string{}
		}
		fresh.Annotations[karpenterv1.AboveLimitAnnotationKey] = translate.AtOnce(most)
	}
}

// gone removes what a deleted object has made.
func (c *changed) gone(o object) {
	switch old := o.Object.(type) {
	case *karpenterv1.NodePool:
		for _, other := range c.objects {
			if claim, isClaim := other.Object.(*karpenterv1.NodeClaim); isClaim &&
				translate.PoolOf(claim) == old.Name {
				c.delete(claim, poolDeleted)
			}
		}
	case *karpenterv1.NodeClaim:
		c.objects = append(c.objects, o)
		c.delete(old, removedByHand)
	default:
		if _, makes, _ := demandOf(o); makes || kindOf(o) == "DaemonSet" {
			c.end(c.podsOf(o))
			c.objects = slices.DeleteFunc(c.objects, func(other object) bool {
				owner := metav1.GetControllerOf(other)
				return kindOf(other) == "ReplicaSet" && owner != nil && owner.Kind == kindOf(o) &&
					owner.Name == o.GetName() && other.GetNamespace() == o.GetNamespace()
			})
		}
	}
}

func (c *changed) delete(claim *karpenterv1.NodeClaim, reason plan.DisruptionReason) {
	if claim.DeletionTimestamp == nil {
		claim.DeletionTimestamp = &c.now
		c.going[claim.Name] = reason
	}
}

// rescale removes surplus pods of a workload, youngest first, or all of them if their template has changed. Missing
// ones are created when the cluster is filled.
func (c *changed) rescale(o object, remade bool) {
	pods := c.podsOf(o)
	if set, isDaemon := o.Object.(*appsv1.DaemonSet); isDaemon {
		if remade && set.Spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType {
			c.end(pods)
		}
		return
	}
	d, makes, err := demandOf(o)
	switch {
	case !makes || err != nil:
	case remade:
		c.end(pods)
	case int64(len(pods)) > d.pods:
		slices.SortFunc(pods, youngest)
		c.end(pods[:int64(len(pods))-d.pods])
	}
}

// youngest sorts pods by age, youngest first. Pods of a file have the same age; then a higher number counts as
// younger.
func youngest(a, b *corev1.Pod) int {
	return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(len(b.Name), len(a.Name)),
		strings.Compare(b.Name, a.Name))
}

// podsOf returns the pods of a workload.
func (c *changed) podsOf(o object) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, other := range c.objects {
		pod, isPod := other.Object.(*corev1.Pod)
		if isPod && pod.Namespace == o.GetNamespace() && !translate.Finished(pod) &&
			ownerOf(pod, c.sets) == kindOf(o)+"/"+o.GetName() {
			pods = append(pods, pod)
		}
	}
	return pods
}

// end removes pods for good.
func (c *changed) end(pods []*corev1.Pod) {
	gone := map[client.Object]bool{}
	for _, pod := range pods {
		gone[pod] = true
	}
	c.objects = slices.DeleteFunc(c.objects, func(o object) bool { return gone[o.Object] })
}

// removeNode removes a node by its name or its claim's name, and reports whether it exists.
func (c *changed) removeNode(name string) (bool, error) {
	var claims []string
	for _, o := range c.objects {
		if claim, isClaim := o.Object.(*karpenterv1.NodeClaim); isClaim {
			if claim.Name == name || claim.Status.NodeName == name {
				c.delete(claim, removedByHand)
				return true, nil
			}
			claims = append(claims, cmp.Or(claim.Status.NodeName, claim.Name))
		}
	}
	at := slices.IndexFunc(c.objects, func(o object) bool {
		_, isNode := o.Object.(*corev1.Node)
		return isNode && o.GetName() == name
	})
	if at < 0 {
		slices.Sort(claims)
		return false,
			fmt.Errorf("--remove-node %s: there is no node and no NodeClaim of that name: those that there are: %s",
				name, listed(claims))
	}
	c.objects = slices.Delete(c.objects, at, at+1)
	var lost []*corev1.Pod
	for _, o := range c.objects {
		switch pod, isPod := o.Object.(*corev1.Pod); {
		case !isPod || pod.Spec.NodeName != name:
		case translate.Reschedulable(pod) && metav1.GetControllerOf(pod) != nil:
			foretell.Waiting(pod)
		default:
			lost = append(lost, pod)
		}
	}
	c.end(lost)
	return true, nil
}
