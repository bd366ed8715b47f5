package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// BenchmarkJudge judges a tenth of the nodes of a cluster, all marked as underutilized, while a hundred pods wait.
func BenchmarkJudge(b *testing.B) {
	for _, nodes := range []int{500, 2000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			var script strings.Builder
			script.WriteString("type m cpu=8 mem=32Gi zones=a,b od=0.4\npool default\n")
			for i := range nodes {
				marked := ""
				if i%10 == 0 {
					marked = "disrupting"
				}
				fmt.Fprintf(&script, "node n%d type=m zone=a pool=default %s\n", i, marked)
				fmt.Fprintf(&script, "pod on%d-0..9 cpu=500m node=n%d\n", i, i)
			}
			script.WriteString("pod waits-0..99 cpu=3\n")
			s, err := enginetest.Parse(script.String())
			if err != nil {
				b.Fatal(err)
			}
			var docket engine.Docket
			for _, node := range s.Nodes {
				if node.Disrupting {
					docket.Intents = append(docket.Intents, engine.Intent{Node: node, Reason: plan.Underutilized,
						Marked: true, Tainted: true})
				}
			}
			terms := engine.Terms{Budgets: map[string][]engine.Budget{"default": {{Max: nodes}}}}
			for b.Loop() {
				deleted := 0
				for _, v := range engine.Judge(s, terms, docket) {
					if v.Act == engine.Delete {
						deleted++
					}
				}
				if deleted != nodes/10 {
					b.Fatalf("%d nodes are deleted, want %d", deleted, nodes/10)
				}
			}
		})
	}
}
