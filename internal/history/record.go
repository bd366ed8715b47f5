// Package history keeps the decisions about nodes for people: records, a bounded log of them, and the format in which
// ConfigMaps hold them (U-25, U-32). It is pure: time is a parameter, and it does no I/O. Planning never reads from
// it.
//
// Start with [Log].
package history

import (
	"strings"
	"time"
	"unicode"
)

// Record is one decision about a node, or what became of one (U-32). It holds names and figures, and no field of an
// object that users write (U-40).
type Record struct {
	// ID sorts by time.
	ID string `json:"id"`
	// Time is when it was decided.
	Time time.Time `json:"time"`
	// Verb is what is done: launch, replace or remove. wait is of pods that wait, and pause of disruption that is
	// switched off; lead marks where another controller began.
	Verb string `json:"verb"`
	// Cause is why: Pending, Replicas, a reason of disruption, or why a NodeClaim failed.
	Cause string `json:"cause"`
	// Outcome is what became of it: planned, done, joined, taken_back, refused or failed; of what lasts, begun or
	// ended.
	Outcome string `json:"outcome"`
	// NodePool of the node.
	NodePool string `json:"nodePool,omitempty"`
	// NodeClaim is missing for a launch that was refused.
	NodeClaim string `json:"nodeClaim,omitempty"`
	// Node is missing while the NodeClaim has none.
	Node string `json:"node,omitempty"`
	// Replaces are the NodeClaims that a launch is to replace.
	Replaces []string `json:"replaces,omitempty"`
	// Pods is how many pods a launch is for.
	Pods int `json:"pods,omitempty"`
	// PodNames are some of them, as namespace/name.
	PodNames []string `json:"podNames,omitempty"`
	// Types are the instance types that fit, cheapest first, at most three.
	Types []string `json:"types,omitempty"`
	// TypeCount is how many fit.
	TypeCount int `json:"typeCount,omitempty"`
	// Before is the price of the node before, in dollars per hour: 0 for a launch; missing when it is not known.
	Before *float64 `json:"priceBefore,omitempty"`
	// After is the price after, as Before: 0 for a removal.
	After *float64 `json:"priceAfter,omitempty"`
	// BasedOn is the version of the snapshot that was planned with.
	BasedOn uint64 `json:"basedOn,omitempty"`
	// Why says in words what the cause leaves open.
	Why string `json:"why,omitempty"`
	// Of is the ID of the decision that this is the end of.
	Of string `json:"of,omitempty"`
	// Times is how often the same came in a row, when more than once.
	Times int `json:"times,omitempty"`
	// Last is when it came last, when more than once.
	Last time.Time `json:"last,omitzero"`
}

// MostPodNames bounds the names of pods in one record.
const MostPodNames = 20

// mostText bounds a text of a record: this program writes no longer ones.
const mostText = 1024

// Verbs and outcomes of conditions that last: one record when they begin and one when they end.
const (
	VerbWait     = "wait"
	VerbPause    = "pause"
	OutcomeBegun = "begun"
	OutcomeEnded = "ended"
)

// VerbLead is the verb of a new leader's first record.
const VerbLead = "lead"

// valid reports whether this program may have written a record: records that were read are shown on terminals.
func (r Record) valid() bool {
	if len(r.ID) != idLength || r.Time.IsZero() || r.Verb == "" || len(r.PodNames) > MostPodNames {
		return false
	}
	texts := append([]string{r.ID, r.Verb, r.Cause, r.Outcome, r.NodePool, r.NodeClaim, r.Node, r.Why, r.Of},
		r.Replaces...)
	for _, text := range append(append(texts, r.PodNames...), r.Types...) {
		if len(text) > mostText || strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) }) {
			return false
		}
	}
	return true
}

// printable turns a text from elsewhere into one line that [Record.valid] accepts.
func printable(text string) string {
	text = strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return ' '
	}, strings.ToValidUTF8(text, "?"))
	if len(text) > mostText {
		text = strings.ToValidUTF8(text[:mostText], "")
	}
	return text
}

// same reports whether r repeats an earlier record: a launch that is refused in each round is one record.
func (r Record) same(before Record) bool {
	return r.Outcome == before.Outcome && (r.Outcome == "refused" || r.Outcome == "failed") && r.Verb == before.Verb &&
		r.Cause == before.Cause && r.NodePool == before.NodePool && r.Why == before.Why && r.Pods == before.Pods
}

const (
	idLength = 15
	// digits are in the order of their bytes, so that IDs sort like their numbers.
	digits = "0123456789abcdefghjkmnpqrstvwxyz"
)

// number formats n with a fixed number of digits, the highest first.
func number(n uint64, width int) string {
	text := make([]byte, width)
	for i := width - 1; i >= 0; i-- {
		text[i] = digits[n%uint64(len(digits))]
		n /= uint64(len(digits))
	}
	return string(text)
}
