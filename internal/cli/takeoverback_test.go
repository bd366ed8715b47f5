package cli_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/joiner-autoscaler/joiner/internal/cli"
	"github.com/joiner-autoscaler/joiner/internal/takeover"
)

// wide is a NodePool with all that our definition takes and Karpenter's does not.
const wide = "apiVersion: karpenter.sh/v1\nkind: NodePool\n" +
	"metadata: {name: web, annotations: {joiner.sh/above-limit: Inherited}}\nspec: {hardLimits: {nodes: 3}, " +
	"limits: {nodes: \"9\"}, template: {spec: {" + kwokRef +
	", expireAfter: 30d, terminationGracePeriod: 1d1h}}, disruption: {consolidateAfter: 30s, " +
	"consolidationPolicy: WhenUnderutilized, budgets: [{nodes: 2}, {nodes: \"1\", reasons: [Expired]}, {nodes: " +
	"\"3\", reasons: [Expired, Drifted]}, " +
	"{nodes: \"0\", schedule: \"@daily\", duration: 30m1h}]}}\n"

// backCases has at least one for each row of the table, as takeoverCases.
func backCases() []foundIn {
	return []foundIn{
		{"refused", []string{wide}, "", takeover.Danger, "NodePool web",
			[]string{`spec.template.spec.expireAfter "30d": 720h is the same`,
				`terminationGracePeriod "1d1h": 25h`,
				`consolidationPolicy "WhenUnderutilized": WhenEmptyOrUnderutilized`, `budgets[0].nodes 2, a number`,
				"budgets[1], which is for Expired alone", "budgets[2].reasons [Expired Drifted]: [Drifted]",
				`budgets[3].duration "30m1h": 90m`}},
		{"refused", []string{machine("a", "", ", expireAfter: 1d")[0]}, "", takeover.Danger, "NodeClaim a",
			[]string{`spec.expireAfter "1d": 24h is the same`, "its spec cannot be changed: delete it"}},
		{"hard-limits", []string{wide, machine("a", "", "")[0]}, "", takeover.Danger, "NodePool web",
			[]string{"spec.hardLimits.nodes is 3", "which has 1 node;"}},
		{"time-zones",
			[]string{strings.Replace(poolOf("", ""), `{nodes: "50%"}`,
				`{nodes: "0", schedule: "@daily", duration: 1h, timeZone: Asia/Tokyo}`, 1)},
			"", takeover.Danger, "NodePool web", []string{"budgets[0].timeZone is Asia/Tokyo", "UTC"}},
		{"dormant", []string{overlay("", `price: "5"`), ofTheirs("", "")}, "", takeover.Danger, "NodeOverlay dear",
			[]string{"start Karpenter with NodeOverlay=true"}},
		{"dormant", []string{poolOf(", replicas: 4", "")}, "", takeover.Danger, "NodePool web",
			[]string{"nobody keeps its 4 replicas"}},
		{"pauses", []string{
			strings.Replace(poolOf("", ""), "{name: web}", "{name: web, annotations: {joiner.sh/paused: Disrupt}}", 1),
		}, "", takeover.Warning,
			"NodePool web", []string{"joiner.sh/paused=Disrupt pauses it, which Karpenter does not know"}},
		{"pauses", []string{
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: joiner-disruption, namespace: joiner}\n" +
				"data: {paused: \"true\", reason: release week}\n",
		}, "",
			takeover.Warning, "ConfigMap joiner/joiner-disruption",
			[]string{"release week; Karpenter does not read it"}},
		{"keeps", []string{strings.Replace(poolOf("", ""), "{name: web}",
			"{name: web, annotations: {joiner.sh/min-nodes: \"3\"}}", 1)}, "", takeover.Warning,
			"NodePool web",
			[]string{"joiner.sh/min-nodes=3 says how many nodes it always keeps, which Karpenter does not know"}},
		{"keeps", []string{strings.Replace(poolOf("", ""), "{name: web}",
			"{name: web, annotations: {joiner.sh/headroom: 10%}}", 1)}, "", takeover.Warning,
			"NodePool web", []string{"joiner.sh/headroom=10% says how much room it keeps free"}},
		{"in-flight", []string{machine("a", aCondition("DisruptionReason", "Drifted"), "")[0]}, "", takeover.Wait,
			"NodeClaim a", []string{"joinerctl pause"}},
		{"marks", []string{wide}, "", takeover.Info, "NodePool web",
			[]string{"joiner.sh/above-limit, which means nothing to Karpenter"}},
		{"marks", []string{
			strings.Replace(poolOf("", ""), "{name: web}",
				"{name: web, annotations: {karpenter.sh/graceful-expiration: \"true\"}}", 1),
		}, "", takeover.Warning,
			"NodePool web", []string{"removes them at once"}},
	}
}

// K-28: what each row of the table finds before Karpenter gets a cluster back. Each row has a test, and a line on the
// page. Without --fix nothing is written.
func TestK28_WhatIsFoundOnTheWayBack(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/takeover.md")
	if err != nil {
		t.Fatal(err)
	}
	cases := backCases()
	for _, row := range takeover.BackChecks() {
		if !slices.ContainsFunc(cases, func(c foundIn) bool { return c.row == row.Name && c.severity == row.Worst }) {
			t.Errorf("nothing tests %s as %s", row.Name, row.Worst)
		}
		if line := fmt.Sprintf("| `%s` | %s | %s |", row.Name, row.About, row.Worst); !strings.Contains(string(page),
			line) {
			t.Errorf("docs/takeover.md lacks\n%s", line)
		}
	}
	for _, c := range cases {
		client := theirs(t, c.objects...)
		code, findings := findingsOf(t, client, "--back")
		if !slices.ContainsFunc(findings, func(f takeover.Finding) bool {
			said := f.Consequence + "\n" + f.Remedy
			return f.Check == c.row && f.Object() == c.object && f.Severity == c.severity &&
				!slices.ContainsFunc(c.words, func(w string) bool { return !strings.Contains(said, w) })
		}) || code != cli.CodeFindings {
			t.Errorf("exit %d; want %s of %s in %s: %q; found\n%+v", code, c.severity, c.object, c.row, c.words,
				findings)
		}
		if wrote := writes(client); len(wrote) > 0 {
			t.Errorf("it does %q", wrote)
		}
	}
	if code, findings := findingsOf(t, theirs(t, kwokClass, poolOf(", limits: {nodes: \"5\"}", ""), ofTheirs("", "")),
		"--back"); code != cli.CodeFine {
		t.Errorf("where Karpenter can read all: exit %d, %+v", code, findings)
	}
}

// K-28: --fix writes what Karpenter can read, with the same meaning, and --dry-run prints it. Afterwards nothing is
// left that can be patched. Nothing is written without being asked for.
func TestK28_WhatIsPatched(t *testing.T) {
	t.Parallel()
	client := theirs(t, wide)
	check := []string{"takeover", "check", "--now", takenAt, "--back"}
	code, out, failures := run(t, client, "", slices.Concat(check, []string{"--fix", "--dry-run"})...)
	want := `kubectl patch nodepool web --type=merge -p '{"spec":{"hardLimits":null,"limits":{"nodes":"3"}}}'`
	if code != cli.CodeFindings || failures != "" || !strings.Contains(out, want) || len(writes(client)) > 0 {
		t.Errorf("exit %d, %q, writes %q\n%s\nwant\n%s", code, failures, writes(client), out, want)
	}
	if code, _, failures = run(t, client, "", slices.Concat(check, []string{"--fix"})...); code != cli.CodeFailed ||
		!strings.Contains(failures, "nobody is there to ask") || len(writes(client)) > 0 {
		t.Errorf("without being told: exit %d, %s, writes %q", code, failures, writes(client))
	}
	code, out, failures = run(t, client, "", slices.Concat(check, []string{"--fix", "--yes"})...)
	if code != cli.CodeFine || failures != "" || strings.Count(out, "it is patched") != 3 || len(writes(client)) != 3 {
		t.Errorf("exit %d, %s, writes %q\n%s", code, failures, writes(client), out)
	}
	o, err := client.Resource(nodePools).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	spec, _, _ := unstructured.NestedMap(o.Object, "spec")
	text := fmt.Sprint(spec)
	for _, want := range []string{"limits:map[nodes:3]", "expireAfter:720h", "terminationGracePeriod:25h",
		"consolidationPolicy:WhenEmptyOrUnderutilized",
		"budgets:[map[nodes:2] map[nodes:3 reasons:[Drifted]] map[duration:90m nodes:0 schedule:@daily]]"} {
		if !strings.Contains(text, want) || strings.Contains(text, "hardLimits") {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
	if code, out, _ := run(t, client, "", check...); code != cli.CodeFine ||
		!strings.HasPrefix(out, "nothing is found; checked: refused") {
		t.Errorf("afterwards: exit %d\n%s", code, out)
	}
	for args, want := range map[string]string{"--fix": "--fix is for --back",
		"--back --dry-run":       "--dry-run is for --fix",
		"--back --fix -f x.yaml": "--fix writes to a cluster", "--back --values x": "none of the others can be"} {
		code, _, failures := run(t, client, "", slices.Concat([]string{"takeover", "check"}, strings.Fields(args))...)
		if code != cli.CodeFailed || !strings.Contains(failures, want) {
			t.Errorf("%s: exit %d, %s; want %q", args, code, failures, want)
		}
	}
}

// K-28: a patch that the API server refuses keeps none of the others from being written, and the answer says which
// ones are. NodeClaims get no patch, since their spec cannot be changed.
func TestK28_ARefusedPatchKeepsNoOtherFromBeingWritten(t *testing.T) {
	t.Parallel()
	client := theirs(t, strings.Replace(wide, "{name: web,", "{name: api,", 1), wide,
		machine("a", "", ", expireAfter: 1d")[0])
	client.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if patch := action.(clienttesting.PatchAction); patch.GetName() == "web" {
			return false, nil, nil
		}
		return true, nil, errors.New("self == oldSelf")
	})
	code, out, failures := run(t, client, "", "takeover", "check", "--now", takenAt, "--back", "--fix", "--yes")
	if code != cli.CodeFailed || strings.Count(out, "it is patched") != 3 ||
		strings.Count(failures, "patching NodePool api: self == oldSelf") != 3 ||
		strings.Contains(failures, "NodeClaim") || strings.Contains(out, "kubectl patch nodeclaim") {
		t.Errorf("exit %d, %s\n%s", code, failures, out)
	}
}

// K-27, K-28: the way back names the ConfigMap of the first start, so that Joiner holds again if it comes back. It is
// no finding: it can be deleted only later.
func TestK28_TheNextTakeoverHoldsAgain(t *testing.T) {
	t.Parallel()
	first := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: joiner-takeover, namespace: karpenter}\n" +
		"data: {started: \"2026-11-01T00:00:00Z\", until: \"2026-11-01T00:15:00Z\", nodeclaims: \"3\"}\n"
	client := theirs(t, kwokClass, poolOf("", ""), ofTheirs("", ""), first)
	const says = "note: once Joiner is stopped, run: kubectl delete configmap joiner-takeover --namespace karpenter; "
	for _, args := range [][]string{{"--back"}, {"--back", "--fix", "--yes"}, nil} {
		code, out, failures := run(t, client, "",
			slices.Concat([]string{"takeover", "check", "--now", takenAt}, args)...)
		if code != cli.CodeFine || strings.Contains(out, says) != (args != nil) || len(writes(client)) > 0 {
			t.Errorf("%v: exit %d, %s, writes %q\n%s", args, code, failures, writes(client), out)
		}
	}
}
