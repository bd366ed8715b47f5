package cases_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-autoscaler/joiner/localcluster/oracle"
	"github.com/joiner-autoscaler/joiner/localcluster/oracle/cases"
)

const (
	fixedSeeds = 5000
	freshSeeds = 1000
	// minimised bounds how many failing cases are minimised and printed: each takes some thousand runs.
	minimised = 3
	// seedVariable names a single seed to run instead.
	seedVariable = "JOINER_ORACLE_SEED"
	// freshVariable names how many fresh seeds run after the fixed ones, instead of freshSeeds; 0 for none.
	freshVariable = "JOINER_ORACLE_FRESH"
)

func newJudge(t *testing.T) *cases.Judge {
	t.Helper()
	o, err := oracle.New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return cases.NewJudge(o)
}

// found is the result of a run over many seeds.
type found struct {
	mu                         sync.Mutex
	failing                    map[uint64]oracle.Violation
	placed, launched, unplaced int
}

// seeds lists those of the test: the fixed ones and fresh ones, which differ with each run; or the one that the
// environment names.
func seeds(t *testing.T) []uint64 {
	t.Helper()
	if text := os.Getenv(seedVariable); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s is %q; want a number", seedVariable, text)
		}
		return []uint64{seed}
	}
	list := kept()
	for i := range uint64(fixedSeeds) {
		list = append(list, i)
	}
	number := uint64(freshSeeds)
	if text := os.Getenv(freshVariable); text != "" {
		var err error
		if number, err = strconv.ParseUint(text, 10, 32); err != nil {
			t.Fatalf("%s is %q; want a number", freshVariable, text)
		}
	}
	fresh := uint64(time.Now().UnixNano()) | 1<<63 // far from the fixed ones
	t.Logf("%d fresh seeds from %d on", number, fresh)
	for i := range number {
		list = append(list, fresh+i)
	}
	return list
}

// kept returns seeds beyond the fixed ones that once failed. A seed means something only with the generator with which
// it was found: after a change of the generator, replace them.
func kept() []uint64 {
	return []uint64{4208, 4638, 6168, 22926, 28991, 11018598615201200165, 11018598615201200848, 11018601386148421078,
		11018764912246155093, 11018766658079824802, 11018768291710190528, 11018768533708442414, 11018768921758645441}
}

// P-21: generated clusters have all that the engine claims to understand. In each, according to kube-scheduler's own
// filters, every pod can be bound where it was planned, whichever offering each claim gets.
func TestOracleAdmitsEveryPlan(t *testing.T) {
	t.Parallel()
	start, list := time.Now(), seeds(t)
	result := &found{failing: map[uint64]oracle.Violation{}}
	var group sync.WaitGroup
	for worker := range runtime.GOMAXPROCS(0) {
		judge := newJudge(t)
		group.Go(func() {
			for i := worker; i < len(list); i += runtime.GOMAXPROCS(0) {
				result.run(t, judge, list[i])
			}
		})
	}
	group.Wait()
	took := time.Since(start)
	t.Logf("%d cases in %s (%.0f/s): %d pods placed, %d nodes launched, %d pods unplaced", len(list),
		took.Round(time.Millisecond),
		float64(len(list))/took.Seconds(), result.placed, result.launched, result.unplaced)
	if len(list) > 1 && result.placed < len(list) {
		t.Errorf("%d pods placed in %d cases: the generator makes nothing of interest", result.placed, len(list))
	}
	result.report(t)
}

func (f *found) run(t *testing.T, judge *cases.Judge, seed uint64) {
	out, err := judge.Run(context.Background(), cases.Generate(seed))
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		t.Errorf("seed %d: %v", seed, err)
		return
	}
	f.placed, f.launched, f.unplaced = f.placed+out.Placed, f.launched+len(out.Plan.Launches),
		f.unplaced+len(out.Plan.Unplaced)
	if len(out.Violations) > 0 {
		f.failing[seed] = out.Violations[0]
	}
}

// report fails the test with all failing seeds, by plugin and reason, and with the first of them minimised.
func (f *found) report(t *testing.T) {
	t.Helper()
	byReason := map[string][]uint64{}
	for seed, v := range f.failing {
		byReason[v.Plugin+": "+v.Reason] = append(byReason[v.Plugin+": "+v.Reason], seed)
	}
	judge := newJudge(t)
	printed := 0
	for reason, list := range byReason {
		slices.Sort(list)
		t.Errorf("%d cases: %s: seeds %v", len(list), reason, list)
		if printed++; printed <= minimised {
			small := judge.Minimise(t.Context(), cases.Generate(list[0]))
			t.Errorf("seed %d, made small:\n%s", list[0], judge.Report(t.Context(), small))
		}
	}
}

// The same seed gives the same case; else no seed could be run again.
func TestCasesAreAFunctionOfTheSeed(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		if first, second := cases.Generate(seed).YAML(), cases.Generate(seed).YAML(); first != second {
			t.Fatalf("seed %d gives\n%s\nand then\n%s", seed, first, second)
		}
	}
}

// A planner that puts pods on random nodes is caught by each of the plugins: the generated cases exercise them all.
func TestOracleCatchesARecklessPlanner(t *testing.T) {
	t.Parallel()
	judge, seen, caught := newJudge(t), map[string]int{}, 0
	for seed := range uint64(600) {
		source := rand.New(rand.NewPCG(seed, 7))
		judge.Spoil = func(before *oracle.Cluster, p *oracle.Plan) { scatter(source, before, p) }
		out, err := judge.Run(t.Context(), cases.Generate(seed))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if len(out.Violations) > 0 {
			caught++
		}
		for _, v := range out.Violations {
			seen[v.Plugin]++
		}
	}
	t.Logf("%d of 600 reckless plans caught: %v", caught, seen)
	for _, plugin := range []string{
		"NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit", "PodTopologySpread",
		"InterPodAffinity",
	} {
		if seen[plugin] == 0 {
			t.Errorf("no violation of %s", plugin)
		}
	}
}

// scatter moves every placed pod to a random node.
func scatter(source *rand.Rand, before *oracle.Cluster, p *oracle.Plan) {
	var nodes []string
	for _, node := range before.Nodes {
		if !slices.Contains(p.Gone, node.Name) {
			nodes = append(nodes, node.Name)
		}
	}
	for _, node := range p.Launched {
		nodes = append(nodes, node.Name)
	}
	var pods []types.NamespacedName
	for pod := range p.Placed {
		pods = append(pods, pod)
	}
	slices.SortFunc(pods, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	for _, pod := range pods {
		p.Placed[pod] = nodes[source.IntN(len(nodes))]
	}
}

// A minimised case still fails for the same reason, and is small.
func TestMinimisedCasesAreSmall(t *testing.T) {
	t.Parallel()
	judge := newJudge(t)
	judge.Spoil = func(_ *oracle.Cluster, p *oracle.Plan) {
		for _, node := range p.Launched { // a provider that gives nodes the wrong zone
			node.Labels["topology.kubernetes.io/zone"] = "nowhere"
		}
	}
	for seed := uint64(0); ; seed++ {
		if seed == 1000 {
			t.Fatal("no case in which a pod wants a zone")
		}
		c := cases.Generate(seed)
		out, err := judge.Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if len(out.Violations) == 0 || out.Violations[0].Plugin != "NodeAffinity" || len(c.Pods) < 6 {
			continue
		}
		small := judge.Minimise(t.Context(), c)
		report := judge.Report(t.Context(), small)
		if len(small.Pods) != 1 || len(small.Pools) != 1 || len(small.Types) != 1 ||
			!strings.Contains(report, "need=") ||
			!strings.HasPrefix(report, fmt.Sprintf("NodeAffinity: pod %s/", small.Pods[0].Namespace)) {
			t.Errorf("seed %d: %d pods, %d pools, %d types:\n%s", seed, len(small.Pods), len(small.Pools),
				len(small.Types), report)
		}
		return
	}
}
