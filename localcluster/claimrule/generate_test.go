package claimrule

import (
	"math/rand/v2"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/autonodepolicy/fold"
	"github.com/joiner-autoscaler/joiner/autonodepolicy/policy"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

const (
	instanceType = corev1.LabelInstanceTypeStable
	zone         = corev1.LabelTopologyZone
	cpus         = "karpenter.k8s.aws/instance-cpu"
	team         = "example.com/team"
	rank         = "example.com/rank"
)

// universe has the labels and values of generated entries; the names of a label are tried in turn.
var universe = []struct {
	names, values []string
	numbers       bool
}{
	{[]string{instanceType, corev1.LabelInstanceType}, []string{"m5.large", "m5.xlarge", "c5.large", "r5.large"},
		false},
	{[]string{zone, "topology.ebs.csi.aws.com/zone", "topology.gke.io/zone"}, []string{"us-east-1a", "us-east-1b",
		"us-east-1-bos-1a"}, false},
	{[]string{cpus}, []string{"2", "4", "8", "16", "700"}, true},
	{[]string{rank}, []string{"1", "2", "3", "300", "x"}, true},
	{[]string{team}, []string{"red", "blue", "it's"}, false},
}

// entry draws one entry that the API takes.
func entry(r *rand.Rand) merge.Requirement {
	label := universe[r.IntN(len(universe))]
	operators := []corev1.NodeSelectorOperator{"In", "In", "In", "NotIn", "NotIn", "Exists", "DoesNotExist"}
	if label.numbers {
		operators = append(operators, "Gt", "Lt", "Gte", "Lte")
	}
	drawn := merge.Requirement{Key: label.names[r.IntN(len(label.names))], Operator: operators[r.IntN(len(operators))]}
	switch drawn.Operator {
	case "In", "NotIn":
		values := slices.Clone(label.values)
		r.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
		drawn.Values = values[:1+r.IntN(len(values))]
	case "Gt", "Lt", "Gte", "Lte":
		drawn.Values = []string{strconv.Itoa(r.IntN(20))}
		if r.IntN(4) == 0 {
			drawn.Values = []string{strconv.Itoa(300 + r.IntN(500))} // ranges that are too long for a list
		}
	}
	return drawn
}

func entries(r *rand.Rand, most int) []merge.Requirement {
	var list []merge.Requirement
	for range r.IntN(most + 1) {
		list = append(list, entry(r))
	}
	return list
}

// validPolicy draws a policy that passes its check.
func validPolicy(r *rand.Rand) *hypershiftv1beta1.AutoNodePolicy {
	for {
		p := &hypershiftv1beta1.AutoNodePolicy{}
		p.Spec.NodePoolDefaults.Requirements = entries(r, 5)
		if len(merge.Check(p)) == 0 {
			return p
		}
	}
}

// mergedPool draws a policy and a user's pool whose merged pool can launch nodes.
func mergedPool(r *rand.Rand) (*hypershiftv1beta1.AutoNodePolicy, merge.NodePoolResult) {
	for {
		p, pool := validPolicy(r), &hypershiftv1beta1.OpenshiftNodePool{}
		pool.Name = "mine"
		pool.Spec.Template.Spec.Requirements = entries(r, 3)
		if r.IntN(3) == 0 {
			pool.Spec.Template.ObjectMeta.Labels = map[string]string{team: "red"}
		}
		result := merge.NodePool(p, pool, merge.NodePoolSettings{})
		if result.NodePool != nil && !result.Closed && len(result.Conflicts) == 0 {
			return p, result
		}
	}
}

// ruleFor returns the requirements of a policy, as the rule takes them.
func ruleFor(p *hypershiftv1beta1.AutoNodePolicy) []fold.Requirement {
	return merge.FromAPI(p.Spec.NodePoolDefaults.Requirements)
}

var defaultClass = policy.NodeClass{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}

// joinersClaim returns the claim that Joiner makes from a merged pool, with all remaining types, for a pod that asks
// for nothing.
func joinersClaim(result merge.NodePoolResult) *karpenterv1.NodeClaim {
	launch := plan.Launch{Pool: result.NodePool.Name, Requirements: result.Folded.Without(instanceType)}
	for _, name := range append([]string{"t3.nano"}, universe[0].values...) {
		if result.Folded.Get(instanceType).Has(name) {
			launch.Types = append(launch.Types, name)
		}
	}
	return translate.NodeClaimFor(result.NodePool, resources.Names{}, launch, "mine-1")
}

// karpentersClaim returns the claim that Karpenter makes from a merged pool, according to its source. Karpenter holds
// a label as a set of values, or as all but some values within bounds. When it writes bounds, it leaves out the values
// that are also excluded (K1, K2). Names that it does not read are labels of their own to it.
// examples/karpenter-operator tests this with Karpenter itself.
func karpentersClaim(result merge.NodePoolResult) *karpenterv1.NodeClaim {
	claim := joinersClaim(result)
	claim.Spec.Requirements = slices.DeleteFunc(slices.Clone(result.NodePool.Spec.Template.Spec.Requirements),
		func(e merge.Requirement) bool { return fold.ReadByKarpenter(e.Key) })
	for allowed := range result.Folded.All() {
		claim.Spec.Requirements = append(claim.Spec.Requirements, asKarpenter(allowed.Key(), result.NodePool)...)
	}
	return claim
}

func asKarpenter(key fold.Key, pool *karpenterv1.NodePool) []merge.Requirement {
	var notIn []string
	finite, absent := false, false
	low, high := -1, -1
	own := slices.Clone(pool.Spec.Template.Spec.Requirements)
	for label, value := range pool.Spec.Template.ObjectMeta.Labels {
		own = append(own, merge.Requirement{Key: label, Operator: "In", Values: []string{value}})
	}
	own = append(own, merge.Requirement{Key: karpenterv1.NodePoolLabelKey, Operator: "In",
		Values: []string{pool.Name}},
		merge.Requirement{Key: "karpenter.k8s.aws/ec2nodeclass", Operator: "In", Values: []string{"default"}})
	own = slices.DeleteFunc(own, func(e merge.Requirement) bool {
		return fold.Canonical(e.Key) != key || !fold.ReadByKarpenter(e.Key)
	})
	if len(own) == 0 {
		return nil
	}
	for _, e := range own {
		switch e.Operator {
		case "In":
			finite = true
		case "NotIn":
			notIn = append(notIn, e.Values...)
		case "DoesNotExist":
			absent = true
		case "Exists":
		default:
			number, _ := strconv.Atoi(e.Values[0])
			switch e.Operator {
			case "Gt":
				low = max(low, number+1)
			case "Gte":
				low = max(low, number)
			case "Lt", "Lte":
				if e.Operator == "Lt" {
					number--
				}
				if high < 0 || number < high {
					high = number
				}
			}
		}
	}
	write := func(operator corev1.NodeSelectorOperator, values ...string) merge.Requirement {
		return merge.Requirement{Key: string(key), Operator: operator, Values: values}
	}
	var list []merge.Requirement
	switch {
	case absent:
		return []merge.Requirement{write("DoesNotExist")}
	case finite:
		set, _, _ := fold.Of(merge.FromAPI(own))
		values, _ := set.Get(key).Values()
		return []merge.Requirement{write("In", values...)}
	}
	if low >= 0 {
		list = append(list, write("Gte", strconv.Itoa(low)))
	}
	if high >= 0 {
		list = append(list, write("Lte", strconv.Itoa(high)))
	}
	switch {
	case len(list) > 0:
	case len(notIn) > 0:
		slices.Sort(notIn)
		list = append(list, write("NotIn", slices.Compact(notIn)...))
	default:
		list = append(list, write("Exists"))
	}
	return list
}
