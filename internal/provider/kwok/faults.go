package kwok

import (
	"fmt"
	"hash/fnv"
	"io"
	"path"
	"slices"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/choose"
)

// Faults are injected faults of simulated machines (P-51): rules that say for which offerings, when and how often.
// [ParseFaults] reads them. A rule has no state: seed, rule, machine and time decide whether it hits. So a restart
// changes nothing, and a trial can be repeated. The value is immutable; the zero value has no faults.
type Faults struct {
	shortages, slowBoots, absences, drifts, interruptions, throttles, prices []fault
}

// The calls that can be throttled, as users name them.
const (
	callCatalog   = "catalog"
	callLaunch    = "launch"
	callTerminate = "terminate"
	callGet       = "get"
	callReboot    = "reboot"
	callList      = "list"
)

// fault is one rule.
type fault struct {
	path        string // its place in the document, for messages
	lot         string // seeds the random decision, with the subject of the rule
	machines    selector
	window      window
	probability float64

	delay  time.Duration       // slowBoots: beyond the node class's own
	after  time.Duration       // drifts, interruptions: the age of the machine
	notice time.Duration       // interruptions: from the notice until the machine would be taken
	kind   provider.NoticeKind // interruptions
	reason string              // drifts
	calls  []string            // throttles; none for all
	steps  []priceStep         // prices; in order
}

// priceStep is a factor on prices that holds from a position in the window on.
type priceStep struct {
	at     time.Duration
	factor float64
}

// selector chooses offerings; an empty list means all.
type selector struct {
	types                []string // patterns as in path.Match
	zones, capacityTypes []string
}

func (s selector) matches(o provider.Offering) bool {
	among := func(list []string, value string) bool { return len(list) == 0 || slices.Contains(list, value) }
	named := len(s.types) == 0 || slices.ContainsFunc(s.types, func(pattern string) bool {
		matched, err := path.Match(pattern, o.Type)
		return matched && err == nil
	})
	return named && among(s.zones, o.Zone) && among(s.capacityTypes, o.CapacityType)
}

// window is when a rule holds: between two times. If every is set, only the first part (span) of each period counts.
type window struct {
	from, until time.Time     // zero: not bounded
	every, span time.Duration // 0: no periods; span 0: the whole period
}

// opened returns since when the window has been open at now, and false when it is closed.
func (w window) opened(now time.Time) (time.Time, bool) {
	if now.Before(w.from) || !w.until.IsZero() && !now.Before(w.until) {
		return time.Time{}, false
	}
	if w.every == 0 {
		return w.from, true
	}
	since := w.position(now)
	return now.Add(-since), w.span == 0 || since < w.span
}

// position returns how far now is into the window or its period. Without a start, periods are counted from the Unix
// epoch.
func (w window) position(now time.Time) time.Duration {
	from := w.from
	if from.IsZero() {
		from = time.Unix(0, 0)
	}
	since := now.Sub(from)
	if w.every > 0 {
		since %= w.every
	}
	return since
}

// and returns the rules of both.
func (f Faults) and(other Faults) Faults {
	return Faults{
		shortages: slices.Concat(f.shortages, other.shortages), slowBoots: slices.Concat(f.slowBoots, other.slowBoots),
		absences: slices.Concat(f.absences, other.absences), drifts: slices.Concat(f.drifts, other.drifts),
		interruptions: slices.Concat(f.interruptions, other.interruptions),
		throttles:     slices.Concat(f.throttles, other.throttles), prices: slices.Concat(f.prices, other.prices),
	}
}

// check returns an error that names the first rule without an offering in the catalogue: it would silently do nothing.
func (f Faults) check(c catalog.Catalog) error {
	for _, rule := range slices.Concat(f.shortages, f.slowBoots, f.absences, f.drifts, f.interruptions, f.prices) {
		if len(rule.machines.types)+len(rule.machines.zones)+len(rule.machines.capacityTypes) > 0 && !rule.sold(c) {
			return fmt.Errorf(
				"%s: types %q, zones %q, capacityTypes %q match no offering; want those of the instance types in use, or leave them out",
				rule.path, rule.machines.types, rule.machines.zones, rule.machines.capacityTypes)
		}
	}
	return nil
}

func (r fault) sold(c catalog.Catalog) bool {
	for _, t := range c.Types {
		for _, o := range t.Offerings {
			if r.machines.matches(choose.Name(t, o)) {
				return true
			}
		}
	}
	return false
}

// hits decides at random whether the rule hits the subject named by parts: always the same for the same parts.
func (r fault) hits(parts ...string) bool {
	if r.probability >= 1 {
		return true
	}
	hash := fnv.New64a()
	_, _ = io.WriteString(hash, r.lot) // a hash never fails to write
	for _, part := range parts {
		_, _ = io.WriteString(hash, "\x00"+part)
	}
	// FNV leaves the high bits of similar texts alike: stir them, with the constants of splitmix64.
	x := hash.Sum64()
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	return float64(x>>11)/(1<<53) < r.probability
}

// holds reports whether the rule holds for the machine of a claim in an offering at now.
func (r fault) holds(o provider.Offering, claimUID string, now time.Time) bool {
	_, open := r.window.opened(now)
	return open && r.machines.matches(o) && r.hits(claimUID)
}

// left returns the catalogue with offerings unavailable that have no capacity for a claim, and these offerings; c
// itself if there are none.
func (f Faults) left(c catalog.Catalog, claimUID string, now time.Time) (catalog.Catalog, []choose.Choice) {
	rules := slices.DeleteFunc(slices.Clone(f.shortages),
		func(r fault) bool { _, open := r.window.opened(now); return !open })
	if len(rules) == 0 {
		return c, nil
	}
	var refused []choose.Choice
	c.Types = slices.Clone(c.Types)
	for i := range c.Types {
		t := &c.Types[i]
		t.Offerings = slices.Clone(t.Offerings)
		for j, o := range t.Offerings {
			id := choose.Name(*t, o)
			if o.Available && slices.ContainsFunc(rules, func(r fault) bool {
				return r.machines.matches(id) && r.hits(claimUID, id.String())
			}) {
				refused = append(refused, choose.Choice{Type: *t, Offering: o})
				t.Offerings[j].Available = false
			}
		}
	}
	return c, refused
}

// boot returns the extra time of a machine to join, and whether it never does.
func (f Faults) boot(o provider.Offering, claimUID string, now time.Time) (longer time.Duration, never bool) {
	for _, r := range f.slowBoots {
		if r.holds(o, claimUID, now) {
			longer += r.delay
		}
	}
	return longer, slices.ContainsFunc(f.absences, func(r fault) bool { return r.holds(o, claimUID, now) })
}

// drifted returns why a machine no longer matches its node class, "" when it does.
func (f Faults) drifted(m provider.Instance, now time.Time) string {
	for _, r := range f.drifts {
		if !now.Before(m.Launched.Add(r.after)) && r.holds(offeringOf(m), m.ClaimUID, now) {
			return r.reason
		}
	}
	return ""
}

// interrupted returns the notice for a machine, if there is one.
func (f Faults) interrupted(m provider.Instance, now time.Time) (provider.Notice, bool) {
	for _, r := range f.interruptions {
		opened, _ := r.window.opened(now)
		begun := m.Launched.Add(r.after)
		if now.Before(begun) || !r.holds(offeringOf(m), m.ClaimUID, now) {
			continue
		}
		if opened.After(begun) {
			begun = opened
		}
		notice := provider.Notice{ID: m.ProviderID, Kind: r.kind, ProviderID: m.ProviderID}
		if r.kind.Ends() {
			notice.Gone = begun.Add(r.notice)
		}
		return notice, true
	}
	return provider.Notice{}, false
}

// throttled reports whether a call is refused because of its rate. This is decided separately for each call.
func (f Faults) throttled(call, subject string, now time.Time) bool {
	return slices.ContainsFunc(f.throttles, func(r fault) bool {
		_, open := r.window.opened(now)
		return open && (len(r.calls) == 0 || slices.Contains(r.calls, call)) &&
			r.hits(call, subject, now.Format(time.RFC3339Nano))
	})
}

// priced returns the catalogue with the prices of now; c itself when no rule changes any.
func (f Faults) priced(c catalog.Catalog, now time.Time) catalog.Catalog {
	factors := make([]float64, len(f.prices))
	changes := false
	for i, r := range f.prices {
		factors[i] = r.factor(now)
		changes = changes || factors[i] != 1
	}
	if !changes {
		return c
	}
	c.Types = slices.Clone(c.Types)
	for i := range c.Types {
		t := &c.Types[i]
		t.Offerings = slices.Clone(t.Offerings)
		for j := range t.Offerings {
			o := &t.Offerings[j]
			for k, r := range f.prices {
				if factors[k] != 1 && r.machines.matches(choose.Name(*t, *o)) {
					o.Price = min(resources.Money(float64(o.Price)*factors[k]+0.5), resources.MaxPrice)
				}
			}
		}
	}
	return c
}

// factor returns the factor on prices at now.
func (r fault) factor(now time.Time) float64 {
	if _, open := r.window.opened(now); !open {
		return 1
	}
	position, factor := r.window.position(now), 1.0
	for _, step := range r.steps {
		if position >= step.at {
			factor = step.factor
		}
	}
	return factor
}

func offeringOf(m provider.Instance) provider.Offering {
	return provider.Offering{Type: m.Type, Zone: m.Zone, CapacityType: m.CapacityType}
}
