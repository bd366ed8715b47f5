package sim

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
)

// cluster simulates the rest of a cluster: kubelets, the scheduler, workloads, garbage collection. It acts on the
// server directly, without delays and faults: only the effects of these programs are simulated.
type cluster struct {
	world     *World
	workloads map[string]*workload
	names     []string                     // of workloads, in the order of creation
	assumed   map[types.UID]string         // pods that are being bound, to nodes
	due       map[string]bool              // planned jobs
	pods      int                          // how many pods were ever created
	injected  map[string]resource.Quantity // by DaemonSet: the request that a webhook gives its pods
	spoils    bool                         // a user's controller taints each new node
	most      int                          // how many disks nodes attach that join now
	refuses   bool                         // a user's webhook refuses bindings
}

func newCluster(w *World) cluster {
	return cluster{world: w, workloads: map[string]*workload{}, assumed: map[types.UID]string{},
		due: map[string]bool{}, injected: map[string]resource.Quantity{}}
}

// soon plans a job, unless it is planned already.
func (c *cluster) soon(job string, low, high time.Duration, do func()) {
	if c.due[job] {
		return
	}
	c.due[job] = true
	d := newDice(c.world.script.Seed, "job", job, c.world.now.String())
	c.world.after(d.between(low, high), func() {
		c.due[job] = false
		do()
	})
}

// heard plans the consequences of a change. It changes nothing itself, since the call that made the change is not
// over.
func (c *cluster) heard(e apiserver.Event) {
	c.heardDaemons(e)
	switch object := e.Object.(type) {
	case *corev1.Pod:
		c.heardPod(object, e)
		c.soon("budgets", 10*time.Millisecond, 300*time.Millisecond, c.countBudgets)
		c.soon("bind", 50*time.Millisecond, 800*time.Millisecond, c.schedule)
		if name := object.Labels[appLabel]; name != "" && c.workloads[name] != nil {
			c.soon("workload "+name, 50*time.Millisecond, 500*time.Millisecond, func() { c.scale(name) })
		}
	case *corev1.Node:
		c.heardNode(object)
		c.heardJoin(e, object)
		c.soon("bind", 50*time.Millisecond, 800*time.Millisecond, c.schedule)
		if e.Type == apiserver.Deleted {
			c.soon("orphans "+object.Name, 20*time.Second, 40*time.Second, func() { c.collectPods(object.Name) })
		}
	case *storagev1.CSINode, *storagev1.VolumeAttachment:
		c.soon("bind", 50*time.Millisecond, 800*time.Millisecond, c.schedule)
	case *policyv1.PodDisruptionBudget:
		if e.Type == apiserver.Added || e.Old != nil && e.Old.GetGeneration() != object.Generation {
			c.soon("budgets", 10*time.Millisecond, 300*time.Millisecond, c.countBudgets)
		}
		c.countAgain(object)
	case *karpenterv1.NodeClaim, *karpenterv1.NodePool:
		if e.Type == apiserver.Deleted {
			c.soon("garbage", time.Second, 5*time.Second, c.collectOwned)
		}
	}
}

func (c *cluster) countBudgets() { c.must(c.world.server.CountBudgets()) }

// countAgain counts again when evicted pods have had their time to go: some may not have gone, or may have been
// replaced by pods of the same name. It is repeated if others were evicted in the meantime and nothing changes then.
func (c *cluster) countAgain(budget *policyv1.PodDisruptionBudget) {
	if len(budget.Status.DisruptedPods) == 0 {
		return
	}
	c.soon("budgets again", apiserver.EvictedFor+time.Second, apiserver.EvictedFor+5*time.Second, func() {
		c.countBudgets()
		c.world.server.All(&policyv1.PodDisruptionBudget{},
			func(o client.Object) { c.countAgain(o.(*policyv1.PodDisruptionBudget)) })
	})
}

// must fails the simulation if its own parts meet an unexpected error.
func (c *cluster) must(err error) {
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		c.world.fail("simulation", "the simulated cluster met an error: %v", err)
	}
}

func notFound(kind, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: kind}, name)
}

// change updates an object of the server, or its status. It does nothing if the object is gone.
func change[T client.Object](w *World, like T, key client.ObjectKey, part apiserver.Part, edit func(T)) {
	found := w.server.Peek(like, key)
	if found == nil {
		return
	}
	fresh := found.DeepCopyObject().(T)
	edit(fresh)
	w.cluster.must(w.server.Update(fresh, part))
}

// collectOwned deletes nodes and claims whose owners are gone, like the garbage collector.
func (c *cluster) collectOwned() {
	uids := map[types.UID]bool{}
	note := func(o client.Object) { uids[o.GetUID()] = true }
	c.world.server.All(&karpenterv1.NodeClaim{}, note)
	c.world.server.All(&karpenterv1.NodePool{}, note)
	orphan := func(o client.Object) {
		for _, owner := range o.GetOwnerReferences() {
			if !uids[owner.UID] && o.GetDeletionTimestamp() == nil {
				c.must(c.world.server.Delete(o, client.ObjectKeyFromObject(o), apiserver.DeleteOptions{}))
				return
			}
		}
	}
	c.world.server.All(&corev1.Node{}, orphan)
	c.world.server.All(&karpenterv1.NodeClaim{}, orphan)
}

// collectPods removes the pods of a deleted node.
func (c *cluster) collectPods(node string) {
	if c.world.server.Peek(&corev1.Node{}, client.ObjectKey{Name: node}) != nil {
		return
	}
	c.world.server.All(&corev1.Pod{}, func(o client.Object) {
		if o.(*corev1.Pod).Spec.NodeName == node {
			c.remove(o.(*corev1.Pod))
		}
	})
}

// remove deletes a pod without grace period.
func (c *cluster) remove(pod *corev1.Pod) {
	now := int64(0)
	c.must(c.world.server.Delete(pod, client.ObjectKeyFromObject(pod),
		apiserver.DeleteOptions{GraceSeconds: &now, UID: new(string(pod.UID))}))
}

func setCondition(list *[]corev1.NodeCondition, kind corev1.NodeConditionType, status corev1.ConditionStatus,
	at time.Time) {
	value := corev1.NodeCondition{Type: kind, Status: status, Reason: "Simulated",
		LastTransitionTime: metav1.NewTime(at.Truncate(time.Second))}
	for i := range *list {
		if (*list)[i].Type == kind {
			(*list)[i] = value
			return
		}
	}
	*list = append(*list, value)
}

func podCondition(pod *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus, reason string,
	at time.Time) {
	value := corev1.PodCondition{Type: kind, Status: status, Reason: reason,
		LastTransitionTime: metav1.NewTime(at.Truncate(time.Second))}
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			pod.Status.Conditions[i] = value
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, value)
}
