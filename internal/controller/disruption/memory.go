package disruption

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

const (
	// passingPause is how long a pool is left alone after its command was taken back because the cluster had changed.
	// failurePause applies if a replacement failed. The pause doubles each time, up to lastPause.
	passingPause = 10 * time.Second
	failurePause = time.Minute
	lastPause    = 16 * time.Minute
	// fruitlessPause is the minimum time between two searches for something cheaper after one that found nothing.
	fruitlessPause = 10 * time.Second
	// completeAfter is how long searches with an unchanged question try only those nodes whose turn it is. Then one is
	// complete again: events about what it finds last an hour.
	completeAfter = 10 * time.Minute
)

// memory supplements the API objects: which pools' commands failed (also on the NodePool, see backoff.go), and that
// there was nothing to do. It is safe for concurrent use.
type memory struct {
	mu        sync.Mutex
	pauses    map[string]pause // by pool
	pausedWhy string           // last reason of the switch
	off       time.Time        // when the switch was last read as off; zero if it was on
	// owned are our pools as of the last round; nil before the first round.
	owned []string
	// grace is when the grace of the first start ends, zero for no grace. graceDone says that it is over for good
	// (K-27).
	grace     time.Time
	graceDone bool
	// witnesses is what was last seen of pools with limits, by UID (excess.go). Only the disruption step uses it.
	witnesses map[types.UID]witness
	looked    struct {
		question engine.Question
		at       time.Time
		complete time.Time // when a search with this question was last complete
	}
	// passing is what was last seen of pools on whose nodes pods are ending (passing.go).
	passing map[string]passage
	asked   int // index of the next node to explain
	turn    int // searches that found nothing
	// deleted are the claims, by UID, that this process has deleted while no snapshot shows that yet.
	deleted map[string]bool
	// failing is since when each round has failed, zero if the last one has not. Only the disruption step uses it.
	failing time.Time
}

// failsFor is how long rounds fail before they do the rest of their work all the same. What fails so long concerns a
// single object, as a node that an admission policy lets nobody taint. A whole API server that fails lets nothing be
// done anyway.
const failsFor = time.Minute

// goesOn records whether a round has failed so far, and reports whether the rest of it may be done.
func (m *memory) goesOn(failure error, now time.Time) bool {
	switch {
	case failure == nil:
		m.failing = time.Time{}
		return true
	case m.failing.IsZero():
		m.failing = now
	}
	return now.Sub(m.failing) > failsFor
}

type pause struct {
	length time.Duration
	until  time.Time
}

func newMemory() *memory {
	return &memory{pauses: map[string]pause{}, passing: map[string]passage{}, deleted: map[string]bool{}}
}

// noteDeleted records that a claim was deleted.
func (m *memory) noteDeleted(uid string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deleted[uid] = true
}

// deletedUnseen returns the deleted claims, by UID, that a snapshot does not show as deleting yet. It forgets the
// others.
func (m *memory) deletedUnseen(s *cluster.Snapshot) map[string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	unseen := map[string]bool{}
	for _, node := range s.Nodes {
		if m.deleted[node.ClaimUID] && !node.Deleting {
			unseen[node.ClaimUID] = true
		}
	}
	m.deleted = unseen
	return maps.Clone(unseen)
}

// foundPaused records the reason of the switch.
func (m *memory) foundPaused(why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pausedWhy = why
}

// pausedBy returns the last reason of the switch.
func (m *memory) pausedBy() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pausedWhy
}

// foundSwitch records whether the switch is off.
func (m *memory) foundSwitch(off bool, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.off = time.Time{}
	if off {
		m.off = now
	}
}

// switchIsOff reports whether the switch was recently read as off.
func (m *memory) switchIsOff(now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.off.IsZero() && now.Sub(m.off) < switchAge
}

// foundPools records which pools are ours.
func (m *memory) foundPools(names []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.owned = slices.AppendSeq([]string{}, slices.Values(names))
}

// ownedPools returns our pools; nil before the first round.
func (m *memory) ownedPools() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.owned
}

// foundGrace records the first start's ConfigMap: until when nothing is removed, or that the grace is over.
func (m *memory) foundGrace(on bool, until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.grace, m.graceDone = until, !on
}

// graceOver reports whether the grace of the first start is over for good.
func (m *memory) graceOver() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.graceDone
}

// graceEnds returns when it ends, zero for never.
func (m *memory) graceEnds() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.grace
}

// failed records that a command of the pool was taken back. It returns the pause that follows, at least first. It
// returns false if the pool is already paused: this is another node of the same command.
func (m *memory) failed(pool string, first time.Duration, now time.Time) (pause, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.pauses[pool]
	if now.Before(p.until) {
		return p, false
	}
	p.length = min(lastPause, max(first, 2*p.length))
	p.until = now.Add(p.length)
	m.pauses[pool] = p
	return p, true
}

// recall records an earlier process's pause, unless a later one is known.
func (m *memory) recall(pool string, p pause) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.until.After(m.pauses[pool].until) {
		m.pauses[pool] = p
	}
}

// settled records that a command of the pool was carried out.
func (m *memory) settled(pool string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pauses, pool)
}

// paused reports whether the pool must be left alone.
func (m *memory) paused(pool string, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return now.Before(m.pauses[pool].until)
}

// pauseEnds returns when the next pool's pause ends; zero if there is none.
func (m *memory) pauseEnds(now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	var next time.Time
	for _, p := range m.pauses {
		if p.until.After(now) && (next.IsZero() || p.until.Before(next)) {
			next = p.until
		}
	}
	return next
}

// fruitless records that a search found nothing. again says that it was not complete.
func (m *memory) fruitless(q engine.Question, again bool, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.looked.question, m.looked.at = q, now
	if !again {
		m.looked.complete = now
	}
	m.turn++
}

// turns returns how many searches have found nothing.
func (m *memory) turns() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.turn
}

// next returns which of the nodes to explain now, at most most of them: those after the last ones, then the first
// again.
func (m *memory) next(of, most int) (first, count int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.asked >= of {
		m.asked = 0
	}
	first, count = m.asked, min(of, most)
	m.asked += count
	return first, count
}

// rest returns how long the next search has to wait; 0 for not at all. An unchanged question waits longer: nothing
// that could change its answer has changed. again says that such a search need not be complete.
func (m *memory) rest(q engine.Question, now time.Time) (wait time.Duration, again bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.looked.at.IsZero() || m.looked.question.Passing() && !q.Passing() {
		return 0, false // none yet, or the last one left replacements out
	}
	wait = fruitlessPause
	if m.looked.question == q {
		wait, again = pollEvery, now.Sub(m.looked.complete) < completeAfter
	}
	return max(0, m.looked.at.Add(wait).Sub(now)), again
}
