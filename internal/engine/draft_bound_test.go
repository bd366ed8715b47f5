package engine_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
)

// P-22, ADR 0030: a draft counts as good by what the pools that launch for pods may buy. Spot that the pool does not
// allow, and pools that launch nothing for pods, change no plan.
func TestWhatNobodyMayBuyChangesNoPlan(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		script, _ := diverse(rand.New(rand.NewPCG(seed, 0)), 100)
		with := func(pools ...string) string {
			return strings.Replace(script, "pool default\n", strings.Join(pools, "\n")+"\n", 1)
		}
		spot := strings.ReplaceAll(with("pool default need=capacity=on-demand"), " od=", " spot=0.01 od=")
		want := provisioned(t, script)
		for what, other := range map[string]string{
			"spot that the pool does not allow": spot,
			"a pool that is not ready":          with("pool default", "pool other weight=9 blocked=not_ready"),
			"a static pool":                     with("pool default", "pool fixed replicas=2"),
		} {
			if got := provisioned(t, other); got != want {
				t.Errorf("seed %d, with %s:\n%s\nand without:\n%s", seed, what, got, want)
			}
		}
	}
}

func provisioned(t *testing.T, script string) string {
	t.Helper()
	s, err := enginetest.Parse(script)
	if err != nil {
		t.Fatal(err)
	}
	return engine.Provision(s).String()
}
