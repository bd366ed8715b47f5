package engine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// D-04, B-22. Searches that find nothing try nodes one by one, and go on where the last one ended. With an unchanged
// question they do nothing else. Here a small node seems to be enough for 25 pods, but a daemon that will come leaves
// no room for them. The last node can be replaced.
func TestEveryNodeHasItsTurn(t *testing.T) {
	t.Parallel()
	var pods strings.Builder
	for i := range 25 {
		fmt.Fprintf(&pods, "pod p%d cpu=950m node=n%d\n", i+1, i+1)
	}
	s, err := enginetest.Parse(`
type small   cpu=1     mem=4Gi zones=a od=0.050
type medium  cpu=1500m mem=4Gi zones=a od=0.100
type large   cpu=2     mem=4Gi zones=a od=0.102
type old     cpu=2     mem=4Gi zones=a od=0.110
daemon logs  cpu=200m tolerate=*
pool default
node n1..25  type=large zone=a pool=default
node n26     type=old   zone=a pool=default
pod last     cpu=1100m node=n26
` + pods.String())
	if err != nil {
		t.Fatal(err)
	}
	for turn, want := range []string{"", "n26-claim", "", "n26-claim"} {
		d := begin(s, Terms{Turn: turn, MinSavingPercent: 5})
		d.replaceInTurn(d.beyondOne(d.future.Nodes))
		var got []string
		for _, c := range d.chosen {
			got = append(got, names(c.nodes)...)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("turn %d replaces %q, want %q", turn, got, want)
		}
		again := Consolidate(s, Terms{Turn: turn, Again: true, MinSavingPercent: 5,
			Budgets: map[string][]Budget{"default": {{Max: 26}}}})
		if fmt.Sprint(claimsOf(again)) != fmt.Sprint(got) {
			t.Errorf("turn %d of an unchanged question removes %v, want %q", turn, again.Removes, want)
		}
	}
}

func claimsOf(p plan.Plan) (claims []string) {
	for _, remove := range p.Removes {
		claims = append(claims, remove.Claim)
	}
	return claims
}
