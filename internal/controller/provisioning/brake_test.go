package provisioning_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/joiner-autoscaler/joiner/internal/apply"
	"github.com/joiner-autoscaler/joiner/internal/controller/provisioning"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// scene is a cluster in which claims are created as planned, and develop as the test says.
type scene struct {
	*rig
	t       *testing.T
	brake   *provisioning.Brake
	pods    []*cluster.Pod
	buffers []*cluster.Pod
	nodes   []*cluster.Node
	version uint64
	taint   string // of the nodes that come: a user's, of which planning does not know
	static  int64
	claims  int
	daemons []cluster.Daemon
	larger  bool // there is a machine of 4 cores, too
}

// newScene returns a cluster with pods of 1.5 cores, and machines of 2.
func newScene(t *testing.T, pods int) *scene {
	t.Helper()
	s := &scene{rig: newRig(), t: t, brake: provisioning.NewBrake()}
	s.rebuild(s.brake)
	for i := range pods {
		name := fmt.Sprintf("web-%d", i)
		s.pods = append(s.pods, &cluster.Pod{
			UID: "uid-" + name, Namespace: "default", Name: name,
			Shape: &cluster.Shape{Namespace: "default", Labels: map[string]string{"n": name},
				Requests: resources.Vector{1500}},
		})
	}
	return s
}

// round shows the cluster, has it planned for, and returns how many claims were planned.
func (s *scene) round() int {
	s.t.Helper()
	types := []catalog.Type{{
		Name: "t", Capacity: resources.Amounts{"cpu": 2000, "pods": 10},
		Offerings: []catalog.Offering{{Zone: "a", CapacityType: catalog.Spot, Available: true}},
	}}
	if s.larger {
		types = append(types, catalog.Type{Name: "larger", Capacity: resources.Amounts{"cpu": 4000, "pods": 10},
			Offerings: []catalog.Offering{{Zone: "a", CapacityType: catalog.Spot, Price: 1, Available: true}}})
	}
	index := catalog.NewIndex(catalog.Catalog{Types: types}, resources.NewSpace())
	pool := &cluster.Pool{Name: "default", UID: "u", Limits: limit.Unlimited(), Catalog: index, Static: s.static > 0,
		Replicas: s.static}
	for i := len(s.nodes); i < int(s.static); i++ {
		pool.FreeSlots = append(pool.FreeSlots, i)
	}
	s.version++
	s.picture.snapshot = cluster.New(cluster.Snapshot{
		Version: s.version, Names: s.picture.snapshot.Names, Pools: []*cluster.Pool{pool}, Nodes: s.nodes,
		Pending: s.pods, Buffers: s.buffers, Daemons: s.daemons,
	})
	before := len(s.applier.plans)
	s.applier.outcome = apply.Outcome{}
	if _, err := s.step.Reconcile(s.t.Context(), reconcile.Request{}); err != nil {
		s.t.Fatal(err)
	}
	launched := 0
	for _, p := range s.applier.plans[before:] {
		for _, l := range p.Launches {
			launched, s.claims = launched+1, s.claims+1
			name := fmt.Sprintf("c%d", s.claims)
			s.nodes = append(s.nodes, &cluster.Node{
				Claim: name, ClaimUID: "uid-" + name, Pool: "default", For: l.For, Allocatable: s.allocatable(l),
				Labels: map[string]string{},
			})
		}
	}
	return launched
}

// come initializes the nodes of all claims.
func (s *scene) come() {
	s.change(func(n *cluster.Node) {
		n.Name, n.Launched, n.Registered, n.Initialized = "node-"+n.Claim, true, true, true
		if s.taint != "" {
			n.Taints = []cluster.Taint{{Key: s.taint, Effect: cluster.NoSchedule}}
		}
	})
}

func (s *scene) change(edit func(*cluster.Node)) {
	for i, node := range s.nodes {
		fresh := *node
		edit(&fresh)
		s.nodes[i] = &fresh
	}
}

// want fails unless the rounds plan this many claims. Before each round the previous nodes have come, and time has
// passed.
func (s *scene) want(what string, after time.Duration, launches int) {
	s.t.Helper()
	s.clock.Advance(after)
	if got := s.round(); got != launches {
		s.t.Fatalf("%s: %d launches, want %d; held back: %q", what, got, launches, s.brake.Message("default"))
	}
	s.come()
}

// P-35: nodes that none of their pods can use are launched twice at once, then one by one and ever more rarely, and
// this is reported. A bound pod ends it.
func TestLaunchesInVainAreHeldBack(t *testing.T) {
	t.Parallel()
	s := newScene(t, 3)
	s.taint = "example.com/surprise"
	s.want("the first round", 0, 3)
	s.want("the second round, at once", 0, 3)
	if said := s.brake.Message("default"); said != "" {
		t.Errorf("said after one round in vain: %s", said)
	}
	s.want("after two rounds in vain", 0, 0)
	said := strings.Join(s.tape.Said(), "\n")
	for _, part := range []string{
		"default LaunchesInVain", "2 rounds of nodes for pods such as default/web-0 were in vain",
		"NodeClaim c4 is initialized", "web-0 FailedScheduling",
	} {
		if !strings.Contains(said, part) {
			t.Errorf("said\n%s\nwant %q", said, part)
		}
	}
	if s.brake.Message("default") == "" || len(s.told) == 0 {
		t.Errorf("message %q, told %v: the pool is to say it", s.brake.Message("default"), s.told)
	}
	s.want("before the minute is over", 59*time.Second, 0)
	s.want("a try after a minute", time.Second, 1)
	s.want("it is in vain", 0, 0)
	s.want("before two minutes are over", time.Minute, 0)
	s.want("a try after two", time.Minute, 1)
	s.pods = append(s.pods, s.pods[0])[1:] // its like comes in its place, with another name
	renamed := *s.pods[2]
	renamed.UID, renamed.Name = "uid-new", "new"
	s.pods[2] = &renamed
	s.want("a pod in the place of another changes nothing", time.Minute, 0)
	for range 8 {
		s.want("tries go on", 30*time.Minute, 1)
		s.want("and are in vain", 0, 0)
	}
	s.brake.Bound(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(s.pods[0].UID)},
		Spec: corev1.PodSpec{NodeName: "elsewhere"}})
	s.pods = s.pods[1:]
	s.want("a pod is bound", 0, 2)
	if said := s.brake.Message("default"); said != "" {
		t.Errorf("a pod was bound, and the pool still says %s", said)
	}
}

// P-35: what is no launch in vain is not slowed.
func TestNormalLaunchesAreNotHeldBack(t *testing.T) {
	t.Parallel()
	for name, life := range map[string]func(s *scene){
		"nodes on their way are waited for":          func(*scene) {},
		"the provider refuses":                       func(s *scene) { s.nodes = nil },
		"the scheduler is slow":                      func(s *scene) { s.come() },
		"pods are bound and others come":             func(s *scene) { s.come(); s.bind() },
		"pods end at once and no picture shows them": func(s *scene) { s.come(); s.finish() },
	} {
		s := newScene(t, 2)
		launched := 0
		for range 10 {
			n := s.round()
			if len(s.pods) > 0 && len(s.nodes) == 0 {
				t.Errorf("%s: nothing is launched for %d pods", name, len(s.pods))
			}
			launched += n
			life(s)
		}
		if said := s.brake.Message("default"); said != "" {
			t.Errorf("%s: %d launches, held back: %s", name, launched, said)
		}
	}
}

// bind puts the pods on the nodes, and two others wait.
func (s *scene) bind() {
	for i, pod := range s.pods {
		bound := *pod
		bound.Node = s.nodes[len(s.nodes)-1-i].Name
		node := *s.nodes[len(s.nodes)-1-i]
		node.Pods, node.Used = append(node.Pods, &bound), resources.Vector{1500}
		s.nodes[len(s.nodes)-1-i] = &node
		fresh := *pod
		fresh.UID += "x"
		s.pods[i] = &fresh
	}
}

// finish lets the pods run and end, and two others wait, for whom the nodes are too dirty.
func (s *scene) finish() {
	for i, pod := range s.pods {
		bound := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(pod.UID)}}
		bound.Spec.NodeName = s.nodes[len(s.nodes)-1-i].Name
		s.brake.Bound(bound)
		fresh := *pod
		fresh.UID += "x"
		s.pods[i] = &fresh
	}
	s.change(func(n *cluster.Node) { n.Taints = []cluster.Taint{{Key: "dirty", Effect: cluster.NoSchedule}} })
}

// P-35: nodes that join with an unknown taint and never get ready are held back like those that get ready.
func TestTaintedNodesThatNeverInitializeAreHeldBack(t *testing.T) {
	t.Parallel()
	s := newScene(t, 2)
	var rounds []int
	for range 6 {
		rounds = append(rounds, s.round())
		s.change(func(n *cluster.Node) {
			n.Name, n.Launched = "node-"+n.Claim, true
			n.Taints = []cluster.Taint{{Key: "example.com/agent-not-ready", Effect: cluster.NoSchedule}}
		})
		s.clock.Advance(20 * time.Second)
	}
	if got, want := fmt.Sprint(rounds), "[2 2 0 0 0 1]"; got != want {
		t.Errorf("launches %s, want %s", got, want)
	}
	if said, want := s.brake.Message("default"), "has joined and none of them can run there"; !strings.Contains(said,
		want) {
		t.Errorf("said %q, want %q", said, want)
	}
}

// P-35: machines that go before any pod was on their node are held back as well, also in static pools.
func TestMachinesThatNeverBecomeNodesAreHeldBack(t *testing.T) {
	t.Parallel()
	for _, static := range []int64{0, 2} {
		s := newScene(t, 2)
		if s.static = static; static > 0 {
			s.pods = nil
		}
		var rounds []int
		for range 6 {
			rounds = append(rounds, s.round())
			s.change(func(n *cluster.Node) { n.Launched = true })
			if again := s.round(); again != 0 {
				t.Fatalf("static %d: %d more launches while the others are on their way", static, again)
			}
			s.nodes = nil // registration took too long
			s.clock.Advance(30 * time.Second)
		}
		if got, want := fmt.Sprint(rounds), "[2 2 0 0 1 0]"; got != want {
			t.Errorf("static %d: launches %s, want %s", static, got, want)
		}
	}
}

// P-35: after half an hour without such a pod all is forgotten.
func TestRoundsInVainAreForgotten(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1)
	s.taint = "example.com/surprise"
	s.want("the first round", 0, 1)
	s.want("the second round", 0, 1)
	s.want("held back", 0, 0)
	pods := s.pods
	s.pods = nil
	s.want("nobody waits", 20*time.Minute, 0)
	s.nodes = nil
	s.want("nobody waits", 11*time.Minute, 0)
	s.pods = pods
	s.want("as if nothing had been", 0, 1)
}

// P-35: other pods take the room of a try. That was not in vain, so the next try comes at once, and the used one is
// over.
func TestATryThatOthersUseIsOver(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1)
	s.taint = "example.com/surprise"
	s.want("the first round", 0, 1)
	s.want("the second round", 0, 1)
	s.want("held back", 0, 0)
	s.taint = ""
	s.want("a try", time.Minute, 1)
	s.want("its node is waited for", time.Minute, 0)
	node := *s.nodes[len(s.nodes)-1]
	other := *s.pods[0]
	other.UID, other.Name, other.Node = "uid-other", "other", node.Name
	node.Pods, node.Used = []*cluster.Pod{&other}, resources.Vector{1500}
	s.nodes[len(s.nodes)-1] = &node
	s.want("another pod is on it", 0, 1)
	s.want("the next try is waited for", time.Minute, 0)
}

// P-35: a late event of a pod, such as that of an orphan that Kubernetes fails after its Node is gone, does not make a
// new node of that name a used one.
func TestALateEventOfAPodUsesNoLaterNode(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1)
	s.taint = "example.com/surprise"
	named := func() { s.come(); s.change(func(n *cluster.Node) { n.Name = "again" }) }
	orphan := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "orphan"}, Spec: corev1.PodSpec{NodeName: "again"}}
	if got := s.round(); got != 1 {
		t.Fatalf("%d launches, want 1", got)
	}
	named()
	s.brake.Bound(orphan)
	s.nodes = nil
	s.brake.RemoveNode("again")
	s.brake.Bound(orphan)
	var rounds []int
	for i := range 5 {
		rounds = append(rounds, s.round())
		if i == 0 {
			s.round() // its claim is on its way
			named()
			continue
		}
		s.change(func(n *cluster.Node) {
			if n.Name == "" {
				n.Name, n.Launched, n.Registered, n.Initialized = "node-"+n.Claim, true, true, true
				n.Taints = []cluster.Taint{{Key: s.taint, Effect: cluster.NoSchedule}}
			}
		})
	}
	if got, want := fmt.Sprint(rounds), "[1 1 0 0 0]"; got != want {
		t.Errorf("launches %s, want %s", got, want)
	}
}

// P-35: kube-scheduler finds a place for a pod, and its binding is refused, for example by a webhook. At that moment
// it is not pending. Its empty node goes, and still counts as in vain. A pod that is gone waits for nothing.
func TestAPodWhoseBindingIsRefusedWaitsAllTheSame(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		gone bool
		want int // launches of the third round
	}{"refused": {false, 0}, "gone, and another came": {true, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, 1)
			waits := s.pods
			for _, round := range []string{"first", "second"} {
				s.want("the "+round+" round", 0, 1)
				s.pods = nil
				s.want("it is tried to bind the pod", 0, 0)
				if c.gone {
					s.brake.Gone(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(waits[0].UID)}})
				}
				s.nodes = nil
				s.want("its empty node is removed", 0, 0)
				s.pods = waits
			}
			s.want("the third round", 0, c.want)
			if held := s.brake.Message("default") != ""; held != (c.want == 0) {
				t.Errorf("held back: %t", held)
			}
		})
	}
}
