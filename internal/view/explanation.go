package view

import (
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// State is how a pod stands.
type State string

// The states of a pod.
const (
	// Settled: it runs on a node, has ended, or ends.
	Settled State = "Settled"
	// Coming: a node takes it, or will, without anybody doing anything.
	Coming State = "Coming"
	// Held: it waits for a cause.
	Held State = "Held"
)

// Explanation is why one pod is where it is. Its names in JSON are an API (U-29).
type Explanation struct {
	State State `json:"state"`
	// Text says how it stands where there is no cause; "" where there is one.
	Text  string `json:"text,omitempty"`
	Cause *Cause `json:"cause,omitempty"`
	// Pools is what each pool says, nearest first; empty where the cause is not theirs.
	Pools []PoolCause `json:"pools,omitempty"`
}

// Stands makes an explanation of a pod that is settled.
func Stands(text string) Explanation { return Explanation{State: Settled, Text: text} }

// WaitsFor makes an explanation of a cause that no pool has. name stands for the gate, node or claim that it is about; pool is
// the one that would launch, or "".
func WaitsFor(code cause.Code, text, name, pool string) Explanation {
	found := about(pool, plan.Step{Cause: code, Detail: text})
	found.Object = Object{Kind: "Pod"}
	state := Held
	switch code {
	case cause.NodeOnTheWay:
		state, found.Object = Coming, Object{Kind: "NodeClaim", Name: name}
	case cause.NodeFits, cause.WaitsForVictims:
		state, found.Object = Coming, Object{Kind: "Node", Name: name}
	case cause.LaunchPlanned:
		state, found.Object = Coming, Object{Kind: "NodePool", Name: pool}
	}
	for i, remedy := range found.Remedies {
		found.Remedies[i] = strings.ReplaceAll(remedy, "NAME", name)
	}
	return Explanation{State: state, Cause: &found}
}

// NotPlaced makes an explanation of a pod that no pool takes.
func NotPlaced(u plan.Unplaced) Explanation {
	w := Waits(u)
	return Explanation{State: Held, Cause: &w.Cause, Pools: w.Pools}
}
