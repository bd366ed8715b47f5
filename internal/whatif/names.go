package whatif

import (
	"io"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

// Names collects objects as arguments of kubectl, each once, in the order of Add.
type Names struct{ list []string }

// Add adds an object, unless its name or kind is empty.
func (n *Names) Add(kind, namespace, name string) {
	if kind == "" || name == "" {
		return
	}
	text := strings.ToLower(kind) + "/" + name
	if namespace != "" {
		text += " -n " + namespace
	}
	if !slices.Contains(n.list, text) {
		n.list = append(n.list, text)
	}
}

// List returns the objects.
func (n *Names) List() []string { return n.list }

// Rows returns the field that custom columns refer to (U-13).
func (Status) Rows() string { return "pools" }

// Rows returns the field of the nodes.
func (Top) Rows() string { return "items" }

// Codes returns the codes of all causes.
func Codes() []string {
	var codes []string
	for _, code := range slices.Concat(cause.WaitingCodes(), cause.StayingCodes(), cause.PoolCodes(),
		cause.ClaimCodes()) {
		codes = append(codes, string(code))
	}
	return codes
}

// Names returns the workloads with waiting pods.
func (r Result) Names() []string {
	var names Names
	for _, w := range r.Waiting {
		namespace, name, _ := strings.Cut(w.Workload, "/")
		names.Add(w.Kind, namespace, name)
	}
	return names.List()
}

// Names returns the nodes that go, are replaced or are held.
func (c Comparison) Names() []string {
	var names Names
	for _, n := range c.Nodes {
		if n.Fate != Comes {
			names.Add("Node", "", n.Name)
		}
	}
	return names.List()
}

// Names returns the object to look at: the one that the cause is about, or the workload of a workload's explanation.
func (e Explained) Names() []string {
	var names Names
	if e.Workload != nil && e.State != view.Settled {
		names.Add(e.About.Kind, e.About.Namespace, e.About.Name)
		return names.List()
	}
	if e.Cause == nil || e.State == view.Settled {
		return nil
	}
	object := e.Cause.Object
	if object.Name == "" {
		object.Name, object.Kind = e.About.Name, e.About.Kind
		names.Add(object.Kind, e.About.Namespace, object.Name)
		return names.List()
	}
	namespace, name, both := strings.Cut(object.Name, "/")
	if !both {
		namespace, name = "", object.Name
	}
	names.Add(object.Kind, namespace, name)
	return names.List()
}

// WriteTable writes the result for people. The wide form has every filter of every pool.
func (r Result) WriteTable(out io.Writer, wide, headers bool) error {
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		return err
	}
	text := b.String()
	if _, rest, found := strings.Cut(text, "\n"); found && !headers && len(r.Launches) > 0 {
		text = rest
	}
	if wide {
		b.Reset()
		for _, w := range r.Waiting {
			writeSteps(&b, "\n"+w.Workload+", pool by pool\n", w.Pools)
		}
		text += b.String()
	}
	_, err := io.WriteString(out, text)
	return err
}

// WriteTable writes the explanation for people. The wide form has every filter of every pool.
func (e Explained) WriteTable(out io.Writer, wide, _ bool) error {
	var b strings.Builder
	if err := e.WriteText(&b); err != nil {
		return err
	}
	if wide && !e.all { // with all they are printed already
		writeSteps(&b, "\npool by pool\n", e.Pools)
		for i := 0; e.Workload != nil && i < len(e.Workload.Groups); i++ {
			group := e.Workload.Groups[i]
			writeSteps(&b, "\n"+firstOf(group.Names, group.Pods, podsShown)+", pool by pool\n", group.Pools)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func writeSteps(b *strings.Builder, heading string, pools []view.PoolCause) {
	if len(pools) == 0 {
		return
	}
	b.WriteString(heading)
	for _, pool := range pools {
		b.WriteString("  " + pool.Pool + "\n")
		for _, step := range pool.Steps {
			b.WriteString("    " + step + "\n")
		}
	}
}
