package sim

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/provider/kwok"
	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
	"github.com/joiner-autoscaler/joiner/internal/sim/cloud"
)

// This file is about nodes that an agent reports as broken, and about machines that are rebooted (K-49).

func sickVerbs() map[string]func(*World, arguments) error {
	return map[string]func(*World, arguments) error{"fault": (*World).fault, "ail": (*World).ail}
}

// ail gives the node of the Kth machine a condition that only another machine can cure, for a time if one is given.
// The node serves its pods meanwhile.
func (w *World) ail(a arguments) error {
	n, err := strconv.Atoi(a.first())
	lasts := time.Duration(0)
	if err == nil && len(a) == 2 {
		lasts, err = time.ParseDuration(a[1])
	}
	if err != nil || n < 0 || len(a) > 2 {
		return errors.New("want ail K, and for how long behind it")
	}
	machines := w.cloud.Machines()
	if len(machines) == 0 {
		return nil
	}
	m := machines[n%len(machines)]
	ailing := func(status corev1.ConditionStatus) { w.setCondition(m.Node.Name, kwok.UnhealthyCondition, status) }
	ailing(corev1.ConditionTrue)
	if lasts > 0 {
		w.after(lasts, func() {
			if m.GoneAt.IsZero() {
				ailing(corev1.ConditionFalse)
			}
		})
	}
	return nil
}

// Effects of a reboot on a fault.
const (
	cured    = "cured"    // the fault ends
	stubborn = "stubborn" // the fault stays
	lost     = "lost"     // the machine does not come back
)

// fault makes the node of the Kth machine need a reboot. The effect of the reboot is drawn unless it is given.
func (w *World) fault(a arguments) error {
	machines := w.cloud.Machines()
	n, err := strconv.Atoi(a.first())
	if err != nil || len(a) > 2 || len(a) == 2 && a[1] != cured && a[1] != stubborn && a[1] != lost {
		return errors.New("want fault K, and cured, stubborn or lost behind it")
	}
	if len(machines) > 0 {
		m := machines[n%len(machines)]
		if len(a) == 2 {
			m.Fault = a[1]
		}
		w.setFault(m.Node.Name, corev1.ConditionTrue)
	}
	return nil
}

func (w *World) setFault(name string, status corev1.ConditionStatus) {
	w.setCondition(name, kwok.RebootCondition, status)
}

func (w *World) setCondition(name string, kind corev1.NodeConditionType, status corev1.ConditionStatus) {
	change(w, &corev1.Node{}, client.ObjectKey{Name: name}, apiserver.Status, func(n *corev1.Node) {
		setCondition(&n.Status.Conditions, kind, status, w.clock())
	})
}

// rebooted makes a machine go down and start again, with a new boot ID of its node.
func (w *World) rebooted(m *cloud.Machine) {
	w.reboots++
	w.tellIf("machine %s reboots", m.ProviderID)
	name, boot := m.Node.Name, fmt.Sprintf("boot-%d", m.Boots)
	d := newDice(w.script.Seed, "reboot", m.ProviderID, boot)
	fate := of(&d, cured, cured, cured, cured, stubborn, stubborn, lost)
	if m.Fault != "" {
		fate = m.Fault
	}
	w.setReady(name, corev1.ConditionUnknown, corev1.TaintNodeUnreachable, true)
	if fate == lost {
		return
	}
	w.after(d.between(5*time.Second, 2*time.Minute), func() {
		if !m.GoneAt.IsZero() {
			return
		}
		change(w, &corev1.Node{}, client.ObjectKey{Name: name}, apiserver.Status, func(n *corev1.Node) {
			n.Status.NodeInfo.BootID = boot
		})
		if fate == cured {
			w.setFault(name, corev1.ConditionFalse)
		}
		w.after(d.between(time.Second, 20*time.Second), func() {
			if m.GoneAt.IsZero() {
				w.setReady(name, corev1.ConditionTrue, corev1.TaintNodeUnreachable, false)
			}
		})
	})
}

// sickness adds broken or silent nodes to some scripts. It has its own dice, so that scripts of other seeds do not
// change.
func (g *generator) sickness() {
	d := newDice(g.script.Seed, "sickness")
	if !d.chance(0.4) {
		return
	}
	for range 1 + d.n(5) {
		at := d.between(30*time.Second, g.script.Heal-time.Second)
		if d.chance(0.7) {
			g.add(at, "fault", strconv.Itoa(d.n(8)))
		} else {
			g.add(at, "sicken", strconv.Itoa(d.n(8)), of(&d, "1m", "9m", "40m"))
		}
	}
}

// ailments adds nodes that only another machine can cure, and that sometimes recover, to some scripts. It has its own
// dice.
func (g *generator) ailments() {
	d := newDice(g.script.Seed, "ailments")
	if !d.chance(0.3) {
		return
	}
	for range 1 + d.n(4) {
		g.add(d.between(30*time.Second, g.script.Heal-time.Second), "ail", strconv.Itoa(d.n(8)),
			of(&d, "30s", "70s", "2m", "10h"))
	}
}
