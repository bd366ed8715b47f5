package view

import (
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// Object names what a cause is about.
type Object struct {
	Kind string `json:"kind"`
	Name string `json:"name,omitempty"`
}

// String returns kind and name, without a missing one.
func (o Object) String() string { return strings.TrimSpace(o.Kind + " " + o.Name) }

// Cause is why something is as it is: a code, a sentence, and what to do.
type Cause struct {
	Code   cause.Code `json:"code"`
	Object Object     `json:"object"`
	// Text is one sentence without a full stop.
	Text     string   `json:"text"`
	Remedies []string `json:"remedies,omitempty"`
	ByItself string   `json:"byItself,omitempty"`
}

// Waiting is why a pod gets no node.
type Waiting struct {
	// Cause is the one to act on first: that of the pool which is nearest to taking the pod (U-17).
	Cause Cause `json:"cause"`
	// Pools is what each pool says, nearest first. It is empty where the cause is the pod's own.
	Pools []PoolCause `json:"pools,omitempty"`
}

// PoolCause is why one pool cannot launch a node for a pod.
type PoolCause struct {
	Pool string     `json:"pool"`
	Code cause.Code `json:"code"`
	Text string     `json:"text"`
	// Steps are all filters that removed something, in words.
	Steps []string `json:"steps,omitempty"`
	// Beyond is what would be in the way if the pod tolerated the pool's taints; "" when nothing would, or no taint
	// is.
	Beyond cause.Code `json:"beyond,omitempty"`
}

// Waits explains why a pod has no place, from the engine's reasons. Among equally near pools the first counts, which
// has the greatest weight.
func Waits(u plan.Unplaced) Waiting {
	if len(u.Pools) == 0 {
		return Waiting{Cause: about("", plan.Step{Cause: cause.NoNodePool, Detail: "there is no NodePool"})}
	}
	list := reasons(u)
	w := Waiting{Cause: list[0].cause}
	if w.Cause.Object.Kind == "Pod" {
		return w
	}
	for _, r := range list {
		w.Pools = append(w.Pools, r.PoolCause)
	}
	return w
}

// Further returns the causes of the other pools, nearest first: those that Waits leaves out.
func Further(u plan.Unplaced) []Cause {
	var further []Cause
	for i, r := range reasons(u) {
		if i > 0 && r.cause.Object.Kind != "Pod" {
			further = append(further, r.cause)
		}
	}
	return further
}

// reason is why one pool does not take a pod.
type reason struct {
	PoolCause
	cause    Cause
	distance int
}

// reasons returns the reasons of all pools, nearest first.
func reasons(u plan.Unplaced) []reason {
	list := make([]reason, 0, len(u.Pools))
	for _, refusal := range u.Pools {
		last := refusal.Last()
		found := about(refusal.Pool, last)
		e, _ := entryOf(last.Cause)
		r := reason{cause: found, distance: distance(e, refusal.Beyond), PoolCause: PoolCause{Pool: refusal.Pool,
			Code: last.Cause, Text: found.Text, Beyond: refusal.Beyond}}
		for _, step := range refusal.Steps {
			r.Steps = append(r.Steps, step.String())
		}
		list = append(list, r)
	}
	putChosenFirst(list, u.Pools)
	slices.SortStableFunc(list, func(a, b reason) int { return a.distance - b.distance })
	return list
}

// putChosenFirst moves pools whose labels do not match the pod behind pools that match and lack only a resource. Such
// a pod has chosen its pool by that label, so it is told what is wrong there (U-17). Labels of instance types, such as
// the zone, choose no pool, and stay before resources.
func putChosenFirst(list []reason, refusals []plan.PoolRefusal) {
	short := func(r reason) bool { return r.distance == 2*ofAResource }
	if !slices.ContainsFunc(list, short) {
		return
	}
	labels := []cause.Code{cause.LabelMismatch, cause.LabelUnknown}
	for i, refusal := range refusals {
		last := refusal.Last()
		if slices.Contains(labels, last.Cause) && last.Before == 0 || slices.Contains(labels, refusal.Beyond) {
			list[i].distance = 2*ofAResource + 1
		}
	}
}

// distance returns how far a pool is from taking a pod. A taint with another obstacle behind it counts as that
// obstacle, and slightly more.
func distance(e Entry, beyond cause.Code) int {
	if beyond == "" {
		return 2 * e.distance
	}
	next, _ := entryOf(beyond)
	return 2*max(e.distance, next.distance) + 1
}

// about makes the cause of a step. An unknown code gets the engine's own words.
func about(pool string, s plan.Step) Cause {
	e, known := entryOf(s.Cause)
	c := Cause{Code: s.Cause, Object: Object{Kind: "NodePool", Name: pool}, ByItself: e.ByItself}
	switch {
	case !known, e.sentence == nil:
		c.Text = "pool " + pool + ": " + s.Detail
	default:
		c.Text = e.sentence(pool, s)
	}
	if pool == "" || !strings.HasPrefix(c.Text, "pool ") {
		c.Object = Object{Kind: "Pod"}
	}
	if s.Cause == cause.NoNodePool {
		c.Object = Object{Kind: "Cluster"}
	}
	remedies := e.Remedies
	if s.Never {
		c.ByItself = never
		if s.Cause != cause.ResourceLimit {
			remedies = remedies[:1] // removing nodes would make no room
		}
	}
	names := strings.NewReplacer("POOL", pool, "KEY", s.Key)
	for _, remedy := range remedies {
		c.Remedies = append(c.Remedies, names.Replace(remedy))
	}
	return c
}
