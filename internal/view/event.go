package view

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// headline bounds the code and sentence of a cause in an event, in bytes (U-17).
const headline = 160

// left replaces the rest of a sentence that is too long for an event; explain shows it in full.
const left = "..."

// Headline returns the code and the sentence with which events begin. A long one is cut at its end.
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

// Event returns the text of an event or a condition: the headline, what to do, and what ends it by itself. It contains
// no time and no count of its own, so it stays the same as long as the cause does.
func (c Cause) Event() string {
	return ended(c.Headline()) + c.advice()
}

// advice returns the sentences on what to do, each with a space before it.
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

// Event returns the text of an event about a waiting pod: that of its cause, and how many other pools have which
// causes, nearest first.
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

// OnTheWay explains a pod that is expected on the coming node of a NodeClaim.
func OnTheWay(claim string) Explanation {
	return WaitsFor(cause.NodeOnTheWay, "it should run on the node of NodeClaim "+claim+", which is on its way", claim,
		"")
}

// Fits explains a pod that is expected on an existing node.
func Fits(node string) Explanation {
	return WaitsFor(cause.NodeFits, "it should run on node "+node+", which has room", node, "")
}

// Group is a group of pods that wait for the same reason.
type Group struct {
	Waiting
	Pods []plan.PodRef
}

// Groups groups pods whose events have the same text, in the order of their first pods. Equal refusals are evaluated
// only once: there may be thousands.
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

// Event returns the text of an event about a node that stays: that of its cause, and the reason for which it should
// go.
func (e Explanation) Event() string {
	text := e.Cause.Event()
	if e.Wanted != "" {
		text += " It is to go: " + e.Wanted + "."
	}
	return text
}
