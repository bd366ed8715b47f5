package joiner

import (
	"sync"

	"github.com/joiner-autoscaler/joiner/internal/dump"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// inputs remembers the newest inputs and results of planning (U-41). Snapshots do not change, so nothing is copied:
// planning never waits for a reader.
type inputs struct {
	mutex        sync.Mutex
	last, saying input // the newest one, and the newest one whose plan says something
	planned      bool
}

type input struct {
	question dump.Question
	snapshot *cluster.Snapshot
	terms    engine.Terms
	plan     plan.Plan
}

// noted remembers a plan.
func (in *inputs) noted(question string, s *cluster.Snapshot, terms engine.Terms, p plan.Plan) {
	own := input{question: dump.Question(question), snapshot: s, terms: terms, plan: p}
	in.mutex.Lock()
	defer in.mutex.Unlock()
	in.last, in.planned = own, true
	if own.says() {
		in.saying = own
	}
}

// newest returns the newest input whose plan says something, else the newest one. It returns false when nothing was
// planned yet.
func (in *inputs) newest() (input, bool) {
	in.mutex.Lock()
	defer in.mutex.Unlock()
	if in.saying.snapshot != nil {
		return in.saying, true
	}
	return in.last, in.planned
}

// says reports whether the plan does something, or explains a pod or node for which it does nothing.
func (i input) says() bool {
	p := i.plan
	return !p.Empty() || len(p.Nominations) > 0 || len(p.Unplaced) > 0 || len(p.Stays) > 0 || len(p.Held) > 0
}

// dump returns the input as the content of a dump file.
func (i input) dump(program string) dump.Dump {
	d := dump.Dump{Snapshot: i.snapshot, Terms: i.terms, Plans: []dump.Planned{{Question: i.question, Plan: i.plan}}}
	if i.snapshot.Devices != nil { // a dump holds no devices
		if without, err := dump.Make(i.snapshot, i.terms, i.question); err == nil {
			d = without
		}
	}
	d.Header = dump.Header{Program: program, Source: dump.FromController, Redaction: dump.RedactNone}
	return d
}
