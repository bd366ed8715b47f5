package world

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// byKind owns what is of one kind of node class, and every machine but p2.
type byKind struct{}

func (byKind) serves(ref *karpenterv1.NodeClassReference) bool {
	return ref != nil && ref.Kind == testClass().Kind
}

func (b byKind) OwnsPool(pool *karpenterv1.NodePool) bool {
	return b.serves(pool.Spec.Template.Spec.NodeClassRef)
}
func (b byKind) OwnsClaim(claim *karpenterv1.NodeClaim) bool {
	return b.serves(claim.Spec.NodeClassRef)
}
func (b byKind) OwnsNode(node *corev1.Node, claim *karpenterv1.NodeClaim, pool *karpenterv1.NodePool) bool {
	switch {
	case node.Spec.ProviderID == "p2":
		return false
	case claim != nil:
		return b.OwnsClaim(claim)
	}
	return pool == nil || b.OwnsPool(pool)
}

// the nodes of other programs are capacity; their claims and pools are not in the picture, and nothing there may
// go.
func TestWhatOthersManageIsCapacityAndNothingElse(t *testing.T) {
	t.Parallel()
	s := New(Config{Now: newClock().Now, Fleet: byKind{}})
	pool := testPool("theirs", 1)
	pool.UID = types.UID("p")
	pool.Spec.Template.Spec.NodeClassRef.Kind = "OtherNodeClass"
	claim := testClaim("c", "c", 2, "theirs", "p0", "Launched", "Registered", "Initialized")
	claim.Spec.NodeClassRef.Kind = "OtherNodeClass"
	early := testClaim("early", "early", 3, "theirs", "")
	early.Spec.NodeClassRef.Kind = "OtherNodeClass"
	node, bare := testNode("n", "n", 4, "p0"), testNode("bare", "b", 5, "p1")
	for _, n := range []*corev1.Node{node, bare} { // without the label that says that it is initialized
		n.Labels[karpenterv1.NodePoolLabelKey] = "theirs"
	}
	// names a machine that is none of ours
	ours := testClaim("ours", "ours", 6, "theirs", "p2", "Launched", "Registered")
	stray := testNode("stray", "s", 7, "p2")
	for _, e := range []event{{object: claim}, {object: early}, {object: node}, {object: bare}, {object: pool},
		{object: ours}, {object: stray}} {
		e.tell(s)
	}
	snapshot := s.Snapshot()
	if len(snapshot.Pools) != 0 {
		t.Errorf("%d pools are in the picture, want none", len(snapshot.Pools))
	}
	seen := map[string]string{}
	for _, n := range snapshot.Nodes {
		seen[n.ID()] = n.Claim
		if n.Claim == "" && (!n.Initialized || n.Allocatable.At(0) == 0) {
			t.Errorf("node %s: initialized %t, allocatable %v; want it to count as capacity", n.Name, n.Initialized,
				n.Allocatable)
		}
	}
	if want := (map[string]string{"n": "", "bare": "", "stray": "", "ours": "ours"}); !maps.Equal(seen, want) {
		t.Errorf("machines and their claims are %v, want %v", seen, want)
	}

	pool = pool.DeepCopy() // a user gives the pool to us
	pool.ResourceVersion, pool.Spec.Template.Spec.NodeClassRef.Kind = "8", testClass().Kind
	_ = s.Apply(pool)
	if snapshot = s.Snapshot(); snapshot.Pool("theirs") == nil || nodeNamed(snapshot, "bare").Initialized {
		t.Errorf("the pool is ours now, and its node without a claim is not known to be initialized: %+v",
			nodeNamed(snapshot, "bare"))
	}
	pool = pool.DeepCopy()
	pool.ResourceVersion, pool.Spec.Template.Spec.NodeClassRef.Kind = "9", "OtherNodeClass"
	_ = s.Apply(pool)
	if snapshot = s.Snapshot(); snapshot.Pool("theirs") != nil || !nodeNamed(snapshot, "bare").Initialized {
		t.Errorf("the pool is not ours any more: %+v", nodeNamed(snapshot, "bare"))
	}
}

func nodeNamed(s *cluster.Snapshot, name string) *cluster.Node {
	return s.Nodes[slices.IndexFunc(s.Nodes, func(n *cluster.Node) bool { return n.Name == name })]
}

// L-13, L-31: claims of another program with our pool's label fill the room below its limit and do not bring it above,
// so that its own nodes can still be replaced.
func TestClaimsOfOthersFillAPool(t *testing.T) {
	t.Parallel()
	s := New(Config{Now: newClock().Now, Fleet: byKind{}})
	pool := testPool("p", 1)
	pool.Spec.Limits = karpenterv1.Limits{"nodes": resource.MustParse("2")}
	event{object: pool}.tell(s)
	expect := func(when string, want int64) {
		t.Helper()
		got, last := s.Snapshot().Pool("p").Used.Nodes, s.Usage("p").Nodes
		if got != want || last != want {
			t.Errorf("%s: %d nodes count in the picture, %d at the last check; want %d", when, got, last, want)
		}
	}
	var theirs []*karpenterv1.NodeClaim
	for i, name := range []string{"x", "y", "z"} {
		claim := testClaim(name, name, 2+i, "p", "")
		claim.Spec.NodeClassRef.Kind = "OtherNodeClass"
		theirs = append(theirs, claim)
	}
	for _, e := range []event{{object: testClaim("a", "a", 10, "p", "")}, {object: theirs[0]}} {
		e.tell(s)
	}
	expect("one of ours, one of theirs", 2)
	event{object: theirs[1]}.tell(s)
	event{object: theirs[2]}.tell(s)
	expect("one of ours, three of theirs", 2)
	for i, name := range []string{"b", "c"} {
		event{object: testClaim(name, name, 20+i, "p", "")}.tell(s)
	}
	expect("three of ours, three of theirs", 3)
	for _, claim := range theirs {
		event{object: claim, gone: true}.tell(s)
	}
	expect("three of ours", 3)
}

// L-13: a claim is of the pool that it was made for, and its node too, whatever their labels say; a claim made by
// hand is where its label says.
func TestAClaimIsOfThePoolThatItWasMadeFor(t *testing.T) {
	t.Parallel()
	s := New(Config{Now: newClock().Now, Fleet: byKind{}})
	made := testClaim("made", "made", 2, "elsewhere", "p0", "Launched", "Registered", "Initialized")
	made.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: karpenterv1.GroupVersion().String(), Kind: "NodePool", Name: "p", UID: "1",
	}}
	early := made.DeepCopy()
	early.Name, early.UID, early.Status = "early", "early", karpenterv1.NodeClaimStatus{}
	node := testNode("n", "n", 4, "p0")
	node.Labels[karpenterv1.NodePoolLabelKey] = "elsewhere"
	byHand := testClaim("hand", "hand", 5, "elsewhere", "")
	event{object: testPool("p", 1)}.tell(s)
	for _, e := range []event{{object: made}, {object: early}, {object: node}, {object: byHand}} {
		e.tell(s)
	}
	pools := map[string]string{}
	for _, n := range s.Snapshot().Nodes {
		pools[n.Claim] = n.Pool
	}
	if want := (map[string]string{"made": "p", "early": "p", "hand": "elsewhere"}); !maps.Equal(pools, want) {
		t.Errorf("claims are of the pools %v, want %v", pools, want)
	}
	if used := s.Snapshot().Pool("p").Used.Nodes; used != 2 {
		t.Errorf("%d nodes count for the pool, want the two that were made for it", used)
	}
}

// K-53: all nodes and claims count for the limit of the whole cluster, once each: a claim and its node are one,
// whoever made them, and a claim of another program counts before it has a node.
func TestK53_TheWholeClusterIsCounted(t *testing.T) {
	t.Parallel()
	s := New(Config{Now: newClock().Now, Fleet: byKind{}, MaxNodes: 9, MaxClaims: 8})
	joined, early := testClaim("joined", "joined", 2, "theirs", "p0", "Launched", "Registered"),
		testClaim("early", "early", 3, "theirs", "")
	for _, theirs := range []*karpenterv1.NodeClaim{joined, early} {
		theirs.Spec.NodeClassRef.Kind = "OtherNodeClass"
	}
	for _, e := range []event{{object: joined}, {object: early}, {object: testNode("n", "n", 4, "p0")},
		{object: testNode("control", "b", 5, "p1")}, {object: testClaim("ours", "ours", 6, "default", "")}} {
		e.tell(s)
	}
	if got := s.Ceiling(); got.Most != 9 || got.Used != 4 {
		t.Errorf("%d of %d count; want 4 of 9: joined with its node, early, control and ours", got.Used, got.Most)
	}
	if got := s.Ceiling(); got.HardMost != 8 || got.Claims != 3 {
		t.Errorf("%d of %d NodeClaims count; want 3 of 8: joined, early and ours", got.Claims, got.HardMost)
	}
	if s.LimitClaims(7); s.Ceiling().HardMost != 7 {
		t.Errorf("the limit is %d after another process lowered it to 7", s.Ceiling().HardMost)
	}
	if !s.ClaimsUnknown("why") || s.ClaimsUnknown("why") || s.Snapshot().ClaimsUnknown != "why" ||
		s.Ceiling().Left() != 0 {
		t.Error("the limit is not known, which is news once, and nothing may be launched")
	}
	if s.LimitClaims(7); s.Snapshot().ClaimsUnknown != "" || s.Ceiling().HardMost != 7 {
		t.Error("the limit is known again")
	}
	event{object: testNode("e", "e", 7, "p4")}.tell(s)
	s.removeClaim(early)
	if got := s.Ceiling(); got.Used != 4 {
		t.Errorf("%d count after a node came and a claim went; want 4", got.Used)
	}
}
