package ec2

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
)

// blockEndsBefore is how long before the end of a capacity block EC2 starts to end its instances.
const blockEndsBefore = 30 * time.Minute

// InReservations returns the capacity reservations in which machines of this cluster run, by the last listing, sorted.
func (p *Provider) InReservations() []string { return slices.Sorted(maps.Keys(p.inReservation())) }

// Expiring receives all reservations in which machines run. Each machine in a capacity block that ends soon gets one
// notice, so that it is drained before EC2 ends it (E-13). news reports whether Notices has new ones.
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
