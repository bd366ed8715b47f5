package plan

import (
	"fmt"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
)

// Unplaced is a pod for which no pool has room, and why (P-12).
type Unplaced struct {
	Pod PodRef
	// Pools has one entry for each pool, in the order in which they were tried.
	Pools []PoolRefusal
	// Nodes counts the nodes, existing or on their way, that were looked at and refused the pod.
	Nodes int
}

// PoolRefusal is why one pool cannot launch a node for a pod.
type PoolRefusal struct {
	Pool string
	// Steps are the filters in the order in which they were applied. The last one left nothing.
	Steps []Step
	// Beyond is what would be in the way if the pod tolerated the pool's taints: "" when nothing would, or when no
	// taint is.
	Beyond cause.Code
}

// Demand says who made the demand behind a step.
type Demand string

// Whose demand removed instance types (P-12).
const (
	ByPool     Demand = "pool"
	ByPod      Demand = "pod"
	ByTaint    Demand = "taint"
	ByLimit    Demand = "limit"
	ByCapacity Demand = "capacity"
	ByTopology Demand = "topology"
	ByBrake    Demand = "brake" // launches for such pods were in vain (P-35)
)

// Step is one filter on the way from all instance types of a pool's node class to none.
type Step struct {
	Demand Demand
	// Cause is the code of what the filter found: the cause of a refusal is that of its last step.
	Cause cause.Code
	// Key is what was asked about: a label, a resource, a taint's key; "" when the filter has none.
	Key string
	// Detail is the demand in words, such as zone=a|b or cpu=64.
	Detail string
	// Before and Left count instance types before and after the filter.
	Before, Left int
	// Never is set when a limit is in the way that no suitable node is within, however few nodes there are.
	Never bool
}

// Last returns the step that left nothing; the zero Step when there is none.
func (r PoolRefusal) Last() Step {
	if len(r.Steps) == 0 {
		return Step{}
	}
	return r.Steps[len(r.Steps)-1]
}

// String prints the refusal on one line, naming every step that removed something.
func (r PoolRefusal) String() string {
	parts := make([]string, len(r.Steps))
	for i, step := range r.Steps {
		parts[i] = step.String()
	}
	return "pool " + r.Pool + ": " + strings.Join(parts, "; ")
}

// String prints the step: what was demanded, by whom and what it left.
func (s Step) String() string {
	if s.Before == 0 {
		return s.Detail
	}
	return fmt.Sprintf("%s %s leaves %d of %d instance types", s.Demand, s.Detail, s.Left, s.Before)
}

// String prints why the pod stays unplaced, one pool after the other.
func (u Unplaced) String() string {
	if len(u.Pools) == 0 {
		return "there is no NodePool"
	}
	parts := make([]string, len(u.Pools))
	for i, refusal := range u.Pools {
		parts[i] = refusal.String()
	}
	return strings.Join(parts, " | ")
}
