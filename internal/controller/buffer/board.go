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

// Board has the state of buffers as of the last plan. It is safe for concurrent use. The zero value is empty.
type Board struct {
	mu    sync.Mutex
	rooms map[string]view.Room // by namespace/name
}

// Of returns the state of a buffer. known is false until a plan has seen it.
func (b *Board) Of(name types.NamespacedName) (room view.Room, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	room, known = b.rooms[name.String()]
	return room, known
}

// Take records a plan for the buffers of s. It returns those whose state has changed, ordered by name.
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
