package provider

import "time"

// Notice is what a cloud says about the future of a machine (P-43).
type Notice struct {
	// ID tells notices apart; the same notice may be delivered more than once.
	ID         string
	Kind       NoticeKind
	ProviderID string
	// Gone is when the machine will be gone, whatever is done until then; zero when that is not known.
	Gone time.Time
}

// NoticeKind is what a notice says. The text is the reason of the event, as Karpenter has it.
type NoticeKind string

// The kinds of notices.
const (
	SpotInterrupted                NoticeKind = "SpotInterrupted"
	CapacityReservationInterrupted NoticeKind = "CapacityReservationInstanceInterrupted"
	CapacityBlockExpiring          NoticeKind = "CapacityBlockExpiring"
	RebalanceRecommended           NoticeKind = "SpotRebalanceRecommendation"
	InstanceStopping               NoticeKind = "InstanceStopping"
	InstanceTerminating            NoticeKind = "InstanceTerminating"
	InstanceUnhealthy              NoticeKind = "InstanceUnhealthy"
)

// NoticeKinds returns all kinds, in a fixed order.
func NoticeKinds() []NoticeKind {
	return []NoticeKind{SpotInterrupted, CapacityReservationInterrupted, CapacityBlockExpiring, RebalanceRecommended,
		InstanceStopping, InstanceTerminating, InstanceUnhealthy}
}

// Ends reports whether the machine goes. A recommendation is for information only.
func (k NoticeKind) Ends() bool { return k != RebalanceRecommended }

// Scarce reports whether the cloud takes the machine since it lacks capacity, so that others of its offering would go
// the same way.
func (k NoticeKind) Scarce() bool { return k == SpotInterrupted || k == CapacityReservationInterrupted }

// Notices are the notices that wait.
type Notices struct {
	List []Notice
	// Again is when to ask again; 0 when it is enough to ask once somebody says that there is something new.
	Again time.Duration
}
