package audit_test

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/internal/admission/audit"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator/schedulingtest"
)

// TestScripts runs every script below testdata/scripts. Clusters are written as in the scripts of the evaluator. The
// lines of the command audit are the cluster's pods and then its workloads (KIND NAMESPACE/NAME ATTRIBUTES). It prints
// the report. The words entries and nodes add those to the audit.
func TestScripts(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		world := schedulingtest.NewWorld()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "audit" {
				out, err := world.Run(d.Cmd, false, d.Input, nil)
				if err != nil {
					d.Fatalf(t, "%v", err)
				}
				return out
			}
			report, err := run(world, d.Input, d.HasArg("entries"), d.HasArg("nodes"))
			if err != nil {
				return "error: " + err.Error() + "\n"
			}
			var out strings.Builder
			if err := report.WriteText(&out); err != nil {
				d.Fatalf(t, "%v", err)
			}
			return strings.ReplaceAll(out.String(), "\n\n", "\n") // an empty line ends an output
		})
	})
}

// run audits the pods of a script, and if asked the entries of the lists. The workload behind a ReplicaSet is a
// Deployment of its name.
func run(world *schedulingtest.World, input string, entries, nodes bool) (audit.Report, error) {
	policy, ignored, err := evaluator.New(world.Sources)
	if err != nil {
		return audit.Report{}, err
	}
	auditor := audit.New(audit.Config{Policy: policy, Ignored: ignored, Cluster: world.Cluster(), Owner: behind})
	if nodes {
		auditor.LookAtNodes()
	}
	if entries {
		if err := auditor.LookAtEntries(); err != nil {
			return audit.Report{}, err
		}
	}
	for line := range strings.SplitSeq(strings.TrimSpace(input), "\n") {
		if first, _, _ := strings.Cut(line, " "); !strings.Contains(first, "/") {
			asked, err := schedulingtest.ParseRequest("anybody create " + line)
			if err != nil {
				return audit.Report{}, err
			}
			kind := asked.Object.GetObjectKind().GroupVersionKind().Kind
			if err := auditor.LookAtWorkload(asked.Object, kind); err != nil {
				return audit.Report{}, err
			}
			continue
		}
		pod, err := schedulingtest.ParsePod(line)
		if err != nil {
			return audit.Report{}, err
		}
		if err := auditor.Look(pod); err != nil {
			return audit.Report{}, err
		}
	}
	return auditor.Report(), nil
}

func behind(_ string, controller metav1.OwnerReference) audit.Owner {
	if controller.Kind == "ReplicaSet" {
		return audit.Owner{Kind: "Deployment", Name: controller.Name}
	}
	return audit.Owner{Kind: controller.Kind, Name: controller.Name}
}
