package sim

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/app/joiner"
	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// This file has what users do every day: they delete pods, run pods that complete, protect pods for a while, and pause
// pools or all disruption.

// habitVerbs returns the script lines of this file.
func habitVerbs() map[string]func(*World, arguments) error {
	return map[string]func(*World, arguments) error{
		"delete-pod": (*World).deletePod, "complete": (*World).complete, "protect-pod": (*World).protectPod,
		"pause-pool": (*World).pausePool, "switch": (*World).turnSwitch, "require": (*World).requireZone,
		"edit": (*World).editPool, "delete-pool": (*World).deletePool,
	}
}

// pickPod returns the Kth pod of a workload that a node runs, or nil.
func (w *World) pickPod(number string) client.Object {
	return w.choose(&corev1.Pod{}, number, func(o client.Object) bool {
		pod := o.(*corev1.Pod)
		return pod.Labels[appLabel] != "" && pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning
	})
}

// deletePod deletes the Kth running pod: delete-pod K. Its workload makes another one.
func (w *World) deletePod(a arguments) error { return w.deleteOne(w.pickPod(a.first())) }

// complete lets the Kth running pod end by itself, with success or not: complete K Succeeded|Failed. It stays as an
// object, and its workload makes another one.
func (w *World) complete(a arguments) error {
	found := w.pickPod(a.first())
	if found == nil {
		return nil
	}
	phase := corev1.PodPhase(a[len(a)-1])
	if phase != corev1.PodSucceeded && phase != corev1.PodFailed {
		return fmt.Errorf("want complete K Succeeded|Failed, not %v", a)
	}
	change(w, &corev1.Pod{}, client.ObjectKeyFromObject(found), apiserver.Status, func(p *corev1.Pod) {
		p.Status.Phase = phase
		podCondition(p, corev1.PodReady, corev1.ConditionFalse, "PodCompleted", w.clock())
	})
	return nil
}

// protectPod sets karpenter.sh/do-not-disrupt on the Kth running pod: protect-pod K VALUE. The value none takes it
// off.
func (w *World) protectPod(a arguments) error {
	found := w.pickPod(a.first())
	if found == nil {
		return nil
	}
	change(w, &corev1.Pod{}, client.ObjectKeyFromObject(found), apiserver.Main, func(p *corev1.Pod) {
		if a[1] == none {
			delete(p.Annotations, karpenterv1.DoNotDisruptAnnotationKey)
			return
		}
		if p.Annotations == nil {
			p.Annotations = map[string]string{}
		}
		p.Annotations[karpenterv1.DoNotDisruptAnnotationKey] = a[1]
	})
	return nil
}

// none is the word for no value.
const none = "none"

// pausePool pauses a pool: pause-pool NAME Launch|Disrupt|Launch,Disrupt|none.
func (w *World) pausePool(a arguments) error {
	w.setPause(a[0], a[1])
	return nil
}

func (w *World) setPause(name, what string) {
	change(w, &karpenterv1.NodePool{}, client.ObjectKey{Name: name}, apiserver.Main, func(p *karpenterv1.NodePool) {
		if what == none {
			delete(p.Annotations, karpenterv1.PausedAnnotationKey)
			return
		}
		if p.Annotations == nil {
			p.Annotations = map[string]string{}
		}
		p.Annotations[karpenterv1.PausedAnnotationKey] = what
	})
}

// requireZone lets a pool launch in one zone only: require NAME ZONE|none. Its nodes elsewhere drift.
func (w *World) requireZone(a arguments) error {
	w.bindPool(a[0], a[1])
	return nil
}

func (w *World) bindPool(name, zone string) {
	change(w, &karpenterv1.NodePool{}, client.ObjectKey{Name: name}, apiserver.Main, func(p *karpenterv1.NodePool) {
		list := &p.Spec.Template.Spec.Requirements
		*list = slices.DeleteFunc(*list, func(r karpenterv1.NodeSelectorRequirementWithMinValues) bool {
			return r.Key == corev1.LabelTopologyZone
		})
		if zone != none {
			*list = append(*list, karpenterv1.NodeSelectorRequirementWithMinValues{Key: corev1.LabelTopologyZone,
				Operator: corev1.NodeSelectorOpIn, Values: []string{zone}})
		}
	})
}

// editPool changes how nodes of a pool may go: edit NAME after= budget= policy= weight=.
func (w *World) editPool(a arguments) error {
	change(w, &karpenterv1.NodePool{}, client.ObjectKey{Name: a.first()}, apiserver.Main,
		func(p *karpenterv1.NodePool) {
			if after := a.span("after", -1); after >= 0 {
				p.Spec.Disruption.ConsolidateAfter = karpenterv1.NillableDuration{Duration: &after}
			}
			if budget, stated := a.value("budget"); stated {
				p.Spec.Disruption.Budgets = []karpenterv1.Budget{{Nodes: intstr.Parse(budget)}}
			}
			if policy, stated := a.value("policy"); stated {
				p.Spec.Disruption.ConsolidationPolicy = karpenterv1.ConsolidationPolicy(policy)
			}
			if weight := a.number("weight", 0); weight > 0 && p.Spec.Replicas == nil {
				p.Spec.Weight = new(int32(weight))
			}
		})
	return nil
}

// deletePool deletes a pool for good: delete-pool NAME. Its nodes go with it.
func (w *World) deletePool(a arguments) error {
	return w.deleteOne(w.server.Peek(&karpenterv1.NodePool{}, client.ObjectKey{Name: a.first()}))
}

// turnSwitch pauses all voluntary disruption, or ends the pause: switch on|off (D-14).
func (w *World) turnSwitch(a arguments) error {
	key := client.ObjectKey{Namespace: joiner.DefaultConfig().SystemNamespace, Name: translate.SwitchName}
	data := map[string]string{translate.SwitchPaused: fmt.Sprint(a.first() == "on")}
	w.checks.switched = -1
	if a.first() == "on" {
		w.checks.switched = w.now
	}
	if w.server.Peek(&corev1.ConfigMap{}, key) == nil {
		return w.server.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace,
			Name: key.Name}, Data: data})
	}
	change(w, &corev1.ConfigMap{}, key, apiserver.Main, func(m *corev1.ConfigMap) { m.Data = data })
	return nil
}

// checkSwitch is D-14: a step that begins once the switch is on removes nothing that budgets bound.
func (w *World) checkSwitch(claim *karpenterv1.NodeClaim) {
	if on := w.checks.switched; on >= 0 && w.actor.since > on {
		w.fail(checkPaused, "claim %s is removed, and voluntary disruption is paused since %s", claim.Name, on)
	}
}

// endHabits ends the pauses when all faults are healed, and opens all zones.
func (w *World) endHabits() {
	w.server.All(&karpenterv1.NodePool{}, func(o client.Object) {
		w.setPause(o.GetName(), none)
		w.bindPool(o.GetName(), none)
	})
	if w.checks.switched >= 0 {
		w.cluster.must(w.turnSwitch(arguments{"off"}))
	}
}

// habits adds some of these to some scripts. It has its own dice, so that scripts of other seeds do not change.
func (g *generator) habits() {
	d := newDice(g.script.Seed, "habits")
	at := func() time.Duration { return d.between(20*time.Second, g.script.Heal-time.Second) }
	if d.chance(0.3) {
		for range 1 + d.n(8) {
			switch when, k := at(), fmt.Sprint(d.n(9)); d.n(3) {
			case 0:
				g.add(when, "delete-pod", k)
			case 1:
				g.add(when, "complete", k, of(&d, "Succeeded", "Succeeded", "Failed"))
			case 2:
				g.add(when, "protect-pod", k, of(&d, "true", "30s", "5m", "false", none))
			}
		}
	}
	if d.chance(0.1) {
		name := of(&d, g.names...)
		for range 1 + d.n(3) {
			g.add(at(), "pause-pool", name, of(&d, "Launch", "Disrupt", "Launch,Disrupt", none))
		}
	}
	if d.chance(0.15) {
		for range 1 + d.n(4) {
			g.add(at(), "edit", of(&d, g.names...), of(&d, "after=0s", "after=1m", "budget=1", "budget=50%",
				"budget=100%", "policy=WhenEmpty", "policy=WhenEmptyOrUnderutilized", "weight=9"))
		}
	}
	if d.chance(0.06) {
		g.add(at(), "delete-pool", of(&d, g.names...))
	}
	if d.chance(0.15) {
		for range 1 + d.n(3) {
			g.add(at(), "require", of(&d, g.names...), of(&d, "zone-a", "zone-b", none))
		}
	}
	if d.chance(0.1) {
		whens := []time.Duration{at(), at(), at()}
		slices.Sort(whens)
		for i, when := range whens[:1+d.n(3)] {
			g.add(when, "switch", []string{"on", "off"}[i%2])
		}
	}
}
