package ec2

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launch"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/offering"
)

// This file spreads launches over reservations that are alike: of one type in one zone. EC2 refuses a fleet with both,
// so a launch asks for one of them. The order is the same for all claims of a plan.

// alike reports whether some overrides are of one type in one zone.
func alike(overrides []launch.Override) bool {
	seen := map[offering.Pool]bool{}
	for _, each := range overrides {
		at := offering.Pool{Type: each.Type, Zone: each.Zone}
		if seen[at] {
			return true
		}
		seen[at] = true
	}
	return false
}

// spreadAlike returns the order with one reservation for each type and zone: that with most free places, without those
// that launches under way ask for. It holds a place there until release is called.
func (p *Provider) spreadAlike(o *order) (narrowed *order, release func()) {
	if !alike(o.request.Overrides) {
		return o, func() {}
	}
	chosen := map[offering.Pool]string{}
	p.mu.Lock()
	defer p.mu.Unlock()
	free := func(id string) int64 {
		left, _ := p.reservations.Left(id)
		return left - p.held[id]
	}
	for _, each := range o.request.Overrides {
		at := offering.Pool{Type: each.Type, Zone: each.Zone}
		if each.Reservation == "" {
			continue
		}
		before, known := chosen[at]
		if !known || free(each.Reservation) > free(before) {
			chosen[at] = each.Reservation
		}
	}
	copied := *o
	copied.request.Overrides = nil
	var holds []string
	for _, each := range o.request.Overrides {
		at := offering.Pool{Type: each.Type, Zone: each.Zone}
		if id := chosen[at]; id == "" || id == each.Reservation {
			copied.request.Overrides = append(copied.request.Overrides, each)
			if id != "" && !slices.Contains(holds, id) {
				holds = append(holds, id)
				p.held[id]++
			}
		}
	}
	copied.cut()
	return &copied, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, id := range holds {
			if p.held[id]--; p.held[id] == 0 {
				delete(p.held, id)
			}
		}
	}
}
