package sim

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/joiner-autoscaler/joiner/internal/app/joiner"
	"github.com/joiner-autoscaler/joiner/internal/sim/cloud"
	"github.com/joiner-autoscaler/joiner/internal/sim/ec2cloud"
)

// This file holds script actions on machines and markets.

func (w *World) vanish(a arguments) error {
	machines := w.cloud.Machines()
	n, err := strconv.Atoi(a.first())
	if err != nil || len(machines) == 0 {
		return nil
	}
	w.cloud.Vanish(machines[n%len(machines)])
	return nil
}

// interrupt gives notice for a machine, and takes it away when the time is over.
func (w *World) interrupt(a arguments) error {
	machines := w.cloud.Machines()
	n, err := strconv.Atoi(a.first())
	if err != nil || len(machines) == 0 {
		return nil
	}
	m, notice := machines[n%len(machines)], a.span("notice", 2*time.Minute)
	w.cloud.Interrupt(m, w.clock().Add(notice))
	for _, r := range w.replicas {
		r.lines[joiner.Interruption].add(reconcile.Request{}, 0)
	}
	w.after(notice, func() { w.cloud.Vanish(m) })
	return nil
}

// sicken silences the kubelet of a machine's node for a while; its pods keep running.
func (w *World) sicken(a arguments) error {
	machines := w.cloud.Machines()
	n, err := strconv.Atoi(a[0])
	d, timeErr := time.ParseDuration(a[1])
	if err = errors.Join(err, timeErr); err != nil || len(machines) == 0 {
		return err
	}
	m := machines[n%len(machines)]
	w.setReady(m.Node.Name, corev1.ConditionUnknown, corev1.TaintNodeUnreachable, true)
	w.after(d, func() {
		if m.GoneAt.IsZero() {
			w.setReady(m.Node.Name, corev1.ConditionTrue, corev1.TaintNodeUnreachable, false)
		}
	})
	return nil
}

func (w *World) runOut(a arguments) error {
	n, err := strconv.ParseUint(a.first(), 10, 8)
	if err != nil || n > uint64(cloud.AllMarkets) {
		return fmt.Errorf("want a number from 0 to %d", cloud.AllMarkets)
	}
	if w.account != nil {
		return w.account.RunOut(cloud.Market(n))
	}
	w.simulated.RunOut(cloud.Market(n))
	return nil
}

// fairWeather ends the faults of the cloud.
func (w *World) fairWeather() {
	if w.account == nil {
		w.simulated.RunOut(0)
		return
	}
	w.cluster.must(w.account.RunOut(0))
	w.cluster.must(w.account.SetWeather(ec2cloud.Fair()))
}

func (w *World) silent() int {
	n := 0
	w.server.All(&corev1.Node{}, func(o client.Object) {
		for _, c := range o.(*corev1.Node).Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown {
				n++
			}
		}
	})
	return n
}
