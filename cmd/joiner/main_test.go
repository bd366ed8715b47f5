package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/joiner-autoscaler/joiner/cmd/internal/commandline"
)

func call(t *testing.T, environment map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	lookup := func(name string) (string, bool) { value, found := environment[name]; return value, found }
	code = run(t.Context(), args, lookup, &out, &err)
	return code, out.String(), err.String()
}

// U-13: a wrong flag, variable or file is one line that names it, and exit code 2.
func TestMistakesAreNamed(t *testing.T) {
	t.Parallel()
	for want, test := range map[string]struct {
		environment map[string]string
		args        []string
	}{
		"--nonsense":                   {args: []string{"--nonsense"}},
		`"abc"`:                        {args: []string{"--metrics-port", "abc"}},
		"--metrics-port is 70000":      {args: []string{"--metrics-port", "70000"}},
		`BATCH_IDLE_DURATION="soon"`:   {environment: map[string]string{"BATCH_IDLE_DURATION": "soon"}},
		`--log-level is "loud"`:        {args: []string{"--log-level", "loud"}},
		"no usable kubeconfig":         {args: []string{"--kubeconfig", filepath.Join(t.TempDir(), "none")}},
		"unknown command \"argument\"": {args: []string{"argument"}},
	} {
		code, _, stderr := call(t, test.environment, test.args...)
		if code == 0 || !strings.Contains(stderr, want) || strings.Contains(stderr, "goroutine") || strings.Count(stderr, "\n") > 2 {
			t.Errorf("%v: exit %d, %q; want a line that says %q", test.args, code, stderr, want)
		}
	}
}

func TestAServerThatIsNotThereIsAFailureOfOneLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	content := "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c}}]\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := call(t, nil, "--kubeconfig", path, "--metrics-port", "0", "--health-probe-port", "0")
	if code != 1 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "http://127.0.0.1:1 cannot be reached") {
		t.Errorf("exit %d, %q", code, stderr)
	}
}

// U-13: every flag is in the help, under a heading.
func TestHelpNamesEveryFlag(t *testing.T) {
	t.Parallel()
	code, stdout, _ := call(t, nil, "--help")
	if code != 0 || !strings.Contains(stdout, "Planning:\n") {
		t.Fatalf("exit %d, %q", code, stdout)
	}
	commandline.New(newProgram(nil), func(string) (string, bool) { return "", false }).Flags().VisitAll(func(flag *pflag.Flag) {
		if !strings.Contains(stdout, "--"+flag.Name) {
			t.Errorf("the help does not name --%s", flag.Name)
		}
	})
}
