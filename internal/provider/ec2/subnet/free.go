package subnet

import (
	"sync"
	"time"
)

const (
	// seenAfter is how long an answer of EC2 may still count a taken address as free.
	seenAfter = 10 * time.Second
	// startsFor is how long a machine may need to get the addresses of its pods, unless Settled is called. A node that
	// has not registered by then is given up.
	startsFor = 15 * time.Minute
	// forgottenAfter is how long a subnet is remembered that EC2 no longer names.
	forgottenAfter = 24 * time.Hour
	prefixSize     = 16
)

// Need is the number of a subnet's addresses that a machine takes.
type Need struct {
	AtOnce int64 // with its launch
	Later  int64 // at most, while it starts
}

// Total returns how many addresses a machine takes in the end.
func (n Need) Total() int64 { return n.AtOnce + n.Later }

// PodAddresses says where pods get their addresses from.
type PodAddresses int

// The sources of pod addresses.
const (
	Elsewhere PodAddresses = iota // not from the subnet of the node
	Secondary                     // one of the subnet for each pod
	Prefixes                      // out of prefixes of 16 of the subnet
)

// NeedOf returns the need of a machine: one address for itself, 16 for each prefix of its template, and later those of
// its pods.
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

// Free counts the free addresses of subnets: EC2's last answer minus what it cannot have counted (E-12). Launches
// under way count in every subnet that they name. So do addresses that machines took since, and those that starting
// machines may still take. A restart only makes it a little less cautious. Safe for concurrent use.
type Free struct {
	mu      sync.Mutex
	subnets map[string]*count
	holds   map[int64]hold
	next    int64
}

// count is what is known of a subnet.
type count struct {
	last  int64     // by EC2's last answer
	asked time.Time // when EC2 was asked
	full  time.Time // when EC2 last said that the subnet is full; zero for never
	takes []*take
}

// take is the addresses of one machine.
type take struct {
	machine string
	need    Need
	at      time.Time // when it took the first ones
	settled time.Time // when it had all; zero while it starts
}

// hold is what a launch under way may take from each of its subnets.
type hold struct {
	subnets map[string]bool
	amount  int64
}

// Took is a launched machine with its need.
type Took struct {
	Machine, Subnet string
	Need            Need
}

// NewFree returns an empty Free.
func NewFree() *Free { return &Free{subnets: map[string]*count{}, holds: map[int64]hold{}} }

// Seen stores an answer: the free addresses of each subnet when EC2 was asked. It replaces only what EC2 can have
// counted. An answer to an older question changes nothing.
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

// heard returns when something was last learned about a subnet.
func (c *count) heard() time.Time {
	heard := c.asked
	for _, t := range c.takes {
		if t.at.After(heard) {
			heard = t.at
		}
	}
	return heard
}

// forget drops the takes that the last answer has counted.
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

// Begin holds, until End, what a launch of this number of machines may take from each of the subnets: all that the
// machines take at once, and this subnet's share of what they take later. That share is an estimate. All of it in each
// subnet would close zones to other launches, although the machines come to one of them only.
func (f *Free) Begin(subnets []string, need Need, machines int64) (launch int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := hold{subnets: map[string]bool{}, amount: need.AtOnce * machines}
	for _, id := range subnets {
		h.subnets[id] = true
	}
	if among := int64(len(h.subnets)); among > 0 {
		h.amount += need.Later * ((machines + among - 1) / among)
	}
	f.next++
	f.holds[f.next] = h
	return f.next
}

// End ends the hold and stores the machines of the launch, if any. For machines of an earlier process, without Begin,
// launch is 0.
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

// Settled notes that a machine takes no more addresses: its node is initialized, or it has ended.
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

// Full notes that EC2 refused a launch because the subnet has no free address: it counts as full until a later answer.
func (f *Free) Full(subnet string, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.subnets[subnet]; c != nil && at.After(c.full) {
		c.full = at
	}
}

// Left returns how many addresses of a subnet a launch may count on. known is false for a subnet that EC2 has not
// named.
func (f *Free) Left(subnet string) (left int64, known bool) { return f.left(subnet, true) }

// AtRest is Left without launches under way. These end within seconds, so what only they lack is no news for users.
func (f *Free) AtRest(subnet string) (left int64, known bool) { return f.left(subnet, false) }

func (f *Free) left(subnet string, underWay bool) (left int64, known bool) {
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
		if underWay && h.subnets[subnet] {
			left -= h.amount
		}
	}
	return max(0, left), true
}
