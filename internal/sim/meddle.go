package sim

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
)

// This file lets users, and programs that mean well, change our marks on nodes: they take off labels, taints,
// finalizers and owners, or put taints on. Whatever they do, the system has to come to rest where it would have
// without them.

// meddleVerbs returns the script lines of this file.
func meddleVerbs() map[string]func(*World, arguments) error {
	return map[string]func(*World, arguments) error{"meddle": (*World).meddle, "classless": (*World).classless,
		"meddle-claim": (*World).meddleClaim}
}

// marks says what each kind of meddling does to a node.
func marks() map[string]func(*corev1.Node) {
	taint := func(key string) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
		}
	}
	return map[string]func(*corev1.Node){
		"initialized": func(n *corev1.Node) { delete(n.Labels, karpenterv1.NodeInitializedLabelKey) },
		"registered":  func(n *corev1.Node) { delete(n.Labels, karpenterv1.NodeRegisteredLabelKey) },
		"finalizer":   func(n *corev1.Node) { controllerutil.RemoveFinalizer(n, karpenterv1.TerminationFinalizer) },
		"owner":       func(n *corev1.Node) { n.OwnerReferences = nil },
		"taints": func(n *corev1.Node) {
			n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool {
				return t.Key == karpenterv1.DisruptedTaintKey || t.Key == karpenterv1.RebootingTaintKey
			})
		},
		"disrupted":   taint(karpenterv1.DisruptedTaintKey),
		"rebooting":   taint(karpenterv1.RebootingTaintKey),
		"maintenance": taint("example.com/maintenance"),
		"cordon":      func(n *corev1.Node) { n.Spec.Unschedulable = true },
		"uncordon":    func(n *corev1.Node) { n.Spec.Unschedulable = false },
		"forced":      func(n *corev1.Node) { n.Finalizers = nil },
	}
}

// meddle changes a mark of the Kth node that we launched: meddle K MARK.
func (w *World) meddle(a arguments) error {
	if marks()[a[1]] == nil {
		return fmt.Errorf("want meddle K MARK, not meddle %v", a)
	}
	found := w.choose(&corev1.Node{}, a[0], func(o client.Object) bool { return !isOther(o) })
	if found == nil || found.GetDeletionTimestamp() != nil { // a deleted node would go at once, as its user wants
		return nil
	}
	change(w, &corev1.Node{}, client.ObjectKeyFromObject(found), apiserver.Main, marks()[a[1]])
	if a[1] == "forced" {
		w.startAgain(found.GetName())
		return w.deleteOne(found)
	}
	return nil
}

// claimMarks says what each kind of meddling does to a claim.
func claimMarks() map[string]func(*karpenterv1.NodeClaim) {
	return map[string]func(*karpenterv1.NodeClaim){
		"finalizer": func(c *karpenterv1.NodeClaim) {
			controllerutil.RemoveFinalizer(c, karpenterv1.TerminationFinalizer)
		},
		"hash":        func(c *karpenterv1.NodeClaim) { delete(c.Annotations, karpenterv1.NodePoolHashAnnotationKey) },
		"annotations": func(c *karpenterv1.NodeClaim) { c.Annotations = nil },
		"labels": func(c *karpenterv1.NodeClaim) {
			c.Labels = map[string]string{karpenterv1.NodePoolLabelKey: c.Labels[karpenterv1.NodePoolLabelKey]}
		},
	}
}

// meddleClaim changes a mark of the Kth claim of ours: meddle-claim K MARK.
func (w *World) meddleClaim(a arguments) error {
	if claimMarks()[a[1]] == nil {
		return fmt.Errorf("want meddle-claim K MARK, not meddle-claim %v", a)
	}
	found := w.choose(&karpenterv1.NodeClaim{}, a[0], func(o client.Object) bool { return !isOther(o) })
	if found == nil || found.GetDeletionTimestamp() != nil {
		return nil
	}
	change(w, &karpenterv1.NodeClaim{}, client.ObjectKeyFromObject(found), apiserver.Main, claimMarks()[a[1]])
	if a[1] == "finalizer" {
		w.checks.stripped[found.GetUID()] = true
	}
	return nil
}

// startAgain may let the kubelet of a machine start again, a while after its Node was deleted: then it joins again.
func (w *World) startAgain(node string) {
	d := newDice(w.script.Seed, "again", node)
	if d.chance(0.5) {
		return
	}
	w.after(d.between(time.Second, 20*time.Minute), func() {
		for _, m := range w.cloud.Machines() {
			if m.Node.Name == node && w.server.Peek(&corev1.Node{}, client.ObjectKey{Name: node}) == nil {
				w.join(m)
			}
		}
	})
}

// classless deletes the node class of all pools, and makes it again a while later: classless TIME. EC2's is held by
// its finalizer as long as claims name it.
func (w *World) classless(a arguments) error {
	d, err := time.ParseDuration(a.first())
	if err != nil || w.account != nil {
		return err
	}
	class := w.nodeClass()
	w.after(d, func() { w.cluster.must(w.server.Create(w.nodeClass())) })
	return client.IgnoreNotFound(w.server.Delete(class, client.ObjectKeyFromObject(class), apiserver.DeleteOptions{}))
}

// meddling makes some scripts meddle. It has its own dice, so that scripts of other seeds do not change.
func (g *generator) meddling() {
	d := newDice(g.script.Seed, "classless")
	if d.chance(0.05) {
		g.add(d.between(20*time.Second, g.script.Heal-time.Second), "classless", d.between(time.Second,
			3*time.Minute).String())
	}
	if d = newDice(g.script.Seed, "meddling with claims"); d.chance(0.1) {
		for range 1 + d.n(3) {
			g.add(d.between(20*time.Second, g.script.Heal-time.Second), "meddle-claim", fmt.Sprint(d.n(9)),
				of(&d, "finalizer", "hash", "annotations", "labels"))
		}
	}
	if d = newDice(g.script.Seed, "meddling"); !d.chance(0.15) {
		return
	}
	for range 1 + d.n(3) {
		g.add(d.between(20*time.Second, g.script.Heal-time.Second), "meddle", fmt.Sprint(d.n(9)),
			of(&d, "initialized", "registered", "finalizer", "owner", "taints", "disrupted", "rebooting",
				"maintenance", "cordon", "uncordon", "forced"))
	}
}
