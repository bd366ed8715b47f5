package whatif

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/joiner-autoscaler/joiner/internal/nearest"
	"github.com/joiner-autoscaler/joiner/internal/translate"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

// WorkloadFacts are the pods of a workload, grouped by what holds them. Its names in JSON are an API (U-29).
type WorkloadFacts struct {
	Pods int `json:"pods"`
	// Missing counts the pods that the workload wants and that nobody has made yet.
	Missing int `json:"missing,omitempty"`
	// Groups: what is held first, then what comes; of these the largest first.
	Groups []PodGroup `json:"groups"`
}

// PodGroup is a number of pods for which the same holds.
type PodGroup struct {
	Pods int `json:"pods"`
	// Names are those of the first pods, in order.
	Names []string `json:"names"`
	view.Explanation
}

// podsShown is how many pods of a group are named.
const podsShown = 3

// Workloads returns the kinds of workloads whose pods can be explained, in the order of listings.
func Workloads() []string {
	return []string{"Deployment", "StatefulSet", "DaemonSet", "Job", "ReplicaSet"}
}

// WorkloadResources returns what to read in a workload's namespace to find its pods, in addition to Resources.
func WorkloadResources(kind string) []schema.GroupVersionResource {
	of := func(name string) schema.GroupVersionResource { return appsv1.SchemeGroupVersion.WithResource(name) }
	switch kind {
	case "Deployment":
		return []schema.GroupVersionResource{of("deployments"), of("replicasets")}
	case "Job":
		return []schema.GroupVersionResource{batchv1.SchemeGroupVersion.WithResource("jobs")}
	case "DaemonSet":
		return nil // they are read for every explanation
	}
	return []schema.GroupVersionResource{of(strings.ToLower(kind) + "s")}
}

// ExplainWorkload explains the pods of a Deployment, StatefulSet, DaemonSet, Job or ReplicaSet, grouped by cause
// (U-04). The error says that neither the workload nor a pod of it exists.
func (w *World) ExplainWorkload(kind, namespace, name string, all bool) (Explained, error) {
	e := Explained{APIVersion: APIVersion, Kind: "Explanation", About: About{Kind: kind, Namespace: namespace,
		Name: name}, all: all}
	var workload *object
	var names, elsewhere []string
	for i, o := range w.objects {
		switch {
		case o.GetObjectKind().GroupVersionKind().Kind != kind:
		case o.GetNamespace() == namespace:
			if names = append(names, o.GetName()); o.GetName() == name {
				workload = &w.objects[i]
			}
		case o.GetName() == name:
			elsewhere = append(elsewhere, o.GetNamespace())
		}
	}
	e.Workload = w.grouped(kind, namespace, name, all)
	if workload == nil && e.Workload.Pods == 0 {
		like := nearest.Ask(name, names)
		if len(elsewhere) > 0 {
			slices.Sort(elsewhere)
			like = "; there is one in " + strings.Join(elsewhere, ", ")
		}
		return e, fmt.Errorf("there is no %s %s in namespace %s%s", kind, name, namespace, like)
	}
	if workload != nil {
		e.Workload.Missing = missing(*workload, e.Workload.Pods)
	}
	e.State = view.Settled
	for _, group := range e.Workload.Groups {
		if group.State == view.Held || group.State == view.Coming && e.State == view.Settled {
			e.State = group.State
		}
	}
	e.Text = e.Workload.String()
	return e, nil
}

// missing returns how many pods a cluster's workload still lacks: its controller creates them.
func missing(workload object, have int) int {
	switch workload.Object.(type) {
	case *appsv1.Deployment, *appsv1.StatefulSet, *appsv1.ReplicaSet:
		d, _, err := demandOf(workload)
		if err == nil && workload.stored {
			return max(0, int(d.pods)-have)
		}
	}
	return 0
}

// grouped explains the pods of a workload, and groups those with the same explanation.
func (w *World) grouped(kind, namespace, name string, all bool) *WorkloadFacts {
	facts := &WorkloadFacts{Groups: []PodGroup{}}
	at := map[string]int{}
	for _, key := range slices.Sorted(maps.Keys(w.known)) {
		pod := w.known[key]
		if pod.Namespace != namespace || !w.isOf(pod, kind, name) {
			continue
		}
		facts.Pods++
		found := w.explain(pod, all)
		same := string(found.State) + " " + settledAs(pod)
		if found.Cause != nil {
			same = fmt.Sprint(found.State, " ", found.Cause.Code, " ", found.Cause.Object.Name)
			if found.State == view.Coming {
				same = fmt.Sprint(found.State, " ", found.Cause.Code)
			}
		}
		i, known := at[same]
		if !known {
			i = len(facts.Groups)
			at[same] = i
			facts.Groups = append(facts.Groups, PodGroup{Explanation: found})
			if found.Cause == nil {
				facts.Groups[i].Text = settledAs(pod)
			}
		}
		if facts.Groups[i].Pods++; len(facts.Groups[i].Names) < podsShown {
			facts.Groups[i].Names = append(facts.Groups[i].Names, pod.Name)
		}
	}
	order := []view.State{view.Held, view.Coming, view.Settled}
	slices.SortStableFunc(facts.Groups, func(a, b PodGroup) int {
		return cmp.Or(slices.Index(order, a.State)-slices.Index(order, b.State), b.Pods-a.Pods)
	})
	return facts
}

// isOf reports whether a workload created a pod, directly or through a ReplicaSet.
func (w *World) isOf(pod *corev1.Pod, kind, name string) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && (owner.Kind == kind && owner.Name == name ||
		w.owners[pod.Namespace+"/"+pod.Name] == kind+"/"+name)
}

// settledAs returns the state of a pod that needs nothing, in words that fit several pods.
func settledAs(pod *corev1.Pod) string {
	switch {
	case translate.Finished(pod):
		return "ended, " + string(pod.Status.Phase)
	case pod.DeletionTimestamp != nil:
		return "being deleted"
	case pod.Spec.NodeName != "":
		return "bound to a node"
	}
	return "of a DaemonSet, and on its own node or nowhere: no node is launched for it"
}

// String returns how many pods there are, and in which state.
func (f *WorkloadFacts) String() string {
	counts := map[view.State]int{}
	for _, group := range f.Groups {
		counts[group.State] += group.Pods
	}
	parts := []string{count(f.Pods, "pod", "pods")}
	for _, state := range []struct {
		view.State
		one, more string
	}{
		{view.Held, "is held", "are held"}, {view.Coming, "gets a place by itself", "get a place by themselves"},
		{view.Settled, "needs nothing", "need nothing"},
	} {
		switch n := counts[state.State]; {
		case n == 1 && f.Pods == 1:
			parts[0] += ", which " + state.one
		case n > 0 && n == f.Pods:
			parts[0] += ", which " + state.more
		case n > 0:
			parts = append(parts, count(n, state.one, state.more))
		}
	}
	if f.Missing > 0 {
		parts = append(parts, count(f.Missing, "is not made yet: look at the events of the workload",
			"are not made yet: look at the events of the workload"))
	}
	return strings.Join(parts, ", ")
}

func (f *WorkloadFacts) write(b *strings.Builder, about About, all bool) {
	fmt.Fprintf(b, "%s: %s\n", about, f)
	if f.Pods == 0 && about.Kind == "DaemonSet" {
		b.WriteString("  it has one on each node that it fits, and is part of each node that is planned\n")
	}
	for _, group := range f.Groups {
		such := firstOf(group.Names, group.Pods, podsShown)
		if group.Cause == nil {
			fmt.Fprintf(b, "%s: %s (%s)\n", count(group.Pods, "pod", "pods"), group.Text, such)
			continue
		}
		fmt.Fprintf(b, "%s: %s (%s)\n", count(group.Pods, "pod waits", "pods wait"), group.Cause.Code, such)
		c := *group.Cause
		if group.State == view.Coming && group.Pods > 1 { // others may go elsewhere
			c.Text = group.Names[0] + ": " + c.Text
		}
		one := Explained{Explanation: group.Explanation, all: all}
		writeCause(b, c, one.shortPools())
		one.writeAlso(b)
	}
}

// firstOf joins the first names, at most shown, and counts the rest of the total.
func firstOf(names []string, of, shown int) string {
	first := names[:min(len(names), shown)]
	text := strings.Join(first, ", ")
	if more := of - len(first); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
