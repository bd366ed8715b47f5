package view

import (
	"strings"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// State is the state of an explained object.
type State string

// The states of an object.
const (
	// Settled: nothing has to happen: a pod runs or has ended, a node stays as it should.
	Settled State = "Settled"
	// Coming: what is wanted will happen without anybody acting.
	Coming State = "Coming"
	// Held: a cause prevents it.
	Held State = "Held"
)

// Explanation is why one object is as it is. Its names in JSON are an API (U-29).
type Explanation struct {
	State State `json:"state"`
	// Text says how it stands where there is no cause; "" where there is one.
	Text  string `json:"text,omitempty"`
	Cause *Cause `json:"cause,omitempty"`
	// Wanted is what a node would go for if nothing kept it; "" when nothing wants it gone.
	Wanted string `json:"wanted,omitempty"`
	// Pools is what each pool says, nearest first; empty where the cause is not theirs.
	Pools []PoolCause `json:"pools,omitempty"`
	// Also are further causes, in the order in which they would be told; of pods and nodes where all are asked for.
	Also []Cause `json:"also,omitempty"`
}

// Stands explains a settled pod.
func Stands(text string) Explanation { return Explanation{State: Settled, Text: text} }

// WaitsFor explains a cause that is not a pool's. name is the gate, node or claim that it is about; pool is the pool
// that would launch, or "".
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

// Nominated explains a pod that is expected on an existing node or, if there is none of that name, on the coming node
// of that NodeClaim.
func Nominated(node string, there bool) Explanation {
	if there {
		return Fits(node)
	}
	return OnTheWay(node)
}

// Standing explains a node, managed or not.
func Standing(s engine.Standing, pool string) Explanation {
	if s.Goes != "" {
		return Explanation{State: Coming, Text: "it would go now: " + string(s.Goes)}
	}
	found := about(pool, plan.Step{Cause: s.Cause, Detail: s.Text})
	found.Object = Object{Kind: "Node"}
	if s.Pod.Name != "" {
		found.Object = Object{Kind: "Pod", Name: s.Pod.String()}
	}
	for i, remedy := range found.Remedies {
		found.Remedies[i] = strings.NewReplacer("NAME", s.Pod.String(), "CLAIM", s.Claim).Replace(remedy)
	}
	e := Explanation{State: Held, Cause: &found, Wanted: string(s.Wanted)}
	switch s.Cause {
	case cause.NothingCheaper, cause.NotManaged, cause.StaticPoolNode, cause.MinNodes, cause.ConsolidationOff,
		cause.PodsComing, cause.IsReplacement, cause.KeepsRoom:
		e.State = Settled // nothing wants it gone
	case cause.Draining, cause.Rebooting, cause.ReplacementOnTheWay, cause.QuietTime, cause.OthersFirst:
		e.State = Coming
	}
	if s.Until > 0 {
		found.ByItself = "at " + time.Unix(s.Until, 0).UTC().Format(time.RFC3339)
		if s.Cause == cause.QuietTime {
			found.ByItself = "it is looked at again " + found.ByItself + ", if no pod comes or goes before"
		}
	}
	if len(s.Homeless.Pools) > 0 {
		w := Waits(s.Homeless)
		found.Text = s.Lead + "pod " + s.Pod.String() + " would find no place elsewhere: " + w.Cause.Text
		found.Remedies = w.Cause.Remedies // a place for its pod would let the node go
		e.Pools = w.Pools
	}
	return e
}

// Standings explains everything that keeps a node; the first standing is the main one.
func Standings(list []engine.Standing, pool string) Explanation {
	e := Standing(list[0], pool)
	for _, s := range list[1:] {
		if more := Standing(s, pool); more.Cause != nil {
			e.Also = append(e.Also, *more.Cause)
		}
	}
	return e
}

// NotPlaced explains a pod that no pool takes.
func NotPlaced(u plan.Unplaced) Explanation {
	w := Waits(u)
	return Explanation{State: Held, Cause: &w.Cause, Pools: w.Pools}
}
