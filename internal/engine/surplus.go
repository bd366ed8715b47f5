package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// No more nodes than the excess of a pool may go (L-42), also with two controllers at once. So that is judged on the
// API server's own list of claims, and not on the snapshot: see docs/limits.md.

// Count is the claims of a pool as they were counted last.
type Count struct {
	// Pool is the pool as it was read with them; nil when it is gone, or another program's.
	Pool *cluster.Pool
	// HeldBy says who pauses its disruption, where Pool.Held is set.
	HeldBy string
	Claims []CountedClaim
}

// CountedClaim is one of them.
type CountedClaim struct {
	Name string
	// Marked is set when an intent stands on the claim; Intent is its reason.
	Marked   bool
	Intent   plan.DisruptionReason
	Deleting bool
	Replaces []string
}

// CountIn counts the claims of a pool in a snapshot. intents are those that stand on claims.
func CountIn(s *cluster.Snapshot, pool string, intents []Intent) Count {
	c := Count{Pool: s.Pool(pool)}
	for _, node := range s.Nodes {
		if node.Claim == "" || node.Pool != pool {
			continue
		}
		claim := CountedClaim{Name: node.Claim, Deleting: node.Deleting, Replaces: node.Replaces}
		for _, i := range intents {
			if i.Node == node {
				claim.Marked, claim.Intent = i.Marked, i.Reason
			}
		}
		c.Claims = append(c.Claims, claim)
	}
	return c
}

// surplus is which intents of a pool are too many by now: a limit was raised, or another node left meanwhile.
type surplus struct {
	claims map[string]CountedClaim
	// above is how many more are leaving than have to; below zero when more have to.
	above  int64
	stays  map[string]string // claims whose intent has to be taken back, and why
	gentle bool
}

// gone reports whether a claim was not found, or is being deleted: the watch will show it.
func (c *surplus) gone(claim string) bool {
	found, known := c.claims[claim]
	return !known || found.Deleting
}

// surplus judges the pool of this name. It takes back the intents of nodes that come last in the order of trimming;
// claims that the snapshot does not have come after all others.
func (c Count) surplus(s *cluster.Snapshot, name string) *surplus {
	t := &surplus{claims: map[string]CountedClaim{}, stays: map[string]string{}, gentle: c.Pool != nil &&
		c.Pool.Gentle}
	for _, claim := range c.Claims {
		t.claims[claim.Name] = claim
	}
	marked, leaving := c.leaving()
	t.above = int64(len(marked))
	why := "its NodePool is gone, or another program's"
	switch known := s.Pool(name); {
	case known != nil && known.Dormant:
		why = gateOff
	case c.Pool == nil:
	case c.Pool.Held:
		why = "its NodePool is paused: " + c.HeldBy
	case c.Pool.Invalid:
		why = "the limits of its NodePool cannot be understood"
	default:
		t.above = -c.Pool.Limits.Excess(c.Pool.Kept(), int64(len(c.Claims)), leaving)
		why = "its NodePool does not have too many any more"
	}
	slices.SortFunc(marked, byTrimOrder(s))
	for _, claim := range marked[max(0, len(marked)-int(max(0, t.above))):] {
		t.stays[claim] = why
	}
	return t
}

// leaving returns the claims that are marked since there are too many and not deleted yet, and the number of all that
// leave: deleted, marked for whatever reason, or replaced by a claim that is not being deleted.
func (c Count) leaving() (marked []string, leaving int64) {
	replaced := map[string]bool{}
	for _, claim := range c.Claims {
		if !claim.Deleting {
			for _, name := range claim.Replaces {
				replaced[name] = true
			}
		}
	}
	for _, claim := range c.Claims {
		if claim.Marked || replaced[claim.Name] || claim.Deleting {
			leaving++
		}
		if claim.Marked && TooMany(claim.Intent) && !claim.Deleting {
			marked = append(marked, claim.Name)
		}
	}
	return marked, leaving
}

// byTrimOrder orders claims as they are chosen to go; those that the snapshot does not have come last.
func byTrimOrder(s *cluster.Snapshot) func(a, b string) int {
	nodes := map[string]*cluster.Node{}
	for _, node := range s.Nodes {
		if node.Claim != "" {
			nodes[node.Claim] = node
		}
	}
	return func(a, b string) int {
		x, y := nodes[a], nodes[b]
		if x != nil && y != nil {
			return CompareTrim(x, y)
		}
		return cmp.Or(cmp.Compare(number(x == nil), number(y == nil)), strings.Compare(a, b))
	}
}
