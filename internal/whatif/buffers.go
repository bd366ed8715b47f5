package whatif

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	autoscalingv1beta1 "github.com/joiner-autoscaler/joiner/api/autoscaling/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

// Buffer is how much of a CapacityBuffer's room there is by a plan (K-37).
type Buffer struct {
	Name string `json:"name"` // namespace/name
	// Existing counts the pods for which there is room on nodes that there are, New those for which it is launched,
	// and Missing those for which there is none, with why for the first of them.
	Existing int    `json:"existing"`
	New      int    `json:"new"`
	Missing  int    `json:"missing"`
	Why      string `json:"why,omitempty"`
	// Unresolved says why it is not known what it asks for; then there is no room.
	Unresolved string `json:"unresolved,omitempty"`
}

// String returns it as one line.
func (b Buffer) String() string {
	if b.Unresolved != "" {
		return fmt.Sprintf("CapacityBuffer %s: no room: %s", b.Name, b.Unresolved)
	}
	var parts []string
	if b.Existing > 0 {
		parts = append(parts, fmt.Sprintf("room for %s on nodes that there are", count(b.Existing, "pod", "pods")))
	}
	if b.New > 0 {
		parts = append(parts, fmt.Sprintf("room for %s on new nodes", count(b.New, "pod", "pods")))
	}
	if b.Missing > 0 {
		parts = append(parts, fmt.Sprintf("no room for %s: %s", count(b.Missing, "pod", "pods"), b.Why))
	}
	if len(parts) == 0 {
		parts = []string{"it asks for none"}
	}
	return fmt.Sprintf("CapacityBuffer %s: %s", b.Name, strings.Join(parts, ", "))
}

// buffers returns what a plan for s has for each CapacityBuffer, ordered by name.
func (w *World) buffers(s *cluster.Snapshot, p plan.Plan) (list []Buffer) {
	rooms := view.Rooms(s, p)
	for _, o := range w.objects {
		b, is := o.Object.(*autoscalingv1beta1.CapacityBuffer)
		if !is {
			continue
		}
		name := types.NamespacedName{Namespace: b.Namespace, Name: b.Name}
		room := rooms[name.String()]
		own := Buffer{Name: name.String(), Existing: room.There + room.Coming, New: room.Planned,
			Missing: room.Missing, Why: room.Text}
		if v, _, _ := w.store.BufferVerdict(name); w.config.Off.Buffers {
			own.Unresolved = "the feature gate CapacityBuffer is off"
		} else if !v.Ready() {
			own.Unresolved = v.Message
		}
		list = append(list, own)
	}
	slices.SortFunc(list, func(a, b Buffer) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// bufferOf returns the buffer of each buffer pod, by UID.
func bufferOf(s *cluster.Snapshot) map[string]string {
	of := make(map[string]string, len(s.Buffers))
	for _, pod := range s.Buffers {
		of[pod.UID] = pod.Shape.Buffer
	}
	return of
}
