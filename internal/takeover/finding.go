package takeover

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Severity is how serious a finding is.
type Severity string

// Severities, least first. Wait: it passes by itself.
const (
	Info    Severity = "info"
	Warning Severity = "warning"
	Wait    Severity = "wait"
	Danger  Severity = "danger"
)

// weight orders severities. Wait is between Warning and Danger.
func (s Severity) weight() int { return slices.Index([]Severity{Info, Warning, Wait, Danger}, s) }

// AtLeast reports whether a severity is at least as high as another one.
func (s Severity) AtLeast(other Severity) bool { return s.weight() >= other.weight() }

// ParseSeverity parses the value of --fail-on. The error says what is allowed.
func ParseSeverity(text string) (Severity, error) {
	if s := Severity(text); s == Warning || s == Danger || s == Info {
		return s, nil
	}
	return "", fmt.Errorf("--fail-on is %q: it must be info, warning or danger", text)
}

// Finding is one difference. Its names in JSON are an API (U-29).
type Finding struct {
	Severity Severity `json:"severity"`
	// Check is the row of the table that found it.
	Check string `json:"check"`
	// Kind, Namespace and Name identify the object; without a name the finding is about all objects of the kind.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Consequence says what would be different, and Remedy what to do.
	Consequence string `json:"consequence"`
	Remedy      string `json:"remedy"`
	// Patch is a merge patch that does so, if there is one; only for the way back. Patched says that it was applied.
	Patch   string `json:"patch,omitempty"`
	Patched bool   `json:"patched,omitempty"`
}

// Object returns the kind and name of the object that a finding is about.
func (f Finding) Object() string {
	name := f.Name
	if f.Namespace != "" {
		name = f.Namespace + "/" + name
	}
	return strings.TrimSpace(f.Kind + " " + name)
}

// sorted orders findings: the worst first, then by check and object.
func sorted(findings []Finding) []Finding {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(b.Severity.weight()-a.Severity.weight(), strings.Compare(a.Check, b.Check),
			strings.Compare(a.Object(), b.Object()))
	})
	return findings
}

// count formats a number of things: 1 node, 2 nodes.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", many)
}

// some lists the first names, and counts the rest.
func some(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
