package pack

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/mix"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/topology"
	"github.com/joiner-autoscaler/joiner/internal/engine/script"
)

// alone is a cluster, and what one rule by itself says of the pod "asks".
type alone struct {
	rule   rule
	says   string
	script string
	// refuses: the existing nodes that are refused, with "now" for topology.Now. opens: the types left for new nodes,
	// by pool. narrows: the types left of a node of each pool, after the pod "on", if there is one, was placed on it.
	// explains: why no pool launches.
	refuses, opens, narrows, explains string
	ties                              bool
}

const types = "type m cpu=2 mem=8Gi zones=a,b od=0.1\ntype x cpu=4 mem=16Gi zones=a,b od=0.2\n"

var aloneTests = []alone{
	{rule: blockedRule{}, says: "a pod that waits for its volume goes nowhere",
		script: types + "pool p\npod asks cpu=1 blocked=no-volume",
		opens:  "p: -", narrows: "p: m x", explains: "p: no-volume"},
	{rule: deviceRule{}, says: "a pod with claims goes where its devices are, and to no new node",
		script: types +
			"pool p\nnode n1 type=m zone=a pool=p\nnode n2 type=m zone=a pool=p\nnode n3 type=m zone=a pool=p new\n" +
			"devices n1 gpu=1\ndevices n2 gpu=2\ndevices n3 gpu=2\nresourceclaim two gpu=2\npod asks cpu=1 devices=two",
		refuses: "n1 n3", opens: "p: -", narrows: "p: m x", ties: true,
		explains: "p: ResourceClaim default/two (2 gpu): node n2 has them, and the pod cannot run there for another reason"},
	{rule: poolRule{}, says: "a static pool launches nothing for pods",
		script: types + "pool p\npool static replicas=1\npod asks cpu=1",
		opens:  "p: m x; static: -", narrows: "p: m x; static: m x",
		explains: "p: -; static: it is static: spec.replicas sets its number of nodes, waiting pods do not"},
	{rule: taintRule{}, says: "a taint that is not tolerated keeps pods away, of nodes and of pools",
		script: types + "pool p\npool t taint=gpu:NoSchedule\npool asks taint=gpu:PreferNoSchedule\n" +
			"node n1 type=m zone=a pool=p\nnode n2 type=m zone=a pool=t taint=gpu:NoSchedule\npod asks cpu=1",
		refuses: "n2", opens: "asks: m x; p: m x; t: -", narrows: "asks: m x; p: m x; t: m x",
		explains: "asks: -; p: -; t: taint gpu:NoSchedule is not tolerated"},
	{rule: offerRule{}, says: "the pool's requirements and what is available are filters of their own",
		script: types + "pool p need=type=x\npool none need=zone=c\npod asks cpu=1",
		opens:  "none: -; p: x", narrows: "none: -; p: x",
		explains: "none: topology.kubernetes.io/zone=c (2→0); p: node.kubernetes.io/instance-type=x (2→1)"},
	{rule: selectionRule{}, says: "each alternative is a way",
		script: types + "pool p\nnode n1 type=m zone=a pool=p\nnode n2 type=x zone=a pool=p\n" +
			"node n3 type=m zone=b pool=p\npod asks cpu=1 need=type=x need=zone=b",
		refuses: "n1", opens: "p: x | m x", narrows: "p: m x",
		explains: "p: node.kubernetes.io/instance-type=x (2→1)"},
	{rule: stockRule{}, says: "a reservation that is used up is none",
		script: "type m cpu=2 mem=8Gi reserved=0 reservation=1\npool p\n" +
			"node n1 type=m zone=a pool=p labels=capacity=reserved\npod asks cpu=1",
		opens: "p: -", narrows: "p: -", explains: "p: left in reservations (1→0)"},
	{rule: roomRule{}, says: "what pods and daemons request has to fit",
		script: types + "daemon logs cpu=500m\npool p\nnode n1 type=m zone=a pool=p\nnode n2 type=x zone=a pool=p\n" +
			"pod on cpu=1\npod asks cpu=1600m",
		refuses: "n1", opens: "p: m x", narrows: "p: x", explains: "p: cpu=1600m (2→1)"},
	{rule: attachRule{}, says: "a volume that the node has takes no further place among those that it can attach",
		script: "type m cpu=2 mem=8Gi volumes=1 zones=a od=0.1\ntype x cpu=4 mem=16Gi volumes=3 od=0.2\npool p\n" +
			"node n1 type=m zone=a pool=p attached=v1\nnode n2 type=m zone=a pool=p attached=v9\nnode n3 type=m zone=a pool=p\n" +
			"pod on cpu=100m shares=v1\npod asks cpu=1 shares=v1,v2,v2",
		refuses: "n1 now n2 now n3 now", opens: "p: m x", narrows: "p: x", ties: true,
		explains: "p: volumes=2 (2→1)"},
	{rule: storageRule{},
		says: "a volume is made where enough is left; of a new node it is not known, but where capacities say so",
		script: types +
			"pool p\nnode n1 type=m zone=a pool=p\nnode n2 type=m zone=b pool=p\nnode n3 type=m zone=b pool=p\n" +
			"node n4 type=m zone=b pool=p new\ncapacity c1 class=fast nodes=zone=a left=20Gi\n" +
			"capacity c2 class=fast nodes=host=n2 left=5Gi\n" +
			"pod asks cpu=1 make=fast:10Gi",
		refuses: "n2 n3", opens: "p: m x", narrows: "p: m x", ties: true, explains: "p: -"},
	{rule: driverRule{}, says: "a node without the driver is left out, a new one is expected to get it",
		script: types + "pool p\nnode n1 type=m zone=a pool=p drivers=ebs\nnode n2 type=m zone=a pool=p\n" +
			"node n3 type=m zone=a pool=p new\npod asks cpu=1 drivers=ebs",
		refuses: "n2", opens: "p: m x", narrows: "p: m x", explains: "p: -"},
	{rule: passedOverRule{}, says: "a pod is not placed where the scheduler passed it over, for now",
		script: types + "pool p\nnode n1 type=m zone=a pool=p\nnode n2 type=m zone=a pool=p\n" +
			"pod asks cpu=1 passed-over=n1",
		refuses: "n1 now", opens: "p: m x", narrows: "p: m x", explains: "p: -"},
	{rule: daemonRule{}, says: "a daemon that is still to come keeps pods away: by its port, and by anti-affinity",
		script: types + "daemon logs cpu=100m port=80 labels=app=logs need=type=m\npool p\n" +
			"node n1 type=m zone=a pool=p\nnode n2 type=x zone=a pool=p\n" +
			"pod asks cpu=1 port=80 labels=app=logs apart=host",
		refuses: "n1", opens: "p: x", narrows: "p: m x", explains: "p: -"},
	{rule: topologyRule{}, says: "pods that keep apart share no zone; what is open is decided for the pod",
		script: types + "pool p\npool b need=zone=b\nnode n1 type=m zone=a pool=p\nnode n2 type=m zone=b pool=p\n" +
			"pod w node=n1 cpu=1 labels=app=w\npod asks cpu=1 labels=app=w apart=zone",
		refuses: "n1", opens: "b: m x; p: m x", narrows: "b: m x; p: m x", ties: true,
		explains: "b: pod anti-affinity over topology.kubernetes.io/zone leaves no place for a new node; " +
			"p: pod anti-affinity over topology.kubernetes.io/zone leaves no place for a new node"},
	{rule: portRule{}, says: "one port, one pod",
		script: types +
			"pool p\nnode n1 type=x zone=a pool=p\nnode n2 type=x zone=a pool=p\npod w node=n1 cpu=1 port=80\n" +
			"pod on cpu=1 port=80\npod asks cpu=1 port=80",
		refuses: "n1", opens: "p: m x", narrows: "p: -", ties: true,
		explains: "p: -"},
	{rule: reservationRule{}, says: "a new node is in one reservation or in none",
		script: "type m cpu=2 mem=8Gi od=0.1 reserved=0 reservation=1\ntype x cpu=4 mem=16Gi od=0.2\npool p\npod asks cpu=1",
		opens:  "p: m x", narrows: "p: m", explains: "p: -"},
	{rule: commitmentRule{}, says: "a node is on the first commitment that has enough left, or on none",
		script: types + "commitment used need=type=x instances=1\ncommitment plan need=type=m hourly=0.15\npool p\n" +
			"node n1 type=x zone=a pool=p capacity=on-demand\npod asks cpu=1",
		opens: "p: m x", narrows: "p: m", explains: "p: -"},
	{rule: spotShareRule{}, says: "a node that would be one spot node too many is none",
		script: "type m cpu=2 mem=8Gi od=0.1 spot=0.03\ntype x cpu=4 mem=16Gi spot=0.05\npool p spot-ratio=50\npool q\n" +
			"pool r spot-ratio=0 minvalues=type:2\nnode n1 type=m zone=a pool=p capacity=spot\npod asks cpu=1",
		opens: "p: m x; q: m x; r: m x", narrows: "p: m; q: m x; r: m",
		explains: "p: -; q: -; r: minValues asks for 2 values of node.kubernetes.io/instance-type, with only 1 left " +
			"for the pod: joiner.sh/spot-ratio of the pool allows no further node that may be spot"},
	{rule: limitRule{}, says: "what is larger than the limits admit is not counted for a node",
		script: types + "pool p limit.cpu=3\npool full limit.cpu=1\npool two limit.cpu=3 minvalues=type:2\npod asks cpu=1",
		opens:  "full: m x; p: m x; two: m x", narrows: "full: -; p: m x; two: -",
		explains: "full: cpu 0 of 1 in use, another node adds 2 (soft limit); p: -; two: cpu 0 of 3 in use, another " +
			"node adds 4 (soft limit), since minValues asks for a choice"},
	{rule: minValuesRule{}, says: "a claim keeps its choice",
		script: types + "pool p minvalues=type:2\npool three minvalues=type:3\npod asks cpu=1",
		opens:  "p: m x; three: m x", narrows: "p: m x; three: -",
		explains: "p: -; three: minValues asks for 3 values of node.kubernetes.io/instance-type, with only 2 left for the pod"},
	{rule: preferenceRule{}, says: "a wish keeps no pod from a place",
		script: types + "pool p\nnode n1 type=m zone=a pool=p\npod asks cpu=1 wish=10:type=x",
		opens:  "p: m x", narrows: "p: m x", explains: "p: -"},
}

// Each rule alone: what it refuses, narrows and says, whatever the others think.
func TestEachRuleAlone(t *testing.T) {
	t.Parallel()
	tested := map[string]bool{}
	for _, test := range aloneTests {
		name := reflect.TypeOf(test.rule).Name()
		tested[name] = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, asks := round(t, test.script)
			s.rules = listed(test.rule)
			info := s.info(asks.Shape)
			check := func(what, got, want string) {
				if got != want {
					t.Errorf("%s: it %s\n  %s\nwant\n  %s", test.says, what, got, want)
				}
			}
			check("explains", explained(s, asks, test.rule), test.explains)
			check("refuses", refused(s, asks, info), test.refuses)
			check("opens", opened(s, info), test.opens)
			check("narrows", narrowed(t, s, asks), test.narrows)
			if test.rule.ties(info) != test.ties {
				t.Errorf("%s: ties is %t", test.says, !test.ties)
			}
		})
	}
	for _, r := range rules.all {
		// scripts have no word for what it reads
		if name := reflect.TypeOf(r).Name(); !tested[name] && name != "brakeRule" {
			t.Errorf("%s has no row", name)
		}
	}
}

// P-35: the brake is about a pool and what a pod asks for.
func TestTheBrakeAlone(t *testing.T) {
	t.Parallel()
	s, asks := round(t, types+"pool p\npool q\npod asks cpu=1")
	s.rules = listed(brakeRule{})
	s.snapshot.Held = map[cluster.Hold]string{{Pool: "q", Ask: asks.Shape.Ask()}: "three launches in vain"}
	if got, want := opened(s, s.info(asks.Shape)), "p: m x; q: -"; got != want {
		t.Errorf("it opens %s, want %s", got, want)
	}
	if got, want := explained(s, asks, brakeRule{}), "p: -; q: three launches in vain"; got != want {
		t.Errorf("it explains %s, want %s", got, want)
	}
}

// round begins a round with the cluster of a script, and returns the pod "asks".
func round(t *testing.T, text string) (*solver, *cluster.Pod) {
	t.Helper()
	snapshot, err := script.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	pending := snapshot.Pending
	at := slices.IndexFunc(pending, func(p *cluster.Pod) bool { return p.Name == "asks" })
	s := newSolver(snapshot, []*cluster.Pod{pending[at]}, nil)
	s.packing = mix.Solve
	return s, pending[at]
}

func refused(s *solver, pod *cluster.Pod, info *shape) string {
	var list []string
	for i, n := range s.existing {
		n.settle(s.snapshot.Daemons)
		a := s.askOne(pod, info)
		a.index = i
		switch s.refuses(n, a) {
		case topology.Now:
			list = append(list, n.node.Name+" now")
		case topology.Never:
			list = append(list, n.node.Name)
		}
	}
	return strings.Join(list, " ")
}

// byPool says something of each pool.
func byPool(s *solver, say func(*pool) string) string {
	var list []string
	for _, p := range s.pools {
		list = append(list, p.Name+": "+say(p))
	}
	return strings.Join(list, "; ")
}

func names(p *pool, offers catalog.Bits) string {
	var list []string
	for _, i := range p.Catalog.TypesByPrice(offers) {
		list = append(list, p.Catalog.Types[i].Name)
	}
	if len(list) == 0 {
		return "-"
	}
	return strings.Join(list, " ")
}

func opened(s *solver, info *shape) string {
	return byPool(s, func(p *pool) string {
		var list []string
		for _, w := range info.ways[p.index] {
			list = append(list, names(p, w.offers))
		}
		if len(list) == 0 {
			return "-"
		}
		return strings.Join(list, " | ")
	})
}

// narrowed asks the rule for a new node of each pool on which the pod "on", if there is one, was placed.
func narrowed(t *testing.T, s *solver, pod *cluster.Pod) string {
	t.Helper()
	return byPool(s, func(p *pool) string {
		n, index := s.addPlanned(p, p.offers)
		for _, each := range s.snapshot.Pending {
			if each.Name == "on" {
				a := s.askOne(each, s.info(each.Shape))
				a.index = index
				a.of(n, &way{offers: p.offers})
				if s.narrows(n, a) != topology.Yes {
					t.Fatal("the first pod was refused")
				}
				s.placedIn(n, a)
			}
		}
		a := s.askOne(pod, s.info(pod.Shape))
		a.index = index
		a.of(n, &way{offers: p.offers})
		if s.narrows(n, a) != topology.Yes {
			return "-"
		}
		return names(p, a.offers)
	})
}

// explained lets the rule explain what the offers of a pool are to the pod.
func explained(s *solver, pod *cluster.Pod, r rule) string {
	return byPool(s, func(p *pool) string {
		e := explainer{pool: p, shape: pod.Shape, names: s.snapshot.Names, left: p.Catalog.All()}
		r.explains(s, &e)
		var list []string
		for _, step := range append(e.steps, e.suspects...) {
			text := step.Detail
			if step.Before > 0 {
				text += fmt.Sprintf(" (%d→%d)", step.Before, step.Left)
			}
			list = append(list, text)
		}
		if len(list) == 0 {
			return "-"
		}
		return strings.Join(list, ", ")
	})
}
