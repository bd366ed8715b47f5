package ec2test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Faults are the injected faults. Random decisions are repeatable with the same Seed. Actions are "service:Action".
// Actions, resources, types and zones may have * and ? as in path.Match.
type Faults struct {
	Seed uint64 `json:"seed,omitempty"`
	// Latency is how long every answer takes, by this machine's clock.
	Latency metav1.Duration `json:"latency,omitempty"`
	// Visibility delays new instances in listings.
	Visibility Visibility `json:"visibility,omitempty"`
	// Throttle has a token bucket for an action. "ec2:CreateFleet instances" counts the instances that are asked for.
	Throttle map[string]Bucket `json:"throttle,omitempty"`
	// Pools have finite capacity. The first entry that fits a pool counts; a pool without an entry is endless.
	Pools []Pool `json:"pools,omitempty"`
	// Quotas bound the vCPUs that run.
	Quotas []Quota `json:"quotas,omitempty"`
	// FreeAddresses replaces how many addresses a subnet has left, by id.
	FreeAddresses map[string]int `json:"freeAddresses,omitempty"`
	// Deny refuses rights.
	Deny []Denial `json:"deny,omitempty"`
	// LostBefore are requests that never arrive, LostAfter those whose answer never arrives.
	LostBefore []Loss `json:"lostBefore,omitempty"`
	LostAfter  []Loss `json:"lostAfter,omitempty"`
	// FleetErrors are errors of a fleet that name no pool, instead of its instances or beside them.
	FleetErrors []FleetError `json:"fleetErrors,omitempty"`
	// Garbled are unreadable answers: cut, empty, html (with status 500), types or huge (10 MB).
	Garbled []Garble `json:"garbled,omitempty"`
	// Ends are instances that end by themselves.
	Ends []End `json:"ends,omitempty"`
	// Interruptions are spot instances that AWS takes back, two minutes after its warning.
	Interruptions []End `json:"interruptions,omitempty"`
	// Tokens is the answer to a repeated client token: replay (default), fleet-only, mismatch or ignore.
	Tokens TokenBehaviour `json:"tokens,omitempty"`
	// MaxTemplates bounds the launch templates of the account; 0 means EC2's 5,000.
	MaxTemplates int `json:"maxTemplates,omitempty"`
	// MaxFleets bounds the fleets that were made; 0 for no bound. Beyond it CreateFleet answers MaxFleetCountExceeded.
	MaxFleets int `json:"maxFleets,omitempty"`
	// Omit leaves fields out of DescribeInstances, like some other servers (E-64): spot-request, zone-id, groups,
	// token.
	Omit []string `json:"omit,omitempty"`
	// ProfileDelay is how long a new instance profile cannot be used for a launch.
	ProfileDelay metav1.Duration `json:"profileDelay,omitempty"`
	// SkewCode refuses a request whose date is too far from now; "" is RequestExpired, as EC2 documents. The SDK
	// corrects its clock on others only, AuthFailure among them.
	SkewCode string `json:"skewCode,omitempty"`
}

// TokenBehaviour is the reaction of EC2 to a repeated client token (E-37).
type TokenBehaviour string

// The behaviours.
const (
	// TokenReplay gives the original answer to the same request and IdempotentParameterMismatch to another.
	TokenReplay TokenBehaviour = "replay"
	// TokenFleetOnly gives the id of the original fleet and no instances.
	TokenFleetOnly TokenBehaviour = "fleet-only"
	// TokenMismatch refuses every repetition with IdempotentParameterMismatch.
	TokenMismatch TokenBehaviour = "mismatch"
	// TokenIgnore launches again, like some other servers.
	TokenIgnore TokenBehaviour = "ignore"
)

// Visibility hides a share of new instances from every request for a time between Least and Most.
type Visibility struct {
	Share float64         `json:"share,omitempty"`
	Least metav1.Duration `json:"least,omitempty"`
	Most  metav1.Duration `json:"most,omitempty"`
}

// Bucket holds Burst tokens and gets Rate a second.
type Bucket struct {
	Rate  float64 `json:"rate"`
	Burst float64 `json:"burst"`
}

// Pool is how many machines a pool has. A refusal has Code, InsufficientInstanceCapacity when empty.
type Pool struct {
	Type         string `json:"type"`
	Zone         string `json:"zone"`
	CapacityType string `json:"capacityType"` // spot or on-demand
	Free         int    `json:"free"`
	Code         string `json:"code,omitempty"`
}

// Quota is how many vCPUs of a group (standard, g, p, f, x, inf, trn, dl, hpc, high-memory) may run.
type Quota struct {
	Group        string `json:"group"`
	CapacityType string `json:"capacityType"`
	VCPUs        int    `json:"vcpus"`
}

// Denial refuses an action on a resource. Cause ends the message of the refusal; "" says that no policy allows it.
type Denial struct {
	Action   string `json:"action"`
	Resource string `json:"resource,omitempty"` // "" for every
	Cause    string `json:"cause,omitempty"`
}

// Loss loses a share of an action's answers, at most Times of them unless 0. Status 0 cuts the connection; others are
// answered with an internal error.
type Loss struct {
	Action string  `json:"action"`
	Share  float64 `json:"share"`
	Times  int     `json:"times,omitempty"`
	Status int     `json:"status,omitempty"`
}

// FleetError is an error in a share of the fleets' answers, at most Times unless 0: UnfulfillableCapacity, or
// throttling.
type FleetError struct {
	Code    string  `json:"code"`
	Message string  `json:"message,omitempty"`
	Share   float64 `json:"share"`
	Times   int     `json:"times,omitempty"`
	Instead bool    `json:"instead,omitempty"` // no instances
}

func (l *Loss) refusal() error {
	if l.Status == 0 {
		return nil
	}
	return refuse(l.Status, codeInternal, "An internal error has occurred")
}

// End ends a share of the instances of a type and zone some time after their launch.
type End struct {
	Type    string          `json:"type,omitempty"`
	Zone    string          `json:"zone,omitempty"`
	Share   float64         `json:"share"`
	After   metav1.Duration `json:"after"`
	Code    string          `json:"code,omitempty"` // StateReason
	Message string          `json:"message,omitempty"`
}

// ReadFaults reads a file of YAML or JSON. An unknown field or an invalid value is an error.
func ReadFaults(name string) (Faults, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return Faults{}, err
	}
	var f Faults
	if err := yaml.UnmarshalStrict(content, &f); err != nil {
		return Faults{}, fmt.Errorf("%s: %w", name, err)
	}
	if err := f.check(); err != nil {
		return Faults{}, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

// check returns an error for invalid values: field, value, and what is allowed.
func (f *Faults) check() error {
	shares := map[string]float64{"visibility.share": f.Visibility.Share}
	for i, l := range f.LostBefore {
		shares[fmt.Sprintf("lostBefore[%d].share", i)] = l.Share
	}
	for i, l := range f.LostAfter {
		shares[fmt.Sprintf("lostAfter[%d].share", i)] = l.Share
	}
	for i, g := range f.Garbled {
		shares[fmt.Sprintf("garbled[%d].share", i)] = g.Share
		if garblings[g.How] == nil {
			return fmt.Errorf("garbled[%d].how is %q; one of %q is allowed", i, g.How,
				slices.Sorted(maps.Keys(garblings)))
		}
	}
	for i, e := range f.FleetErrors {
		shares[fmt.Sprintf("fleetErrors[%d].share", i)] = e.Share
		if e.Code == "" {
			return fmt.Errorf("fleetErrors[%d].code is empty; a code of EC2 is allowed", i)
		}
	}
	for i, e := range f.Ends {
		shares[fmt.Sprintf("ends[%d].share", i)] = e.Share
	}
	for i, e := range f.Interruptions {
		shares[fmt.Sprintf("interruptions[%d].share", i)] = e.Share
	}
	for field, share := range shares {
		if share < 0 || share > 1 || math.IsNaN(share) {
			return fmt.Errorf("%s is %v; 0 to 1 is allowed", field, share)
		}
	}
	if f.Visibility.Least.Duration > f.Visibility.Most.Duration {
		return fmt.Errorf("visibility.least is %s; at most visibility.most, %s, is allowed",
			f.Visibility.Least.Duration, f.Visibility.Most.Duration)
	}
	tokens := []TokenBehaviour{"", TokenReplay, TokenFleetOnly, TokenMismatch, TokenIgnore}
	if !slices.Contains(tokens, f.Tokens) {
		return fmt.Errorf("tokens is %q; one of %q is allowed", f.Tokens, tokens[1:])
	}
	for i, what := range f.Omit {
		if omissions[what] == nil {
			return fmt.Errorf("omit[%d] is %q; one of %q is allowed", i, what, slices.Sorted(maps.Keys(omissions)))
		}
	}
	for name, b := range f.Throttle {
		if b.Rate < 0 || b.Burst < 0 {
			return fmt.Errorf("throttle[%q] is %v; rate and burst from 0 are allowed", name, b)
		}
	}
	for i, p := range f.Pools {
		if p.CapacityType != spot && p.CapacityType != onDemand && p.CapacityType != "*" {
			return fmt.Errorf("pools[%d].capacityType is %q; spot, on-demand or * is allowed", i, p.CapacityType)
		}
	}
	for i, q := range f.Quotas {
		if !slices.Contains(quotaGroups, q.Group) {
			return fmt.Errorf("quotas[%d].group is %q; one of %q is allowed", i, q.Group, quotaGroups)
		}
	}
	return nil
}

// faults are Faults with their counters.
type faults struct {
	Faults
	buckets map[string]*bucket
	hit     map[string]int // by rule: how often
	deny    func(Ask) string
}

type bucket struct {
	Bucket
	tokens float64
	at     time.Time
}

// SetFaults replaces the faults from now on. Buckets begin full.
func (s *Server) SetFaults(f Faults) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.setFaults(f)
}

func (s *Server) setFaults(f Faults) error {
	if err := f.check(); err != nil {
		return err
	}
	s.faults = faults{Faults: f, buckets: map[string]*bucket{}, hit: map[string]int{}, deny: s.faults.deny}
	s.faults.Pools = slices.Clone(f.Pools) // they are counted down
	for name, b := range f.Throttle {
		s.faults.buckets[name] = &bucket{Bucket: b, tokens: b.Burst, at: s.now()}
	}
	for id, free := range f.FreeAddresses {
		if subnet := s.subnets[id]; subnet != nil {
			subnet.free = free
		}
	}
	return nil
}

// Deny lets decide decide about every right, before Faults.Deny: it returns why the right is denied, or "". decide
// runs under the endpoint's lock and must not call the endpoint.
func (s *Server) Deny(decide func(Ask) string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.deny = decide
}

func (f *faults) denied(ask Ask) string {
	if f.deny != nil {
		if cause := f.deny(ask); cause != "" {
			return cause
		}
	}
	for _, d := range f.Faults.Deny {
		if like(d.Action, ask.Action) && (d.Resource == "" || like(d.Resource, ask.Resource)) {
			if d.Cause != "" {
				return d.Cause
			}
			return "because no identity-based policy allows the " + ask.Action + " action"
		}
	}
	return ""
}

// chance returns a number from 0 to below 1, the same for the same seed and words.
func (f *faults) chance(words ...any) float64 {
	sum := sha256.Sum256([]byte(fmt.Sprintln(append([]any{f.Seed}, words...)...)))
	return float64(binary.BigEndian.Uint64(sum[:8])>>11) / (1 << 53)
}

// lose returns the rule by which the answer is lost, or nil. kind is before or after.
func (f *faults) lose(c *call, kind string, rules []Loss) *Loss {
	for i := range rules {
		if rule := &rules[i]; f.hits(c, kind, i, rule.Action, rule.Share, rule.Times) {
			return rule
		}
	}
	return nil
}

// garble returns how the answer is garbled; "" for not at all.
func (f *faults) garble(c *call) string {
	for i, rule := range f.Garbled {
		if f.hits(c, "garbled", i, rule.Action, rule.Share, rule.Times) {
			return rule.How
		}
	}
	return ""
}

// refuseFleet returns the error that a fleet's answer has beside what its pools say, or nil.
func (f *faults) refuseFleet(c *call) *FleetError {
	for i := range f.FleetErrors {
		if rule := &f.FleetErrors[i]; f.hits(c, "fleet", i, "", rule.Share, rule.Times) {
			return rule
		}
	}
	return nil
}

// hits decides at random whether a rule applies to this request, and counts it.
func (f *faults) hits(c *call, kind string, rule int, action string, share float64, times int) bool {
	key := fmt.Sprint(kind, rule)
	if !like(action, c.name()) || times > 0 && f.hit[key] >= times || f.chance(kind, rule, c.name(),
		c.counts[c.name()]) >= share {
		return false
	}
	f.hit[key]++
	return true
}

// throttled takes tokens from every bucket of the action, and reports whether one has too few; then none is taken.
func (f *faults) throttled(c *call, tokens float64, of string) bool {
	var fit []*bucket
	for pattern, b := range f.buckets {
		if pattern == c.name()+of || of == "" && !strings.Contains(pattern, " ") && like(pattern, c.name()) {
			fit = append(fit, b)
		}
	}
	for _, b := range fit {
		b.fill(c.now())
		if b.tokens < tokens {
			return true
		}
	}
	for _, b := range fit {
		b.tokens -= tokens
	}
	return false
}

func (b *bucket) fill(now time.Time) {
	if past := now.Sub(b.at); past > 0 {
		b.tokens = min(b.Burst, b.tokens+b.Rate*past.Seconds())
		b.at = now
	}
}

// pool returns the entry of a pool's capacity, or nil when it is endless.
func (f *faults) pool(kind, zone, capacityType string) *Pool {
	for i := range f.Pools {
		if p := &f.Pools[i]; like(p.Type, kind) && like(p.Zone, zone) && (p.CapacityType == "*" ||
			p.CapacityType == capacityType) {
			return p
		}
	}
	return nil
}

// like reports whether text matches a pattern; "" matches all.
func like(pattern, text string) bool {
	if pattern == "" || pattern == "*" {
		return true
	}
	matched, err := path.Match(strings.ReplaceAll(pattern, "/", "\x00"), strings.ReplaceAll(text, "/", "\x00"))
	return err == nil && matched
}
