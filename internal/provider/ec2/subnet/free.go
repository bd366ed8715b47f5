package subnet

import (
	"sync"
	"time"
)

const (
	// seenAfter is how long after a machine took an address an answer of EC2 may still count it as free.
	seenAfter = 10 * time.Second
	// startsFor is how long a machine may take to get the addresses of its pods, if nobody says that it has them. A
	// node that has not registered by then is given up.
	startsFor = 15 * time.Minute
	// forgottenAfter is how long a subnet is remembered that EC2 does not name any more.
	forgottenAfter = 24 * time.Hour
	prefixSize     = 16
)

// Need is how many addresses of a subnet a machine takes.
type Need struct {
	AtOnce int64 // with its launch
	Later  int64 // at most, while it starts
}

// Total is what a machine takes in the end.
func (n Need) Total() int64 { return n.AtOnce + n.Later }

// PodAddresses says where pods have their addresses from.
type PodAddresses int

// Where pods have their addresses from.
const (
	Elsewhere PodAddresses = iota // not from the subnet of the node
	Secondary                     // one of the subnet for each pod
	Prefixes                      // out of prefixes of 16 of the subnet
)

// NeedOf returns what a machine takes: one address for itself and 16 for each prefix that its template asks for, and
// later those of its pods.
func NeedOf(pods PodAddresses, maxPods, prefixes int64) Need {
	need := Need{AtOnce: 1 + prefixSize*prefixes}
	switch pods {
	case Secondary:
		need.Later = maxPods
	case Prefixes:
		need.Later = prefixSize * max(0, (maxPods+prefixSize-1)/prefixSize-prefixes)
	}
	return need
}

// Free counts the free addresses of subnets: what EC2 said last, minus what it cannot have counted then (E-12). That
// is what launches under way may take of every subnet that they name, what machines took since, and what those that
// start may still take. Nothing is lost with the process but a little caution. Safe for concurrent use.
type Free struct {
	mu      sync.Mutex
	subnets map[string]*count
	holds   map[int64]hold
	next    int64
}

// count is what is known of a subnet.
type count struct {
	last  int64     // as EC2 said
	asked time.Time // when it was asked that
	full  time.Time // when EC2 last said that nothing is left; zero for never
	takes []*take
}

// take is what one machine took.
type take struct {
	machine string
	need    Need
	at      time.Time // when it had taken its first
	settled time.Time // when it had taken all; zero while it starts
}

// hold is what a launch under way may take of each of its subnets.
type hold struct {
	subnets map[string]bool
	amount  int64
}

// Took is a machine that was launched.
type Took struct {
	Machine, Subnet string
	Need            Need
}

// NewFree returns one that knows no subnet.
func NewFree() *Free { return &Free{subnets: map[string]*count{}, holds: map[int64]hold{}} }

// Seen takes in an answer: how many addresses were free in each subnet when EC2 was asked. It replaces what it can
// have seen and nothing else; one that was asked earlier than what is known changes nothing.
func (f *Free) Seen(asked time.Time, free map[string]int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, n := range free {
		c := f.subnets[id]
		if c == nil {
			c = &count{}
			f.subnets[id] = c
		}
		if !c.asked.IsZero() && !asked.After(c.asked) {
			continue
		}
		c.last, c.asked = n, asked
		if asked.After(c.full) {
			c.full = time.Time{}
		}
		c.forget()
	}
	for id, c := range f.subnets {
		if asked.Sub(c.heard()) > forgottenAfter {
			delete(f.subnets, id)
		}
	}
}

// heard is when there was last something to say of a subnet.
func (c *count) heard() time.Time {
	heard := c.asked
	for _, t := range c.takes {
		if t.at.After(heard) {
			heard = t.at
		}
	}
	return heard
}

// forget drops what the last answer has counted.
func (c *count) forget() {
	seen := func(at time.Time) bool { return c.asked.After(at.Add(seenAfter)) }
	left := c.takes[:0]
	for _, t := range c.takes {
		settled := t.settled
		if latest := t.at.Add(startsFor); settled.IsZero() && !c.asked.Before(latest) {
			settled = latest
		}
		if seen(t.at) {
			t.need.AtOnce = 0
		}
		if t.need.AtOnce == 0 && (t.need.Later == 0 || !settled.IsZero() && seen(settled)) {
			continue
		}
		left = append(left, t)
	}
	clear(c.takes[len(left):])
	c.takes = left
}

// Begin holds what a launch of so many machines may take of each of the subnets, until End.
func (f *Free) Begin(subnets []string, need Need, machines int64) (launch int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := hold{subnets: map[string]bool{}, amount: need.Total() * machines}
	for _, id := range subnets {
		h.subnets[id] = true
	}
	f.next++
	f.holds[f.next] = h
	return f.next
}

// End takes in what a launch brought, which may be nothing. Machines of an earlier process come in without Begin,
// with 0.
func (f *Free) End(launch int64, at time.Time, took ...Took) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.holds, launch)
	for _, t := range took {
		c := f.subnets[t.Subnet]
		if c == nil {
			c = &count{}
			f.subnets[t.Subnet] = c
		}
		c.takes = append(c.takes, &take{machine: t.Machine, need: t.Need, at: at})
	}
}

// Settled takes in that a machine takes no more: its node is initialized, or it has ended.
func (f *Free) Settled(machine string, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.subnets {
		for _, t := range c.takes {
			if t.machine == machine && t.settled.IsZero() {
				t.settled = at
			}
		}
	}
}

// Full takes in that EC2 refused a launch since the subnet has no address left: it has none until an answer that was
// asked later.
func (f *Free) Full(subnet string, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.subnets[subnet]; c != nil && at.After(c.full) {
		c.full = at
	}
}

// Left returns how many addresses of a subnet a launch may count on. known is false for one that EC2 has not named.
func (f *Free) Left(subnet string) (left int64, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.subnets[subnet]
	if c == nil || c.asked.IsZero() {
		return 0, false
	}
	if !c.full.IsZero() {
		return 0, true
	}
	left = c.last
	for _, t := range c.takes {
		left -= t.need.Total()
	}
	for _, h := range f.holds {
		if h.subnets[subnet] {
			left -= h.amount
		}
	}
	return max(0, left), true
}
