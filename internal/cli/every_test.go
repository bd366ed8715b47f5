package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/internal/cli"
)

// call is a command with arguments that have it find something, and what it finds.
type call struct {
	name string
	// run runs it with more arguments.
	run func(t *testing.T, more ...string) (code int, stdout, stderr string)
	// kind is that of its JSON, heading how its table begins, and named what -o name prints.
	kind, heading, named string
}

// refused is a NodeClaim that a provider launches no machine for.
const refused = "apiVersion: karpenter.sh/v1\nkind: NodeClaim\nmetadata: {name: web-a, creationTimestamp: " +
	"\"2026-11-22T07:00:00Z\", labels: {karpenter.sh/nodepool: web}}\nspec: {nodeClassRef: {group: karpenter.kwok.sh, " +
	"kind: KWOKNodeClass, name: default}, requirements: []}\nstatus: {conditions: [{type: Launched, status: \"False\", " +
	"reason: Quota, message: used up, lastTransitionTime: \"2026-11-22T07:00:05Z\"}]}\n"

func calls() []call {
	files := func(args ...string) func(*testing.T, ...string) (int, string, string) {
		return func(t *testing.T, more ...string) (int, string, string) {
			t.Helper()
			return ran(t, "", slices.Concat(args, more)...)
		}
	}
	audit := func(args ...string) func(*testing.T, ...string) (int, string, string) {
		return func(t *testing.T, more ...string) (int, string, string) {
			t.Helper()
			return suggesting(true).run(t, policy, slices.Concat([]string{"--policy-file", "-"}, args, more)...)
		}
	}
	return []call{
		{"simulate", files("simulate", "-f", "../../examples/simulate"), "Simulation", "NODES  POOL",
			"deployment/train -n ml\nstatefulset/search -n shop\n"},
		{"simulate --change", files("simulate", "-f", "../../examples/simulate", "--change", "../../examples/change"),
			"Comparison", "NodePool default", "node/gpu-new-2\nnode/default-new-1\nnode/default-new-4\n" +
				"node/default-new-5\nnode/default-new-6\n"},
		{"explain pod", files("explain", "pod", "ml/train-2", "-f", "../../examples/simulate"), "Explanation",
			"pod ml/train-2 waits: HardLimitNodes", "nodepool/gpu\n"},
		{"explain node", files("explain", "node", "n1", "-f", "../../examples/explain"), "Explanation",
			"node n1 stays, although Underutilized: PodDisruptionBudget", "node/n1\n"},
		{"explain nodepool", files("explain", "nodepool", "batch", "-f", "../../examples/explain"), "Explanation",
			"nodepool batch launches nothing: NoInstanceTypes", "nodepool/batch\n"},
		{"explain nodeclaim", func(t *testing.T, more ...string) (int, string, string) {
			t.Helper()
			return ran(t, refused, slices.Concat([]string{"explain", "nodeclaim", "web-a", "-f", "-"}, more)...)
		}, "Explanation", "nodeclaim web-a is not launched: LaunchesFail", "nodeclaim/web-a\n"},
		{"explain deployment", files("explain", "deployment", "ml/train", "-f", "../../examples/simulate"),
			"Explanation", "deployment ml/train: 3 pods, 1 is held", "deployment/train -n ml\n"},
		{"status", files("status", "-f", "../../examples/status"), "Status",
			"Joiner 0.4.0   leader joiner-a   1 standby", "nodepool/batch\npod/train-0 -n ml\nnode/ip-10-0-7-4\n"},
		{"policy status", files("policy", "status", "-f", "../../examples/policies"), "PolicyStatus",
			"NAMESPACE  NAME",
			"autonodepolicy/default -n hcp-b\nautonodepolicy/default -n hcp-c\nautonodepolicy/default -n hcp-d\n" +
				"autonodepolicy/other -n hcp-d\n"},
		{"policy check", files("policy", "check", "-f", "../../examples/policycheck"), "PolicyCheck",
			"POOL  TYPES NOW", "openshiftnodepool/ml\nopenshiftnodepool/web\n"},
		{"top", files("top", "-f", "../../examples/status"), "NodeList", "Joiner 0.4.0   leader joiner-a   1 standby",
			"nodepool/batch\npod/train-0 -n ml\nnode/ip-10-0-7-4\n"},
		{"audit control-plane", audit(), "ControlPlaneAudit", "Live source: Scheduler",
			"pod/dns-1 -n openshift-dns\npod/web -n shop\n"},
		{"audit control-plane --suggest", audit("--suggest"), "ControlPlaneSuggestion", "Group ControlPlane",
			"namespace/openshift-dns\n"},
		{"version", func(t *testing.T, more ...string) (int, string, string) {
			t.Helper()
			return run(t, withLeases(t, beforeV1), "", slices.Concat([]string{"version"}, more)...)
		}, "Version", "joinerctl  ", "customresourcedefinition/nodepools.karpenter.sh\n"},
		{"replay", func(t *testing.T, more ...string) (int, string, string) {
			t.Helper()
			data, err := os.ReadFile(otherPlan(t))
			if err != nil {
				t.Fatal(err)
			}
			return ran(t, string(data), slices.Concat([]string{"replay", "-", "--explain", "pod/ml/train-2"}, more)...)
		}, "Replay", "-: another plan\nwritten by ", "nodepool/gpu\n"},
		{"takeover check", func(t *testing.T, more ...string) (int, string, string) {
			t.Helper()
			return ran(t, kwokClass+"---\n"+poolOf(", replicas: 4", ""),
				slices.Concat([]string{"takeover", "check", "-f", "-"}, more)...)
		}, "TakeoverCheck", "danger: NodePool web (dormant)", "nodepool/web\n"},
		{"migrate check", func(t *testing.T, more ...string) (int, string, string) {
			t.Helper()
			return ran(t, old, slices.Concat([]string{"migrate", "check", "-f", "-"}, more)...)
		}, "MigrationCheck", "NodePool old in -, document 1: OldManifest", "nodepool/old\n"},
	}
}

// TestU13_EveryCommandHasEveryForm: each form is complete, states the same kind (U-29), and ends with the same exit
// code (U-30).
func TestU13_EveryCommandHasEveryForm(t *testing.T) {
	t.Parallel()
	for _, c := range calls() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for form, check := range map[string]func(out string) bool{
				"table": func(out string) bool { return strings.HasPrefix(out, c.heading) },
				"text":  func(out string) bool { return strings.HasPrefix(out, c.heading) },
				"wide":  func(out string) bool { return strings.HasPrefix(out, c.heading) },
				"json": func(out string) bool {
					return kindOf(json.Unmarshal, out) == "cli.joiner.sh/v1 "+c.kind && out[len(out)-1] == '\n'
				},
				"yaml": func(out string) bool {
					got := kindOf(func(data []byte, into any) error { return yaml.Unmarshal(data, into) }, out)
					return got == "cli.joiner.sh/v1 "+c.kind ||
						c.kind == "ControlPlaneSuggestion" && strings.HasSuffix(got,
							" Scheduler")
				},
				"name":                             func(out string) bool { return out == c.named },
				"jsonpath={.kind}":                 func(out string) bool { return out == c.kind },
				"jsonpath=kind":                    func(out string) bool { return out == c.kind },
				"go-template={{.kind}}{{\"\\n\"}}": func(out string) bool { return out == c.kind+"\n" },
				"custom-columns=A:.nothing": func(out string) bool {
					return strings.HasPrefix(out, "A\n<none>\n")
				},
			} {
				if code, out, failures := c.run(t, "-o", form); code != cli.CodeFindings || failures != "" ||
					!check(out) {
					t.Errorf("-o %s: exit %d, %q:\n%s", form, code, failures, out)
				}
			}
			code, out, failures := c.run(t, "-o", "wide", "--no-headers")
			headed := strings.Contains(c.heading, "POOL") || strings.Contains(c.heading, "NAMESPACE")
			if code != cli.CodeFindings || failures != "" || out == "" ||
				strings.Contains(out, c.heading) == headed {
				t.Errorf("--no-headers: exit %d, %q:\n%s", code, failures, out)
			}
		})
	}
}

func kindOf(unmarshal func([]byte, any) error, out string) string {
	var content struct{ APIVersion, Kind string }
	if err := unmarshal([]byte(out), &content); err != nil {
		return err.Error()
	}
	return content.APIVersion + " " + content.Kind
}

// TestU30_ExitCodesAreTheSameEverywhere: a finding is 1, or 0 with --exit-zero. A wrong call is 2 with and without it,
// and prints nothing on standard output. An interrupt is 130.
func TestU30_ExitCodesAreTheSameEverywhere(t *testing.T) {
	t.Parallel()
	for _, c := range calls() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, said, _ := c.run(t)
			if code, out, failures := c.run(t, "--exit-zero"); code != cli.CodeFine || out != said || failures != "" {
				t.Errorf("--exit-zero: exit %d, %q, %q", code, out, failures)
			}
			for _, wrong := range [][]string{{"--nonsense"}, {"-o", "xml"}, {"-o", "json="}, {"-o", "jsonpath"},
				{"--color",
					"red"},
				{"-o", "jsonpath={.a"}, {"-o", "go-template={{.a"}, {"more", "than", "one"}, {"-o",
					"go-template={{.kind.of}}"}} {
				code, out, failures := c.run(t, append([]string{"--exit-zero"}, wrong...)...)
				if code != cli.CodeFailed || out != "" || !strings.HasPrefix(failures, "joinerctl: ") {
					t.Errorf("%v: exit %d, %q, %q", wrong, code, out, failures)
				}
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	client := live(t)
	connect := func(cli.Connection) (dynamic.Interface, error) { return client, nil }
	var out, failures strings.Builder
	code := cli.Run(ctx, cli.Config{Client: connect, Out: &out, Err: &failures},
		[]string{"explain", "pod", "shop/none"})
	if code != cli.CodeInterrupted || failures.String() != "joinerctl: interrupted\n" || out.Len() > 0 {
		t.Errorf("interrupted: exit %d, %q, %q", code, out.String(), failures.String())
	}
}

// TestU13_TheNearestNameIsTold: what is mistyped by a letter or two is recognized, other words are not.
func TestU13_TheNearestNameIsTold(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		`there is no command "simulat" in joinerctl; do you mean simulate?`:   {"simulat"},
		`there is no command "epxlain" in joinerctl; do you mean explain?`:    {"epxlain"},
		`there is no command "nod" in joinerctl explain; do you mean node?`:   {"explain", "nod", "n1"},
		`there is no command "chek" in joinerctl migrate; do you mean check?`: {"migrate", "chek"},
		`there is no command "vanish" in joinerctl: it must be one of audit, completion, console, dump, explain, headroom, history, ` +
			`migrate, pause, policy, replay, resume, simulate, status, takeover, top, version`: {"vanish"},
		`there is no command "pot" in joinerctl explain; do you mean pod?`: {"explain", "pot", "a", "-f", "x"},
		`there is no pod train-O in namespace ml; do you mean train-0?`: {"explain", "po", "ml/train-O", "-f",
			"../../examples/simulate"},
		`there is no node and no NodeClaim n9; do you mean n1?`: {"explain", "nodes", "n9", "-f",
			"../../examples/explain"},
		`unknown flag: --catalog; do you mean --catalogue?`: {"simulate", "--catalog", "aws"},
		`unknown flag: --contxt; do you mean --context?`: {"explain", "pod", "a", "--contxt",
			"prod"},
		`unknown flag: --exitzero; do you mean --exit-zero?`:               {"migrate", "check", "--exitzero"},
		`unknown flag: --x: see joinerctl simulate --help`:                 {"simulate", "--x"},
		`unknown shorthand flag: 'x' in -x: see joinerctl simulate --help`: {"simulate", "-x"},
	} {
		code, out, failures := ran(t, "", args...)
		if code != cli.CodeFailed || out != "" || failures != "joinerctl: "+want+"\n" {
			t.Errorf("%v: exit %d, %q, %q", args, code, out, failures)
		}
	}
}

// TestU13_TheConnectionIsKubectls: every command that asks a cluster passes on what kubectl's flags say.
func TestU13_TheConnectionIsKubectls(t *testing.T) {
	t.Parallel()
	for _, command := range [][]string{{"explain", "pod", "a"}, {"explain", "node", "a"},
		{"explain", "nodepool", "a"}, {"explain", "nodeclaim", "a"}, {"explain", "job", "a"}, {"migrate", "check"},
		{"migrate", "storage"}, {"status"}, {"top"}, {"pause"}, {"resume"}, {"headroom", "show"}, {"headroom", "set",
			"web", "10%"}, {"headroom", "clear", "web"}, {"dump", "--rebuild", "-o", "x"}, {"history"},
		{"audit", "control-plane", "--policy-file", "-"}} {
		var got cli.Connection
		connect := func(c cli.Connection) (dynamic.Interface, error) { got = c; return nil, errors.New("seen") }
		var failures strings.Builder
		code := cli.Run(t.Context(), cli.Config{Client: connect, In: strings.NewReader(policy), Out: &failures,
			Err: &failures},
			slices.Concat(command, []string{"--kubeconfig", "k", "--context", "c", "--cluster", "l", "--user", "u",
				"--server", "https://s", "--token", "t", "--as", "a", "--as-group", "g", "--request-timeout", "7s"}))
		o := got.Overrides
		if code != cli.CodeFailed || got.Kubeconfig != "k" || o.CurrentContext != "c" || o.Context.Cluster != "l" ||
			o.Context.AuthInfo != "u" || o.ClusterInfo.Server != "https://s" || o.AuthInfo.Token != "t" ||
			o.AuthInfo.Impersonate != "a" || !slices.Equal(o.AuthInfo.ImpersonateGroups, []string{"g"}) ||
			o.Timeout != "7s" {
			t.Errorf("%v: exit %d, %s, %+v", command, code, failures.String(), got)
		}
	}
}

// TestU13_ColoursAreForTerminals: codes are painted for a person who wants that, never for a program.
func TestU13_ColoursAreForTerminals(t *testing.T) {
	t.Parallel()
	const painted = "\x1b[1;33mHardLimitNodes\x1b[0m\n"
	for name, c := range map[string]struct {
		terminal, plain, want bool
		args                  []string
	}{
		"a pipe":             {},
		"a terminal":         {terminal: true, want: true},
		"NO_COLOR":           {terminal: true, plain: true},
		"always":             {plain: true, args: []string{"--color", "always"}, want: true},
		"never":              {terminal: true, args: []string{"--color", "never"}},
		"JSON on a terminal": {terminal: true, args: []string{"-o", "json", "--color", "always"}},
	} {
		var out strings.Builder
		config := cli.Config{Out: &out, Err: &out, OutTerminal: c.terminal, Plain: c.plain}
		code := cli.Run(t.Context(), config, append([]string{"simulate", "-f", "../../examples/simulate"}, c.args...))
		if code != cli.CodeFindings || strings.Contains(out.String(), painted) != c.want || !c.want &&
			strings.Contains(out.String(), "\x1b") {
			t.Errorf("%s: exit %d, %q", name, code, out.String())
		}
	}
}

// TestU36_NoClusterIsOneSentence: an unreachable server is reported with its address, and with what works without it.
func TestU36_NoClusterIsOneSentence(t *testing.T) {
	t.Parallel()
	refused := &url.Error{Op: "Get", URL: "https://10.0.0.1:6443/api/v1/pods?limit=500", Err: &net.OpError{Op: "dial",
		Net: "tcp",
		Err: errors.New("connection refused")}}
	var failures strings.Builder
	code := cli.Run(t.Context(), cli.Config{Out: &failures, Err: &failures,
		Client: func(cli.Connection) (dynamic.Interface, error) { return nil, refused }}, []string{"explain", "node",
		"a"})
	const want = "joinerctl: no cluster: the server https://10.0.0.1:6443 does not answer (dial tcp: connection refused)\n" +
		"joinerctl: check the network and the kubeconfig, or plan from files: joinerctl simulate -f DIR\n"
	if code != cli.CodeFailed || failures.String() != want {
		t.Errorf("exit %d, %s", code, failures.String())
	}
}

// TestU13_TheHelpIsGrouped: a command's own flags come first.
func TestU13_TheHelpIsGrouped(t *testing.T) {
	t.Parallel()
	_, out, _ := ran(t, "", "explain", "pod", "--help")
	last := -1
	for _, part := range []string{"\nUsage:\n  joinerctl explain pod [NAMESPACE/]NAME [flags]\n", "\nExamples:\n",
		"\nFlags:\n",
		"--catalogue", "--exit-zero", "\nWhat is printed:\n", "--no-headers", "--output",
		"\nWhich cluster, and as whom:\n", "--as-group",
		"--request-timeout"} {
		at := strings.Index(out, part)
		if at <= last {
			t.Errorf("%q stands at %d, after %d, in\n%s", part, at, last, out)
		}
		last = at
	}
	if _, out, _ = ran(t, ""); !strings.Contains(out, "\nCommands:\n") || !strings.Contains(out, "  simulate ") {
		t.Error(out)
	}
}

// TestU13_TheNamespaceIsThatOfTheContext: as with kubectl, and default in files. -n and a name with a namespace take
// precedence.
func TestU13_TheNamespaceIsThatOfTheContext(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		context string
		args    []string
		found   bool
	}{
		"the context's": {"shop", []string{"huge"}, true},
		"another":       {"other", []string{"huge"}, false},
		"none":          {"", []string{"huge"}, false},
		"-n":            {"other", []string{"huge", "-n", "shop"}, true},
		"in the name":   {"other", []string{"shop/huge"}, true},
	} {
		var out, failures strings.Builder
		client := live(t)
		code := cli.Run(t.Context(), cli.Config{Out: &out, Err: &failures,
			Client:    func(cli.Connection) (dynamic.Interface, error) { return client, nil },
			Namespace: func(o cli.Connection) string { return c.context + o.Overrides.CurrentContext },
		}, append([]string{"explain", "pod"}, c.args...))
		if found := code == cli.CodeFindings; found != c.found {
			t.Errorf("%s: exit %d, %s%s", name, code, failures.String(), out.String())
		}
	}
}
