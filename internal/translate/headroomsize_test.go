package translate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// asPod returns a pod that requests resources in the form of the annotation.
func asPod(t *testing.T, space *resources.Space, text string) *cluster.Shape {
	t.Helper()
	asked, err := translate.ParseHeadroom(text)
	if err != nil {
		t.Fatal(err)
	}
	requests := resources.Vector(nil).With(resources.Pods, 1)
	for component, amount := range space.Vector(translate.Amounts(asked.Amounts)) {
		if amount > 0 {
			requests = requests.With(component, amount)
		}
	}
	return &cluster.Shape{Namespace: "shop", Requests: requests}
}

// K-54. The room for several resources together is exactly what was asked for of each, apart from the rounding of
// cores and bytes. A GPU that was asked for once is one GPU, however many cores come with it. The pieces are few, and
// so are their shapes: each costs a round of planning.
func TestK54_TheSumOfEachResource(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		asked        string
		pod          string // that runs on the pool's nodes, 5 times; "" for none
		pods, shapes int    // at most
	}{
		{"cpu=20,memory=80Gi,nvidia.com/gpu=1", "", 20, 2},
		{"cpu=20,nvidia.com/gpu=3", "", 20, 2},
		{"cpu=20,nvidia.com/gpu=3", "cpu=8,nvidia.com/gpu=1", 6, 3},
		{"cpu=20,nvidia.com/gpu=3", "cpu=8", 6, 3},
		{"cpu=2,nvidia.com/gpu=8", "", 8, 1},
		{"cpu=20,nvidia.com/gpu=30,vpc.amazonaws.com/efa=7", "", 30, 2},
		{"cpu=4,nvidia.com/gpu=2,vpc.amazonaws.com/efa=1", "", 4, 3},
		{"nvidia.com/gpu=300", "", 300, 1},
		{"x.example/gpumem=16000", "", 16, 1},
		{"x.example/gpumem=16001", "", 16, 2},
		{"cpu=20,x.example/gpumem=16000", "", 20, 1},
		{"x.example/bytes=64Gi", "", 16, 1},
		{"hugepages-2Mi=1Gi", "", 1, 1},
		{"hugepages-2Mi=5000Mi,cpu=3", "", 5, 1},
		{"hugepages-1Gi=3Gi,cpu=5", "", 5, 2},
		{"cpu=20,hugepages-2Mi=2Mi", "", 20, 2},
		{"cpu=2500m,memory=2Gi,ephemeral-storage=21Gi", "", 6, 1},
		{"cpu=1M,memory=1", "", 5000, 1},
		{"memory=7E,nvidia.com/gpu=1", "", 5000, 2},
		{"cpu=6000,nvidia.com/gpu=1", "cpu=1", 6000, 3},
	} {
		r := newRoom(t, row.asked)
		var running []translate.Running
		if row.pod != "" {
			running = []translate.Running{{Shape: asPod(t, r.space, row.pod), Pods: 5}}
		}
		room := r.is.Next(r.space, "web", nil, r.asked, running, time.Unix(1_000_000, 0))
		if room.Pods() > row.pods || len(room.Parts) > row.shapes {
			t.Errorf("%s beside %q: %d pods of %d shapes; want at most %d of %d", row.asked, row.pod, room.Pods(),
				len(room.Parts), row.pods, row.shapes)
		}
		for component, want := range r.space.Vector(translate.Amounts(r.asked.Amounts)) {
			name, sum := r.space.Names()[component], int64(0)
			if name == resources.NamePods {
				continue
			}
			for _, part := range room.Parts {
				sum += part.Shape.Requests.At(component) * int64(part.Pods)
			}
			most := want
			switch name {
			case resources.NameCPU, resources.NameMemory, resources.NameEphemeralStorage:
				most += int64(room.Pods()) // a piece is rounded up
			}
			if sum < want || sum > most {
				t.Errorf("%s beside %q: room for %d of %s, want %d", row.asked, row.pod, sum, name, want)
			}
			grain := int64(1)
			if size, huge := strings.CutPrefix(name, "hugepages-"); huge {
				grain = map[string]int64{"2Mi": 2 << 20, "1Gi": 1 << 30}[size]
			}
			for _, part := range room.Parts {
				if part.Shape.Requests.At(component)%grain != 0 {
					t.Errorf("%s: a piece has %d of %s, and pages are of %d", row.asked,
						part.Shape.Requests.At(component), name, grain)
				}
			}
		}
	}
}
