package engine_test

import (
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// B-22. Time alone makes no new question, nor does the turn. A quiet time that ends does, and so does a budget, of any
// method, and a workload that shrinks. A new snapshot is always a new question.
func TestWhatMakesANewQuestion(t *testing.T) {
	t.Parallel()
	s, err := enginetest.Parse(`
type m cpu=4 mem=16Gi zones=a od=0.2
pool default
node n1 type=m zone=a pool=default quiet-at=1000
node n2 type=m zone=a pool=default replaced created=1700
`)
	if err != nil {
		t.Fatal(err)
	}
	later := *s
	later.Version++
	budget := func(most int, reasons ...plan.DisruptionReason) map[string][]engine.Budget {
		return map[string][]engine.Budget{"default": {{Max: most, Reasons: reasons}}}
	}
	was := engine.Terms{Now: 500, Budgets: budget(2)}
	for _, c := range []struct {
		name  string
		terms engine.Terms
		same  bool
	}{
		{"a moment later", engine.Terms{Now: 999, Budgets: budget(2)}, true},
		{"the next turn", engine.Terms{Now: 500, Budgets: budget(2), Turn: 3, Again: true}, true},
		{"a budget with reasons that allows as much", engine.Terms{Now: 500,
			Budgets: budget(2, plan.Empty, plan.Expired, plan.Drifted, plan.Underutilized)}, true},
		{"a quiet time has ended", engine.Terms{Now: 1000, Budgets: budget(2)}, false},
		{"both have ended", engine.Terms{Now: 2000, Budgets: budget(2)}, false},
		{"a closed budget", engine.Terms{Now: 500, Budgets: budget(0)}, false},
		{"a budget for drift alone", engine.Terms{Now: 500, Budgets: budget(2, plan.Drifted)}, false},
		{"no budget", engine.Terms{Now: 500}, false},
		{"a workload shrinks", engine.Terms{Now: 500, Budgets: budget(2), Passing: map[string]bool{"default": true}},
			false},
	} {
		if same := c.terms.Question(s) == was.Question(s); same != c.same {
			t.Errorf("%s: the same question: %t, want %t", c.name, same, c.same)
		}
		if c.terms.Question(&later) == was.Question(s) {
			t.Errorf("%s: a new snapshot is the same question", c.name)
		}
	}
	if (engine.Terms{Now: 1000}).Question(s) == (engine.Terms{Now: 2000}).Question(s) {
		t.Error("the end of a rest is no new question")
	}
}
