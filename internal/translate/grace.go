package translate

import (
	"fmt"
	"strconv"
	"time"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// What the first start on a cluster found is a ConfigMap of this name in the system namespace (K-27), with these keys: when
// that was, how many NodeClaims another program had made, until when nothing is removed voluntarily, and whether
// somebody has ended that: true; and what was due at that moment, a line for each NodePool.
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
	// On says that nothing is removed voluntarily, until Until; zero for an end that cannot be read.
	On    bool
	Until time.Time
	// Faults name what cannot be understood, and what it counts as.
	Faults []string
}

// GraceData is what the first start writes. An end that has come by then says that there was nothing to take over.
func GraceData(now, until time.Time, others int) map[string]string {
	return map[string]string{
		TakeoverStarted: now.UTC().Format(time.RFC3339), TakeoverUntil: until.UTC().Format(time.RFC3339),
		TakeoverOthers: strconv.Itoa(others),
	}
}

// GraceOf reads the data of that ConfigMap. What cannot be understood of the end holds up, as with a pause; what cannot be
// understood of go does not end it.
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
		g.Faults = append(g.Faults, fmt.Sprintf("%s is %q: want a time such as 2026-03-02T22:00:00Z; the grace has no end",
			TakeoverUntil, data[TakeoverUntil]))
	case !now.Before(until):
		return Grace{}
	default:
		g.Until = until.UTC()
	}
	return g
}

// By says what holds, and until when, in the words that events, NodePools and joinerctl have: name is that of the
// ConfigMap, namespace/name.
func (g Grace) By(name string) string {
	text := "voluntary disruption is paused after the first start, by ConfigMap " + name
	if !g.Until.IsZero() {
		text += " until " + g.Until.Format(time.RFC3339)
	}
	return text + ": its key go: \"true\" ends that"
}

// MadeHere reports whether Joiner made a NodeClaim: by what it writes on each.
func MadeHere(claim *karpenterv1.NodeClaim) bool {
	for _, key := range []string{karpenterv1.LaunchedWithAnnotationKey, karpenterv1.LaunchedForAnnotationKey,
		karpenterv1.ReplacesAnnotationKey} {
		if _, has := claim.Annotations[key]; has {
			return true
		}
	}
	return false
}
