package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/cmd/internal/commandline/commandlinetest"
)

var program = commandlinetest.Program(newProgram)

// U-13: a wrong flag, variable or file is one line that names it, and exit code 2.
func TestMistakesAreNamed(t *testing.T) {
	t.Parallel()
	for want, test := range map[string]struct {
		environment map[string]string
		args        []string
	}{
		"--nonsense":              {args: []string{"--nonsense"}},
		`"abc"`:                   {args: []string{"--metrics-port", "abc"}},
		"--metrics-port is 70000": {args: []string{"--metrics-port", "70000"}},
		`LAUNCH_TIMEOUT="soon"`:   {environment: map[string]string{"LAUNCH_TIMEOUT": "soon"}},
		`--log-level is "loud"`:   {args: []string{"--log-level", "loud"}},
		"no usable kubeconfig":    {args: []string{"--kubeconfig", filepath.Join(t.TempDir(), "none")}},
		`it takes no argument, and "no" is one: the value of a switch follows it with =`: {
			args: []string{"--condition-events", "no"},
		},
		"--kube-client-qps is NaN: want requests per second above 0": {
			args: []string{"--kube-client-qps", "NaN"},
		},
	} {
		code, _, stderr := program.Call(t, test.environment, test.args...)
		if code == 0 || code != 2 && !strings.HasPrefix(want, "no usable") || !strings.Contains(stderr, want) ||
			strings.Contains(stderr, "goroutine") || strings.Count(stderr, "\n") > 2 {
			t.Errorf("%v: exit %d, %q; want a line that says %q", test.args, code, stderr, want)
		}
	}
}

func TestAServerThatIsNotThereIsAFailureOfOneLine(t *testing.T) {
	t.Parallel()
	code, _, stderr := program.Call(t, nil, "--kubeconfig", commandlinetest.Kubeconfig(t, "http://127.0.0.1:1"),
		"--metrics-port", "0", "--health-probe-port", "0")
	if code != 1 || strings.Count(stderr, "\n") != 1 ||
		!strings.Contains(stderr, "http://127.0.0.1:1 cannot be reached") {
		t.Errorf("exit %d, %q", code, stderr)
	}
}

// U-13.
func TestU13_ThePrintedConfigIsReadAgain(t *testing.T) {
	t.Parallel()
	program.ConfigIsReadAgain(t)
}
