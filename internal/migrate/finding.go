package migrate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Code says what is found; programs act on it.
type Code string

// What can be found.
const (
	// StoredVersion: a CRD names v1beta1 among the versions that objects are stored in.
	StoredVersion Code = "StoredVersion"
	// OldManifest: a file holds an object of v1beta1.
	OldManifest Code = "OldManifest"
	// OldWriter: somebody still writes the object in v1beta1.
	OldWriter Code = "OldWriter"
	// CompatibilityAnnotation: the object still carries what only v1beta1 can say.
	CompatibilityAnnotation Code = "CompatibilityAnnotation"
	// UnreadableAnnotation: such an annotation cannot be read, and does nothing.
	UnreadableAnnotation Code = "UnreadableAnnotation"
	// NotConvertible: the object cannot be converted; another one stands for it.
	NotConvertible Code = "NotConvertible"
	// KubeletInNodePool: a NodePool of v1beta1 has a kubelet block, which v1 has in the node class.
	KubeletInNodePool Code = "KubeletInNodePool"
	// DifferentKubelets: NodePools share a node class and have different kubelet blocks: they need several.
	DifferentKubelets Code = "DifferentKubelets"
	// DroppedAnnotation: an annotation that does nothing any more.
	DroppedAnnotation Code = "DroppedAnnotation"
	// OldOwner: the object names its owner in v1beta1; without that version it is not deleted with its owner any more.
	OldOwner Code = "OldOwner"
)

// Finding is one thing to do before v1beta1 can be switched off.
type Finding struct {
	Code Code `json:"code"`
	// Kind, Namespace and Name are the object it is about; Where is the file it stands in, empty for the cluster.
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

// Report is what a check comes to.
type Report struct {
	Findings []Finding `json:"findings"`
	// Checked counts the objects that were looked at, by kind.
	Checked map[string]int `json:"checked"`
}

// Clean says whether nothing is left to do.
func (r Report) Clean() bool { return len(r.Findings) == 0 }

// WriteJSON writes the report as one JSON object.
func (r Report) WriteJSON(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(r)
}

// WriteText writes the report for people: what is found, with what to do below it, and a line that sums up.
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

// sorted brings findings into the order of a report: by file, kind, namespace, name, code and message, each once.
func sorted(findings []Finding) []Finding {
	slices.SortFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Where, b.Where), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(findings)
}

// plural is the kind of so many objects.
func plural(kind string, count int) string {
	switch {
	case count == 1:
		return kind
	case strings.HasSuffix(kind, "s"):
		return kind + "es"
	}
	return kind + "s"
}
