package webhook

import (
	"fmt"
	"runtime/debug"
	"strconv"
)

const (
	// collectorPercent is how much the heap may grow between two garbage collections; Go's default is 100. Reviews
	// become garbage at once. With the nodes of a large cluster in memory, the slowest verdicts on a busy machine wait
	// for collections (B-14).
	collectorPercent = 400
	// memoryLimit is the variable with the memory limit of the container, in bytes. The chart sets it, as for joiner.
	memoryLimit = "MEMORY_LIMIT"
	// leastMemory is the least limit that is respected. With a lower one the runtime would only collect garbage.
	leastMemory = 16 << 20
)

// tuneCollector tells the Go runtime how often to collect garbage, and what to stay below. Without the limit, a heap
// that may grow to five times what is in use would be ended by the kernel where more collections had helped. GOGC and
// GOMEMLIMIT, the runtime's own variables, win.
func tuneCollector(lookup func(string) (string, bool)) error {
	if _, chosen := lookup("GOGC"); !chosen {
		debug.SetGCPercent(collectorPercent)
	}
	limit, err := heapLimit(lookup)
	if err == nil && limit > 0 {
		debug.SetMemoryLimit(limit)
	}
	return err
}

// heapLimit returns 90 % of the container's limit, or 0 for none: the rest is for what the runtime does not count.
func heapLimit(lookup func(string) (string, bool)) (int64, error) {
	text, given := lookup(memoryLimit)
	if _, chosen := lookup("GOMEMLIMIT"); chosen || !given || text == "" {
		return 0, nil
	}
	limit, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is %q: want a number of bytes", memoryLimit, text)
	}
	if limit < leastMemory {
		return 0, nil
	}
	return limit / 10 * 9, nil
}
