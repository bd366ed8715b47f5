package policy

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/autonodepolicy/fold"
	"github.com/joiner-autoscaler/joiner/autonodepolicy/internal/limit"
)

// Claim is the part of a NodeClaim that a policy restricts.
type Claim struct {
	Requirements []fold.Requirement
	// Labels are the claim's own labels. Its node gets them.
	Labels map[string]string
}

// Conforms returns the labels, sorted, for which a claim asks for more than the policy allows; none means that it
// conforms. provided are the policy's requirements, which must pass [Check].
//
// Conforms judges a claim by its entries. For each label of the policy, the claim needs an entry that lists only
// allowed values, or entries with the policy's exclusions and bounds or narrower ones, by the label's current name. If
// the claim has the label itself, by any name, its value must be allowed.
//
// Claims that Karpenter makes from a pool merged by [MergeRequirements] conform. Among claims that others write, some
// harmless ones are refused. A claim that conforms lies within the policy, with one exception: if it has bounds for a
// label, excluded numbers are not checked, since Karpenter leaves them out of its own claims.
//
// Package admission writes the same rule as an expression for the API server.
func Conforms(provided []fold.Requirement, claim Claim) []fold.Key {
	var outside []fold.Key
	for _, l := range limit.Of(slices.Clone(provided)) {
		if !l.Allows(claim.Requirements, claim.Labels) {
			outside = append(outside, l.Key)
		}
	}
	return outside
}
