package pack

import (
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// P-22: a zone that has memory left over beside its cores takes pods with memory at no price, however many pods it
// has.
func TestAPodComesWhereItAddsLeast(t *testing.T) {
	t.Parallel()
	pod := func(cores, memory int64) *shape {
		return &shape{Shape: &cluster.Shape{Requests: resources.Vector{cores, memory}}}
	}
	zone := func(cores, memory int64, load float64) *class {
		return &class{cost: 1, unit: []float64{2, 1}, asked: resources.Vector{cores, memory}, load: load}
	}
	cores, memory := zone(40, 10, 3), zone(5, 40, 2)
	if got := cores.compare(memory, pod(1, 8)); got >= 0 {
		t.Errorf("a pod with memory: %d, want it beside many cores", got)
	}
	if got := cores.compare(memory, pod(4, 1)); got <= 0 {
		t.Errorf("a pod with cores: %d, want it beside much memory", got)
	}
	if got := cores.compare(zone(40, 10, 2), pod(4, 1)); got <= 0 {
		t.Errorf("it adds the same to both: %d, want the one with less load", got)
	}
	dear := zone(5, 40, 2)
	dear.cost = 2
	if got := cores.compare(dear, pod(4, 1)); got >= 0 {
		t.Errorf("a zone at twice the price: %d, want the cheap one", got)
	}
}
