package churn

import (
	"fmt"
	"strconv"
	"time"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

const (
	// grace is how long launches may exceed a new or lowered hard limit. Those planned under the older limit may still
	// be under way (docs/limits.md).
	grace = 10 * time.Second
	// settled is how far the watch of pools may lag behind the watch of claims.
	settled = 5 * time.Second
)

// limits counts the claims of each pool from the events of one watch, in order. It compares the count with the pool's
// hard limit when the claim was created. Resource versions give the order of events, since both kinds are in one etcd.
type limits struct {
	hard   map[string][]hardLimit // by pool, in the order of changes
	claims map[string]map[string]bool
	births []birth
}

type hardLimit struct {
	version int
	nodes   int       // -1: none
	lowered time.Time // when it was last set or lowered, up to this entry
}

// birth is a new NodeClaim.
type birth struct {
	pool, claim string
	version     int
	count       int // claims of the pool, with this one
	at          time.Time
}

func newLimits() *limits {
	return &limits{hard: map[string][]hardLimit{}, claims: map[string]map[string]bool{}}
}

func version(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}

// pool records the current state of a pool.
func (l *limits) pool(pool *karpenterv1.NodePool) {
	now := hardLimit{version: version(pool.ResourceVersion), nodes: -1, lowered: time.Now()}
	if quantity, limited := pool.Spec.HardLimits["nodes"]; limited {
		now.nodes = int(quantity.Value())
	}
	history := l.hard[pool.Name]
	if len(history) > 0 {
		before := history[len(history)-1]
		switch {
		case before.nodes == now.nodes:
			return
		case before.nodes >= 0 && (now.nodes < 0 || now.nodes > before.nodes):
			now.lowered = before.lowered
		}
	}
	l.hard[pool.Name] = append(history, now)
}

func (l *limits) born(claim *karpenterv1.NodeClaim) {
	pool := claim.Labels[karpenterv1.NodePoolLabelKey]
	if l.claims[pool] == nil {
		l.claims[pool] = map[string]bool{}
	}
	l.claims[pool][claim.Name] = true
	l.births = append(l.births, birth{pool, claim.Name, version(claim.ResourceVersion), len(l.claims[pool]),
		time.Now()})
}

func (l *limits) gone(claim *karpenterv1.NodeClaim) {
	delete(l.claims[claim.Labels[karpenterv1.NodePoolLabelKey]], claim.Name)
}

// broken returns the violations among claims that are old enough for both watches to agree.
func (l *limits) broken(now time.Time) (found []string) {
	for len(l.births) > 0 && now.Sub(l.births[0].at) > settled {
		b := l.births[0]
		l.births = l.births[1:]
		inForce := hardLimit{nodes: -1}
		for _, limit := range l.hard[b.pool] {
			if limit.version <= b.version {
				inForce = limit
			}
		}
		if age := b.at.Sub(inForce.lowered); inForce.nodes >= 0 && b.count > inForce.nodes && age > grace {
			const text = "NodePool %s has %d NodeClaims with %s; its hard limit has been at most %d for %.0f s"
			found = append(found, fmt.Sprintf(text,
				b.pool, b.count, b.claim, inForce.nodes, age.Seconds()))
		}
	}
	return found
}
