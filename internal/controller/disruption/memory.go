package disruption

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

const (
	// passingPause is how long a pool is left alone after a command of it was taken back, since the cluster had changed, and
	// failurePause the same when a replacement failed; it doubles each time, up to lastPause.
	passingPause = 10 * time.Second
	failurePause = time.Minute
	lastPause    = 16 * time.Minute
	// fruitlessPause is the least time between two searches for something cheaper when the last one has found nothing.
	fruitlessPause = 10 * time.Second
)

// memory is what supplements the API objects: that commands of a pool failed, which stands on the NodePool too (backoff.go),
// and that there was nothing to do. It is safe for concurrent use.
type memory struct {
	mu        sync.Mutex
	pauses    map[string]pause // by pool
	pausedWhy string           // what the switch said last
	off       time.Time        // when the switch was last asked and was off; zero when it was not
	// owned are the pools that are ours, as the last round has found them; nil before there was one.
	owned []string
	// grace is the end of that of the first start, zero for none, and graceDone says that it is over for good (K-27).
	grace     time.Time
	graceDone bool
	// witnesses is what was last seen of pools with limits, by their UID (excess.go). Only the disruption step uses it.
	witnesses map[types.UID]witness
	looked    struct {
		question question
		at       time.Time
	}
	// passing is what was last seen of pools on whose nodes pods end (passing.go).
	passing map[string]passage
	asked   int // how far nodes were asked why they stay
	// deleted are the claims, by UID, that this process has deleted, and of which no picture has shown yet that they go.
	deleted map[string]bool
}

// question is what the answer to whether something can be made cheaper depends on.
type question struct {
	version uint64 // of the picture
	due     int    // quiet times and rests of nodes that have ended
	allowed string // what the budgets allow in each pool
	passing string // the pools in which nothing is replaced, since their workloads shrink
}

type pause struct {
	length time.Duration
	until  time.Time
}

func newMemory() *memory {
	return &memory{pauses: map[string]pause{}, passing: map[string]passage{}, deleted: map[string]bool{}}
}

// noteDeleted notes that a claim was deleted.
func (m *memory) noteDeleted(uid string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deleted[uid] = true
}

// deletedUnseen returns the claims, by UID, that were deleted and that a picture still has as staying. The others are forgotten.
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

// foundPaused notes what the switch said.
func (m *memory) foundPaused(why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pausedWhy = why
}

// pausedBy returns what the switch said last.
func (m *memory) pausedBy() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pausedWhy
}

// foundSwitch notes whether the switch is off.
func (m *memory) foundSwitch(off bool, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.off = time.Time{}
	if off {
		m.off = now
	}
}

// switchIsOff reports whether the switch was off a moment ago.
func (m *memory) switchIsOff(now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.off.IsZero() && now.Sub(m.off) < switchAge
}

// foundPools notes which pools are ours.
func (m *memory) foundPools(names []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.owned = slices.AppendSeq([]string{}, slices.Values(names))
}

// ownedPools returns them; nil before any round.
func (m *memory) ownedPools() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.owned
}

// foundGrace notes what the first start's ConfigMap said: until when nothing goes, or that it is over.
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

// failed notes that a command of the pool was taken back, and returns the pause that follows, which is no shorter than first;
// false when the pool pauses already: it is another node of the same command.
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

// recall takes in a pause that an earlier process has noted, unless a later one is known.
func (m *memory) recall(pool string, p pause) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.until.After(m.pauses[pool].until) {
		m.pauses[pool] = p
	}
}

// settled notes that a command of the pool was carried out.
func (m *memory) settled(pool string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pauses, pool)
}

// paused reports whether the pool is to be left alone.
func (m *memory) paused(pool string, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return now.Before(m.pauses[pool].until)
}

// pauseEnds returns when the next pool's pause ends; zero when none is left alone.
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

// fruitless notes that a search found nothing.
func (m *memory) fruitless(q question, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.looked.question, m.looked.at = q, now
}

// next returns which of so many nodes are asked now, at most so many: those after the last ones, and then the first
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

// rest returns how long the next search has to wait; 0 when it may be done now. The same question is asked again only
// after a while: whatever may change its answer is part of it.
func (m *memory) rest(q question, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.looked.at.IsZero() || m.looked.question.passing != "" && q.passing == "" {
		return 0 // or the last search was not about replacements at all
	}
	wait := fruitlessPause
	if m.looked.question == q {
		wait = pollEvery
	}
	return max(0, m.looked.at.Add(wait).Sub(now))
}
