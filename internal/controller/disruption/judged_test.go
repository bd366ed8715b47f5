package disruption

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// D-09: what takes back the removal of one node: an empty one, or a replacement that nobody needs.
func TestWhatTakesARemovalBack(t *testing.T) {
	t.Parallel()
	const empty, abandoned = plan.Empty, plan.ReplacementAbandoned
	for name, c := range map[string]struct {
		reason plan.DisruptionReason
		change func(*cluster.Pool, *cluster.Node)
		used   int
		want   string
	}{
		"empty":     {empty, func(*cluster.Pool, *cluster.Node) {}, 0, ""},
		"no reason": {"", func(*cluster.Pool, *cluster.Node) {}, 0, "there is no reason for its removal"},
		"another reason": {"Mood", func(*cluster.Pool, *cluster.Node) {}, 0,
			"the reason Mood is none that this controller acts on"},
		"pool gone": {empty, func(_ *cluster.Pool, n *cluster.Node) { n.Pool = "gone" }, 0, "its NodePool is gone"},
		"not quiet": {empty, func(_ *cluster.Pool, n *cluster.Node) { n.ConsolidatableAt = 1001 }, 0,
			"it is not empty any more, or protected"},
		"in use": {empty, func(_ *cluster.Pool, n *cluster.Node) { n.Pods = []*cluster.Pod{{}} }, 0,
			"it is not empty any more"},
		"replaces": {empty, func(_ *cluster.Pool, n *cluster.Node) { n.Replaces = []string{"c1"} }, 0,
			"what it replaces is still there"},
		"promised": {empty, func(_ *cluster.Pool, n *cluster.Node) { n.Name = "promised" }, 0,
			"a pending pod was promised a place on it"},
		"no budget": {empty, func(*cluster.Pool, *cluster.Node) {}, 1,
			"the disruption budget of its NodePool does not allow"},
		"abandoned": {abandoned, func(*cluster.Pool, *cluster.Node) {}, 1, ""},
		"abandoned, pod": {abandoned, func(_ *cluster.Pool, n *cluster.Node) { n.Pods = []*cluster.Pod{{}} }, 0,
			"pods run on it"},
		"abandoned, daemon": {abandoned, func(_ *cluster.Pool,
			n *cluster.Node) {
			n.Pods = []*cluster.Pod{{Fixed: true}}
		}, 0,
			""},
		"abandoned, promised": {abandoned, func(_ *cluster.Pool, n *cluster.Node) { n.Claim = "promised" }, 0,
			"pods run on it"},
		"abandoned, held": {abandoned, func(_ *cluster.Pool, n *cluster.Node) { n.DoNotDisrupt = true }, 0,
			"do-not-disrupt is set"},
	} {
		pool, node := somePool(), someNode()
		c.change(pool, node)
		r := one(pool, node, &cluster.Pod{Name: "p", Promised: "promised"}, &cluster.Pod{Name: "q"})
		r.budgets["default"] = []engine.Budget{{Max: 1}}
		if got := objection(r, node, c.reason, map[string]int{"default": c.used}); !strings.Contains(got, c.want) ||
			(got == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// L-40, D-14: what takes a node back that goes within budgets only; it is counted already.
func TestWhatTakesAGentleRemovalBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		paused string
		held   bool
		used   int
		want   string
	}{
		"nothing": {"", false, 1, ""}, "paused": {"it is paused", false, 1, "it is paused"}, "held": {"", true, 1,
			"do-not-disrupt"},
		"budget": {"", false, 2, "the disruption budget of its NodePool does not allow it any more"},
	} {
		node := someNode()
		node.DoNotDisrupt = c.held
		r := one(somePool(), node)
		r.paused, r.budgets["default"] = c.paused, []engine.Budget{{Max: 1}}
		if got := objectionToGentle(r, node, map[string]int{"default": c.used}); !strings.Contains(got, c.want) ||
			(got == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// listed is a claim as the API server lists it.
func listed(name, reason string, deleted bool, replaces string) karpenterv1.NodeClaim {
	c := karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if reason != "" {
		condition.Set(&c.Status.Conditions, 0, condition.True(karpenterv1.ConditionTypeDisruptionReason, reason, ""), at(1))
	}
	if deleted {
		c.DeletionTimestamp = &metav1.Time{Time: at(1)}
	}
	if replaces != "" {
		c.Annotations = map[string]string{karpenterv1.ReplacesAnnotationKey: replaces}
	}
	return c
}

// L-42: which claims leave: what is deleted, marked for whatever reason, or replaced by a claim that stays. Those
// that are marked as too many, and not deleted yet, may be taken back.
func TestWhichClaimsLeave(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		claims  []karpenterv1.NodeClaim
		marked  []string
		leaving int64
	}{
		"none":           {[]karpenterv1.NodeClaim{listed("a", "", false, "")}, nil, 0},
		"too many":       {[]karpenterv1.NodeClaim{listed("a", "NodeLimitExceeded", false, "")}, []string{"a"}, 1},
		"replicas":       {[]karpenterv1.NodeClaim{listed("a", "ReplicasExceeded", false, "")}, []string{"a"}, 1},
		"another reason": {[]karpenterv1.NodeClaim{listed("a", "Drifted", false, "")}, nil, 1},
		"deleted":        {[]karpenterv1.NodeClaim{listed("a", "NodeLimitExceeded", true, "")}, nil, 1},
		"just deleted":   {[]karpenterv1.NodeClaim{listed("a", "", true, "")}, nil, 1},
		"replaced":       {[]karpenterv1.NodeClaim{listed("a", "", false, ""), listed("b", "", false, "a")}, nil, 1},
		"no more":        {[]karpenterv1.NodeClaim{listed("a", "", false, ""), listed("b", "", true, "a")}, nil, 1},
	} {
		s := &trimming{claims: map[string]*karpenterv1.NodeClaim{}}
		marked, leaving := s.read(c.claims)
		var names []string
		for _, claim := range marked {
			names = append(names, claim.Name)
		}
		if !slices.Equal(names, c.marked) || leaving != c.leaving || len(s.claims) != len(c.claims) {
			t.Errorf("%s: marked %v, %d leave, %d known; want %v, %d", name, names, leaving, len(s.claims), c.marked, c.leaving)
		}
	}
}

// L-41: claims are ordered as they are chosen to go; those that the picture does not have come last, by name.
func TestTheOrderOfClaims(t *testing.T) {
	t.Parallel()
	node := func(claim string, launched bool) *cluster.Node {
		return &cluster.Node{Claim: claim, Launched: launched, Registered: launched, Initialized: launched}
	}
	s := &cluster.Snapshot{Nodes: []*cluster.Node{{Name: "foreign"}, node("launched", true), node("new", false)}}
	var claims []*karpenterv1.NodeClaim
	for _, name := range []string{"unknown", "", "launched", "also unknown", "new"} {
		claims = append(claims, &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	slices.SortFunc(claims, byTrimOrder(s))
	var names []string
	for _, claim := range claims {
		names = append(names, claim.Name)
	}
	if want := []string{"new", "launched", "", "also unknown", "unknown"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}

// D-02: of many nodes some are asked why they stay, then the next ones, then the first again.
func TestSomeOfManyNodesAreAsked(t *testing.T) {
	t.Parallel()
	m := newMemory()
	for i, want := range [][2]int{{0, 2}, {2, 2}, {4, 2}, {0, 2}} {
		if first, count := m.next(5, 2); first != want[0] || count != want[1] {
			t.Errorf("search %d: %d from %d, want %v", i, count, first, want)
		}
	}
	if first, count := m.next(1, 2); first != 0 || count != 1 {
		t.Errorf("%d from %d of one", count, first)
	}
	if first, count := m.next(0, 2); first != 0 || count != 0 {
		t.Errorf("%d from %d of none", count, first)
	}
}

// D-14: what the switch said last is known to others that keep to it.
func TestWhatTheSwitchSaidLast(t *testing.T) {
	t.Parallel()
	c := New(Config{Metrics: metrics.New(prometheus.NewRegistry()), Events: &controllertest.Tape{}})
	for _, why := range []string{"release week", ""} {
		r := one(somePool(), someNode())
		if r.paused = why; c.LastPaused() == why && why != "" {
			t.Fatal("it is known before it was said")
		}
		if c.pause(&r); c.LastPaused() != why {
			t.Errorf("last %q, want %q", c.LastPaused(), why)
		}
	}
}
