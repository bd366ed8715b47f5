package claim

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// This file is the gate before a launch (L-14). Slots limit the number of claims, as long as creates rest on the
// current limit. But limits are about machines, so a claim's right to one is checked again on the API server. Its pool
// must be the one that it was made for, and must not have more claims than its hard limit. If there are too many, the
// newest claim sees them all and waits. docs/limits.md has the proof.

const (
	// sightFor is how long a pool's sight is used for further claims.
	sightFor = 5 * time.Second
	// sightAgain is the delay while another step of this process reads the pool.
	sightAgain = 50 * time.Millisecond
	// heldAgain is the delay of a claim that has to wait for others to go.
	heldAgain = 2 * time.Second
)

// Reasons of a launch that waits or must not happen.
const (
	reasonHeld     = "HardLimit"
	reasonPoolGone = "NodePoolGone"
)

// sight is a pool as the API server and the provider have it, read in the order of the fields. It keeps no pointer
// into the list of all claims: one would keep the whole list in memory, for each pool.
type sight struct {
	at      moment                // when the reading began
	pool    *karpenterv1.NodePool // nil when it is gone
	hard    int64                 // limit.None when there is none
	invalid error
	claims  map[types.UID]standing // those that count for the pool; nil without a hard limit
	strays  int                    // machines of the pool that none of its claims has
}

// standing says whether a claim that counts may be launched, as far as it is about the claim.
type standing bool

// standingOf returns true for a claim that is not being deleted and has our finalizer: without it, the claim could go
// and leave a machine.
func standingOf(claim *karpenterv1.NodeClaim) standing {
	return standing(claim.DeletionTimestamp == nil &&
		controllerutil.ContainsFinalizer(claim, karpenterv1.TerminationFinalizer))
}

// moment is a wall clock time and how long the process had run, by a clock that nobody sets. Neither alone tells how
// old something is: the first jumps, and the second may stop while the machine sleeps.
type moment struct {
	wall time.Time
	ran  time.Duration
}

// within reports whether a moment is less than limit after another one, by both clocks.
func (m moment) within(limit time.Duration, from moment) bool {
	wall := m.wall.Round(0).Sub(from.wall.Round(0))
	return wall >= 0 && wall < limit && m.ran-from.ran < limit
}

func (c *Controller) moment() moment { return moment{c.config.Now(), c.config.Ran()} }

// gate shares sights among the claims of a pool. It is safe for concurrent use; its lock is never held across a call.
type gate struct {
	mu      sync.Mutex
	sights  map[string]*sight
	reading map[string]bool
}

func newGate() *gate { return &gate{sights: map[string]*sight{}, reading: map[string]bool{}} }

// begin returns a sight that serves the claim. Without one, read says that the caller must read the pool; otherwise
// another step is reading it.
func (g *gate) begin(pool string, claim *karpenterv1.NodeClaim, now moment) (s *sight, read bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, s := range g.sights { // of all pools: nobody may ask for some of them again
		if !now.within(sightFor, s.at) {
			delete(g.sights, name)
		}
	}
	if s := g.sights[pool]; s != nil && s.serves(claim) {
		return s, false
	}
	if g.reading[pool] {
		return nil, false
	}
	g.reading[pool] = true
	return nil, true
}

// end takes in a sight, nil when the pool could not be read. One that can serve no claim is not kept.
func (g *gate) end(pool string, s *sight) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.reading, pool)
	if s == nil || s.pool == nil || s.invalid != nil {
		delete(g.sights, pool)
		return
	}
	g.sights[pool] = s
}

// serves reports whether the sight permits a claim. A refusal counts only from a fresh sight.
func (s *sight) serves(claim *karpenterv1.NodeClaim) bool {
	if s.pool == nil || s.invalid != nil {
		return false
	}
	if _, uid, owned := translate.OwningPool(claim); owned && uid != string(s.pool.UID) {
		return false
	}
	_, counts := s.claims[claim.UID]
	return s.hard == limit.None || counts && s.count() <= s.hard
}

// count returns how many machines the pool has, or may get for its existing claims.
func (s *sight) count() int64 { return int64(len(s.claims) + s.strays) }

// admit reports whether the claim may be launched, and until when the launch may land. A claim with no right to a
// machine is given up. One that has to wait gets that in its status and asks to be called again.
func (c *Controller) admit(ctx context.Context, w *work) (bool, time.Time, error) {
	name := translate.PoolOf(w.claim)
	_, uid, owned := translate.OwningPool(w.claim)
	if name == "" {
		return true, c.config.Now().Add(provider.LaunchFor), nil
	}
	s, err := c.sightOf(ctx, w, name)
	if s == nil {
		w.askAgain(sightAgain)
		return false, time.Time{}, err
	}
	switch {
	case owned && s.pool == nil:
		return false, time.Time{}, c.letGo(ctx, w, "NodePool "+name+" is gone")
	case owned && string(s.pool.UID) != uid:
		return false, time.Time{}, c.letGo(ctx, w, "NodePool "+name+" was made anew")
	case s.invalid == nil && s.hard == limit.None:
		return true, s.at.wall.Add(provider.LaunchFor), nil
	case s.invalid != nil:
		return false, time.Time{}, c.hold(ctx, w, fmt.Sprintf("NodePool %s: %v", name, s.invalid))
	}
	if !s.claims[w.claim.UID] {
		w.askAgain(heldAgain) // the watch will show it
		return false, time.Time{}, nil
	}
	if s.count() > s.hard {
		text := fmt.Sprintf("NodePool %s has %d NodeClaims, limit %d (hard limit)", name, len(s.claims), s.hard)
		if s.strays > 0 {
			text += fmt.Sprintf("; beside them instances that are without a NodeClaim of the pool: %d", s.strays)
		}
		return false, time.Time{}, c.hold(ctx, w, text)
	}
	return c.record(ctx, w, s.at.wall.Add(provider.LaunchFor))
}

// sightOf returns a sight of the pool that serves the claim or was read for it. It returns nil while another step
// reads the pool.
func (c *Controller) sightOf(ctx context.Context, w *work, name string) (*sight, error) {
	s, read := c.gate.begin(name, w.claim, c.moment())
	if !read {
		return s, nil
	}
	defer func() { c.gate.end(name, s) }()
	fresh, err := c.look(ctx, w.cloud, name)
	if err != nil {
		return nil, fmt.Errorf("looking whether NodePool %s may have an instance for NodeClaim %s: %w", name,
			w.claim.Name, err)
	}
	s = fresh
	return s, nil
}

// look reads a pool and, if it has a hard limit, all claims and then the machines. The order matters: the counts are
// at least as new as the limit, and a claim that loses its finalizer in between was counted as a claim.
func (c *Controller) look(ctx context.Context, cloud provider.Provider, name string) (*sight, error) {
	s := &sight{at: c.moment(), pool: &karpenterv1.NodePool{}, hard: limit.None}
	if err := c.config.Live.Get(ctx, client.ObjectKey{Name: name}, s.pool); err != nil {
		if !apierrors.IsNotFound(err) {
			return nil, err
		}
		s.pool = nil
		return s, nil
	}
	if s.hard, s.invalid = translate.HardNodes(s.pool); s.invalid != nil || s.hard == limit.None {
		return s, nil
	}
	var claims karpenterv1.NodeClaimList
	if err := c.config.Live.List(ctx, &claims); err != nil {
		return nil, err
	}
	s.claims = map[types.UID]standing{}
	for i := range claims.Items {
		if claim := &claims.Items[i]; translate.Belongs(claim, name, string(s.pool.UID)) {
			s.claims[claim.UID] = standingOf(claim)
		}
	}
	instances, err := cloud.List(ctx)
	if err != nil {
		return nil, err
	}
	counts := func(claim *karpenterv1.NodeClaim) bool {
		_, does := s.claims[claim.UID]
		return does
	}
	s.strays = provider.Strays(name, instances, claims.Items, counts)
	return s, nil
}

// letGo gives up a claim that has no right to a machine.
func (c *Controller) letGo(ctx context.Context, w *work, why string) error {
	return c.giveUp(ctx, w, karpenterv1.ConditionTypeLaunched, reasonPoolGone, event.NodePoolGone, why)
}

// hold writes onto a claim why it has no machine yet, and asks again soon.
func (c *Controller) hold(ctx context.Context, w *work, why string) error {
	if gone, err := c.checkAge(ctx, w); err != nil || gone {
		return err
	}
	before := w.claim.DeepCopy()
	c.set(w, condition.Unknown(karpenterv1.ConditionTypeLaunched, reasonHeld, why))
	c.config.Events.Event(w.claim, event.Normal, event.LaunchHeld, "No instance is launched yet: "+why)
	w.askAgain(heldAgain)
	return client.IgnoreNotFound(c.saveStatus(ctx, before, w.claim))
}
