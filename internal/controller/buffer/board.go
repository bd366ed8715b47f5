package buffer

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

// Standing is how much of a buffer's room there is, by the last plan.
type Standing struct {
	// There is for how many pods there is room on nodes that are initialized, Coming on others that are on their way or
	// planned, and Missing for how many there is none.
	There, Coming, Missing int
	// Cause and Text say why room is missing, for the first pod without; "" when none is.
	Cause cause.Code
	Text  string
}

// Board has how buffers stand by the last plan. It is safe for concurrent use. The zero value knows of none.
type Board struct {
	mu       sync.Mutex
	standing map[types.NamespacedName]Standing
}

// Of returns how a buffer stands; known is false before a plan has seen it.
func (b *Board) Of(name types.NamespacedName) (standing Standing, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	standing, known = b.standing[name]
	return standing, known
}

// Take takes in a plan for the buffers of s, and returns those that stand otherwise than before, ordered by name.
func (b *Board) Take(s *cluster.Snapshot, p plan.Plan) []types.NamespacedName {
	fresh := stand(s, p)
	b.mu.Lock()
	defer b.mu.Unlock()
	var changed []types.NamespacedName
	for name, now := range fresh {
		if before, known := b.standing[name]; !known || before != now {
			changed = append(changed, name)
		}
	}
	b.standing = fresh
	slices.SortFunc(changed, func(x, y types.NamespacedName) int { return strings.Compare(x.String(), y.String()) })
	return changed
}

// stand counts what a plan says of each buffer.
func stand(s *cluster.Snapshot, p plan.Plan) map[types.NamespacedName]Standing {
	of := make(map[string]types.NamespacedName, len(s.Buffers))
	all := map[types.NamespacedName]Standing{}
	for _, pod := range s.Buffers {
		namespace, name, _ := strings.Cut(pod.Shape.Buffer, "/")
		of[pod.UID] = types.NamespacedName{Namespace: namespace, Name: name}
		all[of[pod.UID]] = Standing{}
	}
	count := func(pod plan.PodRef, change func(*Standing)) {
		if name, known := of[pod.UID]; known {
			now := all[name]
			change(&now)
			all[name] = now
		}
	}
	there := map[string]bool{}
	for _, node := range s.Nodes {
		there[node.ID()] = node.Initialized
	}
	for _, place := range p.Buffers.Places {
		count(place.Pod, func(now *Standing) {
			if there[place.Node] {
				now.There++
			} else {
				now.Coming++
			}
		})
	}
	for _, l := range p.Launches {
		for _, pod := range l.Buffers {
			count(pod, func(now *Standing) { now.Coming++ })
		}
	}
	for _, u := range p.Buffers.Unplaced {
		count(u.Pod, func(now *Standing) {
			if now.Missing++; now.Missing == 1 {
				why := view.NotPlaced(u).Cause
				now.Cause, now.Text = why.Code, why.Headline()
			}
		})
	}
	return all
}

// limits are the causes that a limit is.
func limits() []cause.Code {
	return []cause.Code{cause.HardLimitNodes, cause.SoftLimitNodes, cause.ClusterLimitNodes, cause.ResourceLimit}
}
