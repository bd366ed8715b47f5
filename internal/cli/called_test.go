package cli_test

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/cli"
)

// plugged runs a command as kubectl's plugin.
func plugged(t *testing.T, args ...string) (code int, out, failures string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = cli.Run(t.Context(), cli.Config{In: strings.NewReader(""), Out: &stdout, Err: &stderr,
		Called: "kubectl joiner"}, args)
	return code, stdout.String(), stderr.String()
}

// typed finds the name where a person would type it.
var typed = regexp.MustCompile(`(?m)(^|[ "'(])joinerctl[ :].*$`)

// below lists a command and all below it, as their help names them; without completion, which is about the program
// alone: kubectl completes its plugins in its own way.
func below(t *testing.T, command []string) [][]string {
	t.Helper()
	_, help, _ := ran(t, "", append(slices.Clone(command), "--help")...)
	_, list, found := strings.Cut(help, "\nCommands:\n")
	all := [][]string{command}
	if !found {
		return all
	}
	list, _, _ = strings.Cut(list, "\n\n")
	for line := range strings.Lines(list) {
		if name := strings.Fields(line)[0]; name != "completion" {
			all = append(all, below(t, append(slices.Clone(command), name))...)
		}
	}
	return all
}

// TestU28_APluginSaysWhatItsUserTypes: help, answers for people and failures name the program as it was called.
func TestU28_APluginSaysWhatItsUserTypes(t *testing.T) {
	t.Parallel()
	commands := below(t, nil)
	if len(commands) < 30 {
		t.Fatalf("the commands are %v", commands)
	}
	for _, command := range commands {
		args := append(slices.Clone(command), "--help")
		code, out, failures := plugged(t, args...)
		if code != 0 || failures != "" || !strings.Contains(out, "kubectl joiner") {
			t.Errorf("%v: exit %d, %q:\n%s", args, code, failures, out)
		}
		if left := typed.FindString(out); left != "" {
			t.Errorf("%v: %q is left in\n%s", args, left, out)
		}
		_, own, _ := ran(t, "", args...)
		if same := strings.NewReplacer("joinerctl", "kubectl joiner"); same.Replace(own) != same.Replace(out) {
			t.Errorf("%v: the help says something else besides:\n%s", args, out)
		}
	}
	if code, _, failures := plugged(t, "explain", "pods"); code != cli.CodeFailed ||
		!strings.HasPrefix(failures, "kubectl joiner: ") || strings.Contains(failures, "joinerctl") {
		t.Errorf("exit %d, %q", code, failures)
	}
}

// TestU28_AnswersForProgramsStay: a table names the plugin, and fields are the same whoever called.
func TestU28_AnswersForProgramsStay(t *testing.T) {
	t.Parallel()
	args := []string{"status", "-f", "../../examples/status"}
	_, own, _ := ran(t, "", args...)
	_, out, _ := plugged(t, args...)
	if !strings.Contains(own, "joinerctl explain ") || out != strings.ReplaceAll(own, "joinerctl explain ",
		"kubectl joiner explain ") {
		t.Errorf("%s\nis not\n%s", out, own)
	}
	args = append(args, "-o", "json")
	_, own, _ = ran(t, "", args...)
	if _, out, _ = plugged(t, args...); out != own {
		t.Errorf("%s\nis not\n%s", out, own)
	}
}
