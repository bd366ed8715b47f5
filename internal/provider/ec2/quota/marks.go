package quota

import (
	"fmt"
	"slices"
	"sync"
	"time"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// How long a mark lasts. For quotas it is like a shortage (P-31), since other users of the account may free some.
const (
	firstMark = time.Minute
	mostMark  = 30 * time.Minute
	fleetMark = time.Minute      // too many fleets at a time; fleets are short-lived
	roleMark  = 30 * time.Minute // somebody must create the role
)

// The codes that concern more than one pool.
const (
	vcpuLimit     = "VcpuLimitExceeded"
	spotLimit     = "MaxSpotInstanceCountExceeded" // spot quotas count vCPUs too
	instanceLimit = "InstanceLimitExceeded"
	fleetLimit    = "MaxFleetCountExceeded"
	NoSpotRole    = "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
)

// OfCapacityType reports whether a refusal with this code is about all types of a capacity type. Which pools a launch
// asked for, or EC2 names, does not matter then.
func OfCapacityType(code string) bool { return code == fleetLimit || code == NoSpotRole }

// Reasons of events.
const (
	ReasonExceeded        = "QuotaExceeded"
	ReasonSpotRoleMissing = "SpotServiceLinkedRoleMissing"
)

// Refusal is a refusal of EC2 because of the account, not of a pool.
type Refusal struct {
	Code         string // as AWS has it
	Type         string // instance type
	VCPUs        int64  // of the type
	CapacityType string
	Region       string
}

// Event is a message to users, once for each mark.
type Event struct{ Reason, Message string }

// key is what a mark applies to: a group, or all types if it is "", for a capacity type.
type key struct {
	group        Group
	capacityType string
}

type mark struct {
	least int64 // vCPUs of the smallest refused type: smaller ones may still be possible. 0 for all types
	until time.Time
	lasts time.Duration
}

// Marks remembers which quotas are used up. A restart loses it, which costs a refused launch for each quota. The zero
// value is ready for use; safe for concurrent use.
type Marks struct {
	mu    sync.Mutex
	marks map[key]mark
}

// Refused stores a refusal, and returns the event if it is new. It returns nil for a code that is not about quotas.
//
// A mark lasts a minute, each further one of the same quota twice as long, at most half an hour. While it lasts,
// another refusal only extends it to smaller types.
func (m *Marks) Refused(r Refusal, now time.Time) *Event {
	k, least, first, most := key{GroupOf(r.Type), r.CapacityType}, r.VCPUs, firstMark, mostMark
	switch r.Code {
	case vcpuLimit, spotLimit:
	case instanceLimit:
		least = 0
	case fleetLimit:
		k.group, least, first, most = "", 0, fleetMark, fleetMark
	case NoSpotRole:
		k, least, first, most = key{"", karpenterv1.CapacityTypeSpot}, 0, roleMark, roleMark
	default:
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	known, found := m.marks[k]
	if found && now.Before(known.until) {
		known.least = min(known.least, least)
		m.marks[k] = known
		return nil
	}
	lasts := first
	if found && now.Before(known.until.Add(mostMark)) {
		lasts = min(2*known.lasts, most)
	}
	if m.marks == nil {
		m.marks = map[key]mark{}
	}
	m.marks[k] = mark{least: least, until: now.Add(lasts), lasts: lasts}
	return event(r, k.group, least, lasts)
}

// Had notes that an instance was launched: its quota is not used up, except for larger types.
func (m *Marks) Had(kind string, vcpus int64, capacityType string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range keys(kind, capacityType) {
		if vcpus >= m.marks[k].least {
			delete(m.marks, k)
		}
	}
}

// Marked reports whether a quota of the type counts as used up at now.
func (m *Marks) Marked(kind string, vcpus int64, capacityType string, now time.Time) bool {
	return m.InForce(now).Marked(kind, vcpus, capacityType)
}

// InForce is the marks that last at one moment: by what they apply to, the vCPUs from which on they do.
type InForce map[key]int64

// InForce returns the marks that last at now.
func (m *Marks) InForce(now time.Time) InForce {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := InForce{}
	for k, known := range m.marks {
		if now.Before(known.until) {
			all[k] = known.least
		}
	}
	return all
}

// Marked is like [Marks.Marked].
func (f InForce) Marked(kind string, vcpus int64, capacityType string) bool {
	for _, k := range keys(kind, capacityType) {
		if least, found := f[k]; found && vcpus >= least {
			return true
		}
	}
	return false
}

// Without returns the catalogue with the offerings unavailable whose quota counts as used up at now.
func (m *Marks) Without(c catalog.Catalog, now time.Time) catalog.Catalog {
	marks := m.InForce(now)
	c.Types = slices.Clone(c.Types)
	for i := range c.Types {
		t := &c.Types[i]
		marked := func(o catalog.Offering) bool {
			return o.Available && marks.Marked(t.Name, t.Capacity[resources.NameCPU]/1000, o.CapacityType)
		}
		if !slices.ContainsFunc(t.Offerings, marked) {
			continue
		}
		t.Offerings = slices.Clone(t.Offerings)
		for j, o := range t.Offerings {
			t.Offerings[j].Available = o.Available && !marked(o)
		}
	}
	return c
}

// keys returns the keys of the marks that apply to a type.
func keys(kind, capacityType string) [2]key {
	return [2]key{{GroupOf(kind), capacityType}, {"", capacityType}}
}

// event returns the event that names the quota and says what to do.
func event(r Refusal, group Group, least int64, lasts time.Duration) *Event {
	switch r.Code {
	case NoSpotRole:
		return &Event{ReasonSpotRoleMissing, "this account has no service-linked role for spot instances, and the " +
			"controller may not make it: run once: aws iam create-service-linked-role --aws-service-name spot.amazonaws.com"}
	case fleetLimit:
		return &Event{ReasonExceeded, fmt.Sprintf("the account has as many fleets as it may have in %s (%s): "+
			"no %s instances for %s", r.Region, r.Code, r.CapacityType, lasts)}
	}
	which := "of its types"
	if least > 0 {
		which = fmt.Sprintf("of its types with %d vCPUs or more", least)
	}
	name := group.Name(r.CapacityType == karpenterv1.CapacityTypeSpot)
	return &Event{ReasonExceeded, fmt.Sprintf("the quota %q is used up in %s (%s for %s): none %s for %s; "+
		"ask for more in Service Quotas, or allow other families in the NodePool",
		name, r.Region, r.Code, r.Type, which, lasts)}
}
