package view

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// headline is how long the code and the sentence of a cause may be together in an event, in bytes (U-17).
const headline = 160

// left stands for the rest of a sentence that is too long for an event; explain has it.
const left = "..."

// Headline is the code and the sentence, as events begin with them. What is too long is cut at its end.
func (c Cause) Headline() string {
	text := string(c.Code) + ": " + c.Text
	if len(text) <= headline {
		return text
	}
	size := headline - len(left)
	for size > 0 && !utf8.RuneStart(text[size]) {
		size--
	}
	return text[:size] + left
}

// Event is the text of an event or a condition: the headline, what to do, and what ends it by itself. It has no clock
// and no count of its own, so it stays the same as long as the cause does.
func (c Cause) Event() string {
	return ended(c.Headline()) + c.advice()
}

// advice are the sentences on what to do, each with a space before it.
func (c Cause) advice() string {
	var b strings.Builder
	switch {
	case len(c.Remedies) == 0:
	case slices.Equal(c.Remedies, []string{nothing}):
		b.WriteString(" Nothing to do.")
	default:
		b.WriteString(" To do: " + strings.Join(c.Remedies, "; or ") + ".")
	}
	if c.ByItself != "" {
		b.WriteString(" By itself: " + c.ByItself + ".")
	}
	return b.String()
}

// ended closes a sentence.
func ended(text string) string {
	if strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

// Event is the text of an event about a pod that waits: that of its cause, and then how many other pools say what,
// nearest first.
func (w Waiting) Event() string {
	text := w.Cause.Event()
	if len(w.Pools) < 2 {
		return text
	}
	var order []cause.Code
	counts := map[cause.Code]int{}
	for _, pool := range w.Pools[1:] {
		if counts[pool.Code]++; counts[pool.Code] == 1 {
			order = append(order, pool.Code)
		}
	}
	parts := make([]string, len(order))
	for i, code := range order {
		parts[i] = fmt.Sprintf("%d %s", counts[code], code)
	}
	return text + " Other pools: " + strings.Join(parts, ", ") + "."
}

// OnTheWay is how a pod stands for which a node is expected that is not there yet.
func OnTheWay(claim string) Explanation {
	return WaitsFor(cause.NodeOnTheWay, "it should run on the node of NodeClaim "+claim+", which is on its way", claim, "")
}

// Fits is how a pod stands that a node which is there is expected to take.
func Fits(node string) Explanation {
	return WaitsFor(cause.NodeFits, "it should run on node "+node+", which has room", node, "")
}

// Group is pods that wait for the same.
type Group struct {
	Waiting
	Pods []plan.PodRef
}

// Groups puts pods together whose cause says the same, in the order in which the first of each stands. What is refused
// in the same words is looked at once: there may be thousands.
func Groups(list []plan.Unplaced) []Group {
	var groups []Group
	words, at := map[string]int{}, map[string]int{}
	for _, u := range list {
		said := u.String()
		i, known := words[said]
		if !known {
			w := Waits(u)
			same := w.Event()
			if i, known = at[same]; !known {
				i = len(groups)
				at[same] = i
				groups = append(groups, Group{Waiting: w})
			}
			words[said] = i
		}
		groups[i].Pods = append(groups[i].Pods, u.Pod)
	}
	return groups
}

// Event is the text of an event about a node that stays: that of its cause, and what it is to go for.
func (e Explanation) Event() string {
	text := e.Cause.Event()
	if e.Wanted != "" {
		text += " It is to go: " + e.Wanted + "."
	}
	return text
}
