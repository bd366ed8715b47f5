package policy

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/autonodepolicy/fold"
	"github.com/joiner-autoscaler/joiner/autonodepolicy/internal/limit"
)

// Claim is what a NodeClaim asks for, as far as a policy restricts it.
type Claim struct {
	Requirements []fold.Requirement
	// Labels are those of the claim itself, which its node gets.
	Labels map[string]string
}

// Conforms returns the labels, sorted, for which a claim asks for something outside of a list of requirements that passes
// [Check]; none means that it conforms. The claim is judged by its entries: for each label of the policy it needs one
// that lists nothing but allowed values, or has the policy's exclusions and bounds or narrower ones, and its label, if it
// has one, must be allowed. Claims that Karpenter makes of a pool that [MergeRequirements] has merged conform. Of claims that
// others write, some are refused that would do no harm; what is taken lies within the policy, but for exclusions of
// numbers on a label for which the claim has bounds, which Karpenter leaves out of its own claims.
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
