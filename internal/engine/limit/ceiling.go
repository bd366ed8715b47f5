package limit

import "fmt"

// Ceiling is the soft limit on the nodes of the whole cluster, of all pools together: --max-nodes (K-53). It bounds what
// is launched for pods and for replicas. A replacement may go above it while what it replaces is still there, and nothing
// is removed for it. The zero value is no limit.
type Ceiling struct {
	Most int64 // 0 for no limit
	Used int64 // NodeClaims, joined or not, and nodes without one, of whatever program
}

// Left returns how many more nodes the ceiling admits, or [None] when it admits any number.
func (c Ceiling) Left() int64 {
	if c.Most == 0 {
		return None
	}
	return max(0, c.Most-c.Used)
}

// Text says how full the cluster is, for events and tables: "nodes 10 of 10 in the whole cluster (--max-nodes)".
func (c Ceiling) Text() string {
	return fmt.Sprintf("nodes %d of %d in the whole cluster (--max-nodes)", c.Used, c.Most)
}
