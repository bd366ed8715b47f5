package v1

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

// V-06: no budgets at all means that nothing bounds disruption, while leaving the field out means the
// default of 10%. Reading and writing must not turn one into the other.
func TestAnEmptyListOfBudgetsIsNotLeftOut(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		`{"consolidateAfter":"0s","budgets":[]}`: `"budgets":[]`,
		`{"consolidateAfter":"0s"}`:              `"consolidateAfter":"0s"}`,
	} {
		var disruption Disruption
		if err := json.Unmarshal([]byte(input), &disruption); err != nil {
			t.Fatal(err)
		}
		if output, err := json.Marshal(disruption); err != nil || !strings.Contains(string(output), want) {
			t.Errorf("%s is written as %s, want %s in it; error %v", input, output, want, err)
		}
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&disruption)
		_, written := fields["budgets"]
		if err != nil || written != strings.Contains(input, "budgets") {
			t.Errorf("%s becomes the unstructured %v; error %v", input, fields, err)
		}
	}
}

// V-07: a count of nodes stays a number and a percentage stays a string.
func TestABudgetKeepsTheFormOfItsNodes(t *testing.T) {
	t.Parallel()
	for _, want := range []string{`{"nodes":5}`, `{"nodes":"5"}`, `{"nodes":"10%"}`} {
		var budget Budget
		if err := json.Unmarshal([]byte(want), &budget); err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(budget); err != nil || string(got) != want {
			t.Errorf("%s is written as %s; error %v", want, got, err)
		}
	}
}

// V-09: what the user left out of an immutable spec must not appear when the object is written again.
func TestANodeClaimWritesNothingThatWasLeftOut(t *testing.T) {
	t.Parallel()
	const want = `{"requirements":[],"nodeClassRef":{"group":"g","kind":"k","name":"n"},"expireAfter":"720h"}`
	var spec NodeClaimSpec
	if err := json.Unmarshal([]byte(want), &spec); err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(spec); err != nil || string(got) != want {
		t.Errorf("written as\n%s, want\n%s; error %v", got, want, err)
	}
}
