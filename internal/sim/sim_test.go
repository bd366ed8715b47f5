package sim_test

import (
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/sim"
)

func ground(t *testing.T) *sim.Ground {
	t.Helper()
	g, err := sim.NewGround()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestTrial(t *testing.T) {
	g := ground(t)
	begun := time.Now()
	for seed := range uint64(20) {
		r := sim.Run(g, sim.Generate(seed), nil)
		if r.Violation != "" {
			t.Errorf("seed %d at %s: %s: %s", seed, r.At, r.Check, r.Violation)
		}
		t.Logf("%d: %d steps %d deaths %d launches %s", seed, r.Steps, r.Deaths, r.Launches, r.At)
	}
	t.Log(time.Since(begun) / 20)
}
