package translate

import (
	"fmt"
	"strings"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// PoolPause is what a NodePool's annotation joiner.sh/paused stops (K-52). It removes nothing.
type PoolPause struct {
	// Launch: the pool launches nothing; its pods go to other pools.
	Launch bool
	// Disrupt: disruption that budgets bound stops, and no node is removed for a limit. What budgets do not bound goes
	// on: expiration, interruption, failing machines.
	Disrupt bool
	// Fault says what is wrong with the value, and what is allowed; "" if it is valid.
	Fault string

	value string
}

// PoolPauseOf reads the annotation of a pool. A value that cannot be understood stops both, because whoever wrote it
// wanted to stop something.
func PoolPauseOf(pool *karpenterv1.NodePool) PoolPause {
	value, found := pool.Annotations[karpenterv1.PausedAnnotationKey]
	pause := PoolPause{value: value}
	if !found {
		return pause
	}
	for word := range strings.SplitSeq(value, ",") {
		switch strings.TrimSpace(word) {
		case karpenterv1.PausedLaunch:
			pause.Launch = true
		case karpenterv1.PausedDisrupt:
			pause.Disrupt = true
		default:
			return PoolPause{Launch: true, Disrupt: true, value: value,
				Fault: fmt.Sprintf("annotation %s is %q: want %s, %s, or both with a comma; it counts as both",
					karpenterv1.PausedAnnotationKey, value, karpenterv1.PausedLaunch, karpenterv1.PausedDisrupt)}
		}
	}
	return pause
}

// On reports whether anything is stopped.
func (p PoolPause) On() bool { return p.Launch || p.Disrupt }

// By says what pauses the pool, in the words of events, conditions and joinerctl.
func (p PoolPause) By() string {
	if p.Fault != "" {
		return p.Fault
	}
	return fmt.Sprintf("annotation %s is %q", karpenterv1.PausedAnnotationKey, p.value)
}

// Holds says what keeps the nodes of the pool of that name, "" when nothing does.
func (p PoolPause) Holds(pool string) string {
	if !p.Disrupt {
		return ""
	}
	return "NodePool " + pool + " is paused: " + p.By()
}

// Stops says what is stopped.
func (p PoolPause) Stops() string {
	switch {
	case p.Launch && p.Disrupt:
		return "the pool launches nothing, and none of its nodes is disrupted or trimmed"
	case p.Launch:
		return "the pool launches nothing"
	case p.Disrupt:
		return "no node of the pool is disrupted or trimmed"
	}
	return "nothing is stopped"
}
