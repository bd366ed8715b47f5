package evaluator

import "testing"

// every exit, and every reason to judge a request, has exactly one form outside of Go. One added without it
// fails here. One whose form differs in meaning fails in TestA16_BothDoorsSayTheSame.
func TestA16_EveryExitHasAForm(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, e := range exits {
		if e.name == "" || seen[e.name] || (e.condition == "") == (e.field == "") || e.leaves == nil {
			t.Errorf("exit %q: condition %q, field %q: want one of them, and a name of its own", e.name, e.condition,
				e.field)
		}
		seen[e.name] = true
	}
	for i, c := range concerns {
		if c.cel == "" || c.holds == nil {
			t.Errorf("concern %d has no expression", i)
		}
	}
}
