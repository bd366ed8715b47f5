package system

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/joiner-autoscaler/joiner/bench/internal/measure"
	"github.com/joiner-autoscaler/joiner/bench/signals"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

const (
	look = 20 * time.Millisecond // how often the fleet is looked at
	// settle is how long nothing must happen before the workload shrinks. quiet is the same for the end of shrinking.
	// The longest pause that either side makes on purpose is the peer's: 15 s until it acts on a plan, and up to 10 s
	// until it plans again.
	settle = 5 * time.Second
	quiet  = 60 * time.Second
	// These bound a phase.
	applyLimit  = 10 * time.Minute
	shrinkLimit = 20 * time.Minute
	tidyLimit   = 5 * time.Minute
)

// The phases.
const (
	Apply  = "apply"  // B-10
	Shrink = "shrink" // B-11
)

// Phase is what was seen in one phase of a round.
type Phase struct {
	Name, Side string
	// Cost is the controller's. Its time is from the first request until the last change. AllocatedBytes is not known.
	measure.Cost
	Bound, Unbound          int     // pods, at the end
	Planned                 int     // claims of the first plan that launches any
	Launched, Removed, Left int     // nodes
	Price                   float64 // of the nodes at the end, in dollars per hour
	Requests                Requests
	// Expected are the pods that kube-scheduler bound where a plan expected them, Elsewhere those that it bound to
	// another node (K-60). Only Joiner counts them.
	Expected, Elsewhere int
	// PassedOver is of kube-scheduler alone: the seconds until it had found no node for each pod.
	PassedOver float64
	CutOff     bool // it was not done in time
	from, to   time.Time
}

// String is a line for people.
func (p Phase) String() string {
	return fmt.Sprintf("%.1f s, %.1f s of CPU, %d MiB; %d pods bound, %d nodes planned first, "+
		"%d came, %d went, %d are left for %.3f $/h; %d requests", p.WallSeconds,
		p.CPUSeconds, p.PeakRSSBytes>>20, p.Bound, p.Planned, p.Launched, p.Removed, p.Left, p.Price,
		p.Requests.Total())
}

// round runs one controller from an empty cluster to an empty cluster.
func round(ctx context.Context, r *rig.Rig, program rig.Program, pods int) (phases []Phase, err error) {
	seen, err := see(ctx, r.Client)
	if err != nil {
		return nil, err
	}
	defer seen.stop()
	controller, err := r.Run(ctx, program)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, controller.Kill()) }()
	w := watcher{Rig: r, fleet: seen, pid: controller.PID()}
	if err := w.prepare(ctx); err != nil {
		return nil, err
	}
	apply, err := w.phase(ctx, step{Apply, applyLimit, workload(pods), func(s sight) time.Time { return s.lastBound },
		func(s sight) bool {
			return s.bound == pods && s.ready == s.claims && s.nodes == s.claims && time.Since(s.changed) > settle
		}})
	if err != nil {
		return nil, err
	}
	if apply.Expected, apply.Elsewhere, err = bindings(ctx, controller.MetricsPort); err != nil {
		return nil, err
	}
	smaller := nodePool("100%") + workload(pods/10)
	shrink, err := w.phase(ctx, step{Shrink, shrinkLimit, smaller, func(s sight) time.Time { return s.changed },
		func(s sight) bool {
			return s.bound == pods/10 && s.unbound == 0 && s.ready == s.claims && s.nodes == s.claims &&
				time.Since(s.changed) > quiet
		}})
	if err != nil {
		return nil, err
	}
	phases = []Phase{apply, shrink}
	if err := countRequests(r.Cluster.AuditLog(), program.Name, phases); err != nil {
		return nil, err
	}
	return phases, w.tidy(ctx)
}

// bindings reads how many pods were bound where they were expected, and how many elsewhere. Both are 0 for a
// controller that does not count them.
func bindings(ctx context.Context, port int) (expected, elsewhere int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/metrics", port),
		nil)
	if err != nil {
		return 0, 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, 0, fmt.Errorf("reading the controller's metrics: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // what was read counts
	families, err := signals.ReadMetrics(response.Body)
	for _, s := range families["joiner_pods_bound_total"].Series {
		switch s.Labels["place"] {
		case "expected":
			expected = int(s.Value)
		case "elsewhere":
			elsewhere = int(s.Value)
		}
	}
	return expected, elsewhere, err
}

// watcher watches one controller at work.
type watcher struct {
	*rig.Rig
	*fleet
	pid int
}

// prepare makes the pool and waits until the controller has accepted it.
func (w watcher) prepare(ctx context.Context) error {
	if err := w.Apply(ctx, nodePool("0")); err != nil {
		return err
	}
	_, err := w.Kubectl(ctx, "", "wait", "--for=condition=Ready", "--timeout=60s", "nodepool/default")
	return err
}

// step is what a phase does.
type step struct {
	name      string
	limit     time.Duration
	manifests string
	end       func(sight) time.Time // when the phase ended, as far as it is known
	done      func(sight) bool      // nothing more will happen
}

// phase applies manifests, and waits until do.done returns true. Time and CPU count until do.end, requests until
// do.done.
func (w watcher) phase(ctx context.Context, do step) (Phase, error) {
	w.begin()
	before, err := w.look()
	if err != nil {
		return Phase{}, err
	}
	if err := measure.ForgetPeakOf(w.pid); err != nil {
		return Phase{}, err
	}
	cpu, err := measure.CPUSecondsOf(w.pid)
	if err != nil {
		return Phase{}, err
	}
	p := Phase{Name: do.name, from: time.Now()}
	if err := w.Apply(ctx, do.manifests); err != nil {
		return p, err
	}
	last, end := before, do.end(before)
	for {
		if last, err = w.look(); err != nil {
			return p, err
		}
		if at := do.end(last); at.After(end) {
			spent, err := measure.CPUSecondsOf(w.pid)
			if err != nil {
				return p, err
			}
			end, p.WallSeconds, p.CPUSeconds = at, at.Sub(p.from).Seconds(), spent-cpu
		}
		if p.CutOff = time.Since(p.from) > do.limit; p.CutOff || do.done(last) {
			break
		}
		select {
		case <-ctx.Done():
			return p, ctx.Err()
		case err := <-w.Cluster.Failed():
			return p, err
		case <-time.After(look):
		}
	}
	p.to = time.Now()
	p.Bound, p.Unbound, p.Left, p.Price = last.bound, last.unbound, last.nodes, last.price
	p.Planned = last.planned
	p.Launched, p.Removed = last.launched-before.launched, last.removed-before.removed
	p.PeakRSSBytes, err = measure.PeakRSSOf(w.pid)
	return p, err
}

// tidy empties the cluster.
func (w watcher) tidy(ctx context.Context) error {
	return w.remove(ctx, "deployments", "nodepools", "nodeclaims")
}

// remove deletes all objects of these kinds, in this order, and waits until the cluster is empty.
func (w watcher) remove(ctx context.Context, kinds ...string) error {
	for _, kind := range kinds {
		args := []string{"delete", kind, "--all", "--namespace=default", "--wait=false"}
		if _, err := w.Kubectl(ctx, "", args...); err != nil {
			return err
		}
	}
	return w.Eventually(ctx, tidyLimit, "an empty cluster", func(context.Context) (bool, string, error) {
		now, err := w.look()
		return now.bound+now.unbound+now.claims+now.nodes == 0, now.String(), err
	})
}
