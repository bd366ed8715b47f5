// Package event is how controllers tell users what happens: a small port, and behind it a recorder that keeps events
// few. It reports a reason once per object while the text stays the same for a window of time. Reasons that come in
// bursts have a rate limit. It never blocks and never fails: no controller may depend on an event.
//
// Reasons and their windows are Karpenter's, so that habits and dashboards carry over (U-09). One is longer: see
// keptWindow.
package event

import (
	"hash/fnv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// Kind is the type of a Kubernetes event.
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
	// Event reports something about an object. The object's namespace, name, UID and Go type must be set.
	Event(about client.Object, kind Kind, reason, message string)
}

// NodeRef returns as much of a Node as an event needs. Events about Nodes use the name as the UID, as kubelet's events
// do: kubectl describe finds them by it.
func NodeRef(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
}

// Sink receives the events that are not repetitions.
type Sink func(about client.Object, kind Kind, reason, message string)

// Bounded is a sink that may drop events. It reports whether it sent one.
type Bounded func(about client.Object, kind Kind, reason, message string) bool

// maxMessage is the maximum length in bytes that the API server accepts for an event's text.
const maxMessage = 1024

// maxRemembered bounds the memory for repetitions. Beyond it, old entries are forgotten; at worst an event is sent
// twice.
const maxRemembered = 20_000

// defaultWindow is how long an equal event is not sent again.
const defaultWindow = 2 * time.Minute

// keptWindow is how long it is not said again that a node stays because somebody keeps it (DisruptionBlocked). That
// may hold for days and for thousands of nodes, with two events for each: one of 2,000 every two minutes would be 33
// requests a second of a cluster at rest (B-22). API servers keep events for an hour, so one is there at any time.
const keptWindow = 30 * time.Minute

// Deduplicated is a [Recorder] that drops repetitions. It is safe for concurrent use; its lock is never held while the
// sink runs.
type Deduplicated struct {
	sink Bounded
	now  func() time.Time

	mu     sync.Mutex
	said   map[key]saying
	bursts map[string]*burst
}

type key struct {
	about, reason, message string
}

// saying is when an event was sent, for how long it stands for others and, for a steady reason, with which cause.
type saying struct {
	at     time.Time
	window time.Duration
	cause  string
	words  uint64 // of the text, where other words of one cause are news as well
}

// standsFor reports whether a later event tells nothing new.
func (s saying) standsFor(next saying) bool {
	passed := next.at.Sub(s.at)
	switch {
	case passed >= s.window:
		return false
	case s.cause != next.cause:
		return passed < causeWindow
	case s.words != next.words:
		return passed < defaultWindow
	}
	return true
}

// causeWindow is how long after an event of a steady reason one with another cause has to wait (K-15). For a node that
// somebody keeps, one with other words, such as another pod, has to wait for defaultWindow.
const causeWindow = time.Minute

// steady reports whether the events of a reason describe a lasting state. Within the window, other wording is still
// the same event. The text before the first colon is the cause.
func steady(reason string) bool {
	switch reason {
	case FailedScheduling, Unconsolidatable, DisruptionBlocked, NodeRepairBlocked:
		return true
	}
	return false
}

// rated reports whether events of a reason come in bursts: a large round sends an equal one for every pod.
func rated(about client.Object, reason string) bool {
	_, pod := about.(*corev1.Pod)
	return reason == Nominated || reason == InsufficientCapacity && pod
}

// burst is a token bucket for events of one reason: so many at once, then so many per second.
type burst struct {
	left float64
	at   time.Time
}

// The rate of events that a large round sends for every pod, for each such reason.
const (
	nominatedBurst     = 10.0
	nominatedPerSecond = 5.0
)

// NewDeduplicated returns a recorder in front of sink with the clock now.
func NewDeduplicated(sink Sink, now func() time.Time) *Deduplicated {
	return NewBounded(func(about client.Object, kind Kind, reason, message string) bool {
		sink(about, kind, reason, message)
		return true
	}, now)
}

// NewBounded is NewDeduplicated for a sink that may drop events.
func NewBounded(sink Bounded, now func() time.Time) *Deduplicated {
	return &Deduplicated{sink: sink, now: now, said: map[key]saying{}, bursts: map[string]*burst{}}
}

// Event implements [Recorder].
func (d *Deduplicated) Event(about client.Object, kind Kind, reason, message string) {
	if len(message) > maxMessage {
		message = cut(message, maxMessage-len(omission)) + omission
	}
	if k, admitted := d.admit(about, reason, message); admitted && !d.sink(about, kind, reason, message) {
		d.dropped(k)
	}
}

// dropped lets an event that was not sent pass again after defaultWindow, or its own window if that is shorter. It
// does not pass at once: events that are repeated often would take the places of others.
func (d *Deduplicated) dropped(k key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if last, found := d.said[k]; found {
		last.at = last.at.Add(min(0, defaultWindow-last.window))
		d.said[k] = last
	}
}

// omission replaces the end of a long text.
const omission = "..."

// cut returns the longest prefix of a text, in whole characters, with at most size bytes.
func cut(text string, size int) string {
	for size > 0 && !utf8.RuneStart(text[size]) {
		size--
	}
	return text[:size]
}

func (d *Deduplicated) admit(about client.Object, reason, message string) (key, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	k := key{about: string(about.GetUID()) + "/" + about.GetNamespace() + "/" + about.GetName(), reason: reason,
		message: message}
	next := saying{at: now, window: window(reason)}
	if steady(reason) { // its text changes with every pod: only a new cause is news
		next.cause, _, _ = strings.Cut(message, ":")
		k.message = ""
	}
	if reason == DisruptionBlocked && onNode(about) {
		next.window, next.words = keptWindow, words(message)
	}
	if last, found := d.said[k]; found && last.standsFor(next) {
		return k, false
	}
	if rated(about, reason) && !d.take(reason, now) {
		return k, false
	}
	if len(d.said) >= maxRemembered {
		d.forget(now)
	}
	d.said[k] = next
	return k, true
}

// onNode reports whether an event is about a node or its claim: there are many of these.
func onNode(about client.Object) bool {
	switch about.(type) {
	case *corev1.Node, *karpenterv1.NodeClaim:
		return true
	}
	return false
}

// words returns a checksum of a text without its digits: amounts and times in it may change each minute.
func words(text string) uint64 {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return -1
		}
		return r
	}, text))) // it never fails
	return sum.Sum64()
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

// forget drops entries that are out of their window, and all entries if that is not enough.
func (d *Deduplicated) forget(now time.Time) {
	for k, last := range d.said {
		if now.Sub(last.at) >= last.window {
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
		return 24 * time.Hour // reported once: it changes only when the user acts
	}
	return defaultWindow
}
