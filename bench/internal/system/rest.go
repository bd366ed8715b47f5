package system

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/joiner-autoscaler/joiner/bench/internal/measure"
	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

const (
	// restPods is how many pods a node of the scenario rest-N holds.
	restPods = 10
	// restFor is how long a controller is watched at rest, and again after a restart.
	restFor = 2 * time.Minute
	// fillLimit bounds the time until the cluster of rest-N is complete.
	fillLimit = 40 * time.Minute
)

// Rest is what was seen of a controller while nothing happened in its cluster, and after it was killed and started
// again (B-22).
type Rest struct {
	Side        string
	Nodes, Pods int
	// Cost is that of the controller in the time of rest. AllocatedBytes is not known.
	measure.Cost
	Requests Requests // in that time, watches aside
	// ReadySeconds is the time from the start of a new process until it says that it is ready.
	ReadySeconds float64
	// Writes are its requests after that which change something, watches and leases aside; Went the nodes that went or
	// came.
	Writes Requests
	Went   int
	CutOff bool // the cluster was not complete in time: nothing else counts
}

// String is a line for people.
func (r Rest) String() string {
	return fmt.Sprintf(
		"%d nodes, %d pods; at rest %.2f %% of a core, %.2f requests a second (%s), %d MiB; after a restart ready in %.1f s, "+
			"%d writes (%s), %d nodes came or went", r.Nodes, r.Pods, 100*r.CPUSeconds/r.WallSeconds,
		float64(r.Requests.Total())/r.WallSeconds, r.Requests, r.PeakRSSBytes>>20, r.ReadySeconds, r.Writes.Total(),
		r.Writes, r.Went)
}

// String lists the kinds with their numbers, the most frequent first.
func (r Requests) String() string {
	var b strings.Builder
	kinds := slices.Sorted(maps.Keys(r))
	slices.SortStableFunc(kinds, func(a, b string) int { return r[b] - r[a] })
	for i, kind := range kinds {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %d", kind, r[kind])
	}
	return b.String()
}

// Rest fills a cluster with nodes of ten pods each and looks at each side's controller while nothing happens. Each
// side has a control plane of its own.
func (c Config) Rest(ctx context.Context, nodes int) (all []Rest, err error) {
	for _, side := range c.Sides {
		one, err := c.rest(ctx, side, nodes)
		if err != nil {
			return all, fmt.Errorf("%s at rest: %w", side.Name, err)
		}
		fmt.Fprintf(c.Log, "rest-%d, %s: %s\n", nodes, side.Name, one)
		all = append(all, one)
	}
	return all, nil
}

func (c Config) rest(ctx context.Context, side Side, nodes int) (seen Rest, err error) {
	r, err := rig.Start(ctx, rig.Options{ControlPlane: c.ControlPlane, Audit: true, WithoutJoiner: true})
	if err != nil {
		return seen, err
	}
	defer func() { err = errors.Join(err, r.Stop()) }()
	watched, err := see(ctx, r.Client)
	if err != nil {
		return seen, err
	}
	defer watched.stop()
	controller, err := r.Run(ctx, side.Program)
	if err != nil {
		return seen, err
	}
	w := watcher{Rig: r, fleet: watched, pid: controller.PID()}
	seen.Side = side.Name
	now, err := w.fill(ctx, nodes)
	if err != nil {
		return seen, errors.Join(err, controller.Kill())
	}
	seen.Nodes, seen.Pods = now.nodes, now.bound
	if seen.CutOff = now.bound < nodes*restPods; seen.CutOff {
		return seen, controller.Kill()
	}
	period, err := w.leaveAlone(ctx)
	if err != nil {
		return seen, errors.Join(err, controller.Kill())
	}
	seen.Cost = period.Cost
	if err := controller.Kill(); err != nil {
		return seen, err
	}
	began := time.Now()
	if controller, err = r.Run(ctx, side.Program); err != nil {
		return seen, err
	}
	seen.ReadySeconds = time.Since(began).Seconds()
	w.pid = controller.PID()
	after, err := w.leaveAlone(ctx)
	if err := errors.Join(err, controller.Kill()); err != nil {
		return seen, err
	}
	seen.Went = after.Launched + after.Removed
	if err := countRequests(r.Cluster.AuditLog(), side.Program.Name, []Phase{period}); err != nil {
		return seen, err
	}
	seen.Requests = period.Requests
	seen.Writes, err = writes(r.Cluster.AuditLog(), side.Program.Name, began)
	return seen, err
}

// fill makes the pool and the pods, and waits until all pods are bound. Then it allows nodes to be disrupted, and
// waits until nothing has happened for a while.
func (w watcher) fill(ctx context.Context, nodes int) (sight, error) {
	manifests := strings.Replace(nodePool("0"), "      requirements:\n",
		"      requirements:\n      - {key: karpenter.kwok.sh/instance-cpu, operator: In, values: [\"4\"]}\n", 1)
	if err := w.Apply(ctx, manifests); err != nil {
		return sight{}, err
	}
	if _, err := w.Kubectl(ctx, "", "wait", "--for=condition=Ready", "--timeout=60s", "nodepool/default"); err != nil {
		return sight{}, err
	}
	var all strings.Builder
	for i := range 20 {
		fmt.Fprintf(&all, deployment, fmt.Sprint("rest-", i), nodes*restPods/20, 380, 512)
	}
	if err := w.Apply(ctx, all.String()); err != nil {
		return sight{}, err
	}
	began := time.Now()
	for {
		now, err := w.look()
		if err != nil || time.Since(began) > fillLimit {
			return now, err
		}
		if now.bound == nodes*restPods && now.unbound == 0 && now.ready == now.claims && now.nodes == now.claims &&
			time.Since(now.changed) > settle {
			break
		}
		if err := w.pause(ctx); err != nil {
			return now, err
		}
	}
	if err := w.Apply(ctx, strings.Replace(manifests, `nodes: "0"`, `nodes: "10%"`, 1)); err != nil {
		return sight{}, err
	}
	for {
		now, err := w.look()
		if err != nil || time.Since(now.changed) > quiet && time.Since(began) > quiet ||
			time.Since(began) > fillLimit {
			return now, err
		}
		if err := w.pause(ctx); err != nil {
			return now, err
		}
	}
}

func (w watcher) pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-w.Cluster.Failed():
		return err
	case <-time.After(look):
		return nil
	}
}

// leaveAlone does nothing for the time of rest, and returns what the controller did meanwhile.
func (w watcher) leaveAlone(ctx context.Context) (Phase, error) {
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
	p := Phase{from: time.Now()}
	for time.Since(p.from) < restFor {
		if err := w.pause(ctx); err != nil {
			return p, err
		}
	}
	p.to = time.Now()
	spent, err := measure.CPUSecondsOf(w.pid)
	if err != nil {
		return p, err
	}
	p.WallSeconds, p.CPUSeconds = p.to.Sub(p.from).Seconds(), spent-cpu
	after, err := w.look()
	if err != nil {
		return p, err
	}
	p.Launched, p.Removed = after.launched-before.launched, after.removed-before.removed
	p.PeakRSSBytes, err = measure.PeakRSSOf(w.pid)
	return p, err
}

// writes counts what a user has changed since a time, by verb and resource. Leases do not count.
func writes(log, user string, since time.Time) (Requests, error) {
	found := Requests{}
	err := cluster.ReadAudit(log, func(e cluster.Event) {
		switch e.Verb {
		case "get", "list", "watch":
			return
		}
		if e.User == user && e.Resource != "" && e.Resource != "leases" && !e.ReceivedAt.Before(since) {
			kind := e.Kind()
			found[kind.Verb+" "+kind.Resource]++
		}
	})
	return found, err
}
