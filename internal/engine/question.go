package engine

import (
	"fmt"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// Question is what the methods of disruption look at, apart from settings. An equal one has an equal answer (B-22).
// Time is part of it only where it ends a node's quiet time or rest, or changes budgets. Whatever else ends by itself
// makes a new snapshot.
type Question struct {
	version uint64 // of the snapshot
	due     int    // quiet times and rests of nodes that have ended
	allowed string // what the budgets allow in each pool, by method
	passing string
}

// Question returns the question of these terms about a snapshot. Turn and Again are not part of it.
func (t Terms) Question(s *cluster.Snapshot) Question {
	q := Question{version: s.Version}
	for _, node := range s.Nodes {
		for _, at := range []int64{node.ConsolidatableAt, node.ReplaceableAt()} {
			if at <= t.Now {
				q.due++
			}
		}
	}
	var allowed, passing strings.Builder
	methods := Methods()
	for _, pool := range s.Pools {
		for _, method := range methods {
			fmt.Fprintf(&allowed, "%s %d,", pool.Name, Allowed(t.Budgets[pool.Name], method.Reason))
		}
		if t.Passing[pool.Name] {
			passing.WriteString(pool.Name + ",")
		}
	}
	q.allowed, q.passing = allowed.String(), passing.String()
	return q
}

// Passing reports whether pools were left out because their workloads shrink.
func (q Question) Passing() bool { return q.passing != "" }
