package e2e

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/kwok"
)

// judge checks at every event of a film what docs/limits.md promises about hard limits:
//
//   - From HardLimitEnforced=True on, for the pool's own generation: machines are within the limit, and so are claims
//     that have been launched or may be. It is not True before launches from before the limit have landed.
//   - Before that: claims that passed the gate under the limit (they carry a record) are within the limit, and no
//     launch under it raises the number of machines with a claim above it. A launch without a record rests on a look
//     from before the limit; after a minute there are none.
//   - A claim above the limit never gets a machine. Nor does one of a pool that was deleted before anybody looked at
//     it.
type judge struct {
	*film
	asked map[string]time.Time // by pool: when its limit was requested
	acks  map[string]time.Time // and when the API server acknowledged it; it came in between
	cases map[string]lateCase
	never map[string]string // claims that must not get a machine, and why
}

func newJudge(f *film) *judge {
	return &judge{
		film: f, asked: map[string]time.Time{}, acks: map[string]time.Time{},
		cases: map[string]lateCase{}, never: map[string]string{},
	}
}

// limited notes the two times between which a pool got its limit.
func (j *judge) limited(c lateCase, asked, acknowledged time.Time) {
	j.asked[c.pool], j.acks[c.pool], j.cases[c.pool] = asked, acknowledged, c
}

// forbid notes claims that must not get a machine.
func (j *judge) forbid(why string, claims ...string) {
	for _, name := range claims {
		j.never[name] = why
	}
}

// all judges everything so far. sure demands that each pool has said that its limit is in force.
func (j *judge) all(sure bool) {
	t := j.r.t
	t.Helper()
	now, said := newPicture(), map[string]bool{}
	most, before := map[string]int{}, map[string]map[string]bool{}
	for _, m := range j.cut() {
		now.take(m)
		for pool, c := range j.cases {
			if now.limit(pool) != c.limit {
				continue // the limit is still to come
			}
			if before[pool] == nil { // this is the event by which it comes
				before[pool] = names(now.of(nodeResource, pool))
			}
			most[pool] = max(most[pool], len(now.of(claimResource, pool)))
			if now.enforced(pool) && !said[pool] {
				said[pool] = true
				j.notTooEarly(c, m)
			}
			j.bounds(c, now, m)
			if m.launches() && m.object.GetLabels()[karpenterv1.NodePoolLabelKey] == pool {
				j.launch(c, now, m, before[pool])
			}
		}
		if why := j.never[m.object.GetName()]; why != "" && m.launches() {
			t.Errorf("revision %d: the claim %s got a machine: %s", m.revision, m.object.GetName(), why)
		}
	}
	for pool, c := range j.cases {
		if sure && !said[pool] {
			t.Errorf("%s never said that its limit is in force", pool)
		}
		t.Logf("%s: at most %d claims at a limit of %d", pool, most[pool], c.limit)
	}
}

// notTooEarly demands that launches from before the limit have had their time to land.
func (j *judge) notTooEarly(c lateCase, m moment) {
	least := provider.LaunchFor + 2*provider.ClockSkew + provider.ListLag
	if after := m.at.Sub(j.asked[c.pool]); after < least {
		j.r.t.Errorf("%s says that its limit is in force after %s: want %s at least", c.pool, after, least)
	}
}

// bounds counts what the pool has after an event.
func (j *judge) bounds(c lateCase, now *picture, m moment) {
	recorded, may := 0, 0
	for _, claim := range now.of(claimResource, c.pool) {
		_, record := claim.GetAnnotations()[karpenterv1.LaunchUntilAnnotationKey]
		if record {
			recorded++
		}
		if record || launched(claim) {
			may++
		}
	}
	if recorded > c.limit {
		j.r.t.Errorf("revision %d: %d claims of %s have passed the gate, limit %d", m.revision, recorded, c.pool,
			c.limit)
	}
	if !now.enforced(c.pool) {
		return
	}
	if machines := len(now.of(nodeResource, c.pool)); machines > c.limit || may > c.limit {
		j.r.t.Errorf(
			"revision %d: %s has %d machines and %d claims that have been launched or may be, limit %d and in force",
			m.revision, c.pool, machines, may, c.limit)
	}
}

// launch judges a machine that comes. before are the machines from before the limit.
func (j *judge) launch(c lateCase, now *picture, m moment, before map[string]bool) {
	t := j.r.t
	if before[m.object.GetName()] {
		return
	}
	if !underLimit(m.object) {
		at, err := time.Parse(time.RFC3339Nano, m.object.GetAnnotations()[kwok.LaunchedAnnotationKey])
		switch {
		case c.pass == 0:
			t.Errorf("revision %d: %s was launched without a look at the limit of %s", m.revision, m.object.GetName(),
				c.pool)
		case err != nil || at.After(j.acks[c.pool].Add(provider.LaunchFor)):
			t.Errorf("revision %d: %s of %s was launched at %s without a look at the limit (%v)",
				m.revision, m.object.GetName(), c.pool, at, err)
		}
		return
	}
	uids := map[string]bool{}
	for _, claim := range now.of(claimResource, c.pool) {
		uids[string(claim.GetUID())] = true
	}
	n := 0
	for _, machine := range now.of(nodeResource, c.pool) {
		if uids[machine.GetAnnotations()[kwok.ClaimUIDAnnotationKey]] &&
			(underLimit(machine) || before[machine.GetName()]) {
			n++
		}
	}
	if n > c.limit {
		t.Errorf("revision %d: %s is the %dth machine of %s, limit %d", m.revision, m.object.GetName(), n, c.pool,
			c.limit)
	}
}

// underLimit reports whether whoever launched a machine had looked at a hard limit. Then the record is on the claim,
// and the node has the claim's annotations.
func underLimit(node *unstructured.Unstructured) bool {
	_, recorded := node.GetAnnotations()[karpenterv1.LaunchUntilAnnotationKey]
	return recorded
}

func names(objects []*unstructured.Unstructured) map[string]bool {
	names := map[string]bool{}
	for _, object := range objects {
		names[object.GetName()] = true
	}
	return names
}

// addByHand makes a NodeClaim for each chosen pool, and waits until Joiner removes them: all pools are at their
// limits.
func (j *judge) addByHand(stage string, chosen func(lateCase) bool) {
	j.r.t.Helper()
	var claims []string
	for _, c := range lateCases {
		if chosen(c) {
			name := "by-hand-" + stage + "-" + c.pool
			j.forbid("it was made by hand, above the limit", name)
			j.r.apply(strings.Replace(fmt.Sprintf(handMade, name), "nodepool: default", "nodepool: "+c.pool, 1))
			claims = append(claims, name)
		}
	}
	for _, name := range claims {
		j.until(later, name+" being removed", func(now *picture) bool {
			claim := now.objects[claimResource][name]
			return now.gone[name] || claim != nil && claim.GetDeletionTimestamp() != nil
		})
	}
}
