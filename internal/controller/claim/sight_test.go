package claim

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
)

func claimOf(uid, poolUID string) *karpenterv1.NodeClaim {
	c := &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: uid, UID: types.UID(uid)}}
	if poolUID != "" {
		c.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: karpenterv1.GroupVersion().String(), Kind: "NodePool", Name: "default",
			UID: types.UID(poolUID),
		}}
	}
	return c
}

func sightAt(at time.Time) *sight {
	return &sight{at: moment{wall: at}, hard: limit.None,
		pool: &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{UID: "p"}}}
}

// L-14: a sight of a pool is used for less than 5 s, and not after the clock was set back. One step reads at a time;
// the others come again. After a failed read there is no sight.
func TestASightIsSharedForFiveSeconds(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for age, shared := range map[time.Duration]bool{0: true, 5*time.Second - 1: true, 5 * time.Second: false,
		-1: false} {
		g, known := newGate(), sightAt(start)
		if s, read := g.begin("default", claimOf("u", "p"), moment{wall: start}); s != nil || !read {
			t.Fatalf("a pool that nobody has read: %v, read %t", s, read)
		}
		if s, read := g.begin("default", claimOf("v", "p"), moment{wall: start}); s != nil || read {
			t.Errorf("while it is read: %v, read %t; want to come again", s, read)
		}
		g.end("default", known)
		s, read := g.begin("default", claimOf("u", "p"), moment{start.Add(age), age})
		if (s == known) != shared || read == shared {
			t.Errorf("after %s: %v, read %t; want it shared: %t", age, s, read, shared)
		}
	}
	g := newGate()
	g.end("default", sightAt(start))
	if _, read := g.begin("default", claimOf("u", "of another pool"), moment{wall: start}); !read {
		t.Error("a sight that says no is believed")
	}
	g.end("default", nil)
	if s, read := g.begin("default", claimOf("u", "p"), moment{wall: start}); s != nil || !read {
		t.Errorf("after a reading that failed: %v, read %t; want the pool read", s, read)
	}
}

// L-14: the gate keeps no sight that is too old to be used, whatever pool is looked for, and none of a pool that is
// gone, has a limit without sense, or could not be read.
func TestAUselessSightIsForgotten(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	g := newGate()
	g.end("old", sightAt(start))
	g.end("young", sightAt(start.Add(time.Second)))
	g.begin("another", claimOf("u", "p"), moment{wall: start.Add(5 * time.Second)})
	if len(g.sights) != 1 || g.sights["young"] == nil {
		t.Errorf("5 s later the gate has %d sights, want only the one that is 4 s old", len(g.sights))
	}
	for name, s := range map[string]*sight{
		"not read": nil, "gone": {at: moment{wall: start}}, "without sense": {at: moment{wall: start},
			pool: sightAt(start).pool, invalid: errors.New("-1")},
	} {
		g := newGate()
		g.end("default", sightAt(start))
		if g.end("default", s); len(g.sights) != 0 {
			t.Errorf("%s: the gate has %d sights, want none", name, len(g.sights))
		}
	}
}

// L-14: a clock that was set back makes no sight younger, and one that stood still while the machine slept neither.
func TestASightIsAsOldAsEitherClockSays(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, now := range map[string]moment{
		"set back by 20 s after 24 s": {start.Add(4 * time.Second), 24 * time.Second},
		"slept for an hour":           {start.Add(time.Hour), time.Second},
	} {
		g := newGate()
		g.end("default", sightAt(start))
		if s, read := g.begin("default", claimOf("u", "p"), now); s != nil || !read {
			t.Errorf("%s: %v, read %t; want the pool read", name, s, read)
		}
	}
}

// L-14: a sight permits a claim of the pool that it saw, if the pool has no hard limit or the claim is within it.
func TestWhomASightServes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*sight)
		claim  *karpenterv1.NodeClaim
		want   bool
	}{
		"no limit":            {func(*sight) {}, claimOf("u", "p"), true},
		"no owner":            {func(*sight) {}, claimOf("u", ""), true},
		"another pool":        {func(*sight) {}, claimOf("u", "before"), false},
		"pool gone":           {func(s *sight) { s.pool = nil }, claimOf("u", ""), false},
		"limit without sense": {func(s *sight) { s.invalid = errors.New("-1") }, claimOf("u", "p"), false},
		"at the limit":        {func(s *sight) { s.hard = 2 }, claimOf("u", "p"), true},
		"above the limit":     {func(s *sight) { s.hard = 1 }, claimOf("u", "p"), false},
		"with a stray":        {func(s *sight) { s.hard, s.strays = 2, 1 }, claimOf("u", "p"), false},
		"not seen":            {func(s *sight) { s.hard = 2 }, claimOf("w", "p"), false},
	} {
		s := sightAt(time.Time{})
		s.claims = map[types.UID]standing{"u": true, "v": false}
		c.change(s)
		if got := s.serves(c.claim); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
