package apply

import (
	"slices"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Decision is a decision about a node and its outcome (U-10). Each field has a closed set of values.
type Decision struct {
	Verb    Verb
	Cause   string // for removals and replacements: the disruption reason
	Outcome Result
}

// About is the subject of a decision, for the history (U-32). Unknown fields are empty.
type About struct {
	Pool, Claim, Node string
	// Replaces are the NodeClaims that a launch replaces.
	Replaces []string
	Pods     []plan.PodRef // that a launch is for
	Types    []string      // that fit, cheapest first
	// Before and After are prices per hour. A launch has no Before, a removal no After. See resources.Unpriced.
	Before, After resources.Money
	BasedOn       uint64 // version of the snapshot
	Why           string
	Relaxed       bool // the launch leaves fewer values than minValues demands
}

// Verb is what is done.
type Verb string

// A node is launched, for pods or as a replacement, or removed.
const (
	Launch  Verb = "launch"
	Replace Verb = "replace"
	Remove  Verb = "remove"
)

// Result is the outcome of a decision.
type Result string

// A launch creates its NodeClaim (done), is refused because the plan no longer holds or the API server denies the
// claim (refused), or fails because the API server could not be told (failed). Later its node has joined. A removal
// is planned, then done or taken back.
const (
	Planned   Result = "planned"
	Done      Result = "done"
	TakenBack Result = "taken_back"
	NotHeld   Result = "refused"
	Failed    Result = "failed"
	Joined    Result = "joined"
)

// Causes of launches that replace no node: pending pods, the replicas of a static pool, the room of a CapacityBuffer
// or headroom, and a pool's minimum of nodes.
const (
	CausePending  = "Pending"
	CauseReplicas = "Replicas"
	CauseBuffer   = "CapacityBuffer"
	CauseFloor    = "MinNodes"
)

// causeOther stands for an unknown cause: somebody has edited it.
const causeOther = "Other"

func causeOf(reason plan.DisruptionReason) string {
	if slices.Contains(engine.Reasons(), reason) {
		return string(reason)
	}
	return causeOther
}

// marked returns the cause that is written on a claim chosen for removal.
func marked(claim *karpenterv1.NodeClaim) string {
	intent, _ := condition.Get(claim.Status.Conditions, karpenterv1.ConditionTypeDisruptionReason)
	return causeOf(plan.DisruptionReason(intent.Reason))
}

// decided reports a launch of p, and returns the decision's ID. claim is "" when none was created.
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

// removing reports a removal, and returns the decision's ID.
func (a *Applier) removing(remove plan.Remove, cause string, outcome Result) string {
	return a.config.Decided(Decision{Remove, cause, outcome}, About{Pool: remove.Pool, Claim: remove.Claim,
		Node: remove.Node, Before: remove.Price.OfNode(), Why: remove.Why})
}
