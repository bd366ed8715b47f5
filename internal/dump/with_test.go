package dump

import (
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// U-06, B-22. With another setting the question is another one: what was found in vain before says nothing.
func TestU06_AnotherSettingIsAnotherQuestion(t *testing.T) {
	t.Parallel()
	d := Dump{Snapshot: cluster.New(cluster.Snapshot{}), Terms: engine.Terms{Turn: 2, Again: true}}
	for _, setting := range []string{"consolidation-min-saving=0", "price-tolerance=0", "max-nodes=3",
		"feature-gates=SpotToSpotConsolidation=true"} {
		other, err := With(d, setting)
		if err != nil || other.Terms.Again || !d.Terms.Again {
			t.Errorf("with %s it is asked again: %t, error %v", setting, other.Terms.Again, err)
		}
	}
}
