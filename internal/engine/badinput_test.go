package engine_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

func provision(t *testing.T, script string, change func(*cluster.Snapshot)) (*cluster.Snapshot, plan.Plan) {
	t.Helper()
	snapshot, err := enginetest.Parse(script)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(snapshot)
	}
	return snapshot, engine.Provision(snapshot)
}

const onePool = `
type m5.large cpu=2 mem=8Gi zones=a,b od=0.096 spot=0.035
pool default
`

// P-12, X-09: each pod that nothing can satisfy gets a reason as its answer, and never a panic (docs/bad-input.md).
func TestBadInputGetsAReason(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, want string }{
		"too large": {onePool + "pod web cpu=65", "pod cpu=65 leaves 0 of 1 instance types"},
		"the largest number": {onePool + "pod web cpu=9223372036854775807m",
			"pod cpu=9223372036854775807m leaves 0 of 1"},
		"beside daemons": {onePool + "daemon logs cpu=1 tolerate=*\npod web cpu=9223372036854775807m",
			"leaves 0 of 1"},
		"beside pods": {
			onePool +
				"node n1 type=m5.large pool=default\npod old cpu=9223372036854775807m node=n1\npod web cpu=9223372036854775807m",
			"leaves 0 of 1",
		},
		"unknown resource":  {onePool + "pod web example.com/none=1", "pod example.com/none=1 leaves 0 of 1"},
		"unknown label":     {onePool + "pod web need=colour=red", "the pod requires colour=red"},
		"contradictory pod": {onePool + "pod web need=zone=a,zone=b", "contradict"},
		"contradictory pool": {"type t cpu=2 mem=8Gi od=0.1\npool default need=zone=a,zone=b\npod web cpu=1",
			"the pool's requirements on topology.kubernetes.io/zone contradict each other"},
		"contradictory labels": {"type t cpu=2 mem=8Gi od=0.1\npool default need=team=a,team=b\npod web cpu=1",
			"the pool's requirements on team contradict each other"},
		"no type": {"pool default\npod web cpu=1", "its node class offers nothing"},
		"no pool": {"pod web cpu=1", "there is no NodePool"},
		"nothing available": {"type t cpu=2 mem=8Gi zones=a od=0.1 unavailable=a\npool default\npod web cpu=1",
			"availability leaves 0 of 1"},
		"blocked pod": {onePool + "pod web blocked=its_claim_is_missing", "its claim is missing"},
		"minValues beyond all": {"type t cpu=2 mem=8Gi od=0.1\npool default minvalues=type:50\npod web cpu=1",
			"minValues asks for 50 values of node.kubernetes.io/instance-type, with only 1 left for the pod"},
		"a limit of nothing": {"type t cpu=2 mem=8Gi od=0.1\npool default limit.cpu=0\npod web cpu=1",
			"cpu 0 of 0 in use, another node adds 2 (soft limit)"},
		"a used-up huge limit": {
			"type t cpu=9223372036854775807m mem=8Gi od=0.1\npool default limit.cpu=9223372036854775806m\npod web cpu=1",
			"another node adds 9223372036854775807m (soft limit)",
		},
	} {
		_, p := provision(t, c.script, nil)
		if i := slices.IndexFunc(p.Unplaced, func(u plan.Unplaced) bool { return u.Pod.Name == "web" }); i < 0 ||
			!strings.Contains(p.Unplaced[i].String(), c.want) {
			t.Errorf("%s:\n%swant web unplaced with: %s", name, p, c.want)
		}
	}
}

// Many absurd requests do not add up to a small one.
func TestAbsurdRequestsDoNotOverflow(t *testing.T) {
	t.Parallel()
	for _, amount := range []int64{math.MaxInt64, math.MaxInt64/2 + 1, 1 << 56} {
		_, p := provision(t,
			fmt.Sprintf("%spod web-0..300 cpu=%dm mem=1Gi\npod apart-0..40 cpu=%dm apart=host spread=zone:1", onePool,
				amount, amount), nil)
		if len(p.Launches) > 0 || len(p.Unplaced) != 342 {
			t.Errorf("requests of %d: %d launches, %d unplaced", amount, len(p.Launches), len(p.Unplaced))
		}
	}
}

// Prices of 0 are prices.
func TestFreeTypesAreUsed(t *testing.T) {
	t.Parallel()
	_, p := provision(t,
		"type free cpu=2 mem=8Gi od=0\ntype dear cpu=4 mem=16Gi od=1\npool default\npod web-0..5 cpu=1500m\n"+
			"pod apart-0..1 cpu=1 apart=host labels=app=x",
		nil)
	if len(p.Unplaced) > 0 || p.Price() != 0 {
		t.Errorf("%s: want all on free nodes", p)
	}
}

// P-11: a catalogue that planning could not handle is refused as a whole, with the type, the offering, the value and
// what is allowed.
func TestBadCatalogsAreNamed(t *testing.T) {
	t.Parallel()
	good := catalog.Offering{Zone: "a", CapacityType: catalog.OnDemand, Price: 1, Available: true}
	offering := func(change func(*catalog.Offering)) []catalog.Offering {
		bad := good
		change(&bad)
		return []catalog.Offering{good, bad}
	}
	for want, c := range map[string]catalog.Type{
		"instance type without a name":                        {Offerings: []catalog.Offering{good}},
		"instance type t: has no offering; want at least one": {Name: "t"},
		"instance type t: capacity cpu is -1; want 0 or more": {Name: "t", Offerings: []catalog.Offering{good},
			Capacity: resources.Amounts{"cpu": -1}},
		"instance type t: overhead cpu is 2; want 0 to the": {Name: "t", Offerings: []catalog.Offering{good},
			Overhead: resources.Amounts{"cpu": 2}},
		"instance type t: offering 1: the zone is empty": {
			Name: "t", Offerings: offering(func(o *catalog.Offering) { o.Zone = "" }),
		},
		`offering 1: zone a: the capacity type is "cheap"; want`: {
			Name: "t", Offerings: offering(func(o *catalog.Offering) { o.CapacityType = "cheap" }),
		},
		"offering 1: on-demand in a: the price is -0.010; want 0": {
			Name: "t", Offerings: offering(func(o *catalog.Offering) { o.Price = -10_000 }),
		},
		"offering 1: on-demand in a: the price is unpriced; want": {
			Name: "t", Offerings: offering(func(o *catalog.Offering) { o.Price = resources.Unpriced }),
		},
	} {
		if err := (catalog.Catalog{Types: []catalog.Type{c}}).Validate(); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want %s", err, want)
		}
	}
	twice := catalog.Type{Name: "t", Offerings: []catalog.Offering{good}}
	if err := (catalog.Catalog{Types: []catalog.Type{twice, twice}}).Validate(); err == nil ||
		!strings.Contains(err.Error(), "t: listed twice") {
		t.Errorf("error %v; want listed twice", err)
	}
	for _, dollars := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -0.01, 1e7} {
		if _, err := resources.FromDollars(dollars); err == nil ||
			!strings.Contains(err.Error(), "want dollars per hour from 0 to 1000000") {
			t.Errorf("a price of %v: error %v", dollars, err)
		}
	}
}

// Unknown operators and empty keys are errors with the key, the operator and what is allowed.
func TestBadRequirementsAreNamed(t *testing.T) {
	t.Parallel()
	for want, make := range map[string]func() (requirement.Requirement, error){
		`"size": operator "Near" is none of In, NotIn, Exists`: func() (requirement.Requirement, error) {
			return requirement.New("size", "Near", "1")
		},
		`"": the key is empty; want the name of a label`: func() (requirement.Requirement, error) {
			return requirement.New("", requirement.Exists)
		},
		`"size": operator Gt needs an integer, got "NaN"`: func() (requirement.Requirement, error) {
			return requirement.New("size", requirement.Gt, "NaN")
		},
		`"size": operator Lt needs exactly one integer`: func() (requirement.Requirement, error) {
			return requirement.New("size", requirement.Lt, "1", "2")
		},
		`"size": operator Exists takes no values, got ["1"]`: func() (requirement.Requirement, error) {
			return requirement.New("size", requirement.Exists, "1")
		},
	} {
		if _, err := make(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want %s", err, want)
		}
	}
}

// Ten thousand requirements on a pool and on a pod, and values by the thousand, are planned with like few.
func TestTenThousandRequirements(t *testing.T) {
	t.Parallel()
	var labels, values []string
	for i := range 10_000 {
		labels = append(labels, fmt.Sprintf("k%d=v", i))
		values = append(values, fmt.Sprintf("v%d", i))
	}
	all := strings.Join(labels, ",")
	snapshot, p := provision(t, "type t cpu=4 mem=8Gi od=0.1\npool default need="+all+",one="+
		strings.Join(values, "|")+"\npod web-0..1 cpu=1 need="+all+",one="+strings.Join(values, "|")+
		"\npod odd cpu=1 need=k10000=v", nil)
	if len(p.Launches) != 1 || len(p.Launches[0].Pods) != 2 || len(p.Unplaced) != 1 ||
		!strings.Contains(p.Unplaced[0].String(), "the pod requires k10000=v") {
		t.Errorf("%d launches, %d unplaced", len(p.Launches), len(p.Unplaced))
	}
	if broken := enginetest.Check(snapshot, p, 0); broken != nil {
		t.Error(broken[0])
	}
}

// Each of these values alone could only come from a mistake of ours: an answer, not a panic.
func TestOddValuesDoNotPanic(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*cluster.Snapshot){
		"pool without a catalogue": func(s *cluster.Snapshot) { s.Pools[0].Catalog = nil },
		"pool without a name":      func(s *cluster.Snapshot) { s.Pools[0].Name = "" },
		"a limit below 0":          func(s *cluster.Snapshot) { s.Pools[0].Limits.HardNodes = -5 },
		"usage above the limit": func(s *cluster.Snapshot) {
			s.Pools[0].Limits.SoftNodes, s.Pools[0].Used = 1,
				limit.Usage{Nodes: 9}
		},
		"slots but no limit": func(s *cluster.Snapshot) { s.Pools[0].FreeSlots = []int{7, 3} },
		"taint without key":  func(s *cluster.Snapshot) { s.Pools[0].Taints = []cluster.Taint{{}} },
		"pod without names": func(s *cluster.Snapshot) {
			s.Pending[0].Name, s.Pending[0].Namespace,
				s.Pending[0].UID = "", "", ""
		},
		"pod promised to nobody": func(s *cluster.Snapshot) { s.Pending[0].Promised = "gone" },
		"spread over no label":   func(s *cluster.Snapshot) { s.Pending[0].Shape.Spread = []cluster.Spread{{}} },
		"spread with skew below 0": func(s *cluster.Snapshot) {
			s.Pending[0].Shape.Spread = []cluster.Spread{
				{Key: "topology.kubernetes.io/zone", MaxSkew: -1, MinDomains: -4},
			}
		},
		"terms over no label": func(s *cluster.Snapshot) {
			s.Pending[0].Shape.AntiAffinity = []cluster.AffinityTerm{{}}
		},
		"wish of nothing": func(s *cluster.Snapshot) {
			s.Pending[0].Shape.Wishes = []cluster.Wish{{Weight: -1}, {}}
		},
		"nothing requested":     func(s *cluster.Snapshot) { s.Pending[0].Shape.Requests = nil },
		"node without capacity": func(s *cluster.Snapshot) { s.Nodes[0].Allocatable = nil },
		"node used beyond capacity": func(s *cluster.Snapshot) {
			s.Nodes[0].Used = resources.Vector{math.MaxInt64, math.MaxInt64}
		},
		"node below nothing": func(s *cluster.Snapshot) {
			s.Nodes[0].Allocatable, s.Nodes[0].Used = resources.Vector{math.MinInt64}, resources.Vector{math.MaxInt64}
		},
	} {
		snapshot, p := provision(t, onePool+
			"node n1 type=m5.large zone=a pool=default\npod web cpu=1 labels=app=web\npod other cpu=1500m", change)
		if placed := len(p.Order) + len(p.Unplaced); placed != len(snapshot.Pending) {
			t.Errorf("%s: %d of %d pods have an answer\n%s", name, placed, len(snapshot.Pending), p)
		}
	}
}
