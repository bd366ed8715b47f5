package test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator/schedulingtest"
)

// H14: what an inspection finds of a pod is what Evaluate refuses somebody who may place pods: to create it where it
// is, or to create the next one like it. The mode in force plays no part.
func TestAnInspectionFindsWhatIsRefused(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lines := slices.DeleteFunc(world(t), func(line string) bool { return line == "not-ready" })
		for i, line := range lines {
			lines[i] = strings.TrimSuffix(strings.Replace(line, "users=", "users=root,", 1), ",")
		}
		w := build(t, lines)
		var words []string
		for _, toleration := range some(t, "tolerations", toleration, 2) {
			words = append(words, "tolerate="+toleration)
		}
		for _, need := range some(t, "needs", needs, 2) {
			words = append(words, "need="+need)
		}
		name, next := rapid.SampledFrom(namespaces).Draw(t, "namespace")+"/web", strings.Join(words, " ")
		here := next
		if rapid.Bool().Draw(t, "placed") {
			here += " node=" + rapid.SampledFrom(nodeNames).Draw(t, "node")
		}
		found := map[string]bool{}
		for _, i := range inspect(t, w, name+" "+here) {
			found[i.Group] = found[i.Group] || !i.Class.Fine()
		}
		w.Sources.Scheduler = enabled(w)
		refused := map[string]bool{}
		for _, pod := range []string{here, next} {
			for _, f := range evaluate(t, w, fmt.Sprintf("root create pod %s %s", name, pod)).Findings {
				refused[f.Group] = refused[f.Group] || f.Decision == evaluator.Deny
			}
		}
		for _, group := range []string{"ControlPlane", "Gpu"} {
			if found[group] != refused[group] {
				t.Fatalf("%s: found %t, refused %t: %s %s in %q", group, found[group], refused[group], name, here,
					lines)
			}
		}
	})
}

func inspect(t *rapid.T, w *schedulingtest.World, line string) []evaluator.Inspection {
	pod, err := schedulingtest.ParsePod(line)
	if err != nil {
		t.Fatal(err)
	}
	policy, _, err := evaluator.New(w.Sources)
	if err != nil {
		t.Fatal(err)
	}
	before := pod.DeepCopy()
	inspections, err := policy.Inspect(pod, w.Cluster())
	if err != nil || before.String() != pod.String() {
		t.Fatalf("error %v, or the pod was changed", err)
	}
	return inspections
}

// enabled sets the mode of every group to Enable and returns the Scheduler with its lists, and without a mode.
func enabled(w *schedulingtest.World) *configv1.Scheduler {
	for i := range w.Sources.Config.Groups {
		w.Sources.Config.Groups[i].Mode = configv1.Enable
	}
	if w.Sources.Scheduler == nil {
		return nil
	}
	scheduler := w.Sources.Scheduler.DeepCopy()
	for i := range scheduler.Spec.SchedulingGroups {
		scheduler.Spec.SchedulingGroups[i].Mode = ""
	}
	return scheduler
}
