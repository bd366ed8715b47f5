package audit_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/internal/admission/audit"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator/schedulingtest"
)

const cluster = `
group ControlPlane select=cp mode=Inform users=backup/agent
scheduler cluster users=group:
authorization ListsAndRBAC
node cp1 labels=cp taints=cp:NoSchedule
node w1
`

// auditor is one for the cluster, which reports controllers as the pods name them unless an owner is given.
func auditor(t *testing.T, more string, owner func(string, metav1.OwnerReference) audit.Owner) *audit.Auditor {
	t.Helper()
	w := schedulingtest.NewWorld()
	if _, err := w.Run("cluster", false, cluster+more, nil); err != nil {
		t.Fatal(err)
	}
	policy, ignored, err := evaluator.New(w.Sources)
	if err != nil {
		t.Fatal(err)
	}
	return audit.New(audit.Config{Policy: policy, Ignored: ignored, Cluster: w.Cluster(), Owner: owner})
}

// look shows pods to an auditor, and workloads: their lines begin with a kind.
func look(t *testing.T, a *audit.Auditor, lines ...string) error {
	t.Helper()
	for _, line := range lines {
		if first, _, _ := strings.Cut(line, " "); !strings.Contains(first, "/") {
			asked, err := schedulingtest.ParseRequest("anybody create " + line)
			if err != nil {
				t.Fatal(err)
			}
			if err := a.LookAtWorkload(asked.Object, "Deployment"); err != nil {
				return err
			}
			continue
		}
		pod, err := schedulingtest.ParsePod(line)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Look(pod); err != nil {
			return err
		}
	}
	return nil
}

// H14: programs read the report as JSON. What there is none of is an empty list, so that they need not ask; signs
// stand as they are.
func TestTheReportAsJSON(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lines []string
		want  string
	}{
		{nil, `{
  "groups": [
    {
      "name": "ControlPlane",
      "mode": "Inform",
      "nodes": 1,
      "authorized": {},
      "static": 0
    }
  ],
  "findings": [],
  "ignored": [
    "Scheduler cluster: spec.schedulingGroups[0].authorizedUsers[0] is \"group:\": after group: the name of a group must follow"
  ],
  "pods": 0,
  "workloads": 0,
  "nodes": 2
}
`},
		{[]string{"shop/web-1 node=cp1 owner=ReplicaSet/web tolerate=cp=<5>", "deployment shop/idle node=cp1"},
			`"findings": [
    {
      "group": "ControlPlane",
      "class": "AimsAtProtectedNode",
      "namespace": "shop",
      "owner": {
        "kind": "Deployment",
        "name": "idle"
      },
      "reasons": [
        "NodeName"
      ],
      "message": "its nodeName is \"cp1\", which is of the group",
`},
		{[]string{"shop/web-1 node=w1 owner=ReplicaSet/web<1> tolerate=cp tolerate=* select=cp="}, `
      "name": "web-1",
      "node": "w1",
      "owner": {
        "kind": "ReplicaSet",
        "name": "web<1>"
      },
      "reasons": [
        "Toleration",
        "Selector"
      ],
`},
	} {
		a := auditor(t, "", nil)
		if err := look(t, a, c.lines...); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		report := a.Report()
		if err := report.WriteJSON(&out); err != nil || !strings.Contains(out.String(), c.want) {
			t.Errorf("%q: error %v\n%s\nwant\n%s", c.lines, err, &out, c.want)
		}
		if report.Clean() != (len(c.lines) == 0) {
			t.Errorf("%q: clean is %t", c.lines, report.Clean())
		}
	}
}

// H14: a report is what was found until then, also when the audit goes on.
func TestAReportDoesNotChange(t *testing.T) {
	t.Parallel()
	a := auditor(t, "", nil)
	if err := look(t, a, "backup/agent-1 node=cp1", "b/web node=cp1", "c/web node=cp1", "d/web node=cp1"); err != nil {
		t.Fatal(err)
	}
	first := a.Report()
	text := func() string {
		var out bytes.Buffer
		if err := first.WriteText(&out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	before := text()
	if err := look(t, a, "a/web node=cp1", "backup/agent-2 node=cp1"); err != nil {
		t.Fatal(err)
	}
	second := a.Report()
	if after := text(); after != before || len(second.Findings) != 4 || second.Findings[0].Namespace != "a" ||
		second.Groups[0].Authorized["backup"] != 2 {
		t.Errorf("before\n%s\nafter\n%s\nthe next %+v", before, after, second)
	}
}

// H14: whoever cannot be asked, or written to, is an error and no empty report.
func TestAnAuditThatFails(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"shop/web node=cp1", "deployment shop/web tolerate=*"} {
		a := auditor(t, "unreadable", nil)
		if err := look(t, a, line); err == nil || !strings.Contains(err.Error(),
			"namespace shop and group ControlPlane: connection refused") {
			t.Errorf("%s: error %v", line, err)
		}
		if report := a.Report(); report.Pods+report.Workloads != 0 {
			t.Errorf("%s: counted, %+v", line, report)
		}
	}
	full := errors.New("no space left")
	report := auditor(t, "", nil).Report()
	if err := report.WriteText(failing{full}); !errors.Is(err, full) {
		t.Errorf("text: error %v", err)
	}
	if err := report.WriteJSON(failing{full}); !errors.Is(err, full) {
		t.Errorf("JSON: error %v", err)
	}
}

// failing is a writer that has no room.
type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
