package pack_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/pack"
)

// P-09: a pool that insists on a choice of types, zones or capacity types gets no claim with less, whatever its
// resource limits, daemons that run on some of its nodes only, and what pods wish.
func TestP09_ClaimsKeepTheChoice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		script := enginetest.PlainScript(t)
		if of := rapid.SampledFrom([]string{"", "need=zone=a", "need=type=t0|t1", "need=capacity=spot"}).Draw(t,
			"daemon"); of != "" {
			script += "\ndaemon logs cpu=1 tolerate=* " + of
		}
		s, err := enginetest.Parse(script)
		if err != nil {
			t.Fatal(err)
		}
		p := pack.Solve(s, s.Pending)
		for choice := range 3 {
			if broken := enginetest.Check(s, p, choice); broken != nil {
				t.Fatalf("%s\n----\n%s\nbroken:\n%s", script, p, strings.Join(broken, "\n"))
			}
		}
	})
}
