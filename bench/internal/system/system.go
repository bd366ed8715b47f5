// Package system measures whole controllers, Joiner's and the peer's, on one local control plane. Pods are applied
// until all are bound (B-10), and then nine of ten go away (B-11). The API server's audit log (B-12) and the kernel
// (B-13) say what that took. Controllers run as processes, in turns, each with its defaults. Watches show the state of
// the cluster.
//
// Start at Run. workload.go has the workload, fleet.go watches the cluster, round.go measures a round, and floor.go
// measures kube-scheduler alone.
package system

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// Config says what to measure with.
type Config struct {
	ControlPlane string // path of the built program
	Rounds       int
	Sides        []Side // they take turns in this order
	// SchedulerQPS limits kube-scheduler's client, in requests a second; its burst is twice that. 0 means the default
	// of the local control plane, 1,000. A scheduler without flags has 50.
	SchedulerQPS int
	// Dir keeps the control plane's state, its audit log and the logs of all programs; empty: they are removed.
	Dir string
	Log io.Writer
}

// Side is a controller under a name.
type Side struct {
	Name    string
	Program rig.Program
}

// Run measures rounds with a number of pods, and returns their phases in order: for each round kube-scheduler alone,
// then for each side the phases Apply and Shrink.
func (c Config) Run(ctx context.Context, pods int) (phases []Phase, err error) {
	options := rig.Options{ControlPlane: c.ControlPlane, Dir: c.Dir, Audit: true, WithoutJoiner: true}
	if c.SchedulerQPS > 0 {
		options.ExtraArgs = map[cluster.Component][]string{cluster.Scheduler: {
			"--kube-api-qps=" + strconv.Itoa(c.SchedulerQPS), "--kube-api-burst=" + strconv.Itoa(2*c.SchedulerQPS),
		}}
	}
	r, err := rig.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Stop()) }()
	for i := range c.Rounds {
		alone, err := floor(ctx, r, pods)
		if err != nil {
			return phases, fmt.Errorf("round %d of %s: %w", i+1, Scheduler, err)
		}
		fmt.Fprintf(c.Log, "%s-%d, round %d: %s takes %.1f s, %.1f of them to pass over all pods\n", alone.Name, pods,
			i+1, Scheduler, alone.WallSeconds, alone.PassedOver)
		phases = append(phases, alone)
		for _, side := range c.Sides {
			both, err := round(ctx, r, side.Program, pods)
			if err != nil {
				return phases, fmt.Errorf("round %d of %s: %w", i+1, side.Name, err)
			}
			for _, p := range both {
				p.Side = side.Name
				fmt.Fprintf(c.Log, "%s-%d, %s, round %d: %s\n", p.Name, pods, side.Name, i+1, p)
				phases = append(phases, p)
			}
		}
	}
	return phases, nil
}
