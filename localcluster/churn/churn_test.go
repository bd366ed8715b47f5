package churn

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/joiner-autoscaler/joiner/localcluster/rig"
	"github.com/joiner-autoscaler/joiner/localcluster/shared"
)

// length is for how long the users of a short run act. Coming to rest and cleaning up take as long again, or longer.
const length = 12 * time.Second

// A short run: the same seed each time, and one that nobody has seen. `make churn` runs longer ones.
func TestRandomUsers(t *testing.T) {
	ctrllog.SetLogger(logr.Discard())
	options, err := rig.FromEnv()
	if err != nil {
		t.Fatal(err)
	}
	starting, cancel := context.WithTimeout(t.Context(), shared.StartTimeout)
	defer cancel()
	town, err := Start(starting, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := town.Stop(); err != nil {
			t.Errorf("stopping the town: %v", err)
		}
	})
	for _, seed := range []uint64{3, rand.Uint64N(FreshSeeds)} {
		t.Logf("seed %d", seed)
		report, err := town.Run(t.Context(), seed, length)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		t.Log(report)
		if len(report.Faults) > 0 {
			t.Fatal(town.Show(report))
		}
	}
}
