package translate

import (
	"fmt"
	"strconv"
	"time"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// The first start on a cluster writes what it found into a ConfigMap of this name in the system namespace (K-27). The
// keys are: the time of the start; how many NodeClaims another program had made; until when nothing is removed
// voluntarily; true if somebody has ended that; and what was due at the start, a line for each NodePool.
const (
	TakeoverName    = "joiner-takeover"
	TakeoverStarted = "started"
	TakeoverOthers  = "nodeclaims"
	TakeoverUntil   = "until"
	TakeoverGo      = "go"
	TakeoverHeld    = "held"
)

// Grace is what that ConfigMap says.
type Grace struct {
	// On means that nothing is removed voluntarily until Until. Until is zero if it cannot be read.
	On    bool
	Until time.Time
	// Faults name the values that cannot be understood, and what they count as.
	Faults []string
}

// GraceData returns the data that the first start writes. An until that is not after now means that there was nothing
// to take over.
func GraceData(now, until time.Time, others int) map[string]string {
	return map[string]string{
		TakeoverStarted: now.UTC().Format(time.RFC3339), TakeoverUntil: until.UTC().Format(time.RFC3339),
		TakeoverOthers: strconv.Itoa(others),
	}
}

// GraceOf reads the data of that ConfigMap. An end that cannot be read means no end, as with a pause. A value of go
// that cannot be understood does not end the grace.
func GraceOf(data map[string]string, now time.Time) Grace {
	g := Grace{On: true}
	switch value := data[TakeoverGo]; value {
	case "true":
		return Grace{}
	case "", "false":
	default:
		g.Faults = append(g.Faults, fmt.Sprintf("%s is %q: want true or false; it counts as false", TakeoverGo, value))
	}
	until, err := time.Parse(time.RFC3339, data[TakeoverUntil])
	switch {
	case err != nil:
		g.Faults = append(g.Faults,
			fmt.Sprintf("%s is %q: want a time such as 2026-03-02T22:00:00Z; the grace has no end",
				TakeoverUntil, data[TakeoverUntil]))
	case !now.Before(until):
		return Grace{}
	default:
		g.Until = until.UTC()
	}
	return g
}

// By says what holds, and until when, in the words of events, NodePools and joinerctl. name is the ConfigMap as
// namespace/name.
func (g Grace) By(name string) string {
	text := "voluntary disruption is paused after the first start, by ConfigMap " + name
	if !g.Until.IsZero() {
		text += " until " + g.Until.Format(time.RFC3339)
	}
	return text + ": its key go: \"true\" ends that"
}

// MadeHere reports whether Joiner made a NodeClaim. It goes by the annotations that Joiner writes.
func MadeHere(claim *karpenterv1.NodeClaim) bool {
	for _, key := range []string{karpenterv1.LaunchedWithAnnotationKey, karpenterv1.LaunchedForAnnotationKey,
		karpenterv1.ReplacesAnnotationKey} {
		if _, has := claim.Annotations[key]; has {
			return true
		}
	}
	return false
}
