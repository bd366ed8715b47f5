package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/cmd/internal/commandline/commandlinetest"
)

var program = commandlinetest.Program(newProgram)

// U-13, N2: what is wrong is said in one line each, and the exit code is not 0.
func TestMistakesAreNamed(t *testing.T) {
	t.Parallel()
	kubeconfig := commandlinetest.Kubeconfig(t, "http://127.0.0.1:1")
	good := commandlinetest.File(t,
		"apiVersion: scheduling.openshift.io/v1alpha1\nkind: NodeSchedulingPolicyConfig\ngroups: []\n")
	valid := []string{"--kubeconfig", kubeconfig, "--policy-file", good, "--tls-cert-file", "none", "--tls-key-file",
		"none", "--metrics-bind-address", "0", "--health-probe-bind-address", "0", "--path-token-file",
		commandlinetest.File(t, strings.Repeat("a", 43))}
	for want, c := range map[string]struct {
		code int
		args []string
	}{
		"--nonsense":                 {2, []string{"--nonsense"}},
		"--policy-file is missing":   {2, []string{"--policy-file", ""}},
		"--tls-cert-file is missing": {2, []string{"--tls-cert-file", ""}},
		"--path-token-file is":       {2, []string{"--path-token-file", ""}},
		`--authentication is "All"`:  {2, []string{"--authentication", "All"}},
		`--namespace is "A b"`:       {2, []string{"--namespace", "A b"}},
		`--bind-address is "8443"`:   {2, []string{"--bind-address", "8443"}},
		`--log-level is "loud"`:      {2, []string{"--log-level", "loud"}},
		"no usable kubeconfig":       {2, []string{"--kubeconfig", filepath.Join(t.TempDir(), "none")}},
		"apiVersion is \"\": it must be scheduling.openshift.io/v1alpha1": {
			1, []string{"--policy-file", commandlinetest.File(t, "kind: NodeSchedulingPolicyConfig")},
		},
		`emergencyOverride of --policy-file is "": want Automatic`: {2, []string{"--print-automatic-policies"}},
		"--policy-file: open":                {1, []string{"--policy-file", filepath.Join(t.TempDir(), "none")}},
		"--tls-cert-file and --tls-key-file": {1, nil},
	} {
		code, _, stderr := program.Call(t, nil, append(append([]string(nil), valid...), c.args...)...)
		if code != c.code || !strings.Contains(stderr, want) || strings.Contains(stderr, "goroutine") {
			t.Errorf("%v: exit %d, %q; want %d and a line that says %q", c.args, code, stderr, c.code, want)
		}
	}
}

// The user's page names flags that exist.
func TestThePageNamesFlagsThatExist(t *testing.T) {
	t.Parallel()
	program.PageNamesItsFlags(t, "../../docs/control-plane-protection.md", 1)
}

// U-13.
func TestU13_ThePrintedConfigIsReadAgain(t *testing.T) {
	t.Parallel()
	program.ConfigIsReadAgain(t)
}
