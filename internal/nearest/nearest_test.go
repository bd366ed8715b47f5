package nearest_test

import (
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/nearest"
)

// TestU13_Nearest: letters changed, added, left out or swapped count, at most a third of them; else a name that has it
// within.
func TestU13_Nearest(t *testing.T) {
	t.Parallel()
	names := []string{"web", "default", "gpu", "train-2", "train-1", "shop-batch-a", "", "n1"}
	for name, want := range map[string]string{
		"wbe": "web", "Default": "default", "defaul": "default", "gpuu": "gpu", "train-3": "train-1",
		"batch": "shop-batch-a",
		"":      "", "n": "n1", "xyz": "", "everything": "", "gpu": "gpu",
	} {
		if got := nearest.Of(name, names); got != want {
			t.Errorf("nearest to %q is %q; want %q", name, got, want)
		}
	}
	if got := nearest.Of("web", nil); got != "" {
		t.Errorf("nearest of none is %q", got)
	}
}
