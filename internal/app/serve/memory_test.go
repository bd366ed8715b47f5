package serve

import (
	"strings"
	"testing"
)

// the runtime stays below nine tenths of the container's limit, unless its own variable says otherwise.
func TestX12_TheHeapStaysBelowTheContainersLimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		environment map[string]string
		want        int64
		fault       string
	}{
		{map[string]string{memoryLimit: "268435456"}, 241_591_905, ""},
		{map[string]string{memoryLimit: "268435456", "GOMEMLIMIT": "1GiB"}, 0, ""},
		{map[string]string{memoryLimit: "-1"}, 0, ""},
		{map[string]string{memoryLimit: "512"}, 0, ""},
		{map[string]string{memoryLimit: ""}, 0, ""},
		{nil, 0, ""},
		{map[string]string{memoryLimit: "256Mi"}, 0, `MEMORY_LIMIT is "256Mi": want a number of bytes`},
	} {
		got, err := heapLimit(func(name string) (string, bool) {
			value, given := c.environment[name]
			return value, given
		})
		if got != c.want || (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%v: %d (%v), want %d (%s)", c.environment, got, err, c.want, c.fault)
		}
	}
}
