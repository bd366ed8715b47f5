package attack

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// From a test's line of output we read back what the test saw; any other line gives nothing.
func TestWhatATestSawIsReadBack(t *testing.T) {
	line :=
		`    world_test.go:200: attack: {"how":"told","by":"the operator","text":"Ready=False \"x\": {braces}","after":1500000000}` +
			"\n"
	want := Seen{How: Told, By: "the operator", Text: `Ready=False "x": {braces}`, After: 1500 * time.Millisecond}
	if got, found := Parse(line); !found || got != want {
		t.Errorf("%+v %t, want %+v", got, found, want)
	}
	for _, other := range []string{"", "=== RUN   TestX", `attack: {"how":`, "an attack: of words"} {
		if got, found := Parse(other); found {
			t.Errorf("%q is read as %+v", other, got)
		}
	}
}

func TestWhoRefused(t *testing.T) {
	for _, row := range [][2]string{
		{"nodepools \"x\" is forbidden: ValidatingAdmissionPolicy 'karpenter.nodepool.hypershift.io' with binding 'b' " +
			"denied request: no", "admission policy karpenter.nodepool.hypershift.io"},
		{`admission webhook "pods.joiner.sh" denied the request: NodeSchedulingPolicy [ControlPlane/NodeName]`,
			"webhook pods.joiner.sh"},
		{`pods "a" is forbidden: NodeSchedulingPolicy [ControlPlane/NodeName]`, "admission plugin NodeSchedulingPolicy"},
		{`nodes "cp1" is forbidden: User "bob" cannot patch resource "nodes" in API group "" at the cluster scope`, "RBAC"},
		{`OpenshiftNodePool "x" is invalid: spec.weight: Invalid value: 101`, "the API server"},
	} {
		text, want := row[0], row[1]
		if got := Refuser(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestTablesOfAttemptsAreRead(t *testing.T) {
	page :=
		"# Page\n\n| attempt | outcome | test |\n|---|---|---|\n| write `a\\|b` | **open** | – |\n\n## Two\n\n" +
			"| what | so | be |\n|---|---|---|\n| no | no | `TestNo` |\n\n" +
			"| attempt | outcome | test |\n|---|---|---|\n| x | refused | `TestA`, `TestB_c` |\nText\n| y | refused | `TestD` |\n"
	want := []Attempt{
		{Text: "write `a|b`", Outcome: "**open**"},
		{Section: "Two", Text: "x", Outcome: "refused", Tests: []string{"TestA", "TestB_c"}},
	}
	if got := Attempts(page); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant\n%+v", got, want)
	}
}

// every line of both pages is an attempt of the story with a test, unless it is marked as by design.
func TestTheStoryHasEveryLineOfThePages(t *testing.T) {
	for _, name := range []string{"autonode-bypass.md", "control-plane-bypass.md"} {
		page, err := os.ReadFile(filepath.Join("../../docs", name))
		if err != nil {
			t.Fatal(err)
		}
		lines := 0
		for line := range strings.Lines(string(page)) {
			if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| attempt |") {
				lines++
			}
		}
		attempts := Attempts(string(page))
		if len(attempts) != lines || lines == 0 {
			t.Errorf("%s: the tables have %d lines, the story %d attempts", name, lines, len(attempts))
		}
		for _, a := range attempts {
			if len(a.Tests) == 0 && !strings.Contains(a.Outcome, "by design") {
				t.Errorf("%s: %q has no test and is not by design", name, a.Text)
			}
		}
	}
}
