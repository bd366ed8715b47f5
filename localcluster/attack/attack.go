// Package attack passes what tests of attempts see on to the story of make attack. It is about the attempts of
// docs/autonode-bypass.md and docs/control-plane-bypass.md: what became of each, who noticed, and after how long.
package attack

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Variable is the environment variable that makes tests print what they see.
const Variable = "JOINER_ATTACK"

// How is the way in which something was seen.
type How string

const (
	// Refused is an answer to the attempt itself.
	Refused How = "refused"
	// Told is a condition, an event or a metric that names the attempt.
	Told How = "told"
	// Held is a state that stayed, or was restored to, what the policy wants.
	Held How = "held"
	// Waited is anything else that a test waited for. It is shown only for tests that saw nothing else.
	Waited How = "waited"
)

// Seen is one thing that a test saw after an attempt.
type Seen struct {
	How How `json:"how"`
	// who refused, told or repaired: an admission policy, a door, the operator
	By    string        `json:"by"`
	Text  string        `json:"text"`            // the answer or report, cut after longest bytes
	After time.Duration `json:"after,omitempty"` // since the test began to look, in nanoseconds; 0 for answers
}

// longest bounds the bytes of a text: a line of a test's output must stay in one piece.
const longest = 400

// SawRefusal records that an attempt was answered with an error.
func SawRefusal(t testing.TB, err error) {
	t.Helper()
	Saw(t, Seen{How: Refused, By: Refuser(err.Error()), Text: err.Error()})
}

const mark = "attack: {"

// Saw prints what a test saw, if [Variable] is set.
func Saw(t testing.TB, seen Seen) {
	t.Helper()
	if os.Getenv(Variable) == "" {
		return
	}
	if len(seen.Text) > longest {
		seen.Text = strings.ToValidUTF8(seen.Text[:longest], "") + "..."
	}
	text, err := json.Marshal(seen)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("attack: %s", text)
}

// Parse parses the output of [Saw] in a line of a test's output; it returns false for other lines.
func Parse(line string) (Seen, bool) {
	_, text, found := strings.Cut(line, mark)
	if !found {
		return Seen{}, false
	}
	var seen Seen
	if err := json.Unmarshal([]byte("{"+strings.TrimSpace(text)), &seen); err != nil {
		return Seen{}, false
	}
	return seen, true
}

var (
	byPolicy  = regexp.MustCompile(`ValidatingAdmissionPolicy '([^']+)'`)
	byWebhook = regexp.MustCompile(`admission webhook "([^"]+)" denied`)
)

// Refuser returns who wrote a refusal, from its text.
func Refuser(text string) string {
	if found := byPolicy.FindStringSubmatch(text); found != nil {
		return "admission policy " + found[1]
	}
	if found := byWebhook.FindStringSubmatch(text); found != nil {
		return "webhook " + found[1]
	}
	switch {
	case strings.Contains(text, "NodeSchedulingPolicy ["):
		return "admission plugin NodeSchedulingPolicy"
	case strings.Contains(text, " cannot "):
		return "RBAC"
	}
	return "the API server"
}
