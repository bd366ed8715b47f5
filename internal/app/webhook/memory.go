package webhook

import (
	"runtime/debug"

	"github.com/joiner-autoscaler/joiner/internal/app/serve"
)

// collectorPercent is how much the heap may grow between two garbage collections; Go's default is 100. Reviews become
// garbage at once. With the nodes of a large cluster in memory, the slowest verdicts on a busy machine wait for
// collections (B-14).
const collectorPercent = 400

// tuneCollector tells the Go runtime how often to collect garbage, and what to stay below. Without the limit, a heap
// that may grow to five times what is in use would be ended by the kernel where more collections had helped. GOGC and
// GOMEMLIMIT, the runtime's own variables, win.
func tuneCollector(lookup func(string) (string, bool)) error {
	if _, chosen := lookup("GOGC"); !chosen {
		debug.SetGCPercent(collectorPercent)
	}
	return serve.LimitMemory(lookup)
}
