package sim

import (
	"github.com/joiner-autoscaler/joiner/internal/engine"
	snapshots "github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

const (
	// fewNodes are tried one by one in every search, so that a complete search tries none that another leaves out.
	fewNodes = 20
	// checkedTurn is how many searches there are for each that is checked: a check takes as long as what they save.
	checkedTurn = 4
)

// checkUnchanged holds that a question which is asked again has the same answer (B-22). A search that only tries the
// nodes whose turn it is then misses nothing that a complete one would find.
func (w *World) checkUnchanged(_ string, s *snapshots.Snapshot, terms engine.Terms, p plan.Plan) {
	if !terms.Again || !p.Empty() || terms.Turn%checkedTurn != 0 || len(s.Nodes) > fewNodes {
		return
	}
	terms.Again = false
	if complete := engine.Consolidate(s, terms); !complete.Empty() {
		w.fail(checkQuestion, "the question has not changed since a search found nothing, and one finds now:\n%s",
			complete)
	}
}
