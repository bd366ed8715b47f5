package limit_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
)

// X-02, L-13: nodes of other programs in a pool fill the room below its limit, and never bring it above. As few nodes
// may be launched as if all counted, and as many are too many as if only its own counted.
func TestWhatOthersHaveFillsAPoolAndMakesItNotTooMany(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ most, replicas, own, others, want int64 }{
		{3, limit.None, 3, 1, 3}, {3, limit.None, 2, 1, 3}, {3, limit.None, 1, 1, 2}, {3, limit.None, 0, 5, 3},
		{3, limit.None, 4, 1, 4}, {limit.None, limit.None, 2, 5, 7}, {limit.None, 3, 3, 1, 3}, {5, 3, 2, 4, 3},
	} {
		limits := limit.Unlimited()
		limits.SoftNodes = c.most
		if got := limits.Counted(c.replicas, c.own, c.others); got != c.want {
			t.Errorf("%+v: %d count", c, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		limits := limit.Unlimited()
		limits.SoftNodes = rapid.Int64Range(0, 6).Draw(t, "soft")
		limits.HardNodes = rapid.Int64Range(-1, 6).Draw(t, "hard")
		own, others := rapid.Int64Range(0, 9).Draw(t, "own"), rapid.Int64Range(0, 9).Draw(t, "others")
		counted := limits.Counted(limit.None, own, others)
		if limits.NodesLeft(counted) != limits.NodesLeft(own+others) {
			t.Errorf("%d more may be launched, and %d if all counted", limits.NodesLeft(counted),
				limits.NodesLeft(own+others))
		}
		if got, want := limits.Excess(limit.None, counted, 0), limits.Excess(limit.None, own, 0); got != want {
			t.Errorf("%d are too many, and %d of its own", got, want)
		}
	})
}
