package cli_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/cli"
)

var rewritePage = flag.Bool("rewrite", false, "write what the program says into the page")

// pages keeps tests that write the same page apart.
var pages sync.Mutex

// ran runs joinerctl without a cluster.
func ran(t *testing.T, in string, args ...string) (code int, out, failures string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = cli.Run(t.Context(), cli.Config{In: strings.NewReader(in), Out: &stdout, Err: &stderr}, args)
	fits(t, code, stdout.String(), args)
	return code, stdout.String(), stderr.String()
}

func simulated(t *testing.T, in string, args ...string) (code int, out, failures string) {
	t.Helper()
	return ran(t, in, append([]string{"simulate"}, args...)...)
}

// TestU03_ThePageShowsWhatTheProgramSays: the page's example is run, and its output stands there word for word.
func TestU03_ThePageShowsWhatTheProgramSays(t *testing.T) {
	t.Parallel()
	code, out, failures := simulated(t, "", "-f", "../../examples/simulate")
	if code != cli.CodeFindings || failures != "" {
		t.Errorf("exit code %d, %q; want %d, since two pods wait", code, failures, cli.CodeFindings)
	}
	shows(t, "../../docs/simulate.md", "$ joinerctl simulate -f examples/simulate\n", out)
}

// TestU04_ThePageShowsWhatExplainSays.
func TestU04_ThePageShowsWhatExplainSays(t *testing.T) {
	t.Parallel()
	code, out, failures := ran(t, "", "explain", "pod", "ml/train-2", "-f", "../../examples/simulate")
	if code != cli.CodeFindings || failures != "" {
		t.Errorf("exit code %d, %q", code, failures)
	}
	shows(t, "../../docs/explain.md", "$ joinerctl explain pod ml/train-2 -f examples/simulate\n", out)
}

// TestU04_ThePageShowsWhatIsTried.
func TestU04_ThePageShowsWhatIsTried(t *testing.T) {
	t.Parallel()
	code, out, failures := run(t, nil, "", "explain", "pod", "ml/train-2", "--try", "-f", "../../examples/simulate")
	if code != cli.CodeFindings || failures != "" {
		t.Errorf("exit code %d, %q", code, failures)
	}
	shows(t, "../../docs/explain.md", "$ joinerctl explain pod ml/train-2 --try -f examples/simulate\n", out)
}

// TestU04_ThePageShowsWhyANodeStays.
func TestU04_ThePageShowsWhyANodeStays(t *testing.T) {
	t.Parallel()
	code, out, failures := ran(t, "", "explain", "node", "n1", "-f", "../../examples/explain")
	if code != cli.CodeFindings || failures != "" {
		t.Errorf("exit code %d, %q", code, failures)
	}
	shows(t, "../../docs/explain.md", "$ joinerctl explain node n1 -f examples/explain\n", out)
	code, out, _ = ran(t, "", "explain", "node", "default-bbbb", "-f", "../../examples/explain")
	if code != cli.CodeFine || !strings.Contains(out, "it would go now: Underutilized") {
		t.Errorf("exit code %d, %s", code, out)
	}
	if code, _, failures = ran(t, "", "explain", "node", "n9", "-f",
		"../../examples/explain"); code != cli.CodeFailed ||
		!strings.Contains(failures, "there is no node and no NodeClaim n9") {
		t.Errorf("exit code %d, %q", code, failures)
	}
}

// TestU04_ThePageShowsPoolsClaimsAndWorkloads.
func TestU04_ThePageShowsPoolsClaimsAndWorkloads(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]int{
		"explain nodepool gpu -f examples/simulate":            cli.CodeFine,
		"explain nodepool batch -f examples/explain":           cli.CodeFindings,
		"explain nodeclaim spot-0002 -f examples/explain":      cli.CodeFine,
		"explain deployment ml/train -f examples/simulate":     cli.CodeFindings,
		"explain pod shop/search-0 --all -f examples/simulate": cli.CodeFindings,
	} {
		code, out, failures := ran(t, "",
			strings.Fields(strings.ReplaceAll(line, " examples/", " ../../examples/"))...)
		if code != want || failures != "" {
			t.Errorf("%s: exit code %d, %q; want %d", line, code, failures, want)
		}
		shows(t, "../../docs/explain.md", "$ joinerctl "+line+"\n", out)
	}
}

// shows demands that a page has a command's output word for word, or writes it there.
func shows(t *testing.T, page, command, out string) {
	t.Helper()
	if *rewritePage {
		pages.Lock()
		defer pages.Unlock()
	}
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(data), command)
	shown, after, closed := strings.Cut(rest, "```\n")
	if !found || !closed {
		t.Fatalf("%s does not show %q", page, command)
	}
	if *rewritePage {
		if err := os.WriteFile(page, []byte(before+command+out+"```\n"+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if shown != out {
		t.Errorf("%s shows\n%s\nthe program says\n%s\ngo test ./internal/cli -run 'ThePageShows|OneScreen' -rewrite",
			page, shown, out)
	}
}

// TestU22_TheSameBytes: the same files give the same answer, in whatever order they are named.
func TestU22_TheSameBytes(t *testing.T) {
	t.Parallel()
	pools, workloads := "../../examples/simulate/pools.yaml", "../../examples/simulate/workloads.yaml"
	_, first, _ := simulated(t, "", "-o", "json", "-f", pools, "-f", workloads)
	for range 3 {
		if _, again, _ := simulated(t, "", "-o", "json", "-f", workloads, "-f", pools); again != first {
			t.Fatalf("another answer:\n%s\nafter\n%s", again, first)
		}
	}
	var answer struct {
		APIVersion, Kind string
		Nodes            int
		Waiting          []struct {
			Workload string
			Cause    struct{ Code string }
		}
	}
	if err := json.Unmarshal([]byte(first), &answer); err != nil {
		t.Fatal(err)
	}
	if answer.APIVersion != "cli.joiner.sh/v1" || answer.Kind != "Simulation" || answer.Nodes == 0 ||
		len(answer.Waiting) != 2 {
		t.Errorf("%+v", answer)
	}
}

// TestU36_SimulateSaysWhatIsWrong: each mistake is reported with the field, the value and what is allowed, and ends
// with 2.
func TestU36_SimulateSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	garbage := filepath.Join(folder, "types.json")
	if err := os.WriteFile(garbage, []byte(`[{"name": ""}]`), 0o644); err != nil {
		t.Fatal(err)
	}
	pool := "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: web}\nspec:\n"
	for name, c := range map[string]struct {
		in, want string
		args     []string
	}{
		"no files":     {args: []string{"--from", "files"}, want: "-f is missing"},
		"no cluster":   {want: "no cluster: no kubeconfig is known; to plan for files, name them with -f"},
		"no such file": {args: []string{"-f", filepath.Join(folder, "none.yaml")}, want: "none.yaml: no such file"},
		"another output": {args: []string{"-f", "-", "-o", "xml"},
			want: `--output is "xml": it must be table, wide, json, yaml, name, jsonpath=TEMPLATE, ` +
				`go-template=TEMPLATE or custom-columns=HEADING:.path,...`},
		"a bad catalogue": {args: []string{"-f", "-", "--catalogue", garbage}, want: "--catalogue " + garbage},
		"a bad tolerance": {args: []string{"-f", "-", "--price-tolerance", "101"},
			want: "--price-tolerance is 101: want percent from 0 to 100"},
		"a bad limit": {args: []string{"-f", "-", "--max-nodes", "-1"},
			want: "--max-nodes is -1: want a number of nodes above 0, or 0 for no limit"},
		"a bad overhead": {args: []string{"-f", "-", "--node-overhead-price", "-0.01"},
			want: "--node-overhead-price: price -0.01: want dollars per hour from 0 to 1000000"},
		"no kind": {in: "apiVersion: v1\n", args: []string{"-f", "-"},
			want: `-, document 1: apiVersion is "v1" and kind is ""`},
		"an old version": {in: "apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: web}\n",
			args: []string{"-f", "-"}, want: "version v1beta1 is not served: use v1"},
		"an unknown field": {
			in: pool +
				"  weigth: 3\n  template: {spec: {nodeClassRef: {group: g, kind: k, name: n}, requirements: []}}\n",
			args: []string{"-f", "-"},
			want: "spec.weigth: unknown field: allowed here are disruption, hardLimits, limits, replicas, template, weight",
		},
		"a value out of range": {
			in: pool +
				"  weight: 1000\n  template: {spec: {nodeClassRef: {group: g, kind: k, name: n}, requirements: []}}\n",
			args: []string{"-f", "-"},
			want: "spec.weight: Invalid value: 1000: spec.weight in body should be less than or equal to 100",
		},
		"what a rule of the definition refuses": {
			in: pool + "  template: {spec: {nodeClassRef: {group: g, kind: k, name: c}, requirements: []}}\n" +
				"  disruption: {consolidateAfter: 1m, budgets: [{nodes: \"1\", schedule: \"@daily\"}]}\n",
			args: []string{"-f", "-"},
			want: "spec.disruption.budgets[0]: Invalid value: schedule and duration belong together",
		},
		"a field of a pod": {in: "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {container: []}\n",
			args: []string{"-f", "-"}, want: `Pod web: strict decoding error: unknown field "spec.container"`},
		"the same twice": {
			in: "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n---\napiVersion: v1\nkind: Pod\n" +
				"metadata: {name: web}\n", args: []string{"-f", "-"}, want: "Pod /web stands in -, document 1 already",
		},
		"too many replicas": {
			in:   "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 2000000}\n",
			args: []string{"-f", "-"}, want: "spec.replicas is 2000000: allowed are 0 to 1000000",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, failures := simulated(t, c.in, c.args...)
			if code != cli.CodeFailed || !strings.Contains(failures, c.want) || out != "" {
				t.Errorf("exit code %d, %q on stdout, %q; want %d and %q", code, out, failures, cli.CodeFailed, c.want)
			}
		})
	}
}

// TestU42_WhatIsNotLookedAtIsSaid: kinds that planning ignores are counted, gated pods and unknown classes are told.
func TestU42_WhatIsNotLookedAtIsSaid(t *testing.T) {
	t.Parallel()
	_, out, _ := simulated(t, `{"apiVersion": "v1", "kind": "List", "items": [
		{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}},
		{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "gated"}, "spec": {"schedulingGates": [{"name": "quota"}], "containers": []}},
		{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "urgent"}, "spec": {"priorityClassName": "high", "containers": []}}]}`,
		"-f", "-")
	for _, want := range []string{
		"not looked at: 1 ConfigMap", "not planned: 1 of default/gated: it has the scheduling gate quota",
		"note: pod default/urgent: PriorityClass high is not among the files",
		"default/urgent: 1 pod waits, NoNodePool",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}

// manyPods is a pool, and pods of four sizes for which small nodes are cheapest.
func manyPods() string {
	many := `apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]
---
`
	for i, size := range []string{"450m", "700m", "1100m", "1700m"} {
		many += fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: many-%d}
spec:
  replicas: 25
  selector: {matchLabels: {app: many}}
  template:
    metadata: {labels: {app: many}}
    spec:
      containers: [{name: main, image: example, resources: {requests: {cpu: %s, memory: 1500Mi}}}]
---
`, i, size)
	}
	return many
}

// P-22: without a word, simulate plans as a controller without a word does: fewer nodes, for at most 5 % more.
func TestP22_TheDefaultTakesFewerNodes(t *testing.T) {
	t.Parallel()
	planned := func(flags ...string) string {
		_, out, _ := simulated(t, "", append([]string{"-f", "../../examples/simulate", "-o", "jsonpath={.nodes}"},
			flags...)...)
		return out
	}
	if fewer, five, most := planned(), planned("--price-tolerance", "5"),
		planned("--price-tolerance", "0"); fewer != five || len(fewer) > len(most) || fewer >= most {
		t.Errorf("%q nodes, %q with 5 %%, %q with 0", fewer, five, most)
	}
}

// P-22, B-20: simulate plans like a controller with a price tolerance: with fewer nodes, and within the allowed price.
// An overhead for each node makes them fewer as well, whether a flag or the pool's annotation states it. The overhead
// is in no printed price.
func TestP22_SimulateTakesTheToleranceOfTheController(t *testing.T) {
	t.Parallel()
	many := manyPods()
	planned := func(input string, flags ...string) (nodes int, price float64) {
		_, out, failures := simulated(t, input, append([]string{"-o", "json", "--catalogue", "aws", "-f", "-"},
			flags...)...)
		var answer struct {
			Nodes        int
			PricePerHour float64
		}
		if err := json.Unmarshal([]byte(out), &answer); err != nil {
			t.Fatal(err, failures)
		}
		return answer.Nodes, answer.PricePerHour
	}
	most, cheapest := planned(many, "--price-tolerance", "0")
	fewer, price := planned(many, "--price-tolerance", "10")
	if fewer >= most || price < cheapest || price > 1.1*cheapest {
		t.Errorf("%d nodes for %v $/h with a tolerance of 10 %%, %d for %v $/h without", fewer, price, most, cheapest)
	}
	few, dear := planned(many, "--node-overhead-price", "0.05", "--price-tolerance", "0")
	if few >= most || dear+0.05*float64(few) > cheapest+0.05*float64(most) {
		t.Errorf("%d nodes for %v $/h where each costs 0.05 more, %d for %v $/h else", few, dear, most, cheapest)
	}
	_, foretold, failures := simulated(t, many, "-o", "json", "--catalogue", "aws", "-f", "-", "--until", "quiet",
		"--node-overhead-price", "0.05", "--price-tolerance", "0") // what is foretold is planned alike
	var end struct{ Quiet struct{ Nodes int } }
	if err := json.Unmarshal([]byte(foretold), &end); err != nil || end.Quiet.Nodes == 0 || end.Quiet.Nodes > few {
		t.Errorf("%d nodes in the end, want at most the %d that are launched; %v %s", end.Quiet.Nodes, few, err,
			failures)
	}
	annotated := func(value string) string {
		return strings.Replace(many, "metadata: {name: default}\nspec:",
			`metadata: {name: default, annotations: {joiner.sh/node-overhead-price: "`+value+`"}}`+"\nspec:", 1)
	}
	if nodes, price := planned(annotated("0.05"), "--price-tolerance", "0"); nodes != few || price != dear {
		t.Errorf("%d nodes for %v $/h by the annotation, %d for %v by the flag", nodes, price, few, dear)
	}
	if nodes, price := planned(annotated("0"), "--node-overhead-price", "0.05", "--price-tolerance",
		"0"); nodes != most || price != cheapest {
		t.Errorf("%d nodes for %v $/h where the annotation says 0, want %d for %v", nodes, price, most, cheapest)
	}
	nodes, _ := planned(annotated("-1"), "--node-overhead-price", "0.05", "--price-tolerance", "0")
	_, out, _ := simulated(t, annotated("-1"), "--catalogue", "aws", "-f", "-")
	want :=
		`note: NodePool default: annotation joiner.sh/node-overhead-price is "-1": want a decimal number of dollars per hour`
	if nodes != few || !strings.Contains(out, want) {
		t.Errorf("%d nodes where the annotation says -1, want %d, and it to say %s in\n%s", nodes, few, want, out)
	}
}

// K-53: simulate plans within the limit of the whole cluster, and what it foretells stays within it too.
func TestK53_SimulateKeepsTheLimitOfTheCluster(t *testing.T) {
	t.Parallel()
	planned := func(flags ...string) string {
		_, out, failures := simulated(t, "", append([]string{"-f", "../../examples/simulate"}, flags...)...)
		if failures != "" {
			t.Fatal(failures)
		}
		return out
	}
	const full = "ClusterLimitNodes"
	if out := planned(); strings.Contains(out, full) {
		t.Errorf("without the limit:\n%s", out)
	}
	if out := planned("--max-nodes", "1"); !strings.Contains(out, full) ||
		!strings.Contains(out, "nodes 1 of 1 in the whole cluster (--max-nodes)") {
		t.Errorf("with it:\n%s", out)
	}
	var end struct{ Quiet struct{ Nodes int } }
	if err := json.Unmarshal([]byte(planned("--max-nodes", "1", "--until", "quiet", "-o", "json")),
		&end); err != nil || end.Quiet.Nodes != 1 {
		t.Errorf("%d nodes in the end, want 1; %v", end.Quiet.Nodes, err)
	}
}
