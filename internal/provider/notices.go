package provider

import "time"

// Notice is a cloud's message about the future of a machine (P-43).
type Notice struct {
	// ID identifies the notice. The same notice may be delivered more than once.
	ID         string
	Kind       NoticeKind
	ProviderID string
	// Gone is when the machine will be gone, whatever anybody does; zero when unknown.
	Gone time.Time
}

// NoticeKind is the kind of a notice. The text is the reason of the event, as in Karpenter.
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

// Ends reports whether the machine will end. A recommendation is only information.
func (k NoticeKind) Ends() bool { return k != RebalanceRecommended }

// Scarce reports whether the cloud takes the machine because it lacks capacity. Other machines of the offering would
// meet the same end.
func (k NoticeKind) Scarce() bool { return k == SpotInterrupted || k == CapacityReservationInterrupted }

// Notices are the pending notices.
type Notices struct {
	List []Notice
	// Again is how long to wait before asking again; 0 if a wake-up will tell when there is something new.
	Again time.Duration
}
