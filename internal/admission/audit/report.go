package audit

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// maxNames is how many pods of one owner the text names; JSON names all.
const maxNames = 5

// Finding is one pod that concerns one group.
type Finding struct {
	Group string          `json:"group"`
	Class evaluator.Class `json:"class"`
	// Namespace and Name are the pod's, Node is where it is, "" while it waits. Name is "" where it is the pod
	// template of the owner that was found.
	Namespace string `json:"namespace"`
	Name      string `json:"name,omitempty"`
	Node      string `json:"node,omitempty"`
	// Owner is the workload that made it, nil for a pod of its own.
	Owner *Owner `json:"owner,omitempty"`
	// Reasons are how it aims at the group.
	Reasons []evaluator.Reason `json:"reasons"`
	// Message says what was found, Action what to do, and Authorize what to do instead if it belongs there.
	Message   string `json:"message"`
	Action    string `json:"action"`
	Authorize string `json:"authorize"`
}

// owner names the workload of a pod, or the pod itself.
func (f Finding) owner() string {
	if f.Owner == nil {
		return fmt.Sprintf("Pod %s/%s", f.Namespace, f.Name)
	}
	return fmt.Sprintf("%s %s/%s", f.Owner.Kind, f.Namespace, f.Owner.Name)
}

// pod returns the name of the pod with its node.
func (f Finding) pod() string {
	if f.Name == "" {
		return "its pod template"
	}
	if f.Node == "" {
		return f.Name + " (waits)"
	}
	return f.Name + " on " + f.Node
}

// Group describes a protected group, without the findings.
type Group struct {
	Name string `json:"name"`
	// Mode is the one in force.
	Mode  string `json:"mode"`
	Nodes int    `json:"nodes"`
	// Authorized counts the pods of authorized namespaces on its nodes, by namespace.
	Authorized map[string]int `json:"authorized"`
	// Static counts the mirrors of static pods on its nodes.
	Static int `json:"static"`
}

// Report is what an audit comes to.
type Report struct {
	// Live is where administrators write while the cluster runs, nil where nobody looked.
	Live     *Live     `json:"live,omitempty"`
	Groups   []Group   `json:"groups"`
	Findings []Finding `json:"findings"`
	// Entries are those that do not say which namespace they mean.
	Entries []EntryFinding `json:"entries,omitempty"`
	// Bare are the nodes of a group without a taint.
	Bare []NodeFinding `json:"bare,omitempty"`
	// Ignored are the parts of the live source that have no effect, and why.
	Ignored []string `json:"ignored,omitempty"`
	// Pods, Workloads and Nodes count what was looked at.
	Pods      int `json:"pods"`
	Workloads int `json:"workloads"`
	Nodes     int `json:"nodes"`
}

// Clean reports whether nothing is left to do.
func (r Report) Clean() bool { return r.left() == 0 }

func (r Report) left() int { return len(r.Findings) + len(r.Entries) + len(r.Bare) }

// WriteJSON writes the report as one JSON object.
func (r Report) WriteJSON(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(r)
}

// WriteText writes the report for people: the live source; for each group, what is right, then the findings, with one
// paragraph for the pods of a workload that need the same action; then entries, nodes and ignored parts, and a summary
// line.
func (r Report) WriteText(out io.Writer) error {
	var b strings.Builder
	r.Live.describe(&b)
	for _, g := range r.Groups {
		g.describe(&b)
		findings := slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return f.Group != g.Name })
		for len(findings) > 0 {
			same := 1
			for same < len(findings) && findings[same].alike(findings[0]) {
				same++
			}
			describe(&b, findings[:same])
			findings = findings[same:]
		}
	}
	for _, e := range r.Entries {
		e.describe(&b)
	}
	for _, n := range r.Bare {
		n.describe(&b)
	}
	for _, ignored := range r.Ignored {
		fmt.Fprintf(&b, "%s; this part has no effect\n", ignored)
	}
	if len(r.Groups) == 0 {
		b.WriteString("The policy has no groups: it protects nothing.\n")
	}
	verdict := "nothing is left that the policy would refuse"
	if n := r.left(); n > 0 {
		verdict = count(n, "finding")
	}
	fmt.Fprintf(&b, "%s; looked at %s, %s and %s\n", verdict, count(r.Pods, "pod"), count(r.Workloads, "workload"),
		count(r.Nodes, "node"))
	_, err := io.WriteString(out, b.String())
	return err
}

func (g Group) describe(b *strings.Builder) {
	fmt.Fprintf(b, "Group %s, mode %s: ", g.Name, g.Mode)
	if g.Nodes == 0 {
		b.WriteString("no node has its labels, so nothing is protected\n")
		return
	}
	var namespaces []string
	sum := 0
	for _, namespace := range slices.Sorted(maps.Keys(g.Authorized)) {
		namespaces = append(namespaces, fmt.Sprintf("%s %d", namespace, g.Authorized[namespace]))
		sum += g.Authorized[namespace]
	}
	fmt.Fprintf(b, "%s, with %s and %s of authorized namespaces", count(g.Nodes, "node"),
		count(g.Static, "static pod"), count(sum, "pod"))
	if len(namespaces) > 0 {
		fmt.Fprintf(b, " (%s)", strings.Join(namespaces, ", "))
	}
	b.WriteString("\n")
}

// alike reports whether two findings belong in one paragraph.
func (f Finding) alike(other Finding) bool {
	return f.Class == other.Class && f.owner() == other.owner() && f.Action == other.Action
}

// describe writes a paragraph for findings that are alike.
func describe(b *strings.Builder, findings []Finding) {
	first := findings[0]
	fmt.Fprintf(b, "\n%s: %s: %s\n", first.owner(), first.Class, consequence(first.Class))
	if len(findings) > 1 {
		var names []string
		for _, f := range findings[:min(len(findings), maxNames)] {
			names = append(names, f.pod())
		}
		if more := len(findings) - len(names); more > 0 {
			names = append(names, fmt.Sprintf("and %d more", more))
		}
		fmt.Fprintf(b, "  %s: %s\n", count(len(findings), "pod"), strings.Join(names, ", "))
	}
	fmt.Fprintf(b, "  %s: %s\n", first.pod(), first.Message)
	fmt.Fprintf(b, "  -> %s\n  -> or, if it belongs there: %s\n", first.Action, first.Authorize)
}

// consequence says what a class means while the mode is Enable.
func consequence(class evaluator.Class) string {
	switch class {
	case evaluator.OnProtectedNode:
		return "it stays where it is, and the next one like it is refused"
	case evaluator.AimsAtProtectedNode:
		return "it is not on these nodes, but the next one like it is refused"
	case evaluator.OverrideWaiting:
		return "it is let in when it is bound, whoever wrote the annotation"
	case evaluator.OverrideInUse:
		return "it is there by the emergency override"
	case evaluator.UnjudgedPod:
		return "anybody who may create pods in this namespace gets onto these nodes"
	}
	return string(class)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
