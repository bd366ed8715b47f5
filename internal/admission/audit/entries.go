package audit

import (
	"fmt"
	"strings"

	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// EntryFinding is an entry of a list that does not say which namespace it means.
type EntryFinding struct {
	Group  string             `json:"group"`
	Entry  string             `json:"entry"`
	Source evaluator.Source   `json:"source"`
	State  evaluator.PinState `json:"state"`
	// Message says what was found, and Action what to do.
	Message string `json:"message"`
	Action  string `json:"action"`
}

func entryFinding(pin evaluator.Pin) EntryFinding {
	f := EntryFinding{Group: pin.Group, Entry: pin.Text, Source: pin.Source, State: pin.State}
	bare, _, _ := strings.Cut(pin.Text, "@")
	switch pin.State {
	case evaluator.Dangling:
		f.Message = fmt.Sprintf("there is no namespace %q", pin.Namespace)
		if pin.UID == "" {
			f.Message += ": whoever makes one is authorized"
		}
		f.Action = "remove the entry"
	case evaluator.Replaced:
		f.Message = fmt.Sprintf("the namespace %q has the UID %s now: the entry authorizes nobody", pin.Namespace,
			pin.Now)
		f.Action = fmt.Sprintf("find out who made the namespace anew; then remove the entry, or write %q instead",
			bare+"@"+pin.Now)
	default:
		f.Message = fmt.Sprintf(
			"it holds for any namespace %q: whoever may delete it and make it anew keeps the entry", pin.Namespace)
		f.Action = fmt.Sprintf("write %q instead", bare+"@"+pin.Now)
	}
	return f
}

func (f EntryFinding) describe(b *strings.Builder) {
	fmt.Fprintf(b, "\nEntry %q of group %s (%s): %s: %s\n  -> %s\n", f.Entry, f.Group, f.Source, f.State, f.Message,
		f.Action)
}
