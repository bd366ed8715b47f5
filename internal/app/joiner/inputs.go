package joiner

import (
	"slices"
	"sync"

	"github.com/joiner-autoscaler/joiner/internal/dump"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// mostInputs is how many inputs are kept that led to different plans (U-41).
const mostInputs = 8

// inputs remembers what was planned with lately, and what came out. Snapshots do not change, so nothing is copied,
// and whoever plans waits for nobody who reads.
type inputs struct {
	mutex sync.Mutex
	list  []input // the newest last
}

type input struct {
	question dump.Question
	snapshot *cluster.Snapshot
	terms    engine.Terms
	plan     plan.Plan
	said     string
}

// noted adds a plan. The newest input of each different plan is kept.
func (in *inputs) noted(question string, s *cluster.Snapshot, terms engine.Terms, p plan.Plan) {
	own := input{question: dump.Question(question), snapshot: s, terms: terms, plan: p, said: p.String()}
	in.mutex.Lock()
	defer in.mutex.Unlock()
	in.list = slices.DeleteFunc(in.list, func(other input) bool {
		return other.question == own.question && other.said == own.said
	})
	if len(in.list) == mostInputs {
		in.list = slices.Delete(in.list, 0, 1)
	}
	in.list = append(in.list, own)
}

// newest returns the input of the newest plan that says something, else of the newest; false when nothing was
// planned yet.
func (in *inputs) newest() (input, bool) {
	in.mutex.Lock()
	defer in.mutex.Unlock()
	nothing := plan.Plan{}.String()
	for _, own := range slices.Backward(in.list) {
		if own.said != nothing {
			return own, true
		}
	}
	if len(in.list) == 0 {
		return input{}, false
	}
	return in.list[len(in.list)-1], true
}

// dump is the input as a file has it.
func (i input) dump(program string) dump.Dump {
	return dump.Dump{
		Header:   dump.Header{Program: program, Source: dump.FromController, Redaction: dump.RedactNone},
		Snapshot: i.snapshot, Terms: i.terms, Plans: []dump.Planned{{Question: i.question, Plan: i.plan}},
	}
}
