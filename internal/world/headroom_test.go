package world

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// K-54: the picture has the room that a NodePool keeps free, of the shapes of the pods on its nodes. It follows the
// annotation, the pods and the clock. What cannot be understood is told and keeps nothing, and the rest of the pool
// counts.
func TestK54_ThePictureHasTheRoomOfHeadroom(t *testing.T) {
	t.Parallel()
	clock, version := newClock(), 0
	s := clock.store()
	tell := func(o client.Object) error { return s.Apply(o) }
	pool := func(annotations ...string) error {
		version++
		p := testPool("web", version)
		p.Annotations = map[string]string{}
		for i := 0; i < len(annotations); i += 2 {
			p.Annotations[annotations[i]] = annotations[i+1]
		}
		return tell(p)
	}
	want := func(when, rooms string) {
		t.Helper()
		counts := map[int64]int{}
		snapshot := s.Snapshot()
		for _, pod := range snapshot.Buffers {
			counts[pod.Shape.Requests.At(0)]++
			if pod.Shape.Buffer != "NodePool/web" || pod.Namespace != "NodePool" ||
				!strings.HasPrefix(pod.Name, "web-") {
				t.Errorf("%s: %+v of %+v", when, pod, pod.Shape)
			}
		}
		if got, same := fmt.Sprint(counts), s.Snapshot() == snapshot; got != rooms || !same {
			t.Errorf("%s: room for %s, want %s; unchanged: %t", when, got, rooms, same)
		}
	}
	if err := pool(); err != nil || s.HasBuffers() {
		t.Fatal(err, s.HasBuffers())
	}
	node := testNode("n1", "u1", 1, "cloud://1")
	node.Labels[karpenterv1.NodePoolLabelKey] = "web"
	_ = tell(testClaim("c1", "u2", 1, "web", "cloud://1", "Launched", "Registered", "Initialized"))
	_ = tell(node)
	for i := range 20 {
		pod := testPod(fmt.Sprintf("p%02d", i), fmt.Sprintf("pu%d", i), 1, "n1")
		pod.Status.Phase = corev1.PodRunning
		_ = tell(pod)
	}
	want("no headroom", "map[]")
	before := s.Version()
	if err := pool(karpenterv1.HeadroomAnnotationKey, "10%"); err != nil || !s.HasBuffers() || s.Version() == before {
		t.Fatal(err, s.HasBuffers())
	}
	request := s.Snapshot().Nodes[0].Pods[0].Shape.Requests.At(0)
	want("a tenth of 20", fmt.Sprintf("map[%d:2]", request))
	if pods, on := s.Headroom("web"); pods != 2 || !on {
		t.Errorf("room for %d, on %t", pods, on)
	}
	_ = tell(testPod("more", "pu-more", 1, "n1"))
	want("a tenth of 21", fmt.Sprintf("map[%d:3]", request))
	s.Remove(testPod("more", "pu-more", 2, "n1"))
	want("a tenth of 20 again", fmt.Sprintf("map[%d:3]", request))
	clock.now = clock.now.Add(translate.HeadroomSettles)
	want("a quarter of an hour later", fmt.Sprintf("map[%d:2]", request))

	err := pool(karpenterv1.HeadroomAnnotationKey, "10")
	if err == nil || !strings.Contains(err.Error(), `NodePool web: annotation joiner.sh/headroom is "10"`) {
		t.Errorf("told %v", err)
	}
	want("not understood", "map[]")
	err = pool(karpenterv1.HeadroomAnnotationKey, "20%", karpenterv1.MinNodesAnnotationKey, "many")
	if err == nil || !strings.Contains(err.Error(), `annotation joiner.sh/min-nodes is "many"`) {
		t.Errorf("told %v", err)
	}
	want("headroom counts beside a floor that does not", fmt.Sprintf("map[%d:4]", request))
	if p := s.Snapshot().Pool("web"); p.MinNodes != 0 || p.Invalid || strings.Contains(p.Blocked, "min-nodes") {
		t.Errorf("the pool is %+v", p)
	}

	hour := clock.now.UTC().Truncate(time.Hour).Add(time.Hour)
	when := fmt.Sprintf("0 %d * * * for 1h", hour.Hour())
	if err := pool(karpenterv1.HeadroomAnnotationKey, "20%", karpenterv1.HeadroomScheduleAnnotationKey, when,
		karpenterv1.MinNodesAnnotationKey, "2"); err != nil {
		t.Fatal(err)
	}
	want("before its time", "map[]")
	if _, on := s.Headroom("web"); on || s.Snapshot().Pool("web").MinNodes != 2 || !s.HasBuffers() {
		t.Errorf("on %t, floor %d", on, s.Snapshot().Pool("web").MinNodes)
	}
	clock.now = hour
	want("at its time", fmt.Sprintf("map[%d:4]", request))
	clock.now = hour.Add(time.Hour)
	want("after its time", "map[]")
	if err := pool(); err != nil || s.HasBuffers() {
		t.Error(err, s.HasBuffers())
	}
	want("taken away", "map[]")
	if err := pool(karpenterv1.HeadroomAnnotationKey, "cpu=2"); err != nil {
		t.Fatal(err)
	}
	s.Remove(testPool("web", version+1))
	want("the pool is gone", "map[]")
	if s.HasBuffers() {
		t.Error("a pool that is gone keeps room")
	}
}

// K-54: the counts of what runs where, which events keep, are those of a look at all pods of all nodes.
func TestCountsOfWhatRunsAreThoseOfAFullLook(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := told(newClock(), nil)
		for _, e := range drawHistory(t).events {
			e.tell(s)
			movable, nodes := map[string]map[*cluster.Shape]int{}, map[*cluster.Shape]map[string]int{}
			for _, node := range s.machines.list() {
				for _, pod := range node.Pods {
					if node.Pool == "" || pod.Fixed || pod.Terminating || len(pod.Shape.Claims) > 0 ||
						pod.Shape.Blocked != "" {
						continue
					}
					if movable[node.Pool] == nil {
						movable[node.Pool] = map[*cluster.Shape]int{}
					}
					movable[node.Pool][pod.Shape]++
				}
			}
			for name, on := range s.loads { // also of nodes that are not there yet
				for _, pod := range on.pods {
					if nodes[pod.Shape] == nil {
						nodes[pod.Shape] = map[string]int{}
					}
					nodes[pod.Shape][name]++
				}
			}
			if !reflect.DeepEqual(s.running.movable, movable) {
				t.Fatalf("pools run %v, want %v", s.running.movable, movable)
			}
			for _, uses := range s.running.shapes {
				for shape, use := range uses {
					if !maps.Equal(use.nodes, nodes[shape]) {
						t.Fatalf("%s runs on %v, want %v", shape.Key(), use.nodes, nodes[shape])
					}
					delete(nodes, shape)
				}
			}
			if len(nodes) > 0 {
				t.Fatalf("not known to run: %v", nodes)
			}
		}
	})
}
