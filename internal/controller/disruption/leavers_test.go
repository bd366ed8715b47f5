package disruption_test

import (
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/controller/disruption"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// P-23, B-11: before a node is removed, the pods that leave it for found places are reported. Without a search for
// places, as above a limit, they are not.
func TestPodsThatLeaveAreTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cpu  string
		want int
	}{"its pod fits elsewhere": {"500m", 1}, "its pod fits nowhere": {"1500m", 0}} {
		r := clusterOf(t, "100%", map[string]string{"a": "small", "b": "small"}, c.cpu)
		var told []*cluster.Pod
		r.over(r.server, func(config *disruption.Config) {
			config.Leave = func(pods []*cluster.Pod) {
				if _, deleting := r.state(t); len(deleting) > 0 {
					t.Errorf("%s: told when %v is being removed", name, deleting)
				}
				told = append(told, pods...)
			}
		})
		for range 4 {
			r.turn(t)
		}
		_, deleting := r.state(t)
		if len(told) != c.want || len(deleting) != c.want || c.want > 0 && told[0].Name != "on-"+deleting[0] {
			t.Errorf("%s: told of %v, removed %v; want %d pod", name, told, deleting, c.want)
		}
	}
	r := newRig(t, append(limitedFleet("1", "a", "b"), podAsking("on-a", "a", "500m"),
		podAsking("on-b", "b", "500m"))...)
	r.over(r.server, func(config *disruption.Config) {
		config.Leave = func(pods []*cluster.Pod) { t.Errorf("told of %v, and nobody asked where they go", pods) }
	})
	for range 3 {
		r.turn(t)
	}
	if _, deleting := r.state(t); len(deleting) != 1 {
		t.Errorf("removed %v, want one of two above the limit", deleting)
	}
}
