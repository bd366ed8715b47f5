package translate

import (
	"fmt"
	"time"
)

// The switch that pauses disruption (D-14) is a ConfigMap of this name in the system namespace, with these keys:
// whether disruption is paused, true or false; why; and when that ends by itself (U-27).
const (
	SwitchName   = "joiner-disruption"
	SwitchPaused = "paused"
	SwitchReason = "reason"
	SwitchUntil  = "until"
)

// Pause is what the switch says.
type Pause struct {
	// On says that nothing may be disrupted that budgets bound.
	On     bool
	Reason string
	// Until is when the pause ends by itself; zero when it does not.
	Until time.Time
	// Faults name what cannot be understood, and what it counts as.
	Faults []string
}

// By says what pauses, and until when, in the words that events, NodePools and joinerctl have: name is that of the
// switch, namespace/name.
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

// PauseOf reads the data of the switch. What cannot be understood holds up, because whoever wrote it wanted something
// held up.
func PauseOf(data map[string]string, now time.Time) Pause {
	p := Pause{On: true, Reason: data[SwitchReason]}
	switch value := data[SwitchPaused]; value {
	case "", "false":
		return Pause{}
	case "true":
	default:
		p.Faults = append(p.Faults, fmt.Sprintf("%s is %q: want true or false; it counts as true", SwitchPaused, value))
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
