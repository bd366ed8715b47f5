package test

import (
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator/schedulingtest"
)

// N68: where the nodes of a group are looked up by an index, whatever else that yields, the verdict is that of a look
// at all nodes.
func TestTheIndexChangesNoVerdict(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := build(t, world(t))
		asked, err := schedulingtest.ParseRequest(request(t))
		if err != nil {
			t.Fatal(err)
		}
		policy, _, err := evaluator.New(w.Sources)
		if err != nil {
			t.Fatal(err)
		}
		request := asked.Request
		if err := request.SetObjects(asked.Object, asked.Old); err != nil {
			t.Fatal(err)
		}
		without, with := w.Cluster(), w.Cluster()
		extra := rapid.SampledFrom(nodeNames).Draw(t, "extra")
		with.Members = func(group string) iter.Seq[*corev1.Node] {
			key := map[string]string{"ControlPlane": "cp", "Gpu": "gpu"}[group]
			return func(yield func(*corev1.Node) bool) {
				for node := range with.Nodes.All() {
					if _, has := node.Labels[key]; (has || node.Name == extra) && !yield(node) {
						return
					}
				}
			}
		}
		if a, b := policy.Evaluate(&request, without), policy.Evaluate(&request, with); !reflect.DeepEqual(a, b) {
			t.Errorf("without an index %+v, with one %+v", a, b)
		}
	})
}

// N25 to N31: selected means that some node fits, and that none does which is not of the group, however that was found
// out.
func TestSelectedMeansNoOtherNodeFits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		selector := rapid.SampledFrom([]string{"cp", "cp=", "!gpu", "zone=a|b", "zone!=a,cp", "cp,gpu="}).Draw(t,
			"group")
		lines := []string{"group ControlPlane select=" + selector + " mode=Enable users="}
		for _, name := range some(t, "nodes", nodeNames, 4) {
			lines = append(lines, "node "+name+" labels="+
				strings.Join(some(t, "labels", []string{"cp", "gpu", "zone=a", "zone=b", "zone=c"}, 3), ","))
		}
		line := "alice create pod app/web"
		for _, pair := range some(t, "select", []string{"cp=", "gpu=", "zone=a", "zone=c", "other=x"}, 2) {
			line += " select=" + pair
		}
		for _, need := range some(t, "needs", append([]string{"name=n1", "name=n2,cp", "name=n9"}, needs...), 2) {
			line += " need=" + need
		}
		w := build(t, lines)
		asked, err := schedulingtest.ParseRequest(line)
		if err != nil {
			t.Fatal(err)
		}
		verdict := evaluate(t, w, line)
		if want := naivelySelected(t, w, asked.Object.(*corev1.Pod)); want == verdict.Allowed {
			t.Errorf("%v\n%s: selected is %t, the verdict %+v", lines, line, want, verdict)
		}
	})
}

// naivelySelected looks at every node.
func naivelySelected(t *rapid.T, w *schedulingtest.World, pod *corev1.Pod) bool {
	if len(pod.Spec.NodeSelector) == 0 && pod.Spec.Affinity == nil {
		return false
	}
	group := w.Sources.Config.Groups[0].LabelSelector
	inside, outside := 0, 0
	for node := range w.Cluster().Nodes.All() {
		fits, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node)
		if err != nil {
			t.Fatal(err)
		}
		if !fits {
			continue
		}
		if labels.SelectorFromSet(group.MatchLabels).Matches(labels.Set(node.Labels)) &&
			expressed(t, group.MatchExpressions, node) {
			inside++
		} else {
			outside++
		}
	}
	return inside > 0 && outside == 0
}

// expressed says whether a node has what the expressions want.
func expressed(t *rapid.T, wanted []metav1.LabelSelectorRequirement, node *corev1.Node) bool {
	for _, e := range wanted {
		value, has := node.Labels[e.Key]
		among := has && slices.Contains(e.Values, value)
		held, known := map[metav1.LabelSelectorOperator]bool{
			metav1.LabelSelectorOpIn: among, metav1.LabelSelectorOpNotIn: !among, metav1.LabelSelectorOpExists: has,
			metav1.LabelSelectorOpDoesNotExist: !has,
		}[e.Operator]
		if !known {
			t.Fatalf("operator %s", e.Operator)
		}
		if !held {
			return false
		}
	}
	return true
}
