package main

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/joiner-autoscaler/joiner/autonodepolicy/fold"
	"github.com/joiner-autoscaler/joiner/autonodepolicy/policy"
)

// drawn is a list of entries over a few labels and values.
func drawn(r *rand.Rand, most int) []fold.Requirement {
	labels := []struct {
		key    string
		values []string
	}{
		{karpenterv1.CapacityTypeLabelKey, []string{"spot", "on-demand"}},
		{instanceType, []string{"a", "b", "c"}},
		{"topology.kubernetes.io/zone", []string{"z1", "z2", "z3"}},
		{"example.com/rank", []string{"1", "2", "7", "300", "x"}},
	}
	var list []fold.Requirement
	for range r.IntN(most + 1) {
		label := labels[r.IntN(len(labels))]
		operators := []fold.Operator{fold.In, fold.In, fold.NotIn, fold.NotIn, fold.Exists, fold.DoesNotExist}
		if label.key == "example.com/rank" {
			operators = append(operators, fold.Gt, fold.Gte, fold.Lt, fold.Lte)
		}
		entry := fold.Requirement{Key: label.key, Operator: operators[r.IntN(len(operators))]}
		switch entry.Operator {
		case fold.In, fold.NotIn:
			values := slices.Clone(label.values)
			r.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
			entry.Values = values[:1+r.IntN(len(values))]
		case fold.Gt, fold.Gte, fold.Lt, fold.Lte:
			entry.Values = []string{strconv.Itoa(r.IntN(400))}
		}
		list = append(list, entry)
	}
	return list
}

// what Karpenter's own code writes into a NodeClaim for a merged pool conforms to the policy, for 500 generated
// policies and pools. The expression that an API server evaluates says the same as policy.Conforms.
func TestKarpentersOwnClaimsConform(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 28))
	for cases := 0; cases < 500; {
		p := &policy.Policy{Requirements: drawn(r, 4)}
		merged := policy.MergeRequirements(p, policy.Pool{Name: "web", Requirements: drawn(r, 3)}, nil)
		if len(merged.Problems)+len(merged.Conflicts) > 0 || merged.Closed || len(p.Requirements) == 0 {
			continue
		}
		cases++
		requirements := scheduling.NewNodeSelectorRequirementsWithMinValues(toKarpenter(merged.Requirements)...)
		claim := policy.Claim{Requirements: fromKarpenter(requirements.NodeSelectorRequirements())}
		if outside := policy.Conforms(p.Requirements, claim); len(outside) > 0 {
			t.Fatalf("%v: Karpenter's claim %+v is outside of %+v", outside, claim.Requirements, p.Requirements)
		}
	}
}
