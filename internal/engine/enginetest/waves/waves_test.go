package waves_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest/waves"
)

func parse(t *testing.T, script string) *cluster.Snapshot {
	t.Helper()
	s, err := enginetest.Parse(script)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sizes are nodes of 1 to 16 cores with 2, 4 and 8 GiB for each, at a price that is nearly linear, as clouds have
// them.
func sizes() string {
	var b strings.Builder
	for _, cores := range []int{1, 2, 4, 8, 16, 32, 64} {
		for _, ratio := range []int{2, 4, 8} {
			fmt.Fprintf(&b, "type %d-%d cpu=%d mem=%dGi od=%.4f\n", cores, ratio, cores, cores*ratio,
				float64(cores)*0.025+float64(cores*ratio)*0.001)
		}
	}
	return b.String()
}

// mix is B-10's, for so many pods: four fifths of mixed sizes, a fifth in five groups that keep apart by hostname.
func mix(pods int) string {
	b := sizes() + "pool default\n"
	for _, w := range []struct {
		name    string
		percent int
		asks    string
	}{
		{"tiny", 20, "cpu=250m mem=256Mi"}, {"small", 20, "cpu=500m mem=1Gi"}, {"medium", 20, "cpu=1 mem=2Gi"},
		{"large", 12, "cpu=2 mem=8Gi"}, {"memory", 8, "cpu=500m mem=6Gi"},
		{"apart-0", 4, "cpu=250m mem=512Mi apart=host"}, {"apart-1", 4, "cpu=250m mem=512Mi apart=host"},
		{"apart-2", 4, "cpu=500m mem=1Gi apart=host"}, {"apart-3", 4, "cpu=500m mem=1Gi apart=host"},
		{"apart-4", 4, "cpu=1 mem=2Gi apart=host"},
	} {
		b += fmt.Sprintf("pod %s-%d..%d %s labels=app=%s\n", w.name, 0, pods*w.percent/100-1, w.asks, w.name)
	}
	return b
}

// usual is how nodes come on the local control plane.
func usual(seed uint64) waves.Config {
	return waves.Config{
		Plan: engine.Provision, Seed: seed, Launch: 300, Spread: 500, Try: 5, Every: 100, Quiet: 1000, PutOff: 10_000,
		Slowest: 60_000, Limit: 600_000,
	}
}

// B-16: what is planned is what is launched, for B-10's mix, whatever the order in which nodes come up and pods are
// tried.
func TestWhatIsPlannedIsLaunched(t *testing.T) {
	t.Parallel()
	start := parse(t, mix(500))
	for seed := range uint64(5) {
		o := waves.Play(start, usual(seed))
		if o.Left > 0 || float64(o.Launched) > 1.15*float64(o.Planned) {
			t.Errorf("seed %d: %s; want at most 1.15 times the nodes planned", seed, o)
		}
	}
}

// B-16: where nodes come one after the other over ten seconds, what is planned is launched as long as the places of
// pods that keep apart are kept; without that the first nodes are full before those pods have their turn.
func TestKeptPlacesMakeOneWaveOfNodesThatComeApart(t *testing.T) {
	t.Parallel()
	start := parse(t, mix(500))
	for seed := range uint64(3) {
		c := usual(seed)
		c.Spread = 10_000
		without := waves.Play(start, c)
		c.Keep = engine.PlacesToKeep
		o := waves.Play(start, c)
		if o.Left > 0 || float64(o.Launched) > 1.15*float64(o.Planned) ||
			float64(without.Launched) <= 1.15*float64(without.Planned) {
			t.Errorf("seed %d: %s; want at most 1.15 times the nodes planned, and more without: %s", seed, o, without)
		}
	}
}

// B-16: on nodes of one size no place is kept once the open ones have room for half of the pods that wait, and what is
// planned is launched all the same.
func TestFewPlacesAreKeptWhereThereIsRoom(t *testing.T) {
	t.Parallel()
	start := parse(t, mix(500))
	for seed := range uint64(3) {
		c, kept := usual(seed), 0
		c.Keep = func(s *cluster.Snapshot, claim, node string, opens map[string]bool, now int64) []*cluster.Pod {
			pods := engine.PlacesToKeep(s, claim, node, opens, now)
			kept += len(pods)
			return pods
		}
		o := waves.Play(start, c)
		if o.Left > 0 || o.Launched > o.Planned || kept == 0 || kept > 70 { // of 100 that keep apart
			t.Errorf("seed %d: %s; %d places kept; want 1 to 70", seed, o, kept)
		}
	}
}

// The model shows what B-16 is about: further nodes come in waves where plans are made anew while the scheduler is at
// work.
func TestWithoutTheSchedulersTurnThereAreWaves(t *testing.T) {
	t.Parallel()
	start, c := parse(t, mix(500)), usual(1)
	c.Spread = 10_000
	with := waves.Play(start, c)
	c.Quiet = 0
	if o := waves.Play(start, c); o.Left > 0 || o.Waves <= with.Waves || o.Launched <= with.Launched {
		t.Errorf("%s; want more waves and nodes than: %s", o, with)
	}
}

// A play is a function of its arguments and its seed.
func TestAPlayIsAFunctionOfItsSeed(t *testing.T) {
	t.Parallel()
	start := parse(t, mix(100))
	c := usual(3)
	c.Quiet, c.Spread = 0, 5000
	if a, b := waves.Play(start, c), waves.Play(start, c); a != b {
		t.Errorf("%s, then %s", a, b)
	}
}

// K-60: pods come onto the emptiest node, away from their siblings, where constraints let them.
func TestTheSchedulerPrefers(t *testing.T) {
	t.Parallel()
	const nodes = `
type big   cpu=8 mem=32Gi od=0.4
type small cpu=4 mem=16Gi od=0.2
pool default
node empty   type=big   zone=a pool=default
node used    type=big   zone=a pool=default
node sibling type=big   zone=b pool=default
node tight   type=small zone=b pool=default
pod x0 node=used cpu=4 mem=16Gi labels=app=x
pod y0 node=sibling cpu=500m mem=2Gi labels=app=web
pod z0 node=tight cpu=3500m mem=1Gi labels=app=z
`
	for _, row := range []struct {
		pod, want string
		fits      []string
	}{
		{"cpu=1 mem=4Gi labels=app=new", "empty", []string{"empty", "sibling", "used"}},
		{"cpu=500m mem=2Gi labels=app=web apart=host", "empty", []string{"empty", "tight", "used"}},
		{"cpu=1 mem=1Gi need=zone=b labels=app=new", "sibling", []string{"sibling"}},
		{"cpu=9 labels=app=new", "", nil},
	} {
		s := parse(t, nodes+"pod new "+row.pod)
		scheduler := waves.NewScheduler(rand.New(rand.NewPCG(1, 1)), s.Namespaces)
		for _, node := range s.Nodes {
			scheduler.Open(node)
		}
		shape := s.Pending[0].Shape
		if fits := slices.Sorted(maps.Keys(scheduler.Scores(shape))); !slices.Equal(fits, row.fits) {
			t.Errorf("%s: fits on %v, want %v", row.pod, fits, row.fits)
		}
		if got := scheduler.Place(shape); got != row.want {
			t.Errorf("%s: placed on %q, want %q", row.pod, got, row.want)
		}
	}
}
