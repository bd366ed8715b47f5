package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// U-28: the name of the file says who calls: a shell, kubectl, or kubectl for a shell that completes a line.
func TestU28_TheNameOfTheFileSaysWhoCalls(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]struct {
		called string
		do     []string
	}{
		"joinerctl":                           {"", []string{"status"}},
		"/opt/bin/joinerctl-0.4.0":            {"", []string{"status"}},
		"/opt/bin/kubectl-joiner":             {"kubectl joiner", []string{"status"}},
		"kubectl-joiner.exe":                  {"kubectl joiner", []string{"status"}},
		"/opt/bin/kubectl_complete-joiner":    {"kubectl joiner", []string{"__complete", "status"}},
		"/opt/kubectl-joiner/joinerctl":       {"", []string{"status"}},
		"/opt/bin/kubectl_complete-joinerctl": {"", []string{"status"}},
	} {
		called, do := calledAs(file, []string{"status"})
		if called != want.called || !slices.Equal(do, want.do) {
			t.Errorf("%s: %q, %v, want %q, %v", file, called, do, want.called, want.do)
		}
	}
}

// U-28: kubectl gets the words that fit, and how to go on, in the form in which it asks for them.
func TestU28_KubectlCompletes(t *testing.T) {
	t.Parallel()
	called, args := calledAs("kubectl_complete-joiner", []string{"expl"})
	var out, failures bytes.Buffer
	code := run(t.Context(), called, args, strings.NewReader(""), &out, &failures)
	if code != 0 || !strings.HasPrefix(out.String(), "explain\t") || !strings.Contains(out.String(), "\n:4\n") {
		t.Errorf("exit %d, %q, %q", code, out.String(), failures.String())
	}
}
