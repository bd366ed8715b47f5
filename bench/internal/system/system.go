// Package system measures whole controllers, Joiner's and the peer's, on one local control plane: pods are applied until
// all are bound (B-10), nine of ten go away (B-11), and the API server's audit log (B-12) and the kernel (B-13) say what
// that took. Both run as processes, in turns, each with its defaults; what the world looks like comes from watches.
//
// Start at Run. workload.go is what is asked of them, fleet.go what is seen, round.go how it is measured.
package system

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// Config says what to measure with.
type Config struct {
	ControlPlane string // path of the built program
	Rounds       int
	Sides        []Side // they take turns in this order
	Log          io.Writer
}

// Side is a controller under a name.
type Side struct {
	Name    string
	Program rig.Program
}

// Run measures rounds with so many pods and returns what was seen, in order: for each round and side the phase of applying
// and that of shrinking.
func (c Config) Run(ctx context.Context, pods int) (phases []Phase, err error) {
	r, err := rig.Start(ctx, rig.Options{ControlPlane: c.ControlPlane, Audit: true, WithoutJoiner: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Stop()) }()
	for i := range c.Rounds {
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
