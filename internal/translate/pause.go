package translate

import (
	"fmt"
	"time"
)

// A ConfigMap of this name in the system namespace is the switch that pauses disruption (D-14). Its keys are: true or
// false, whether disruption is paused; the reason; and when the pause ends by itself (U-27).
const (
	SwitchName   = "joiner-disruption"
	SwitchPaused = "paused"
	SwitchReason = "reason"
	SwitchUntil  = "until"
)

// Pause is what the switch says.
type Pause struct {
	// On means that no disruption bounded by budgets may happen.
	On     bool
	Reason string
	// Until is when the pause ends by itself; zero for never.
	Until time.Time
	// Faults name the values that cannot be understood, and what they count as.
	Faults []string
}

// By says what pauses, and until when, in the words of events, NodePools and joinerctl. name is the switch as
// namespace/name.
func (p Pause) By(name string) string {
	text := "voluntary disruption is paused by ConfigMap " + name
	if !p.Until.IsZero() {
		text += " until " + p.Until.Format(time.RFC3339)
	}
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
}

// PauseOf reads the data of the switch. A value that cannot be understood pauses, because whoever wrote it wanted to
// pause something.
func PauseOf(data map[string]string, now time.Time) Pause {
	p := Pause{On: true, Reason: data[SwitchReason]}
	switch value := data[SwitchPaused]; value {
	case "", "false":
		return Pause{}
	case "true":
	default:
		p.Faults = append(p.Faults, fmt.Sprintf("%s is %q: want true or false; it counts as true", SwitchPaused,
			value))
	}
	if value := data[SwitchUntil]; value != "" {
		until, err := time.Parse(time.RFC3339, value)
		switch {
		case err != nil:
			p.Faults = append(p.Faults,
				fmt.Sprintf("%s is %q: want a time such as 2026-03-02T22:00:00Z; the pause has no end",
					SwitchUntil, value))
		case !now.Before(until):
			return Pause{}
		default:
			p.Until = until.UTC()
		}
	}
	return p
}
