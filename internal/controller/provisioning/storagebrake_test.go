package provisioning_test

import (
	"strings"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// K-58: it is unknown how much storage a new node's driver will have. After two rounds in vain no further node is
// launched for the class for half an hour, whatever other pods request it, and this is reported. Then there is one
// try.
func TestK58_NodesWithoutTheStorageAreTriedTwice(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1)
	fast := func(pod *cluster.Pod, size int64) {
		shape := *pod.Shape
		shape.NewVolumes = []cluster.NewVolume{{Class: "fast", Size: size, Made: true}}
		pod.Shape = &shape
	}
	fast(s.pods[0], 1<<30)
	s.want("the first round", 0, 1)
	if asks := strings.Join(s.nodes[0].For, " "); !strings.Contains(asks, cluster.StorageAsk("fast")) {
		t.Errorf("it is launched for %s", asks)
	}
	s.want("no capacity is published, at once", 0, 1)
	s.want("after two rounds in vain", 0, 0)
	if said := strings.Join(s.tape.Said(), "\n"); !strings.Contains(said,
		"2 rounds of nodes for pods such as default/web-0 were in vain") {
		t.Errorf("said:\n%s", said)
	}
	other := *s.pods[0]
	other.UID, other.Name = "uid-other", "other"
	fast(&other, 2<<30)
	s.pods = append(s.pods, &other)
	s.want("another size of the class", 5*time.Minute, 0)
	s.want("before the half hour is over", 24*time.Minute, 0)
	said := strings.Join(s.tape.Said(), "\n")
	if !strings.Contains(said, "other FailedScheduling") ||
		!strings.Contains(said, "StorageClass fast: 2 rounds of nodes") {
		t.Errorf("said:\n%s", said)
	}
	s.want("then one try", 2*time.Minute, 1)
}
