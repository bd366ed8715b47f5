package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/joiner-autoscaler/joiner/cmd/internal/commandline"
)

func call(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = run(t.Context(), args, func(string) (string, bool) { return "", false }, &out, &err)
	return code, out.String(), err.String()
}

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// U-13, N2: what is wrong is said in one line each, and the exit code is not 0.
func TestMistakesAreNamed(t *testing.T) {
	t.Parallel()
	kubeconfig := file(t, "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c}}]\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n")
	good := file(t, "apiVersion: scheduling.openshift.io/v1alpha1\nkind: NodeSchedulingPolicyConfig\ngroups: []\n")
	valid := []string{"--kubeconfig", kubeconfig, "--policy-file", good, "--tls-cert-file", "none", "--tls-key-file", "none",
		"--metrics-bind-address", "0", "--health-probe-bind-address", "0"}
	for want, c := range map[string]struct {
		code int
		args []string
	}{
		"--nonsense":                 {2, []string{"--nonsense"}},
		"--policy-file is missing":   {2, []string{"--policy-file", ""}},
		"--tls-cert-file is missing": {2, []string{"--tls-cert-file", ""}},
		`--namespace is "A b"`:       {2, []string{"--namespace", "A b"}},
		`--bind-address is "8443"`:   {2, []string{"--bind-address", "8443"}},
		`--log-level is "loud"`:      {2, []string{"--log-level", "loud"}},
		"no usable kubeconfig":       {2, []string{"--kubeconfig", filepath.Join(t.TempDir(), "none")}},
		"apiVersion is \"\": it must be scheduling.openshift.io/v1alpha1": {1, []string{"--policy-file", file(t, "kind: NodeSchedulingPolicyConfig")}},
		"--policy-file: open":                {1, []string{"--policy-file", filepath.Join(t.TempDir(), "none")}},
		"--tls-cert-file and --tls-key-file": {1, nil},
	} {
		code, _, stderr := call(t, append(append([]string(nil), valid...), c.args...)...)
		if code != c.code || !strings.Contains(stderr, want) || strings.Contains(stderr, "goroutine") {
			t.Errorf("%v: exit %d, %q; want %d and a line that says %q", c.args, code, stderr, c.code, want)
		}
	}
}

// U-13: every flag is in the help, under a heading.
func TestHelpNamesEveryFlag(t *testing.T) {
	t.Parallel()
	code, stdout, _ := call(t, "--help")
	if code != 0 || !strings.Contains(stdout, "Policy:\n") {
		t.Fatalf("exit %d, %q", code, stdout)
	}
	commandline.New(newProgram(nil), func(string) (string, bool) { return "", false }).Flags().VisitAll(func(flag *pflag.Flag) {
		if !strings.Contains(stdout, "--"+flag.Name) {
			t.Errorf("the help does not name --%s", flag.Name)
		}
	})
}

// The user's page names flags that exist.
func TestThePageNamesFlagsThatExist(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/control-plane-protection.md")
	if err != nil {
		t.Fatal(err)
	}
	flags := commandline.New(newProgram(nil), func(string) (string, bool) { return "", false }).Flags()
	found := 0
	for _, match := range regexp.MustCompile("`--([a-z-]+)").FindAllStringSubmatch(string(page), -1) {
		if found++; flags.Lookup(match[1]) == nil {
			t.Errorf("the page names --%s, which does not exist", match[1])
		}
	}
	if found == 0 {
		t.Error("the page names no flag")
	}
}
