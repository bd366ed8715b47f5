package suggest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/internal/admission/audit"
	"github.com/joiner-autoscaler/joiner/internal/admission/suggest"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator/schedulingtest"
)

// TestScripts runs every script below testdata/scripts. Clusters are written as in the scripts of the
// evaluator. The lines of the command suggest are pods and workloads (KIND NAMESPACE/NAME ATTRIBUTES), events of an
// audit log (event USER[GROUPS] creates|binds|changes NAMESPACE DECISION REASON, and a GROUP other than ControlPlane)
// and uses of entries (uses GROUP ENTRY COUNT). It prints text, yaml or json, as its words say. The word scheduler
// means that entries of the group ControlPlane are in Scheduler, the word own that they are in Joiner's own kind.
func TestScripts(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		world := schedulingtest.NewWorld()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "suggest" {
				out, err := world.Run(d.Cmd, false, d.Input, nil)
				if err != nil {
					d.Fatalf(t, "%v", err)
				}
				return out
			}
			out, err := suggested(t, world, d)
			if err != nil {
				return "error: " + err.Error() + "\n"
			}
			return strings.ReplaceAll(out, schedulingtest.NamespaceUID, "UID")
		})
	})
}

// suggested is what a command prints.
func suggested(t *testing.T, world *schedulingtest.World, d *datadriven.TestData) (string, error) {
	t.Helper()
	collector, err := suggest.New(suggest.Config{Sources: world.Sources, Cluster: world.Cluster(), Platform: list(t),
		Owner: behind,
		Target: func(group string) suggest.Target {
			switch {
			case d.HasArg("scheduler") && group == "ControlPlane":
				return suggest.Scheduler
			case d.HasArg("own") && group == "ControlPlane":
				return suggest.Groups
			}
			return suggest.File
		}})
	if err != nil {
		return "", err
	}
	for line := range strings.SplitSeq(strings.TrimSpace(d.Input), "\n") {
		if err := take(collector, line); err != nil {
			return "", err
		}
	}
	report, err := collector.Report()
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, form := range []struct {
		word  string
		write func() error
	}{
		{"text", func() error { return report.WriteText(&out) }},
		{"yaml", func() error { return report.WriteYAML(&out) }},
		{"json", func() error { return report.WriteJSON(&out) }},
	} {
		if d.HasArg(form.word) {
			if err := form.write(); err != nil {
				return "", err
			}
		}
	}
	return out.String(), nil
}

// take hands a line of a script to the collector.
func take(collector *suggest.Collector, line string) error {
	words := strings.Fields(line)
	switch first := words[0]; {
	case first == "uses":
		return collector.ReadMetrics(
			strings.NewReader(
				fmt.Sprintf("node_scheduling_policy_entry_uses_total{entry=%q,group=%q,source=\"Config\"} %s\n",
					words[2], words[1], words[3])))
	case first == "event":
		name, groups, _ := strings.Cut(strings.TrimSuffix(words[1], "]"), "[")
		if groups != "" {
			groups = `"` + strings.ReplaceAll(groups, ",", `", "`) + `"`
		}
		text := passed(name, groups, "pods", map[string]string{"binds": "binding"}[words[2]], words[3], words[4],
			words[5])
		if len(words) > 6 {
			text = strings.Replace(text, `"ControlPlane"`, `"`+words[6]+`"`, 1)
		}
		if words[2] == "changes" {
			text = strings.Replace(text, `"verb": "create"`, `"verb": "update"`, 1)
		}
		return collector.ReadAuditLog(strings.NewReader(text))
	case !strings.Contains(first, "/"):
		asked, err := schedulingtest.ParseRequest("anybody create " + line)
		if err != nil {
			return err
		}
		return collector.LookAtWorkload(asked.Object, asked.Object.GetObjectKind().GroupVersionKind().Kind)
	}
	pod, err := schedulingtest.ParsePod(line)
	if err != nil {
		return err
	}
	return collector.Look(pod)
}

// behind: the workload behind a ReplicaSet is a Deployment of its name.
func behind(_ string, controller metav1.OwnerReference) audit.Owner {
	if controller.Kind == "ReplicaSet" {
		return audit.Owner{Kind: "Deployment", Name: controller.Name}
	}
	return audit.Owner{Kind: controller.Kind, Name: controller.Name}
}
