package convert

import karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"

// expireAfterPath is the field of a NodeClaim that v1beta1 does not have.
const expireAfterPath = "/spec/expireAfter"

// nodeClaimUp converts a claim like the template of a pool. fillExpiry fills in expireAfter, which v1beta1 reads from
// the pool when it is due.
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

// fillExpiry sets a missing expireAfter of a v1 claim to that of its pool, and returns it. If the pool is unknown it
// is Never: a node that stays too long is the smaller mistake.
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
