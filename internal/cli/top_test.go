package cli_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/cli"
	"github.com/joiner-autoscaler/joiner/internal/view"
	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

// topOf is the JSON of a top of examples/status.
func topOf(t *testing.T, args ...string) whatif.Top {
	t.Helper()
	var top whatif.Top
	_, out, failures := ran(t, "", append([]string{"top", "-f", "../../examples/status", "-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &top); err != nil || failures != "" {
		t.Fatalf("%v: %v, %s", args, err, failures)
	}
	return top
}

func namesOf(top whatif.Top) []string {
	var names []string
	for _, n := range top.Items {
		names = append(names, n.Name)
	}
	return names
}

// TestU05_TopIsTextOnce: every node has a row, also without a claim, a node or a price. A live cluster, which is only
// read (U-18), gives the same output as files. One that Karpenter runs does, too.
func TestU05_TopIsTextOnce(t *testing.T) {
	t.Parallel()
	code, out, failures := ran(t, "", "top", "-f", "../../examples/status")
	if code != cli.CodeFindings || failures != "" || strings.Contains(out, "\x1b") {
		t.Errorf("exit code %d, %q", code, failures)
	}
	var rows []string
	for line := range strings.Lines(out) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	for _, want := range []string{
		"cpu 0% (0 of 3900m) memory 0% (0 of 7Gi) $0.22/h $158.54/month +1 unpriced",
		"4 nodes: 1 joining, 1 ready, 1 draining, 1 unmanaged, 1 to go and stay pods: 2 bound, 1 waiting",
		"n3 default c-4x-amd64-linux test-zone-a on-demand 0.1086 0% 0% 0 - stays, although Drifted: DoNotDisruptNode: " +
			"karpenter.sh/do-not-disrupt is set on the node or its NodeClaim",
		"by-hand - - - - - - - 2 - unmanaged",
		"Waiting pods 1: 1 HardLimitNodes joinerctl explain pod ml/train-0",
	} {
		if !slices.Contains(rows, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	for _, begin := range []string{"gpu-aaaa gpu c-4x-amd64-linux test-zone-a on-demand 0.1086 - - 0 - joining ",
		"ip-10-0-7-4 default unheard-of test-zone-a on-demand - - - 0 - draining "} {
		if !slices.ContainsFunc(rows, func(row string) bool { return strings.HasPrefix(row, begin) }) {
			t.Errorf("no row %q in\n%s", begin, out)
		}
	}
	client := standing(t, nil)
	code, lives, failures := run(t, client, "", "top")
	if code != cli.CodeFindings || failures != "" || lives != strings.Replace(out, "objects: files (",
		"objects: cluster (", 1) {
		t.Errorf("exit code %d, %q\n%s", code, failures, lives)
	}
	for _, action := range client.Actions() {
		if !slices.Contains([]string{"get", "list"}, action.GetVerb()) {
			t.Errorf("%s of %s", action.GetVerb(), action.GetResource().Resource)
		}
	}
	karpenters := standing(t, nil, "app.kubernetes.io/name: joiner", "app.kubernetes.io/name: karpenter")
	code, other, _ := run(t, karpenters, "", "top")
	if code != cli.CodeFindings || other != strings.Replace(lives, "Joiner", "Karpenter", 1) {
		t.Errorf("exit code %d\n%s", code, other)
	}
}

// TestU05_TopSaysWhatStatusSays: causes, prices and what needs attention are those of status. Unknown prices are in no
// sum (U-21).
func TestU05_TopSaysWhatStatusSays(t *testing.T) {
	t.Parallel()
	top := topOf(t)
	_, out, _ := ran(t, "", "status", "-f", "../../examples/status", "-o", "json")
	got, err := json.Marshal(top.Status)
	var status whatif.Status
	if err != nil || json.Unmarshal([]byte(out), &status) != nil {
		t.Fatal(err, out)
	}
	if want, _ := json.Marshal(status); string(want) != string(got) {
		t.Errorf("status says\n%s\ntop\n%s", want, got)
	}
	sum, unpriced, nodes := whatif.Dollars(0), 0, 0
	for _, n := range top.Items {
		switch {
		case n.PricePerHour != nil:
			sum += *n.PricePerHour
		case n.State != view.NodeUnmanaged && n.State != view.NodeLaunching:
			unpriced++
		}
	}
	for _, s := range top.Totals.States {
		nodes += s.Nodes
	}
	if sum == 0 || sum != top.Totals.PricePerHour || sum != status.PricePerHour || unpriced != 1 ||
		unpriced != top.Totals.Unpriced || unpriced != status.Unpriced || top.Totals.Unmanaged != status.Unmanaged ||
		nodes != len(top.Items) {
		t.Errorf("%s, %d unpriced, %d nodes in %+v", sum, unpriced, nodes, top.Totals)
	}
	if len(top.Waiting) != 1 || top.Waiting[0].Pods[0] != "ml/train-0" || top.Waiting[0].Text == "" ||
		len(top.Waiting[0].Remedies) == 0 || len(top.Pools) != 3 || top.Pools[2].Limits[0].Limit != "1" {
		t.Errorf("%+v, %+v", top.Waiting, top.Pools)
	}
}

// TestU05_TopChooses: it chooses nodes by pool and labels, an order, and resources. A word without a meaning is an
// error (U-36).
func TestU05_TopChooses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want []string
	}{
		{nil, []string{"gpu-aaaa", "n3", "by-hand", "ip-10-0-7-4"}},
		{[]string{"--nodepool", "default"}, []string{"n3", "ip-10-0-7-4"}},
		{[]string{"-l", "karpenter.sh/nodepool!=default"}, []string{"gpu-aaaa", "by-hand"}},
		{[]string{"--sort", "name"}, []string{"by-hand", "gpu-aaaa", "ip-10-0-7-4", "n3"}},
		{[]string{"--sort", "free"}, []string{"n3", "by-hand", "gpu-aaaa", "ip-10-0-7-4"}},
		{[]string{"--sort", "karpenter.sh/nodepool"}, []string{"ip-10-0-7-4", "n3", "gpu-aaaa", "by-hand"}},
	} {
		top := topOf(t, c.args...)
		if got := namesOf(top); !slices.Equal(got, c.want) || top.Totals.Nodes != len(c.want) || top.Totals.All != 4 {
			t.Errorf("%v: %v, want %v", c.args, got, c.want)
		}
	}
	if top := topOf(t, "--resources", "pods,example.com/none"); len(top.Items[1].Use) != 2 ||
		top.Items[1].Use[0].Of != "64" || top.Items[1].Use[1].Percent != nil || top.Totals.Use[1].Percent != nil {
		t.Errorf("%+v", top.Items[1])
	}
	for want, args := range map[string][]string{
		`--nodepool is "gpus", and there is none of that name: there are batch, default, gpu`: {"--nodepool", "gpus"},
		`--sort is "prise": it must be price, free, age, name or the key of a label`:          {"--sort", "prise"},
		`--sort is "a b"`:                  {"--sort", "a b"},
		`--selector is "a in"`:             {"-l", "a in"},
		`--resources has "c pu", which is`: {"--resources", "c pu"},
		`--resources is empty`:             {"--resources", ""},
		`--every is 0s: it must be more`:   {"--watch", "--every", "0s"},
	} {
		code, out, failures := ran(t, "", append([]string{"top", "-f", "../../examples/status"}, args...)...)
		if code != cli.CodeFailed || out != "" || !strings.HasPrefix(failures, "joinerctl: "+want) {
			t.Errorf("%v: exit %d, %q, %q", args, code, out, failures)
		}
	}
}

// TestU05_TopWithoutRights: only nodes are needed. What pods use is not known without them, and is not 0 (U-19).
func TestU05_TopWithoutRights(t *testing.T) {
	t.Parallel()
	code, out, failures := run(t, standing(t, []string{"nodes"}), "", "top")
	if code != cli.CodeFailed || out != "" || !strings.Contains(failures, "resources: [nodes], verbs: [list]") {
		t.Errorf("exit %d, %q, %q", code, out, failures)
	}
	for _, resource := range []string{"pods", "nodepools", "nodeclaims", "poddisruptionbudgets", "leases",
		"configmaps"} {
		code, out, failures = run(t, standing(t, []string{resource}), "", "top")
		if code != cli.CodeFindings && code != cli.CodeFailed || !strings.Contains(out, "\nby-hand ") ||
			!strings.Contains(out, "\nnot checked: ") {
			t.Errorf("%s: exit %d, %q\n%s", resource, code, failures, out)
		}
		if resource == "pods" && !strings.Contains(out, "\ncpu -   memory -   $") || resource == "pods" &&
			!strings.Contains(out, "   pods: -\n") {
			t.Error(out)
		}
	}
}

// TestU05_TopIsAScreenOnTerminalsAlone: a dumb terminal, --once and any --output get text. A screen needs standard
// input for keys. Errors are reported before it begins.
func TestU05_TopIsAScreenOnTerminalsAlone(t *testing.T) {
	t.Parallel()
	on := func(dumb bool, args ...string) (int, string, string) {
		var out, failures strings.Builder
		config := cli.Config{In: strings.NewReader("q"), Out: &out, Err: &failures, InTerminal: true,
			OutTerminal: true, Plain: true, Dumb: dumb}
		code := cli.Run(t.Context(), config, append([]string{"top"}, args...))
		return code, out.String(), failures.String()
	}
	const path = "../../examples/status"
	_, want, _ := ran(t, "", "top", "-f", path)
	if code, out, failures := on(true, "-f", path); code != cli.CodeFindings || out != want || failures != "" {
		t.Errorf("dumb: exit %d, %q, %q", code, out, failures)
	}
	for _, more := range []string{"--once", "--output=table"} {
		if code, out, failures := on(false, "-f", path, more); code != cli.CodeFindings || out != want ||
			failures != "" {
			t.Errorf("%s: exit %d, %q, %q", more, code, out, failures)
		}
	}
	for want, args := range map[string][]string{"-f - reads standard input": {"-f", "-"},
		"--every is -1s": {"-f", path, "--every", "-1s"}, "--nodepool is": {"-f", path, "--nodepool", "x"}} {
		if code, out, failures := on(false, args...); code != cli.CodeFailed || out != "" ||
			!strings.HasPrefix(failures, "joinerctl: "+want) {
			t.Errorf("%v: exit %d, %q, %q", args, code, out, failures)
		}
	}
	if code, out, failures := on(false, "-f", path); code != cli.CodeFine || failures != "" ||
		!strings.Contains(out, "\x1b[?1049h") || !strings.Contains(out, "\x1b[?1049l") {
		t.Errorf("q: exit %d, %q, %q", code, out, failures)
	}
}
