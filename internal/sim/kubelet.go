package sim

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
	"github.com/joiner-autoscaler/joiner/internal/sim/cloud"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// fate draws the behaviour of the next machine.
func (w *World) fate() cloud.Fate {
	mix := w.script.Mix
	d := newDice(w.script.Seed, "machine", w.now.String())
	f := cloud.Fate{
		Boot: d.between(2*time.Second, max(2*time.Second, mix.BootMost)), End: d.between(0, mix.EndMost),
		ListLag: d.between(0, mix.ListLagMost), NeverJoin: d.chance(mix.NeverJoin),
	}
	if w.healed || w.script.Calm {
		f.NeverJoin = false
	}
	return f
}

// launched makes the node of a machine join in time.
func (w *World) launched(m *cloud.Machine) {
	w.checkLaunch(m)
	if m.NeverJoin {
		w.tellIf("machine %s of claim %s will never join", m.ProviderID, m.ClaimName)
		return
	}
	w.tellIf("machine %s of claim %s joins in %s", m.ProviderID, m.ClaimName, m.Boot)
	w.after(m.Boot, func() { w.join(m) })
}

func (w *World) join(m *cloud.Machine) {
	if !m.GoneAt.IsZero() {
		return
	}
	node := m.Node.DeepCopy()
	node.Spec.Taints = append(node.Spec.Taints,
		corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule})
	setCondition(&node.Status.Conditions, corev1.NodeReady, corev1.ConditionFalse, w.clock())
	w.tellIf("node %s joins", node.Name)
	w.cluster.must(w.server.Create(node))
	d := newDice(w.script.Seed, "ready", node.Name)
	w.after(d.between(200*time.Millisecond, 8*time.Second), func() { w.ready(m) })
}

func (w *World) ready(m *cloud.Machine) {
	if !m.GoneAt.IsZero() {
		return
	}
	w.setReady(m.Node.Name, corev1.ConditionTrue, corev1.TaintNodeNotReady, false)
}

// setReady sets the Ready condition of a node, and sets or removes a taint.
func (w *World) setReady(name string, status corev1.ConditionStatus, taint string, tainted bool) {
	key := client.ObjectKey{Name: name}
	change(w, &corev1.Node{}, key, apiserver.Status, func(n *corev1.Node) {
		setCondition(&n.Status.Conditions, corev1.NodeReady, status, w.clock())
	})
	change(w, &corev1.Node{}, key, apiserver.Main, func(n *corev1.Node) {
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taint })
		if tainted {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: taint, Effect: corev1.TaintEffectNoSchedule})
		}
	})
}

// deadAfter is the time until the node controller notices a silent kubelet.
const deadAfter = 40 * time.Second

// evictAfter is the time until it deletes the pods of such a node.
const evictAfter = 5 * time.Minute

// ended makes the cluster notice that a machine goes.
func (w *World) ended(m *cloud.Machine) {
	w.tellIf("machine %s ends", m.ProviderID)
	w.checkEnd(m)
	gone := m.GoneAt.Sub(start())
	w.at(gone+deadAfter, func() {
		w.setReady(m.Node.Name, corev1.ConditionUnknown, corev1.TaintNodeUnreachable, true)
		// The cloud's node controller deletes nodes whose machine is gone.
		w.cluster.must(w.server.Delete(&corev1.Node{}, client.ObjectKey{Name: m.Node.Name}, apiserver.DeleteOptions{}))
	})
	w.at(gone+deadAfter+evictAfter, func() {
		w.server.All(&corev1.Pod{}, func(o client.Object) {
			if pod := o.(*corev1.Pod); pod.Spec.NodeName == m.Node.Name && pod.DeletionTimestamp == nil {
				w.cluster.must(w.server.Delete(pod, client.ObjectKeyFromObject(pod), apiserver.DeleteOptions{}))
			}
		})
	})
}

// alive reports whether a kubelet answers on a node.
func (w *World) alive(name string) bool {
	if strings.HasPrefix(name, foreignPrefix) {
		return true
	}
	for _, m := range w.cloud.Machines() {
		if m.Node.Name == name {
			return true
		}
	}
	return false
}

// heardPod is the kubelet: pods start some time after they are bound, and end some time after their deletion begins.
func (c *cluster) heardPod(pod *corev1.Pod, e apiserver.Event) {
	if old, _ := e.Old.(*corev1.Pod); e.Type == apiserver.Deleted ||
		translate.Finished(pod) && !(old != nil && translate.Finished(old)) {
		c.detach(pod)
	}
	if e.Type == apiserver.Deleted || pod.Spec.NodeName == "" {
		return
	}
	d := newDice(c.world.script.Seed, "pod", pod.Name)
	old, _ := e.Old.(*corev1.Pod)
	if old == nil || old.Spec.NodeName == "" {
		c.world.after(d.between(time.Second, 4*time.Second), func() { c.startPod(pod.Name, pod.UID) })
	}
	if pod.DeletionTimestamp != nil && (old == nil || old.DeletionTimestamp == nil) && !c.clings(pod) {
		grace := time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
		c.world.after(d.between(100*time.Millisecond, max(grace, time.Second)), func() { c.endPod(pod.Name, pod.UID) })
	}
}

// clings reports whether no kubelet ends the pod, though it is asked to.
func (c *cluster) clings(pod *corev1.Pod) bool {
	l := c.workloads[pod.Labels[appLabel]]
	if l == nil || !l.clings {
		return false
	}
	d := newDice(c.world.script.Seed, "clings", pod.Name)
	return d.chance(0.8)
}

// podOf returns a pod if it is still the same one, otherwise nil.
func (c *cluster) podOf(name string, uid types.UID) *corev1.Pod {
	found := c.world.server.Peek(&corev1.Pod{}, client.ObjectKey{Namespace: metaNamespace, Name: name})
	if found == nil || found.GetUID() != uid {
		return nil
	}
	return found.(*corev1.Pod)
}

func (c *cluster) startPod(name string, uid types.UID) {
	pod := c.podOf(name, uid)
	if pod == nil || pod.DeletionTimestamp != nil || !c.world.alive(pod.Spec.NodeName) {
		return
	}
	if !c.isAttached(pod) {
		c.world.after(2*time.Second, func() { c.startPod(name, uid) })
		return
	}
	change(c.world, &corev1.Pod{}, client.ObjectKeyFromObject(pod), apiserver.Status, func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodRunning
		podCondition(p, corev1.PodReady, corev1.ConditionTrue, "", c.world.clock())
	})
}

func (c *cluster) endPod(name string, uid types.UID) {
	if pod := c.podOf(name, uid); pod != nil && c.world.alive(pod.Spec.NodeName) {
		c.remove(pod)
	}
}
