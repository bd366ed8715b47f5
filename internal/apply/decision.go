package apply

import (
	"slices"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Decision is something that was decided about a node, and what became of it (U-10). Its fields are of closed sets.
type Decision struct {
	Verb    Verb
	Cause   string // of a removal and of what replaces, a reason of disruption
	Outcome Result
}

// About is what a decision was about, for whoever keeps it (U-32). What is not known is empty.
type About struct {
	Pool, Claim, Node string
	// Replaces are the NodeClaims that a launch is to replace.
	Replaces []string
	Pods     []plan.PodRef // that a launch is for
	Types    []string      // that fit, cheapest first
	// Before and After are prices per hour: a launch has none before, a removal none after. See resources.Unpriced.
	Before, After resources.Money
	BasedOn       uint64 // version of the snapshot
	Why           string
	Relaxed       bool // the launch leaves fewer values than minValues demands
}

// Verb is what is done.
type Verb string

// What is done: a node is launched, for pods or as a replacement, or is removed.
const (
	Launch  Verb = "launch"
	Replace Verb = "replace"
	Remove  Verb = "remove"
)

// Result is what became of a decision.
type Result string

// What becomes of a launch: its NodeClaim is made (done), the plan did not hold any more (refused), or the API server
// could not be told (failed); later its node has joined. A removal is planned, and then done or taken back.
const (
	Planned   Result = "planned"
	Done      Result = "done"
	TakenBack Result = "taken_back"
	NotHeld   Result = "refused"
	Failed    Result = "failed"
	Joined    Result = "joined"
)

// Why a node is launched that replaces none: for pods that wait, for the replicas of a static pool, for the room of a
// CapacityBuffer or headroom, or because its pool always keeps so many nodes.
const (
	CausePending  = "Pending"
	CauseReplicas = "Replicas"
	CauseBuffer   = "CapacityBuffer"
	CauseFloor    = "MinNodes"
)

// causeOther stands for what is no cause of ours: somebody has edited it.
const causeOther = "Other"

func causeOf(reason plan.DisruptionReason) string {
	if slices.Contains(engine.Reasons(), reason) {
		return string(reason)
	}
	return causeOther
}

// marked is the cause that stands on a claim which is to be removed.
func marked(claim *karpenterv1.NodeClaim) string {
	intent, _ := condition.Get(claim.Status.Conditions, karpenterv1.ConditionTypeDisruptionReason)
	return causeOf(plan.DisruptionReason(intent.Reason))
}

// decided tells of a launch of p, and returns the decision's ID. claim is "" when there is none.
func (a *Applier) decided(p plan.Plan, launch plan.Launch, outcome Result, claim, why string) string {
	d := Decision{Verb: Launch, Cause: CausePending, Outcome: outcome}
	switch {
	case len(launch.Replaces) > 0:
		d.Verb, d.Cause = Replace, causeOther
		for _, remove := range p.Removes {
			if slices.Contains(launch.Replaces, remove.Claim) {
				d.Cause = causeOf(remove.Reason)
			}
		}
	case slices.Contains(launch.For, plan.AskReplicas):
		d.Cause = CauseReplicas
	case slices.Contains(launch.For, plan.AskFloor):
		d.Cause = CauseFloor
	case len(launch.Pods) == 0 && len(launch.Buffers) > 0:
		d.Cause = CauseBuffer
	}
	return a.config.Decided(d, About{Pool: launch.Pool, Claim: claim, Replaces: launch.Replaces, Pods: launch.Pods,
		Types: launch.Types, After: launch.Cheapest.Price.OfNode(), BasedOn: p.BasedOn, Why: why,
		Relaxed: len(launch.Relaxed) > 0})
}

// removing tells of a removal, and returns the decision's ID.
func (a *Applier) removing(remove plan.Remove, cause string, outcome Result) string {
	return a.config.Decided(Decision{Remove, cause, outcome}, About{Pool: remove.Pool, Claim: remove.Claim,
		Node: remove.Node, Before: remove.Price.OfNode(), Why: remove.Why})
}
