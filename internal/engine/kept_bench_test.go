package engine_test

import (
	"fmt"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine"
)

// BenchmarkKept measures the metrics of nodes that stay, at 5,000 nodes and 100,000 pods (U-10). The nodes are nearly
// full, so that nothing goes, and a budget is closed, so that each node is asked for.
func BenchmarkKept(b *testing.B) {
	snapshot := large(b, 5000, false)
	for name, most := range map[string]int{"open": 500, "closed": 0} {
		terms := engine.Terms{Now: 1 << 40, MinSavingPercent: engine.DefaultMinSavingPercent,
			Budgets: map[string][]engine.Budget{"default": {{Max: most}}}}
		b.Run(fmt.Sprintf("budget=%s", name), func(b *testing.B) {
			for b.Loop() {
				engine.Kept(snapshot, terms)
			}
		})
	}
}
