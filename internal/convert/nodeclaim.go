package convert

import karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"

// expireAfterPath is the field of a NodeClaim that v1beta1 does not have.
const expireAfterPath = "/spec/expireAfter"

// nodeClaimUp: like the template of a pool. expireAfter, which a claim of v1beta1 took from its pool when it was due, is
// filled in by fillExpiry.
func nodeClaimUp(o, annotations object) *Problem {
	timedConditions(o)
	spec := at(o, "spec")
	if spec == nil {
		return nil
	}
	delete(spec, "expireAfter")
	return specUp("spec", spec, annotations)
}

func nodeClaimDown(o, kept object) {
	if spec := at(o, "spec"); spec != nil {
		specDown(spec, kept)
	}
}

// fillExpiry gives a claim of v1 that has none the expireAfter of its pool, and returns it. Without a pool that is known
// it is Never: a node that stays too long is the smaller mistake.
func fillExpiry(o object, expiry func(pool string) (string, bool)) string {
	spec := at(o, "spec")
	if spec == nil || spec["expireAfter"] != nil {
		return ""
	}
	filled := never
	pool := text(at(o, "metadata", "labels"), karpenterv1.NodePoolLabelKey)
	if known, found := expiry(pool); pool != "" && found {
		filled = known
	}
	spec["expireAfter"] = filled
	return filled
}
