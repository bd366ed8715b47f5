package buffer

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

// Board has how buffers stand by the last plan. It is safe for concurrent use. The zero value knows of none.
type Board struct {
	mu    sync.Mutex
	rooms map[string]view.Room // by namespace/name
}

// Of returns how a buffer stands; known is false before a plan has seen it.
func (b *Board) Of(name types.NamespacedName) (room view.Room, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	room, known = b.rooms[name.String()]
	return room, known
}

// Take takes in a plan for the buffers of s, and returns those that stand otherwise than before, ordered by name.
func (b *Board) Take(s *cluster.Snapshot, p plan.Plan) []types.NamespacedName {
	fresh := view.Rooms(s, p)
	b.mu.Lock()
	defer b.mu.Unlock()
	var changed []types.NamespacedName
	for key, now := range fresh {
		if before, known := b.rooms[key]; !known || before != now {
			namespace, name, _ := strings.Cut(key, "/")
			changed = append(changed, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	b.rooms = fresh
	slices.SortFunc(changed, func(x, y types.NamespacedName) int { return strings.Compare(x.String(), y.String()) })
	return changed
}
