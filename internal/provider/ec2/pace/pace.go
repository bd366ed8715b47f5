// Package pace keeps calls to EC2 below the rate at which EC2 refuses them (E-60). All users of an account share one
// allowance, and refused calls count too: whoever calls too fast gets nothing done.
//
// Three token buckets model EC2's own: reading calls, changing calls, and launched instances. [Limiter.Wait] takes the
// tokens for a call, or waits for them. If EC2 still refuses a call, [Grant.Throttled] halves the rate, which then
// recovers with time.
//
// It makes no calls. Safe for concurrent use.
package pace

import (
	"cmp"
	"strings"
	"time"
)

// Bucket is a token bucket that calls are counted in.
type Bucket int

// The buckets.
const (
	Reads Bucket = iota
	Changes
	Instances // launched ones
	buckets
)

// Rank orders waiting calls. A lower one goes first.
type Rank int

// The ranks.
const (
	Urgent    Rank = iota // ends machines, or learns which ones end
	Launching             // launches machines
	Discovery             // learns the current state
	Tagging               // is for people to read
)

// allowance is the rate and the size of a bucket while EC2 does not refuse calls.
type allowance struct {
	rate  float64 // tokens a second
	burst float64 // tokens at most
}

// allowances returns EC2's documented defaults for an account, as far as known. It is not verified that the last one
// applies to CreateFleet. An account may have more.
func allowances() [buckets]allowance {
	return [buckets]allowance{
		Reads: {rate: 20, burst: 100}, Changes: {rate: 5, burst: 50}, Instances: {rate: 2, burst: 1000},
	}
}

const (
	leastRate     = 0.5 // tokens a second: the minimum, to find out when EC2 accepts calls again
	backOff       = 0.5
	recovery      = 1.1 // times the current rate
	recoveryEvery = 10 * time.Second
)

// Ask is what a call needs.
type Ask struct {
	Rank   Rank
	Tokens [buckets]int
}

// For returns what a call of that name needs. instances is how many it launches; 0 for calls that launch none.
func For(action string, instances int) Ask {
	var ask Ask
	ask.Rank = Discovery
	if IsRead(action) {
		ask.Tokens[Reads] = 1
	} else {
		ask.Tokens[Changes] = 1
	}
	switch action {
	case "TerminateInstances", "DescribeInstanceStatus":
		ask.Rank = Urgent
	case "CreateFleet", "RunInstances":
		ask.Rank, ask.Tokens[Instances] = Launching, max(0, instances)
	case "CreateLaunchTemplate":
		ask.Rank = Launching
	case "CreateTags", "DeleteLaunchTemplate":
		ask.Rank = Tagging
	}
	return ask
}

// IsRead reports whether a call of that name changes nothing.
func IsRead(action string) bool {
	for _, prefix := range []string{"Describe", "Get", "List"} {
		if strings.HasPrefix(action, prefix) {
			return true
		}
	}
	return false
}

// bucket is a token bucket whose rate falls and recovers. It is pure: time is a parameter, and never goes back.
type bucket struct {
	allowance
	now    time.Time // up to which tokens and rate are counted
	tokens float64   // below 0 after a call that needed more than the burst
	slowed float64   // tokens a second now
	steps  time.Time // when the rate next rises; unused at the full rate
	epoch  int       // how often it was halved; a refused call from an older epoch says nothing new
}

func newBucket(a allowance, now time.Time) bucket {
	return bucket{allowance: a, now: now, tokens: a.burst, slowed: a.rate}
}

// advance adds the tokens up to now.
func (b *bucket) advance(now time.Time) {
	for b.slowed < b.rate && !b.steps.After(now) { // at most 60 times: from 0.5 to 100 a second by 10 %
		b.flow(b.steps)
		b.slowed = min(b.rate, b.slowed*recovery)
		b.steps = b.steps.Add(recoveryEvery)
	}
	b.flow(now)
}

func (b *bucket) flow(until time.Time) {
	if passed := until.Sub(b.now); passed > 0 {
		b.tokens = min(b.burst, b.tokens+passed.Seconds()*b.slowed)
		b.now = until
	}
}

// has reports whether a call that needs n tokens may go. If it needs more than the bucket can hold, it goes when the
// bucket is full.
func (b *bucket) has(n int) bool {
	const rounding = 1e-6
	return n == 0 || b.tokens+rounding >= min(float64(n), b.burst)
}

// wait returns after what time to ask has(n) again. Call advance first.
func (b *bucket) wait(n int) time.Duration {
	missing := min(float64(n), b.burst) - b.tokens
	if n == 0 || missing <= 0 {
		return 0
	}
	wait := time.Duration(missing / b.slowed * float64(time.Second))
	if b.slowed < b.rate {
		wait = min(wait, b.steps.Sub(b.now))
	}
	return max(wait, time.Millisecond) // less could cause a busy loop by rounding
}

// halve handles a refused call: EC2 has no tokens left for us, and its rate is lower than we thought.
func (b *bucket) halve(now time.Time) {
	b.advance(now)
	b.slowed = max(min(leastRate, b.rate), b.slowed*backOff)
	b.tokens = min(b.tokens, 0)
	b.steps = now.Add(recoveryEvery)
	b.epoch++
}

// earlier orders waiters by rank, then by arrival.
func earlier(a, b *waiter) int {
	return cmp.Or(cmp.Compare(a.ask.Rank, b.ask.Rank), cmp.Compare(a.arrival, b.arrival))
}
