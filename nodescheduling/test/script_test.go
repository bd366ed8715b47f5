package test

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator/schedulingtest"
)

// TestScripts runs every script below testdata/scripts, and holds the page for users to the last of them. Rewrite them
// with `make rewrite`; the diff is the review, and is committed only when you can explain it.
func TestScripts(t *testing.T) {
	t.Parallel()
	said := map[string]string{}
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		world := schedulingtest.NewWorld()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out, err := world.Run(d.Cmd, d.HasArg("text"), d.Input, schedulingtest.Function)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			if strings.HasSuffix(path, mistakes) && d.Cmd == "ask" {
				texts(out, said)
			}
			return out
		})
	})
	showPage(t, said)
}
