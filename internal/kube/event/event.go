// Package event is how controllers tell users what happens: a small port, and the value behind it that keeps events
// few. A reason is said once about an object while its text stays the same for a window of time, and reasons that come
// in bursts have a rate. It never blocks and never fails: an event is a courtesy, no controller may depend on it.
//
// Reasons and their windows are Karpenter's, so that habits and dashboards carry over (U-09).
package event

import (
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kind is the type of an event as Kubernetes knows it.
type Kind string

// The kinds of events.
const (
	Normal  Kind = "Normal"
	Warning Kind = "Warning"
)

// The reasons of our events.
const (
	FailedScheduling               = "FailedScheduling"
	Nominated                      = "Nominated"
	NoCompatibleInstanceTypes      = "NoCompatibleInstanceTypes"
	InsufficientCapacity           = "InsufficientCapacityError"
	LaunchFailed                   = "LaunchFailed"
	NodeClassNotReady              = "NodeClassNotReady"
	Timeout                        = "Timeout"
	Drifted                        = "Drifted"
	Expired                        = "Expired"
	LaunchHeld                     = "LaunchHeld"
	NodePoolGone                   = "NodePoolGone"
	NodePoolLabelRestored          = "NodePoolLabelRestored"
	InstanceGone                   = "InstanceGone"
	UnregisteredTaintMissing       = "UnregisteredTaintMissing"
	DisruptionBlocked              = "DisruptionBlocked"
	DisruptionLaunching            = "DisruptionLaunching"
	DisruptionTerminating          = "DisruptionTerminating"
	DisruptionCancelled            = "DisruptionCancelled"
	DisruptionPaused               = "DisruptionPaused"
	PoolPaused                     = "PoolPaused"
	DisruptionWaitingReadiness     = "DisruptionWaitingReadiness"
	Unconsolidatable               = "Unconsolidatable"
	ConsolidationCandidate         = "ConsolidationCandidate"
	ConsolidationRejected          = "ConsolidationRejected"
	ConsolidationApproved          = "ConsolidationApproved"
	Evicted                        = "Evicted"
	Disrupted                      = "Disrupted"
	FailedDraining                 = "FailedDraining"
	AwaitingVolumeDetachment       = "AwaitingVolumeDetachment"
	TerminationGracePeriodExpiring = "TerminationGracePeriodExpiring"
	InvalidDoNotDisrupt            = "InvalidDoNotDisruptAnnotation"
	DoNotDisruptUntil              = "DoNotDisruptUntil"
	DoNotDisruptElapsed            = "DoNotDisruptGracePeriodElapsed"
	FailedConsistencyCheck         = "FailedConsistencyCheck"
	DroppedAnnotation              = "DroppedAnnotation"
	LimitReached                   = "LimitReached"
	NodeLimitExceeded              = "NodeLimitExceeded"
	TerminatingOnInterruption      = "TerminatingOnInterruption"
	NodeRepairBlocked              = "NodeRepairBlocked"
	RebootObserved                 = "RebootObserved"
	RebootFailed                   = "RebootFailed"
	LaunchesInVain                 = "LaunchesInVain"
	IgnoredField                   = "IgnoredField"
	FeatureGateDisabled            = "FeatureGateDisabled"
	Finalized                      = "Finalized"
)

// Recorder is the port that controllers see.
type Recorder interface {
	// Event tells about an object, of which namespace, name, UID and Go type must be set.
	Event(about client.Object, kind Kind, reason, message string)
}

// NodeRef is as much of a Node as an event needs. Events about Nodes have the name for a UID, as kubelet's have:
// kubectl describe finds them by it.
func NodeRef(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
}

// Sink is where events go that are not repetitions.
type Sink func(about client.Object, kind Kind, reason, message string)

// maxMessage is the most bytes that the API server accepts as the text of an event.
const maxMessage = 1024

// maxRemembered bounds the memory for repetitions; beyond it what is old is forgotten, and the worst that follows
// is an event said twice.
const maxRemembered = 20_000

// defaultWindow is how long an equal event is not said again.
const defaultWindow = 2 * time.Minute

// Deduplicated is a [Recorder] that leaves out repetitions. It is safe for concurrent use; its lock is never held
// while the sink runs.
type Deduplicated struct {
	sink Sink
	now  func() time.Time

	mu     sync.Mutex
	said   map[key]saying
	bursts map[string]*burst
}

type key struct {
	about, reason, message string
}

// saying is when something was said, and of a steady reason for what cause.
type saying struct {
	at    time.Time
	cause string
}

// causeWindow is how long after an event of a steady reason another cause of it has to wait (K-15).
const causeWindow = time.Minute

// steady reports whether the events of a reason tell how something stands: in other words it is the same event
// within the window. What stands before the first colon is the cause.
func steady(reason string) bool {
	switch reason {
	case FailedScheduling, Unconsolidatable, DisruptionBlocked, NodeRepairBlocked:
		return true
	}
	return false
}

// rated reports whether events of a reason come in bursts, one for every pod of a large round, that all say the same.
func rated(about client.Object, reason string) bool {
	_, pod := about.(*corev1.Pod)
	return reason == Nominated || reason == InsufficientCapacity && pod
}

// burst is a bucket of events of one reason: so many at once, then so many per second.
type burst struct {
	left float64
	at   time.Time
}

// The rate of what is said of every pod of a large round, for each such reason.
const (
	nominatedBurst     = 10.0
	nominatedPerSecond = 5.0
)

// NewDeduplicated returns a recorder in front of sink with the clock now.
func NewDeduplicated(sink Sink, now func() time.Time) *Deduplicated {
	return &Deduplicated{sink: sink, now: now, said: map[key]saying{}, bursts: map[string]*burst{}}
}

// Event implements [Recorder].
func (d *Deduplicated) Event(about client.Object, kind Kind, reason, message string) {
	if len(message) > maxMessage {
		message = cut(message, maxMessage-len(omission)) + omission
	}
	if d.admit(about, reason, message) {
		d.sink(about, kind, reason, message)
	}
}

// omission stands for what is left out of a long text.
const omission = "..."

// cut returns the first characters of a text, as many as fit into so many bytes.
func cut(text string, size int) string {
	for size > 0 && !utf8.RuneStart(text[size]) {
		size--
	}
	return text[:size]
}

func (d *Deduplicated) admit(about client.Object, reason, message string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	k := key{about: string(about.GetUID()) + "/" + about.GetNamespace() + "/" + about.GetName(), reason: reason,
		message: message}
	cause := ""
	if steady(reason) { // its text changes with every pod: only another cause is news
		cause, _, _ = strings.Cut(message, ":")
		k.message = ""
	}
	if last, found := d.said[k]; found && now.Sub(last.at) < window(reason) && (last.cause == cause ||
		now.Sub(last.at) < causeWindow) {
		return false
	}
	if rated(about, reason) && !d.take(reason, now) {
		return false
	}
	if len(d.said) >= maxRemembered {
		d.forget(now)
	}
	d.said[k] = saying{now, cause}
	return true
}

func (d *Deduplicated) take(reason string, now time.Time) bool {
	b, found := d.bursts[reason]
	if !found {
		b = &burst{left: nominatedBurst, at: now}
		d.bursts[reason] = b
	}
	b.left = min(nominatedBurst, b.left+now.Sub(b.at).Seconds()*nominatedPerSecond)
	b.at = now
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

// forget drops what is out of its window, and everything when that is not enough.
func (d *Deduplicated) forget(now time.Time) {
	for k, last := range d.said {
		if now.Sub(last.at) >= window(k.reason) {
			delete(d.said, k)
		}
	}
	if len(d.said) >= maxRemembered {
		clear(d.said)
	}
}

func window(reason string) time.Duration {
	switch reason {
	case FailedScheduling, LimitReached:
		return 5 * time.Minute
	case DisruptionPaused, PoolPaused, FeatureGateDisabled:
		return time.Hour
	case NoCompatibleInstanceTypes:
		return time.Minute
	case FailedConsistencyCheck:
		return 10 * time.Minute
	case NodeRepairBlocked, Unconsolidatable:
		return 15 * time.Minute
	case RebootObserved, RebootFailed:
		return 30 * time.Minute
	case DroppedAnnotation, InvalidDoNotDisrupt, IgnoredField, DoNotDisruptUntil, DoNotDisruptElapsed:
		return 24 * time.Hour // said once: it changes only when the user does something about it
	}
	return defaultWindow
}
