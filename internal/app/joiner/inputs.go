package joiner

import (
	"sync"

	"github.com/joiner-autoscaler/joiner/internal/dump"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// inputs remembers what was planned with last, and what came out (U-41). Snapshots do not change, so nothing is
// copied or written out: whoever plans waits for nobody who reads.
type inputs struct {
	mutex        sync.Mutex
	last, saying input // the newest, and the newest whose plan says something
	planned      bool
}

type input struct {
	question dump.Question
	snapshot *cluster.Snapshot
	terms    engine.Terms
	plan     plan.Plan
}

// noted takes in a plan.
func (in *inputs) noted(question string, s *cluster.Snapshot, terms engine.Terms, p plan.Plan) {
	own := input{question: dump.Question(question), snapshot: s, terms: terms, plan: p}
	in.mutex.Lock()
	defer in.mutex.Unlock()
	in.last, in.planned = own, true
	if own.says() {
		in.saying = own
	}
}

// newest returns the input of the newest plan that says something, else of the newest; false when nothing was
// planned yet.
func (in *inputs) newest() (input, bool) {
	in.mutex.Lock()
	defer in.mutex.Unlock()
	if in.saying.snapshot != nil {
		return in.saying, true
	}
	return in.last, in.planned
}

// says reports whether the plan does something, or tells of a pod or a node that it does nothing for.
func (i input) says() bool {
	p := i.plan
	return !p.Empty() || len(p.Nominations) > 0 || len(p.Unplaced) > 0 || len(p.Stays) > 0 || len(p.Held) > 0
}

// dump is the input as a file has it.
func (i input) dump(program string) dump.Dump {
	d := dump.Dump{Snapshot: i.snapshot, Terms: i.terms, Plans: []dump.Planned{{Question: i.question, Plan: i.plan}}}
	if i.snapshot.Devices != nil { // a dump has none
		if without, err := dump.Make(i.snapshot, i.terms, i.question); err == nil {
			d = without
		}
	}
	d.Header = dump.Header{Program: program, Source: dump.FromController, Redaction: dump.RedactNone}
	return d
}
