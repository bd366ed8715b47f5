package ec2

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
)

// blockEndsBefore is how long before the end of a capacity block EC2 begins to end its instances.
const blockEndsBefore = 30 * time.Minute

// InReservations returns the capacity reservations that machines of this cluster run in, by the last listing, in
// order.
func (p *Provider) InReservations() []string { return slices.Sorted(maps.Keys(p.inReservation())) }

// Expiring takes in what is known of the reservations that machines run in, all of them. Machines in a capacity block
// that ends soon get a notice, once for each: they are drained before EC2 ends them (E-13). news says that Notices has
// more than before.
func (p *Provider) Expiring(list []resolve.Reservation) (news bool) {
	ends := map[string]time.Time{}
	for _, r := range list {
		if r.Expiring() {
			ends[r.ID] = r.EndTime.Time
		}
	}
	var notices []provider.Notice
	still := map[string]bool{}
	p.mu.Lock()
	for id, m := range p.lastSeen {
		end, is := ends[m.Reservation]
		if !is || m.Ending || m.Gone {
			continue
		}
		notice := provider.Notice{ID: sourceReservations + m.Reservation + "/" + m.InstanceID,
			Kind: provider.CapacityBlockExpiring, ProviderID: id, Gone: end.Add(-blockEndsBefore)}
		if still[notice.ID] = true; !p.drained[notice.ID] {
			notices = append(notices, notice)
		}
	}
	maps.DeleteFunc(p.drained, func(id string, _ bool) bool { return !still[id] })
	p.mu.Unlock()
	slices.SortFunc(notices, func(a, b provider.Notice) int { return strings.Compare(a.ID, b.ID) })
	return p.told.replace(sourceReservations, notices)
}
