package serve

import (
	"fmt"
	"runtime/debug"
	"strconv"
)

const (
	// memoryLimit is the variable with the memory limit of the container, in bytes. The chart sets it, as for joiner.
	memoryLimit = "MEMORY_LIMIT"
	// leastMemory is the least limit that is respected. With a lower one the runtime would only collect garbage.
	leastMemory = 16 << 20
)

// LimitMemory makes the Go runtime collect garbage before the container's limit ends the process. GOMEMLIMIT, the
// runtime's own variable, wins. The error names the value of MEMORY_LIMIT if it is no number of bytes.
func LimitMemory(lookup func(string) (string, bool)) error {
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
