package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/localcluster/rig"
	"github.com/joiner-autoscaler/joiner/localcluster/shared"
)

// enforcedEnv makes the test of late launches wait until HardLimitEnforced is True, which takes three and a half
// minutes.
const enforcedEnv = "JOINER_LIMIT_ENFORCED"

func waitsUntilEnforced(t *testing.T) bool {
	return shared.Asked(t, enforcedEnv, "wait for HardLimitEnforced")
}

// lateCase is a pool whose scale-up is on its way when its limit changes.
type lateCase struct {
	pool   string
	before string // its limit when the scale-up begins
	pods   int
	pass   int  // creates of NodeClaims that land in time; the others are held on their way
	remake bool // deleted and made again under its name, instead of changed
	limit  int
}

// lateCases each hold at least two creates. If none passed, nobody looked at the pool with its old limit before a
// launch, so the new limit binds the very first launch.
var lateCases = []lateCase{
	{pool: "set", pods: 4, limit: 1},
	{pool: "set-with-nodes", pods: 4, pass: 2, limit: 2},
	{pool: "lowered", before: "hardLimits: {nodes: 4}", pods: 5, limit: 2},
	{pool: "anew", pods: 4, remake: true, limit: 3},
	{pool: "anew-with-nodes", pods: 4, pass: 2, remake: true, limit: 1},
}

func (c lateCase) manifest(limits string) string {
	return "---" + kwokPool(c.pool, amd64Linux, quick+"\n"+limits)
}

func (c lateCase) hard() string { return fmt.Sprintf("hardLimits: {nodes: %d}", c.limit) }

// held returns how many creates wait before the limit changes. An earlier limit bounds them by its slots.
func (c lateCase) held() int {
	if c.before != "" {
		return 4
	}
	return c.pods - c.pass
}

// change sets the limit, or makes the pool again with it. It returns when that was requested and when it was
// acknowledged.
func (c lateCase) change(r *testRig) (asked, acknowledged time.Time) {
	r.t.Helper()
	if c.remake {
		r.run("delete", "nodepool", c.pool)
	}
	asked = time.Now()
	r.apply(c.manifest(c.hard()))
	return asked, time.Now()
}

// settled reports whether the pool has as many claims and nodes as it may, and nothing else.
func (c lateCase) settled(now *picture) bool {
	claims, nodes := now.of(claimResource, c.pool), now.of(nodeResource, c.pool)
	for _, claim := range claims {
		if claim.GetDeletionTimestamp() != nil || !launched(claim) {
			return false
		}
	}
	return len(claims) == c.limit && len(nodes) == c.limit
}

// L-14: a hard limit is set, or lowered, or comes with a pool made again under an old name. Meanwhile creates of
// NodeClaims that rest on the old state are on their way. Some land at once afterwards; in the long form some land
// after the pool has said that the limit is in force. Claims and nodes are counted at every event, in the order of the
// API server's own revisions, and must be as docs/limits.md promises (limits_judge_test.go).
func TestCreatesThatLandAfterAHardLimitHasChanged(t *testing.T) {
	t.Parallel()
	var binary string
	r := newRig(t, func(o *rig.Options) { binary, o.WithoutJoiner = o.Joiner, true })
	film := r.film()
	post := newLatePost(film.look)
	for _, c := range lateCases {
		r.apply(c.manifest(c.before))
		selector := "nodeSelector: {karpenter.sh/nodepool: " + c.pool + "}\n"
		r.apply(deployment(c.pool, c.pods, "{cpu: '1'}", selector+oneEach(c.pool)))
		post.hold(c.pool, c.pass)
	}
	r.joinerBehind(binary, post.through, "--batch-idle-duration=100ms", "--batch-max-duration=1s")
	for _, c := range lateCases {
		film.until(soon, c.pool+": creates on their way", func(now *picture) bool {
			return len(now.of(nodeResource, c.pool)) == c.pass && len(post.names(c.pool)) == c.held()
		})
	}
	judge := newJudge(film)
	kept := map[string]string{}
	for _, c := range lateCases {
		held := post.names(c.pool)
		asked, acknowledged := c.change(r)
		judge.limited(c, asked, acknowledged)
		last := len(held) - 1
		kept[c.pool] = held[last]
		judge.forbid("it came when the pool had its limit's number", kept[c.pool])
		if c.remake && c.pass == 0 {
			judge.forbid("its pool was made anew", held[:last]...)
		}
		post.deliver(t, c.pool, held[:last]...)
		post.open(c.pool)
	}
	settle := func(what string) {
		t.Helper()
		for _, c := range lateCases {
			film.until(later, c.pool+" "+what, c.settled)
		}
	}
	settle("at its limit")
	// If there were nodes before, a look from before the limit may still serve for some seconds.
	judge.addByHand("early", func(c lateCase) bool { return c.pass == 0 })
	if waitsUntilEnforced(t) {
		for _, c := range lateCases {
			film.until(2*later, c.pool+": HardLimitEnforced", func(now *picture) bool { return now.enforced(c.pool) })
			post.deliver(t, c.pool, kept[c.pool])
		}
		judge.addByHand("late", func(lateCase) bool { return true })
		settle("at its limit after claims that came minutes late")
		for _, c := range lateCases {
			r.run("scale", "deployment", c.pool, "--replicas=0")
		}
		for _, c := range lateCases {
			film.until(later, c.pool+" empty",
				func(now *picture) bool { return len(now.of(claimResource, c.pool)) == 0 })
			r.run("scale", "deployment", c.pool, fmt.Sprintf("--replicas=%d", c.pods))
		}
		settle("at its limit again")
	}
	judge.all(waitsUntilEnforced(t))
}
