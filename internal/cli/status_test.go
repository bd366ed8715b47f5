package cli_test

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/joiner-autoscaler/joiner/internal/cli"
	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

// standing is the cluster of examples/status with some of its text replaced, in which some resources may not be read.
func standing(t *testing.T, forbidden []string, replaced ...string) *fake.FakeDynamicClient {
	t.Helper()
	data, err := os.ReadFile("../../examples/status/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for i := 0; i+1 < len(replaced); i += 2 {
		if !strings.Contains(text, replaced[i]) {
			t.Fatalf("no %q in the file", replaced[i])
		}
		text = strings.ReplaceAll(text, replaced[i], replaced[i+1])
	}
	lists := map[schema.GroupVersionResource]string{
		{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}: "LeaseList",
		{Version: "v1", Resource: "configmaps"}:                           "ConfigMapList",
	}
	for _, resource := range whatif.Resources() {
		lists[resource.GroupVersionResource] = "List"
	}
	var manifests []string
	for manifest := range strings.SplitSeq(text, "\n---\n") {
		if strings.Contains(manifest, "kind:") {
			manifests = append(manifests, manifest)
		}
	}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, objectsOf(t, manifests...)...)
	client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		resource := action.GetResource().GroupResource()
		if slices.Contains(forbidden, resource.Resource) {
			return true, nil, apierrors.NewForbidden(resource, "", nil)
		}
		return false, nil, nil
	})
	return client
}

// TestU24_StatusIsOneScreen: the page shows, word for word, a cluster with something of everything. For a live cluster
// status prints the same.
func TestU24_StatusIsOneScreen(t *testing.T) {
	t.Parallel()
	code, out, failures := ran(t, "", "status", "-f", "../../examples/status")
	if code != cli.CodeFindings || failures != "" {
		t.Errorf("exit code %d, %q", code, failures)
	}
	shows(t, "../../docs/joinerctl.md", "$ joinerctl status -f examples/status\n", out)
	client := standing(t, nil)
	code, lives, failures := run(t, client, "", "status")
	if code != cli.CodeFindings || failures != "" || lives != strings.Replace(out, "objects: files (",
		"objects: cluster (", 1) {
		t.Errorf("exit code %d, %q\n%s", code, failures, lives)
	}
	for _, action := range client.Actions() {
		if !slices.Contains([]string{"get", "list"}, action.GetVerb()) {
			t.Errorf("%s of %s: it only reads (U-18)", action.GetVerb(), action.GetResource().Resource)
		}
	}
}

// TestU24_WhoLeads: the first line says who decides, and what is wrong with that.
func TestU24_WhoLeads(t *testing.T) {
	t.Parallel()
	const renewed, pods = `renewTime: "2999-01-01T00:00:00.000000Z"`, "app.kubernetes.io/name: joiner"
	for name, c := range map[string]struct {
		replaced []string
		begins   string
		has      string
	}{
		"Karpenter": {[]string{pods, "app.kubernetes.io/name: karpenter"}, "Karpenter 0.4.0   leader joiner-a   ", ""},
		"called as Karpenter is (K-23)": {
			[]string{pods, "app.kubernetes.io/name: karpenter, joiner.sh/program: joiner"},
			"Joiner 0.4.0   leader joiner-a   1 standby   ", ""},
		"for a while": {[]string{renewed, `acquireTime: "2026-01-01T00:00:00.000000Z", ` + renewed},
			"Joiner 0.4.0   leader joiner-a (since ", ")   1 standby   "},
		"stopped": {[]string{renewed, `renewTime: "2026-01-01T00:00:00.000000Z"`}, "no leader since ",
			"d (lease joiner/karpenter-leader-election, last held by joiner-a)   disruption paused"},
		"given back": {[]string{renewed, `renewTime: "2026-01-01T00:00:00.000000Z"`, "joiner-a_77d2", `""`},
			"no leader since ",
			"d (lease joiner/karpenter-leader-election)   disruption paused"},
		"no lease": {[]string{"name: karpenter-leader-election", "name: another"}, "no leader   ",
			"\nControllerSilent: there is no lease karpenter-leader-election: no controller runs, or"},
		"two": {[]string{"---\napiVersion: v1\nkind: ConfigMap",
			"---\napiVersion: coordination.k8s.io/v1\nkind: Lease\n" +
				"metadata: {name: karpenter-leader-election, namespace: kube-system}\nspec: {holderIdentity: karpenter-x_1, " +
				"leaseDurationSeconds: 15, " + renewed + "}\n---\napiVersion: v1\nkind: ConfigMap"},
			"Joiner 0.4.0   leader joiner-a   ", "\nOtherController: more than one controller leads: joiner-a " +
				"(joiner/karpenter-leader-election), karpenter-x (kube-system/karpenter-leader-election)\n"},
		"a pause that is over": {[]string{"until: \"2999", "until: \"2026"}, "Joiner", "   disruption on   $"},
		"a pause with a fault": {[]string{`until: "2999-01-01T00:00:00Z"`, "until: soon"}, "Joiner",
			"\nPauseUnreadable: until is \"soon\": want a time such as"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, failures := run(t, standing(t, nil, c.replaced...), "", "status")
			if code != cli.CodeFindings || failures != "" || !strings.HasPrefix(out, c.begins) ||
				!strings.Contains(out,
					c.has) {
				t.Errorf("exit code %d, %q\n%s", code, failures, out)
			}
		})
	}
}

// TestU19_StatusWithoutRights: what may not be read is named, and nothing is said about it. Without nodes, pools and
// claims there is no status.
func TestU19_StatusWithoutRights(t *testing.T) {
	t.Parallel()
	for resource, c := range map[string]struct{ want, not string }{
		"leases":     {"controller not known", "ControllerSilent"},
		"configmaps": {"   pause not known   ", "disruption on"},
		"pods":       {"not checked: pods, for want of the right to list them", "HardLimitNodes"},
		"poddisruptionbudgets": {"not checked: poddisruptionbudgets.policy, for want of the right to list them",
			"paused by"},
	} {
		code, out, failures := run(t, standing(t, []string{resource}), "", "status")
		if code != cli.CodeFindings || failures != "" || !strings.Contains(out, c.want) ||
			strings.Contains(out, c.not) || !strings.Contains(out, "\nnot checked: ") {
			t.Errorf("%s: exit code %d, %q\n%s", resource, code, failures, out)
		}
	}
	for _, resource := range []string{"nodes", "nodepools", "nodeclaims"} {
		code, out, failures := run(t, standing(t, []string{resource}), "", "status")
		if code != cli.CodeFailed || out != "" ||
			!strings.Contains(failures, "resources: ["+resource+"], verbs: [list]") {
			t.Errorf("%s: exit code %d, %q, %q", resource, code, out, failures)
		}
	}
}

// TestU30_StatusSaysHowItEnds: new troubles need no attention yet. If nothing is found, but not everything was read,
// that is not 0.
func TestU30_StatusSaysHowItEnds(t *testing.T) {
	t.Parallel()
	quiet := []string{`status: "False", reason: NodeClassNotReady`, `status: "True", reason: Ready`}
	patient := []string{"status", "--pods-waiting", "900000h", "--draining", "900000h"}
	for name, c := range map[string]struct {
		forbidden []string
		args      []string
		code      int
		failures  string
	}{
		"patient": {args: patient, code: cli.CodeFine},
		"patient, without pods": {[]string{"pods"}, patient, cli.CodeFailed,
			"nothing was found, and not everything was checked: pods, for want of the right to list them"},
		"pods that wait": {args: []string{"status", "--draining", "900000h"}, code: cli.CodeFindings},
		"a drain":        {args: []string{"status", "--pods-waiting", "900000h"}, code: cli.CodeFindings},
		"a drain, but exit zero": {args: []string{"status", "--pods-waiting", "900000h", "--exit-zero"},
			code: cli.CodeFine},
		"a negative time": {args: []string{"status", "--draining", "-1s"}, code: cli.CodeFailed,
			failures: "--draining is -1s: neither"},
	} {
		code, _, failures := run(t, standing(t, c.forbidden, quiet...), "", c.args...)
		if code != c.code || !strings.Contains(failures, c.failures) || (failures == "") != (c.failures == "") {
			t.Errorf("%s: exit code %d, %q", name, code, failures)
		}
	}
}

// TestU21_StatusAddsUpWhatHasAPrice: in JSON, nodes without a price are in no sum, but counted. No field depends on
// the clock.
func TestU21_StatusAddsUpWhatHasAPrice(t *testing.T) {
	t.Parallel()
	_, first, _ := run(t, standing(t, nil), "", "status", "-o", "json")
	_, second, _ := run(t, standing(t, nil), "", "status", "-o", "json")
	var s struct {
		PricePerHour float64
		Unpriced     int
		Pools        []struct {
			Name         string
			PricePerHour *float64
			Unpriced     int
		}
	}
	if err := json.Unmarshal([]byte(first), &s); err != nil || first != second {
		t.Fatalf("%v\n%s\n%s", err, first, second)
	}
	sum := 0.0
	for _, p := range s.Pools {
		if p.PricePerHour != nil {
			sum += *p.PricePerHour
		}
		if (p.Unpriced == 1) != (p.Name == "default") || (p.PricePerHour == nil) != (p.Name == "batch") {
			t.Errorf("%+v", p)
		}
	}
	if sum != s.PricePerHour || s.Unpriced != 1 || sum == 0 {
		t.Errorf("%v and %d unpriced; the pools come to %v", s.PricePerHour, s.Unpriced, sum)
	}
}

// TestU19_NothingFoundIsNotAllFine: if something could not be read, a launch is only likely, and that is not 0. What
// is certain without it stays 0, and a cause stays a cause.
func TestU19_NothingFoundIsNotAllFine(t *testing.T) {
	t.Parallel()
	open := []string{"nodeSelector: {team: ml}, ", ""}
	for name, c := range map[string]struct {
		forbidden, replaced, args []string
		code                      int
	}{
		"all was read": {nil, open, []string{"pod", "ml/train-0"}, cli.CodeFine},
		"not all":      {[]string{"limitranges"}, open, []string{"pod", "ml/train-0"}, cli.CodeFailed},
		"it runs":      {[]string{"limitranges"}, open, []string{"pod", "joiner/joiner-a"}, cli.CodeFine},
		"it is held":   {[]string{"limitranges"}, nil, []string{"pod", "ml/train-0"}, cli.CodeFindings},
		"a node":       {[]string{"limitranges"}, nil, []string{"node", "by-hand"}, cli.CodeFailed},
	} {
		code, out, failures := run(t, standing(t, c.forbidden, c.replaced...), "", append([]string{"explain"},
			c.args...)...)
		if code != c.code || out == "" ||
			(failures == "joinerctl: nothing was found, and not everything was checked: limitranges, for want of the "+
				"right to list them\n") != (code == cli.CodeFailed) {
			t.Errorf("%s: exit %d, %q\n%s", name, code, failures, out)
		}
	}
}

// TestU24_StatusWatches: it looks until it is interrupted, whatever it finds, and clears a terminal in between.
func TestU24_StatusWatches(t *testing.T) {
	t.Parallel()
	for _, terminal := range []bool{true, false} {
		client := standing(t, nil)
		ctx, interrupt := context.WithCancel(t.Context())
		looks := 0
		client.PrependReactor("list", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			if looks++; looks == 4 {
				interrupt()
			}
			return false, nil, nil
		})
		var out, failures strings.Builder
		code := cli.Run(ctx, cli.Config{Out: &out, Err: &failures, OutTerminal: terminal, Plain: true,
			Client: func(cli.Connection) (dynamic.Interface, error) { return client, nil }},
			[]string{"status", "--watch", "--every", "1ms"})
		clears := strings.Count(out.String(), "\x1b[H\x1b[2J")
		if shown := strings.Count(out.String(), "POOL "); code != cli.CodeInterrupted || shown < 3 || looks != 4 ||
			clears > 0 != terminal || failures.String() != "joinerctl: interrupted\n" {
			t.Errorf("exit %d, shown %d times, cleared %d times, %q", code, shown, clears, failures.String())
		}
	}
	for want, args := range map[string][]string{"--every is 0s: it must be more than 0": {"--every", "0s"},
		"--watch reads again and again, and standard input": {"-f", "-"}} {
		code, out, failures := run(t, standing(t, nil), "", append([]string{"status", "--watch"}, args...)...)
		if code != cli.CodeFailed || out != "" || !strings.Contains(failures, want) {
			t.Errorf("%v: exit %d, %q, %q", args, code, out, failures)
		}
	}
}
