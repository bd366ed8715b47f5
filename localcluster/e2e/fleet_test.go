package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/joiner-autoscaler/joiner/localcluster/rig"
	"github.com/joiner-autoscaler/joiner/localcluster/shared"
)

// The size of the fleet and how often joiner is killed; `make e2e` sets the sizes that the specification asks for.
const (
	fleetNodesEnv = "JOINER_FLEET_NODES"
	fleetKillsEnv = "JOINER_FLEET_KILLS"
	// fleetCalmEnv asks for the same life without kills, too, to compare the price. Both must meet the same demands.
	fleetCalmEnv = "JOINER_FLEET_CALM"
)

func fromEnv(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q: want a number from 1", name, text)
	}
	return n
}

const (
	guarded, guardedLeast = 20, 18 // pods of the Deployment under a PodDisruptionBudget, and its minimum
	fleetBudget           = 10     // percent of the pool
	fleetPatience         = 30 * time.Minute
	largeFleet            = 100 // nodes
)

// onDemand excludes the spot market: spot nodes are not replaced by cheaper spot nodes (D-05).
const onDemand = "\n- {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}"

// fleet is what the test watches while the cluster changes.
type fleet struct {
	*testRig
	mu       sync.Mutex
	claims   map[string]claimState
	changed  time.Time       // when a claim came, went or was chosen last
	running  map[string]bool // guarded pods that run
	least    int             // fewest guarded pods since all ran
	launched int
	rolling  bool // guarded pods are counted
	moments  []budgetMoment
	since    uint64 // revision from which budgets are checked
	curve    []string
	told     int // bytes of joiner's log that decisions has read
}

type claimState struct{ going, old bool }

func newFleet(t *testing.T) *fleet {
	f := &fleet{testRig: newRig(t, wholeLog), claims: map[string]claimState{}, running: map[string]bool{},
		changed: time.Now()}
	f.follow(claimResource, "", f.takeClaim)
	f.follow(nodeResource, "", func(kind watch.EventType, node *unstructured.Unstructured) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.takeMoment(kind, nodeResource, node)
	})
	f.follow(podResource, "app=guarded", f.takePod)
	return f
}

func (f *fleet) takeClaim(kind watch.EventType, object *unstructured.Unstructured) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.takeMoment(kind, claimResource, object)
	before, known := f.claims[object.GetName()]
	if kind == watch.Deleted {
		delete(f.claims, object.GetName())
		f.changed = time.Now()
		return
	}
	now := claimState{going: going(object), old: object.GetLabels()["generation"] != "two"}
	f.claims[object.GetName()] = now
	if !known {
		f.launched++
	}
	if !known || now.going != before.going {
		f.changed = time.Now()
	}
}

// takeMoment notes what budgets depend on, for the judgement at the end of the test. f.mu is held.
func (f *fleet) takeMoment(kind watch.EventType, resource schema.GroupVersionResource,
	object *unstructured.Unstructured) {
	m, err := budgetOf(kind, resource, object)
	if err != nil {
		f.t.Error(err)
		return
	}
	f.moments = append(f.moments, m)
}

func (f *fleet) takePod(kind watch.EventType, object *unstructured.Unstructured) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var pod corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &pod); err != nil {
		f.t.Errorf("reading pod %s: %v", object.GetName(), err)
	}
	delete(f.running, pod.Name)
	if kind != watch.Deleted && pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
		f.running[pod.Name] = true
	}
	if f.rolling {
		f.least = min(f.least, len(f.running))
	}
}

// sample notes the number of nodes and their price every few seconds, until stop is called.
func (f *fleet) sample(start time.Time) (stop func()) {
	ctx, cancel := context.WithCancel(f.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			nodes, err := f.nodes(ctx)
			if err == nil {
				f.curve = append(f.curve, fmt.Sprintf("%4.0f s %4d nodes %8.3f $/h", time.Since(start).Seconds(),
					len(nodes), priceOf(nodes)))
			}
			select {
			case <-ctx.Done():
			case <-time.After(5 * time.Second):
			}
		}
	}()
	return func() { cancel(); <-done }
}

func priceOf(nodes map[string]corev1.Node) float64 {
	sum := 0.0
	for _, node := range nodes {
		if price, err := strconv.ParseFloat(node.Labels["eks-node-viewer/instance-price"], 64); err == nil {
			sum += price
		}
	}
	return sum
}

// killer kills joiner at random moments and starts it again, until all kills are done or stop is called.
func (f *fleet) killer(kills int) (stop func() int) {
	ctx, cancel := context.WithCancel(f.t.Context())
	done, killed := make(chan struct{}), 0
	go func() {
		defer close(done)
		for ; killed < kills; killed++ {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Second + rand.N(5*time.Second)):
			}
			if err := f.KillJoiner(); err != nil {
				f.t.Errorf("kill %d: %v", killed, err)
				return
			}
			if err := f.StartJoiner(f.t.Context()); err != nil {
				f.t.Errorf("after kill %d: %v", killed, err)
				return
			}
		}
	}()
	return func() int { cancel(); <-done; return killed }
}

// still returns how long nothing may happen.
func still(n int) time.Duration {
	if n < largeFleet {
		return 15 * time.Second
	}
	return time.Minute
}

// quiet waits until no claim has come, gone or been chosen for a while, and is reports the end. It returns how long
// that took from start, without the wait. With a needless node it is not the end, however quiet. Otherwise the number
// of nodes and their price depend on timing: they are only figures.
func (f *fleet) quiet(start time.Time, still time.Duration, what string, is func() bool) time.Duration {
	f.t.Helper()
	var took time.Duration
	if err := f.Eventually(f.t.Context(), fleetPatience, what, func(ctx context.Context) (bool, string, error) {
		restless, at := f.restless(still)
		took = at.Sub(start)
		if restless != "" || !is() {
			return false, "not quiet, or not at the end: " + restless, nil
		}
		needless, err := f.needless(ctx)
		return needless == "", "quiet, but " + needless, err
	}); err != nil {
		f.t.Fatal(err)
	}
	return took
}

// restless returns what goes on, or "", and when a claim last came, went or was chosen.
func (f *fleet) restless(still time.Duration) (string, time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	going, old := 0, 0
	for _, c := range f.claims {
		if c.going {
			going++
		}
		if c.old {
			old++
		}
	}
	if since := time.Since(f.changed); going > 0 || since <= still {
		return fmt.Sprintf("%d claims, %d going, %d of the old template, the last change %.0f s ago", len(f.claims),
			going, old, since.Seconds()), f.changed
	}
	return "", f.changed
}

// rolled reports whether every claim is of the new template.
func (f *fleet) rolled() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.claims {
		if c.old {
			return false
		}
	}
	return true
}

// whole demands that nothing is left over: every pod runs, claims and nodes correspond, no node is marked.
func (f *fleet) whole(pods int) {
	f.t.Helper()
	f.allRunning(pods, later)
	f.oneNodePerClaim()
	nodes, err := f.nodes(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	for name, node := range nodes {
		for _, taint := range node.Spec.Taints {
			f.t.Errorf("node %s has the taint %s", name, taint.ToString())
		}
	}
}

// wholeLog makes Joiner write all lines of its log, even if many are alike.
func wholeLog(o *rig.Options) { o.Args = append(o.Args, "--log-format=joiner") }

// decisions counts joiner's decisions in its log since the count before: removals by reason, and those that it took
// back.
func (f *fleet) decisions() string {
	f.t.Helper()
	log, err := os.ReadFile(f.JoinerLog())
	if err != nil {
		f.t.Fatal(err)
	}
	counts := map[string]int{}
	for line := range bytes.Lines(log[f.told:]) {
		var decision struct{ Msg, Reason string }
		if json.Unmarshal(line, &decision) != nil {
			continue // a panic, or the end of a line that a kill cut off
		}
		switch decision.Msg {
		case "removing":
			counts[decision.Reason]++
		case "cancelled a removal":
			counts["taken back"]++
		}
	}
	f.told = len(log)
	var list []string
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, fmt.Sprintf("%s %d", what, counts[what]))
	}
	return strings.Join(list, ", ")
}

// live takes a fleet of n nodes through its life, and returns its price in the end, in dollars per hour.
func (f *fleet) live(n, kills int) float64 {
	f.apply(kwokPool("default", amd64Linux+onDemand,
		fmt.Sprintf("disruption: {consolidateAfter: 5s, budgets: [{nodes: '%d%%'}]}", fleetBudget)))
	f.apply(deployment("apart", n, "{cpu: 900m, memory: 1Gi}", oneEach("apart")))
	f.apply(deployment("filler", 4*n, "{cpu: 500m, memory: 2Gi}", ""))
	f.apply(deployment("guarded", guarded, "{cpu: 300m, memory: 512Mi}", "") +
		guard("guarded", fmt.Sprintf("minAvailable: %d", guardedLeast)))
	start := time.Now()
	f.allRunning(5*n+guarded, fleetPatience)
	f.mu.Lock()
	f.t.Logf("%d pods on %d nodes after %.0f s, launched %d", 5*n+guarded, len(f.claims), time.Since(start).Seconds(),
		f.launched)
	f.launched, f.rolling, f.least = 0, true, len(f.running)
	for _, m := range f.moments {
		f.since = max(f.since, m.revision)
	}
	f.mu.Unlock()

	start = time.Now()
	stopSample, stopKiller := f.sample(start), f.killer((kills+1)/2)
	few := n / 10
	f.run("scale", "deployment", "apart", fmt.Sprintf("--replicas=%d", few))
	f.run("scale", "deployment", "filler", fmt.Sprintf("--replicas=%d", 4*few))
	took := f.quiet(start, still(n), "the fleet to be quiet after the cut", func() bool {
		pods, err := f.pods(f.t.Context())
		return err == nil && len(pods) == 5*few+guarded
	})
	killed := stopKiller()
	stopSample()
	f.whole(5*few + guarded)
	f.mu.Lock()
	if most := n / 2; len(f.claims) > most {
		f.t.Logf("finding: consolidation came to rest at %d nodes for %d pods; it usually ends at %d or fewer",
			len(f.claims), 5*few+guarded, most)
	}
	f.t.Logf(
		"cut to 10 %%: quiet %.0f s after it; %d nodes launched on the way; killed %d times; "+
			"at least %d of %d guarded pods ran; decided: %s\n%s",
		took.Seconds(), f.launched, killed, f.least, guarded, f.decisions(), strings.Join(f.curve, "\n"))
	f.launched, f.curve = 0, nil
	f.mu.Unlock()

	start = time.Now()
	stopSample, stopKiller = f.sample(start), f.killer(kills-killed)
	f.run("patch", "nodepool", "default", "--type=merge", "-p",
		`{"spec":{"template":{"metadata":{"labels":{"generation":"two"}}}}}`)
	took = f.quiet(start, still(n), "every node to be of the new template", f.rolled)
	killed += stopKiller()
	stopSample()
	f.whole(5*few + guarded)
	price := f.price()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.t.Logf(
		"drift roll: quiet %.0f s after the change; %d nodes, %d launched on the way, $%.3f/h; "+
			"killed %d times in all; at least %d of %d guarded pods ran; decided: %s\n%s",
		took.Seconds(), len(f.claims), f.launched, price, killed, f.least, guarded, f.decisions(),
		strings.Join(f.curve, "\n"))
	for _, line := range overBudget(f.moments, f.since, fleetBudget) {
		f.t.Error(line)
	}
	if f.least < guardedLeast {
		f.t.Errorf("%d guarded pods ran; the PodDisruptionBudget asks for %d", f.least, guardedLeast)
	}
	if kills > 0 && killed < kills {
		f.t.Errorf("killed %d times of %d", killed, kills)
	}
	return price
}

// D-01, D-04, D-08, D-10, D-15, X-06: a fleet's workload is cut to a tenth, and then all that is left is rolled,
// within a budget of ten percent. The same happens while joiner is killed at random moments: the end is the same, and
// nothing is left over.
func TestFleet(t *testing.T) {
	nodes, kills := fromEnv(t, fleetNodesEnv, 20), fromEnv(t, fleetKillsEnv, 8)
	var calm, killed float64
	if nodes < largeFleet {
		t.Parallel()
	}
	if shared.Asked(t, fleetCalmEnv, "take a fleet through its life without kills, too") {
		t.Run("Calm", func(t *testing.T) { calm = newFleet(t).live(nodes, 0) })
	}
	t.Run("Killed", func(t *testing.T) { killed = newFleet(t).live(nodes, kills) })
	// Where consolidation comes to rest depends on timing, with kills and without. Both had to end without a needless
	// node.
	if calm > 0 && killed > 1.1*calm { // 0: only the other half was run
		t.Logf("finding: the fleet costs $%.3f/h after the kills, $%.3f/h without", killed, calm)
	}
}
