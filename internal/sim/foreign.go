package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// This file simulates another program that manages nodes in the same cluster. It has pools, claims and nodes of a node
// class that no provider of ours serves, with the same labels and the same finalizers. It acts slowly or not at all.
// The names of its objects begin with foreignPrefix, and nothing of ours may write to them (check "foreign").

const (
	otherGroup, otherKind = "example.com", "OtherNodeClass"
	otherID               = "other:///"
	touchedAnnotation     = "example.com/touched"
)

// others returns the script lines that the other program executes.
func others() map[string]func(*World, arguments) error {
	return map[string]func(*World, arguments) error{
		"other-pool": (*World).otherPool, "other-node": (*World).otherNode, "other-end": (*World).otherEnd,
		"other-touch": (*World).otherTouch,
	}
}

// isOther reports whether an object belongs to the other program.
func isOther(o client.Object) bool { return strings.HasPrefix(o.GetName(), foreignPrefix) }

func otherClass() *karpenterv1.NodeClassReference {
	return &karpenterv1.NodeClassReference{Group: otherGroup, Kind: otherKind, Name: "x"}
}

// otherPool makes a NodePool of the other program, with the usual options of pools.
func (w *World) otherPool(a arguments) error {
	pool := newPool(a)
	pool.Name = foreignPrefix + pool.Name
	pool.Spec.Template.Spec.NodeClassRef = otherClass()
	return w.server.Create(pool)
}

// otherNode makes a machine of the other program: a NodeClaim and its Node. pool= is the full name of its pool, which
// may be ours. bare: the node has no claim. lost: the claim has lost its node. early: the claim was not launched.
// booting: it was, and its node never joins. silent: the kubelet does not answer. expired, drifted, marked: conditions
// of the claim.
func (w *World) otherNode(a arguments) error {
	name := foreignPrefix + a.first()
	labels := map[string]string{corev1.LabelHostname: name, karpenterv1.NodeRegisteredLabelKey: "true",
		karpenterv1.NodeInitializedLabelKey: "true"}
	if pool, stated := a.value("pool"); stated {
		labels[karpenterv1.NodePoolLabelKey] = pool
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels,
			Finalizers: []string{karpenterv1.TerminationFinalizer}},
		Spec: corev1.NodeSpec{ProviderID: otherID + name},
	}
	node.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("2Gi"),
		corev1.ResourcePods: resource.MustParse("4"),
	}
	node.Status.Capacity = node.Status.Allocatable
	ready := corev1.ConditionTrue
	if slices.Contains(a, "silent") {
		ready = corev1.ConditionUnknown
	}
	setCondition(&node.Status.Conditions, corev1.NodeReady, ready, w.clock())
	if slices.Contains(a, "marked") {
		node.Spec.Taints = []corev1.Taint{{Key: karpenterv1.DisruptedTaintKey, Effect: corev1.TaintEffectNoSchedule}}
	}
	if !slices.Contains(a, "bare") {
		claim := w.otherClaim(node, a)
		if err := w.server.Create(claim.DeepCopy()); err != nil {
			return err
		}
		change(w, claim, client.ObjectKeyFromObject(claim), apiserver.Status, func(c *karpenterv1.NodeClaim) {
			c.Status = claim.Status
		})
		made := w.server.Peek(claim, client.ObjectKeyFromObject(claim))
		node.OwnerReferences = []metav1.OwnerReference{{APIVersion: karpenterv1.GroupVersion().String(),
			Kind: "NodeClaim", Name: name, UID: made.GetUID()}}
	}
	if slices.ContainsFunc(a, func(word string) bool {
		return word == "lost" || word == "early" || word == "booting"
	}) {
		return nil
	}
	return w.server.Create(node)
}

func (w *World) otherClaim(node *corev1.Node, a arguments) *karpenterv1.NodeClaim {
	claim := &karpenterv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: map[string]string{}, Finalizers: node.Finalizers},
		Spec:       karpenterv1.NodeClaimSpec{NodeClassRef: otherClass()},
	}
	if pool := node.Labels[karpenterv1.NodePoolLabelKey]; pool != "" {
		claim.Labels[karpenterv1.NodePoolLabelKey] = pool
		claim.Annotations = map[string]string{ // from an older state of the pool
			karpenterv1.NodePoolHashAnnotationKey:        "1",
			karpenterv1.NodePoolHashVersionAnnotationKey: translate.HashVersion,
		}
	}
	if slices.Contains(a, "expired") {
		claim.Spec.ExpireAfter = karpenterv1.NillableDuration{Duration: new(30 * time.Second)}
	}
	if slices.Contains(a, "early") {
		return claim
	}
	claim.Status.ProviderID = node.Spec.ProviderID
	claim.Status.Capacity, claim.Status.Allocatable = node.Status.Capacity, node.Status.Allocatable
	kinds := []string{karpenterv1.ConditionTypeLaunched}
	if !slices.Contains(a, "booting") {
		claim.Status.NodeName = node.Name
		kinds = append(kinds, karpenterv1.ConditionTypeRegistered, karpenterv1.ConditionTypeInitialized)
	}
	for word, kind := range map[string]string{
		"expired": karpenterv1.ConditionTypeExpired, "drifted": karpenterv1.ConditionTypeDrifted,
		"marked": karpenterv1.ConditionTypeDisruptionReason,
	} {
		if slices.Contains(a, word) {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	for _, kind := range kinds {
		reason := kind
		if kind == karpenterv1.ConditionTypeDisruptionReason {
			reason = string(plan.Drifted)
		}
		condition.Set(&claim.Status.Conditions, 1, condition.True(kind, reason, ""), w.clock())
	}
	return claim
}

// pickOther returns one of the other program's objects of a kind, or nil.
func (w *World) pickOther(like client.Object, number string) client.Object {
	return w.choose(like, number, isOther)
}

// otherEnd lets the other program, or a user, delete one of its nodes or claims: other-end node|claim K takes=TIME.
// The other program removes its finalizers that much later; without takes= when all faults are healed.
func (w *World) otherEnd(a arguments) error {
	var like client.Object = &corev1.Node{}
	if a[0] == "claim" {
		like = &karpenterv1.NodeClaim{}
	}
	found := w.pickOther(like, a[1])
	if found == nil {
		return nil
	}
	if takes := a.span("takes", -1); takes >= 0 {
		name := found.GetName()
		w.after(takes, func() {
			for _, like := range []client.Object{&corev1.Node{}, &karpenterv1.NodeClaim{}} {
				if object := w.server.Peek(like, client.ObjectKey{Name: name}); object != nil {
					w.cluster.must(w.deleteOne(object))
					w.otherLetsGo(like, name)
				}
			}
		})
	}
	return w.deleteOne(found)
}

// otherLetsGo removes the other program's finalizer from one of its objects that is being deleted.
func (w *World) otherLetsGo(like client.Object, name string) {
	found := w.server.Peek(like, client.ObjectKey{Name: name})
	if found == nil || found.GetDeletionTimestamp() == nil || len(found.GetFinalizers()) == 0 {
		return
	}
	fresh := found.DeepCopyObject().(client.Object)
	fresh.SetFinalizers(nil)
	w.cluster.must(w.server.Update(fresh, apiserver.Main))
}

// otherTouch lets the other program write to one of its objects: other-touch node|claim|pool K.
func (w *World) otherTouch(a arguments) error {
	likes := map[string]client.Object{"node": &corev1.Node{}, "claim": &karpenterv1.NodeClaim{},
		"pool": &karpenterv1.NodePool{}}
	found := w.pickOther(likes[a.first()], a[1])
	if found == nil {
		return nil
	}
	fresh := found.DeepCopyObject().(client.Object)
	fresh.SetAnnotations(map[string]string{touchedAnnotation: w.now.String()})
	return w.server.Update(fresh, apiserver.Main)
}

// otherHeals finishes the removals that the other program has begun.
func (w *World) otherHeals() {
	for _, like := range []client.Object{&corev1.Node{}, &karpenterv1.NodeClaim{}} {
		w.server.All(like, func(o client.Object) {
			if isOther(o) {
				w.otherLetsGo(like, o.GetName())
			}
		})
	}
}

// checkForeign looks at a change that a process of ours has made: it must not touch objects of another program, nor
// pods on its nodes.
func (w *World) checkForeign(e apiserver.Event) {
	pod, isPod := e.Object.(*corev1.Pod)
	switch {
	case w.actor == nil:
	case isPod && strings.HasPrefix(pod.Spec.NodeName, foreignPrefix):
		w.fail(checkForeign, "%s changes pod %s on node %s, which is none of ours", w.actor.line.Name, pod.Name,
			pod.Spec.NodeName)
	case !isPod && isOther(e.Object):
		w.fail(checkForeign, "%s changes %s %s, which is none of ours", w.actor.line.Name, e.Kind(),
			e.Object.GetName())
	}
}

// told looks at an event: none may be about another program's objects.
func (w *World) told(about client.Object, reason, message string) {
	w.tellIf("%s: %s %s: %s", reason, kindOf(about), about.GetName(), message)
	w.countEvent(about, reason)
	if _, pod := about.(*corev1.Pod); !pod && isOther(about) {
		w.fail(checkForeign, "an event is made about %s %s, which is none of ours: %s: %s", kindOf(about),
			about.GetName(), reason, message)
	}
}

// foreign adds the other program to some scripts. It has its own dice, so that scripts of other seeds do not change.
func (g *generator) foreign() {
	d := newDice(g.script.Seed, "foreign")
	if !d.chance(0.4) {
		return
	}
	at := func() time.Duration { return d.between(5*time.Second, g.script.Heal-time.Second) }
	pools := slices.Clone(g.names)
	for _, name := range []string{"x", "y"}[:1+d.n(2)] {
		args := []string{name, "after=" + of(&d, "0s", "30s"),
			"policy=" + of(&d, "WhenEmpty", "WhenEmptyOrUnderutilized"), "budget=" + of(&d, "0", "1", "100%")}
		if d.chance(0.5) {
			args = append(args, "soft="+of(&d, "0", "1", "3"))
		}
		if d.chance(0.3) {
			args = append(args, "hard="+of(&d, "0", "1", "3"))
		}
		if d.chance(0.2) {
			args = append(args, "replicas="+of(&d, "0", "1", "3"))
		}
		g.add(d.between(0, time.Minute), "other-pool", args...)
		pools = append(pools, foreignPrefix+name, foreignPrefix+name)
	}
	for i := range 1 + d.n(4) {
		args := []string{fmt.Sprintf("n%d", i), "pool=" + of(&d, pools...)}
		for _, word := range []string{"silent", "expired", "drifted", "marked", "bare", "lost", "early", "booting"} {
			if d.chance(0.15) {
				args = append(args, word)
			}
		}
		g.add(at(), "other-node", args...)
	}
	for range d.n(4) {
		args := []string{of(&d, "node", "claim"), fmt.Sprint(d.n(9))}
		if d.chance(0.6) {
			args = append(args, "takes="+of(&d, "5s", "1m", "5m"))
		}
		g.add(at(), "other-end", args...)
	}
	for range d.n(4) {
		g.add(at(), "other-touch", of(&d, "node", "claim", "pool"), fmt.Sprint(d.n(9)))
	}
	if d.chance(0.4) {
		g.add(at(), "claim", "hand-x", "pool="+foreignPrefix+"x")
	}
}
