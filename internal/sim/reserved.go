package sim

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
	"github.com/joiner-autoscaler/joiner/internal/sim/cloud"
	"github.com/joiner-autoscaler/joiner/internal/sim/ec2cloud"
)

// This file gives worlds capacity reservations. Users buy them, change their size, and end them. Machines of one that
// ends run on, on demand. Then their labels are wrong until somebody changes them: the provider for EC2 does, and the
// world does it for the simulated cloud.

const verbReserve = "reserve"

// reserveVerbs returns the script lines about reservations.
func reserveVerbs() map[string]func(*World, arguments) error {
	return map[string]func(*World, arguments) error{verbReserve: (*World).reserve}
}

// relabelledWithin is how long the labels of a machine may be wrong after the end of its reservation.
const relabelledWithin = 3 * time.Minute

// reserve changes the reservation for a type in a zone; 0 ends it. In worlds with EC2 some are open, and some are two.
func (w *World) reserve(a arguments) error {
	n, err := strconv.Atoi(a[2])
	if err != nil || n < 0 {
		return fmt.Errorf("the size of the reservation is %q: want 0 or more", a[2])
	}
	if cloud.FullPrice(a[0]) == 0 {
		return fmt.Errorf("%q is no type of the cloud: want one of %q", a[0], cloud.Types())
	}
	if w.account != nil {
		d := newDice(w.script.Seed, verbReserve, a[0], a[1])
		w.account.Reserve(cloud.Reservation{Type: ec2cloud.Type(a[0]), Zone: ec2cloud.Zone(a[1]), Count: n},
			ec2cloud.Reserving{Open: d.chance(0.3), Split: !w.script.Calm && d.chance(0.3)})
		return nil
	}
	for _, m := range w.simulated.Reserve(cloud.Reservation{Type: a[0], Zone: a[1], Count: n}) {
		w.relabelMachine(m)
	}
	return nil
}

// relabelMachine changes the labels of a machine that has left its reservation, the claim's before the node's. It
// does so again and again while the machine runs: a launch that was answered before may still be recorded.
func (w *World) relabelMachine(m *cloud.Machine) {
	d := newDice(w.script.Seed, verbReserve, m.ProviderID, w.now.String())
	at := d.between(0, relabelledWithin)
	w.after(at, func() { w.onDemand(&karpenterv1.NodeClaim{}, m.ClaimName, m) })
	w.after(at+d.between(0, 5*time.Second), func() { w.onDemand(&corev1.Node{}, m.Node.Name, m) })
	w.after(relabelledWithin, func() {
		if w.simulated.Exists(m) {
			w.relabelMachine(m)
		}
	})
}

// onDemand changes the labels of a machine's claim or node to on-demand.
func (w *World) onDemand(object client.Object, name string, m *cloud.Machine) {
	relabel := func(o client.Object) {
		if labels := o.GetLabels(); labels[karpenterv1.CapacityTypeLabelKey] == catalog.Reserved {
			labels[karpenterv1.CapacityTypeLabelKey] = m.CapacityType
		}
	}
	key := client.ObjectKey{Name: name}
	switch found := w.server.Peek(object, key).(type) {
	case *karpenterv1.NodeClaim:
		if string(found.UID) == m.ClaimUID {
			change(w, found, key, apiserver.Main, func(c *karpenterv1.NodeClaim) { relabel(c) })
		}
	case *corev1.Node:
		if found.Spec.ProviderID == m.ProviderID {
			change(w, found, key, apiserver.Main, func(n *corev1.Node) { relabel(n) })
		}
	}
}

// reservations adds reservations to some scripts. It has its own dice, so that the rest of the scripts does not
// change.
func (g *generator) reservations() {
	d := newDice(g.script.Seed, "reservations")
	if !d.chance(0.25) {
		return
	}
	at := func() time.Duration { return d.between(time.Second, g.script.Heal-time.Second) }
	for range 1 + d.n(2) {
		kind, zone := of(&d, cloud.Types()...), of(&d, "zone-a", "zone-b")
		g.add(of(&d, 0, 0, at()), verbReserve, kind, zone, fmt.Sprint(1+d.n(3)))
		for range d.n(3) {
			g.add(at(), verbReserve, kind, zone, of(&d, "0", "0", "1", "2", "4"))
		}
	}
}

// reservedIdle finds a node that could run in a reservation and does not (D-04). The reservation has room for the same
// type in the same zone, so whatever runs on the node also runs there, for a thousandth of the price. It skips scripts
// in which nodes of some pools cost more than their machines: the pool's weight may ask for the dearer nodes. It also
// skips those with CapacityBuffers or headroom, whose room pods that move might take (K-40).
func (w *World) reservedIdle() string {
	if w.script.keepsDear() {
		return ""
	}
	problem := ""
	w.server.All(&karpenterv1.NodeClaim{}, func(o client.Object) {
		claim := o.(*karpenterv1.NodeClaim)
		m, pool := w.checks.machines[string(claim.UID)], w.poolOf(claim)
		if problem != "" || m == nil || m.CapacityType == catalog.Reserved || isOther(claim) || pool == nil ||
			!w.replaces(pool) || w.protected(claim.Status.NodeName) {
			return
		}
		for r, free := range w.cloud.Reservations() {
			if free > 0 && r.Type == m.Type && r.Zone == m.Zone {
				problem = fmt.Sprintf("claim %s is %s for an hour, and the reservation of %s in %s has room",
					claim.Name, m.CapacityType, r.Type, r.Zone)
			}
		}
	})
	return problem
}

// keepsDear reports whether a script may keep a node that costs more than another of the same type: the weight of
// pools may ask for it, a commitment may pay for it, and pods that move might take room that is kept free (K-40).
func (s *Script) keepsDear() bool {
	return s.hasVerb(verbCommitment, "buffer") || slices.ContainsFunc(s.Actions, func(a Action) bool {
		_, overhead := arguments(a.Args).value("overhead")
		_, headroom := arguments(a.Args).value("headroom")
		return overhead || headroom
	})
}

// soldOtherwise finds a claim or node whose labels state another capacity type, or another reservation, than its
// machine has had for an hour (E-13). Labels that users have taken off are missing, which is no wrong statement.
func (w *World) soldOtherwise() string {
	problem := ""
	w.server.All(&karpenterv1.NodeClaim{}, func(o client.Object) {
		m := w.checks.machines[string(o.GetUID())]
		if m == nil || isOther(o) {
			return
		}
		for _, key := range []string{karpenterv1.CapacityTypeLabelKey, ec2cloud.ReservationLabel} {
			want := m.Instance.Labels[key]
			if key == karpenterv1.CapacityTypeLabelKey {
				want = m.CapacityType
			}
			for _, each := range []client.Object{o, w.server.Peek(&corev1.Node{},
				client.ObjectKey{Name: m.Node.Name})} {
				if each == nil {
					continue
				}
				if got, stated := each.GetLabels()[key]; stated && got != want {
					problem = fmt.Sprintf("%s %s has the label %s=%s, and its machine has %q", kindOf(each),
						each.GetName(), key, got, want)
				}
			}
		}
	})
	return problem
}

// replaces reports whether nothing keeps a pool from replacing a node by a cheaper one in any zone.
func (w *World) replaces(pool *karpenterv1.NodePool) bool {
	for _, budget := range pool.Spec.Disruption.Budgets {
		if budgetOf(budget.Nodes.String(), int(w.count(pool.Name))) == 0 {
			return false
		}
	}
	return pool.Spec.Replicas == nil && !isOther(pool) && w.room(pool) > 0 && !w.asksForShare(pool.Name) &&
		pool.Spec.Disruption.ConsolidationPolicy != karpenterv1.ConsolidationPolicyWhenEmpty &&
		pool.Spec.Disruption.ConsolidateAfter.Duration != nil && !w.script.hasVerb("require")
}

// protected reports whether a pod on the node asks to stay, or never ends.
func (w *World) protected(node string) bool {
	found := false
	w.server.All(&corev1.Pod{}, func(o client.Object) {
		pod := o.(*corev1.Pod)
		found = found || pod.Spec.NodeName == node && (pod.Annotations[karpenterv1.DoNotDisruptAnnotationKey] != "" ||
			pod.DeletionTimestamp != nil)
	})
	return found
}
