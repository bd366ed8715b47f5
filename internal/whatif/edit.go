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

// changed is a cluster that somebody changes: objects, and why claims of it go.
type changed struct {
	objects []object
	sets    map[string]string // the Deployment of each ReplicaSet
	going   map[string]plan.DisruptionReason
	now     metav1.Time
	sizes   map[string]int64 // nodes by pool
	notes   []string
}

// with returns the cluster of these objects with the edits made, and the nodes gone that are named. Nothing of the
// given objects is changed. The error names nodes that there are not.
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
	after := empty(Input{Catalogue: w.catalogue, Estimated: w.estimated, Now: w.now, PriceTolerance: w.tolerance,
		NodeOverheadPrice: Dollars(w.overhead), MaxNodes: w.maxNodes, MaxClaims: w.maxClaims})
	after.commitments = w.commitments
	after.store.SetCommitments(w.commitments)
	after.objects = c.objects
	if err := after.fill(Input{Catalogue: w.catalogue, Now: w.now}); err != nil {
		return nil, nil, err
	}
	after.Notes = append(after.Notes, c.notes...)
	return after, c.going, nil
}

// hasNode reports whether there is a node, or a NodeClaim, of that name.
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
			c.objects = append(c.objects, object{where: e.fresh.where, Object: e.fresh.DeepCopyObject().(client.Object)})
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

// classesChanged lets pools be judged anew whose node class comes or goes, or which ask for another one.
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

// mark notes on a pool that what its soft limit is lowered to is seen by a Joiner that runs, which then brings it down
// at once (L-40).
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

// gone takes away what an object that is deleted has made.
func (c *changed) gone(o object) {
	switch old := o.Object.(type) {
	case *karpenterv1.NodePool:
		for _, other := range c.objects {
			if claim, isClaim := other.Object.(*karpenterv1.NodeClaim); isClaim && translate.PoolOf(claim) == old.Name {
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
				return kindOf(other) == "ReplicaSet" && owner != nil && owner.Kind == kindOf(o) && owner.Name == o.GetName() &&
					other.GetNamespace() == o.GetNamespace()
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

// rescale ends the pods of a workload that are too many, youngest first, or all of them when their template is another
// one. Those that lack are made when the cluster is filled.
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

// youngest orders pods by age, the youngest first. Those of a file are all of one age, and a higher number is younger.
func youngest(a, b *corev1.Pod) int {
	return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(len(b.Name), len(a.Name)),
		strings.Compare(b.Name, a.Name))
}

// podsOf are the pods of a workload.
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

// end takes pods away for good.
func (c *changed) end(pods []*corev1.Pod) {
	gone := map[client.Object]bool{}
	for _, pod := range pods {
		gone[pod] = true
	}
	c.objects = slices.DeleteFunc(c.objects, func(o object) bool { return gone[o.Object] })
}

// removeNode lets a node go by the name of the node or of its claim, and reports whether there is one.
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
			fmt.Errorf("--remove-node %s: there is no node and no NodeClaim of that name: those that there are: %s", name,
				listed(claims))
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
