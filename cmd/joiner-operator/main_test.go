package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/cmd/internal/commandline/commandlinetest"
)

var program = commandlinetest.Program(newProgram)

// U-13, G3 to G5, G15, G24, G25: a wrong flag is one line that names it, and exit code 2.
func TestMistakesAreNamed(t *testing.T) {
	t.Parallel()
	valid := []string{"--guest-kubeconfig", commandlinetest.Kubeconfig(t, "http://127.0.0.1:1"),
		"--management-kubeconfig", commandlinetest.Kubeconfig(t, "http://127.0.0.1:2"), "--namespace", "hcp-a",
		"--infra-id", "i", "--instance-profile", "p", "--userdata-secrets"}
	for want, args := range map[string][]string{
		"--nonsense":                           {"--nonsense"},
		"--guest-kubeconfig is missing":        {"--guest-kubeconfig", ""},
		"--namespace is missing":               {"--namespace", ""},
		`--namespace is "A b"`:                 {"--namespace", "A b"},
		"--instance-profile is missing":        {"--instance-profile", ""},
		"--userdata-file is missing":           {"--userdata-secrets=false"},
		"are both set":                         {"--userdata-file", "u"},
		"--ami-ids is missing":                 {"--userdata-secrets=false", "--userdata-file", "u"},
		`--release-version is "new"`:           {"--release-version", "new"},
		"--release-version is 4.21.0":          {"--release-version", "4.21.0"},
		"--ami-ids is ami-1":                   {"--ami-ids", "ami-1"},
		"--infra-id is missing":                {"--infra-id", ""},
		`--platform is "Azure"`:                {"--platform", "Azure"},
		`--default-root-volume-size is "big"`:  {"--default-root-volume-size", "big"},
		`--on-policy-unreadable is "Panic"`:    {"--on-policy-unreadable", "Panic"},
		`--feature-gates has "AutoNode=true"`:  {"--feature-gates", "AutoNode=true"},
		`--metrics-bind-address is "8080"`:     {"--metrics-bind-address", "8080"},
		"give each its own":                    {"--metrics-bind-address", ":1", "--health-probe-bind-address", ":1"},
		"strict needs the operand's user name": {"--strict-admission"},
		`--node-bootstrapper-user-name is ""`:  {"--approve-kubelet-csrs", "--node-bootstrapper-user-name", ""},
		`is "system:node:a"`: {"--approve-kubelet-csrs", "--node-bootstrapper-user-name",
			"system:node:a"},
		"--guest-user-name is empty":            {"--guest-user-name", ""},
		`"system:admin", which people have too`: {"--guest-user-name", "system:admin"},
		`both have "a"`:                         {"--resource-tags", "a=1", "--overridable-resource-tags", "a=2"},
		`--log-level is "loud"`:                 {"--log-level", "loud"},
		"no usable kubeconfig":                  {"--guest-kubeconfig", filepath.Join(t.TempDir(), "none")},
		"both lead to http://127.0.0.1:2":       {"--guest-kubeconfig", valid[3]},
		`--own has "Everything"`:                {"--own", "NodePools,Everything"},
		`--own is "Alongside,NodePools"`:        {"--own", "Alongside,NodePools"},
		"--release and --teardown are both":     {"--release", "--teardown"},
		`--infra-from is "HCP"`:                 {"--infra-from", "HCP"},
		`--foreign-objects is "Keep"`:           {"--foreign-objects", "Keep"},
		`nodeClaims is "Never"`:                 {"--protect-nodeclaims", "Never"},
		`it takes no argument, and "argument"`:  {"argument"},
	} {
		code, _, stderr := program.Call(t, nil, append(append([]string(nil), valid...), args...)...)
		if code != 2 || !strings.Contains(stderr, want) || strings.Contains(stderr, "goroutine") {
			t.Errorf("%v: exit %d, %q; want 2 and a line that says %q", args, code, stderr, want)
		}
	}
}

func TestAGuestThatIsNotThereIsAFailureOfOneLine(t *testing.T) {
	t.Parallel()
	code, _, stderr := program.Call(t, nil, "--guest-kubeconfig", commandlinetest.Kubeconfig(t, "http://127.0.0.1:1"),
		"--management-kubeconfig", commandlinetest.Kubeconfig(t, "http://127.0.0.1:2"), "--namespace", "hcp-a",
		"--platform", "KWOK", "--metrics-bind-address", "0", "--health-probe-bind-address", "0")
	if code != 1 || strings.Count(stderr, "\n") != 1 ||
		!strings.Contains(stderr, "the guest cluster: the API server at http://127.0.0.1:1 cannot be reached") {
		t.Errorf("exit %d, %q", code, stderr)
	}
}

// The user's page names flags that exist.
func TestThePageNamesFlagsThatExist(t *testing.T) {
	t.Parallel()
	program.PageNamesItsFlags(t, "../../docs/autonode-policy.md", 10)
	program.PageNamesItsFlags(t, "../../docs/autonode-handover.md", 4)
}

// U-13.
func TestU13_ThePrintedConfigIsReadAgain(t *testing.T) {
	t.Parallel()
	program.ConfigIsReadAgain(t)
}
