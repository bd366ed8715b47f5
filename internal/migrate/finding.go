package migrate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Code is the kind of a finding, for programs.
type Code string

// The kinds of findings.
const (
	// StoredVersion: a CRD has v1beta1 among its stored versions.
	StoredVersion Code = "StoredVersion"
	// OldManifest: a file has an object of v1beta1.
	OldManifest Code = "OldManifest"
	// OldWriter: somebody still writes the object in v1beta1.
	OldWriter Code = "OldWriter"
	// CompatibilityAnnotation: the object still has what only v1beta1 can express.
	CompatibilityAnnotation Code = "CompatibilityAnnotation"
	// UnreadableAnnotation: such an annotation cannot be read, and has no effect.
	UnreadableAnnotation Code = "UnreadableAnnotation"
	// NotConvertible: the object cannot be converted; a stand-in replaces it.
	NotConvertible Code = "NotConvertible"
	// KubeletInNodePool: a NodePool of v1beta1 has a kubelet block; in v1 that belongs to the node class.
	KubeletInNodePool Code = "KubeletInNodePool"
	// DifferentKubelets: NodePools share a node class and have different kubelet blocks: they need several.
	DifferentKubelets Code = "DifferentKubelets"
	// DroppedAnnotation: an annotation that no longer has an effect.
	DroppedAnnotation Code = "DroppedAnnotation"
	// OldOwner: the object names its owner in v1beta1. Without that version it is no longer deleted with its owner.
	OldOwner Code = "OldOwner"
)

// Finding is one thing to do before v1beta1 can be switched off.
type Finding struct {
	Code Code `json:"code"`
	// Kind, Namespace and Name identify the object; Where is its file, empty for the cluster.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Where     string `json:"where,omitempty"`
	// Message says what was found, with field and value, and Action what to do.
	Message string `json:"message"`
	Action  string `json:"action"`
}

func (f Finding) object() string {
	name := f.Name
	if f.Namespace != "" {
		name = f.Namespace + "/" + name
	}
	text := f.Kind + " " + name
	if f.Where != "" {
		text += " in " + f.Where
	}
	return text
}

// Report is the result of a check.
type Report struct {
	Findings []Finding `json:"findings"`
	// Checked counts the checked objects, by kind.
	Checked map[string]int `json:"checked"`
}

// Clean reports whether nothing is left to do.
func (r Report) Clean() bool { return len(r.Findings) == 0 }

// WriteJSON writes the report as one JSON object.
func (r Report) WriteJSON(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(r)
}

// WriteText writes the report for people: each finding with its action below it, and a summary line.
func (r Report) WriteText(out io.Writer) error {
	var b strings.Builder
	last := Finding{}
	for _, f := range r.Findings {
		if f.Code != last.Code || f.object() != last.object() {
			fmt.Fprintf(&b, "%s: %s\n", f.object(), f.Code)
		}
		fmt.Fprintf(&b, "  %s\n  -> %s\n", f.Message, f.Action)
		last = f
	}
	var counts []string
	for kind, count := range r.Checked {
		counts = append(counts, fmt.Sprintf("%d %s", count, plural(kind, count)))
	}
	slices.Sort(counts)
	verdict := "nothing of v1beta1 is left"
	if n := len(r.Findings); n == 1 {
		verdict = "1 finding"
	} else if n > 1 {
		verdict = fmt.Sprintf("%d findings", n)
	}
	if len(counts) == 0 {
		counts = []string{"nothing"}
	}
	fmt.Fprintf(&b, "%s; checked %s\n", verdict, strings.Join(counts, ", "))
	_, err := io.WriteString(out, b.String())
	return err
}

// sorted sorts findings by file, kind, namespace, name, code and message, and removes duplicates.
func sorted(findings []Finding) []Finding {
	slices.SortFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Where, b.Where), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(findings)
}

// plural returns the singular or plural of a kind for count objects.
func plural(kind string, count int) string {
	switch {
	case count == 1:
		return kind
	case strings.HasSuffix(kind, "s"):
		return kind + "es"
	}
	return kind + "s"
}
