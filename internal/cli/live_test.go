package cli_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/admission/audit"
	"github.com/joiner-autoscaler/joiner/internal/cli"
	"github.com/joiner-autoscaler/joiner/nodescheduling/door/doortest"
)

// the report begins with the live source and how to write it; what the other one says is shown, and not counted.
func TestA18_TheReportBeginsWithTheLiveSource(t *testing.T) {
	t.Parallel()
	const enable, add = `"value":"Inform"}]'` + "\n",
		"\n  add entries:  joinerctl audit control-plane --suggest -o yaml "
	own := doortest.Group("1", "Enable", "namespace:openshift-dns")
	for name, c := range map[string]struct {
		change func(*doortest.Server)
		begins string
		has    []string
	}{
		"Scheduler": {func(s *doortest.Server) { s.Scheduler = scheduler("Inform") },
			`Live source: Scheduler "cluster" (config.openshift.io/v1), which has spec.schedulingGroups` +
				"\n  set the mode: " +
				`kubectl patch scheduler cluster --type=json -p '[{"op":"add","path":"/spec/schedulingGroups/0/mode",` +
				enable, []string{add, "mode Inform"}},
		"Scheduler without groups": {
			func(s *doortest.Server) { s.Scheduler = doortest.Scheduler("1", map[string]any{}) },
			"Live source: Scheduler ", []string{
				`kubectl patch scheduler cluster --type=merge -p '{"spec":{"schedulingGroups":[{"name":"ControlPlane","mode":"Inform"}]}}'`,
			}},
		"no object": {func(*doortest.Server) {}, "Live source: Scheduler ",
			[]string{
				`"kind":"Scheduler","metadata":{"name":"cluster"},"spec":{"schedulingGroups":[{"mode":"Inform",` +
					`"name":"ControlPlane"}]}}' | kubectl apply`,
			}},
		"both": {func(s *doortest.Server) {
			s.Scheduler, s.NoGroups, s.Groups = scheduler("Inform"), false, append(s.Groups, own)
		},
			"Live source: Scheduler ",
			[]string{"\n  not counted:  NodeSchedulingGroup controlplane: mode \"Enable\", 1 entry\n", "mode Inform"}},
		"own": {func(s *doortest.Server) {
			s.Spec, s.NoGroups, s.Groups = doortest.WithoutField, false, append(s.Groups, own)
		},
			`Live source: NodeSchedulingGroup "controlplane" (scheduling.joiner.sh/v1alpha1), ` +
				`since Scheduler has no spec.schedulingGroups in this cluster` +
				"\n  set the mode: kubectl patch nodeschedulinggroup controlplane --type=merge -p '{\"spec\":{\"mode\":\"Inform\"}}'\n",
			[]string{add, "mode Enable"}},
		"own, no object": {func(s *doortest.Server) { s.NoScheduler, s.NoGroups = true, false },
			`Live source: NodeSchedulingGroup "controlplane" (scheduling.joiner.sh/v1alpha1), since the cluster has no kind Scheduler` +
				"\n", []string{`"spec":{"mode":"Inform","name":"ControlPlane"}}' | kubectl apply --server-side -f -`}},
		"own, masters open, Enable": {func(s *doortest.Server) {
			s.Spec, s.NoGroups, s.Groups = doortest.WithoutField, false, append(s.Groups, own)
			s.Scheduler = doortest.Scheduler("1", map[string]any{"mastersSchedulable": true})
		}, "Live source: NodeSchedulingGroup ",
			[]string{"is true, which opens the control plane nodes to all pods: the mode Enable holds all the same"}},
		"own, masters open": {func(s *doortest.Server) {
			s.Spec, s.NoGroups, s.Scheduler = doortest.WithoutField, false, doortest.Scheduler("1",
				map[string]any{"mastersSchedulable": true})
		}, "Live source: NodeSchedulingGroup ", []string{"until it is false, the mode cannot become Enable"}},
		"neither": {func(s *doortest.Server) { s.NoScheduler = true },
			"Live source: none, since the cluster has no kind Scheduler and no kind NodeSchedulingGroup: " +
				"the file of the policy decides alone\n",
			[]string{"mode Disable"}},
	} {
		cluster := newAudited(nil, protected())
		c.change(cluster.server)
		code, stdout, stderr := cluster.run(t, policy, "--policy-file", "-")
		if code != cli.CodeFine || !strings.HasPrefix(stdout, c.begins) {
			t.Errorf("%s: exit %d, %s\n%s", name, code, stderr, stdout)
		}
		for _, want := range c.has {
			if !strings.Contains(stdout, want) {
				t.Errorf("%s: no %q in\n%s", name, want, stdout)
			}
		}
		var report audit.Report
		if _, stdout, _ := cluster.run(t, policy, "--policy-file", "-", "-o", "json"); json.Unmarshal([]byte(stdout),
			&report) != nil || report.Live == nil || report.Live.SetMode == "" {
			t.Errorf("%s: in JSON %s", name, stdout)
		}
	}
}

// what is suggested is for the source in force.
func TestA18_TheSuggestionIsForTheLiveSource(t *testing.T) {
	t.Parallel()
	c := suggesting(true)
	c.server.Spec, c.server.NoGroups = doortest.WithoutField, false
	code, stdout, stderr := c.run(t, policy, "--policy-file", "-", "--suggest", "-o", "yaml")
	const manifest = "apiVersion: scheduling.joiner.sh/v1alpha1\nkind: NodeSchedulingGroup\nmetadata:\n" +
		"  name: controlplane\nspec:\n  name: ControlPlane\n  authorizedUsers:\n  - "
	if code != cli.CodeFindings || stderr != "" || !strings.Contains(stdout, manifest) || strings.Contains(stdout,
		"kind: Scheduler") {
		t.Errorf("exit %d, %s, %s", code, stderr, stdout)
	}
	c.server.NoGroups = true
	if _, stdout, _ := c.run(t, policy, "--policy-file", "-", "--suggest"); !strings.Contains(stdout,
		"Group ControlPlane, entries of File:\n") {
		t.Errorf("without either kind: %s", stdout)
	}
	c.server.Fails = errors.New("no answer")
	if code, _, stderr := c.run(t, policy, "--policy-file", "-"); code != cli.CodeFailed || !strings.Contains(stderr,
		"reading the schema of Scheduler from /openapi/v3: ") {
		t.Errorf("without schemas: exit %d, %s", code, stderr)
	}
}
