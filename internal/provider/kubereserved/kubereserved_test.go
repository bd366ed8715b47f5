package kubereserved_test

import (
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/provider/kubereserved"
)

// E-22: figures of the rule in EKS' images, for machines of different sizes.
func TestReserved(t *testing.T) {
	t.Parallel()
	for cores, want := range map[int64]int64{0: 0, 1: 60, 2: 70, 4: 80, 8: 90, 16: 110, 96: 310} {
		if got := kubereserved.CPU(cores); got != want {
			t.Errorf("%d cores: %dm reserved, want %dm", cores, got, want)
		}
	}
	if got, want := kubereserved.Memory(29), int64(574<<20); got != want {
		t.Errorf("29 pods: %d bytes reserved, want %d", got, want)
	}
}
