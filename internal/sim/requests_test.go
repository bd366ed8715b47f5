package sim_test

import (
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/joiner-autoscaler/joiner/internal/sim"
)

// B-12: how many requests nodes that come and go cost, by controller, verb and kind, if nothing goes wrong. One more
// request is a line in a diff. `go test ./internal/sim -run TestB12 -rewrite` writes the tables anew.
func TestB12_RequestsForEachNode(t *testing.T) {
	t.Parallel()
	g := ground(t)
	datadriven.Walk(t, "testdata/requests", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var nodes int
			d.ScanArgs(t, "nodes", &nodes)
			script, err := sim.Parse(d.Input)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			r := sim.Run(g, script, nil)
			if r.Violation != "" {
				d.Fatalf(t, "at %s: %s: %s", r.At, r.Check, r.Violation)
			}
			return r.Requests.Table(nodes)
		})
	})
}
