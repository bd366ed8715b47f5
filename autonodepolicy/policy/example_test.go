package policy_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joiner-autoscaler/joiner/autonodepolicy/fold"
	"github.com/joiner-autoscaler/joiner/autonodepolicy/policy"
)

const instanceType = "node.kubernetes.io/instance-type"

// provided is what a provider allows: two instance types.
func provided() *policy.Policy {
	return &policy.Policy{
		Requirements: []fold.Requirement{
			{Key: instanceType, Operator: fold.In, Values: []string{"m5.large", "m5.xlarge"}},
		},
	}
}

// The policy's entries come first; nodes must satisfy both (R10, R11).
func ExampleMergeRequirements() {
	class, _ := policy.ResolveNodeClass(nil)
	var merged policy.Merged = policy.MergeRequirements(provided(), policy.Pool{
		Name: "web", NodeClass: class, Labels: map[string]string{"team": "red"},
		Requirements: []fold.Requirement{
			{Key: instanceType, Operator: fold.In, Values: []string{"m5.xlarge", "c5.xlarge"}},
		},
	}, nil)
	for _, entry := range merged.Requirements {
		fmt.Println(entry.Key, entry.Operator, entry.Values)
	}
	fmt.Println(merged.Folded.Get(instanceType), merged.Compatible().Status == policy.True)
	// Output:
	// node.kubernetes.io/instance-type In [m5.large m5.xlarge]
	// node.kubernetes.io/instance-type In [m5.xlarge c5.xlarge]
	// node.kubernetes.io/instance-type=m5.xlarge true
}

// A pool with nothing left is written all the same, and its user told (R13, G9).
func ExampleMerged_Compatible() {
	merged := policy.MergeRequirements(provided(), policy.Pool{
		Name: "web", Requirements: []fold.Requirement{
			{Key: instanceType, Operator: fold.In, Values: []string{"c5.xlarge"}},
		},
	}, policy.CommonVocabulary())
	var said policy.Condition = merged.Compatible()
	fmt.Println(len(merged.Requirements), said.Status == policy.False, said.Reason)
	for _, conflict := range merged.Conflicts {
		var c policy.Conflict = conflict
		fmt.Println(c.String())
	}
	// Output:
	// 2 true NoCompatibleInstanceTypes
	// node.kubernetes.io/instance-type: the policy allows In [m5.large, m5.xlarge], this pool In [c5.xlarge]: nothing is left
}

// minValues is never lowered; if it cannot be met, the user is told (G11).
func ExampleShortage() {
	merged := policy.MergeRequirements(provided(), policy.Pool{
		Name: "web", Requirements: []fold.Requirement{{Key: instanceType, Operator: fold.Exists, MinValues: new(3)}},
	}, nil)
	for _, few := range merged.MinValues {
		var shortage policy.Shortage = few
		fmt.Println(shortage.String())
	}
	// Output: node.kubernetes.io/instance-type: minValues is 3, but only In [m5.large, m5.xlarge] is left
}

// For a label that instance types may lack, Karpenter launches nodes in spite of a contradiction. So an entry that
// nothing satisfies closes the pool (G10, K2).
func ExampleVocabulary() {
	red := &policy.Policy{Requirements: []fold.Requirement{{Key: "team", Operator: fold.In, Values: []string{"red"}}}}
	blue := policy.Pool{
		Name: "web", Requirements: []fold.Requirement{{Key: "team", Operator: fold.In, Values: []string{"blue"}}},
	}
	for _, labels := range []policy.Vocabulary{policy.CommonVocabulary(), {"team": true}} {
		fmt.Println(policy.MergeRequirements(red, blue, labels).Closed)
	}
	// Output:
	// true
	// false
}

// An invalid policy is never applied. Its provider is told why; its users are told only that (R8, G14).
func ExampleCheck() {
	bad := policy.Policy{Requirements: []fold.Requirement{
		{Key: "team", Operator: fold.In, Values: []string{"red"}},
		{Key: "team", Operator: fold.In, Values: []string{"blue"}},
	}}
	var problems []policy.Problem = policy.Check(bad)
	fmt.Println(problems[0].Reason, problems[0].String())
	fmt.Println(policy.Join(policy.Invalid(&bad)))
	merged := policy.MergeRequirements(&bad, policy.Pool{Name: "web"}, nil)
	fmt.Println(merged.Requirements == nil, merged.Compatible().Status == policy.Unknown)
	// Output:
	// ConflictingRequirements spec.nodePoolDefaults.requirements[0], [1]: contradict each other: no value of team satisfies them all; leave at least one
	// policy of the provider: is not valid, and so not applied; what was applied before stays
	// true true
}

// The root volume of a policy replaces the user's; what the policy leaves open is the default (G8).
func ExampleRootVolume_With() {
	change := policy.RootVolumeChange{Size: new(resource.MustParse("102400Mi")), Type: new("IO1")}
	var volume policy.RootVolume = policy.DefaultRootVolume().With(&change)
	size, fits := policy.NormalSize(volume.Size)
	fmt.Println(policy.RootDevice, policy.DefaultRootVolumeSize, size.String(), fits, volume.Type == policy.VolumeIO1,
		volume.Encrypted)
	fmt.Println(policy.Join(volume.Check("rootVolume")))
	// Output:
	// /dev/xvda 75Gi 100Gi true true true
	// rootVolume.iops: is missing: volumeType io1 needs it
}

// Types of volumes, of which some take no operations per second.
func ExampleRootVolume_Check() {
	for _, kind := range []string{
		policy.VolumeStandard, policy.VolumeGP2, policy.VolumeGP3, policy.VolumeIO2, policy.VolumeSC1,
		policy.VolumeST1,
	} {
		volume := policy.DefaultRootVolume().With(&policy.RootVolumeChange{Type: &kind, IOPS: new(int64(4000))})
		fmt.Print(kind, " ", len(volume.Check("rootVolume")) == 0, ", ")
	}
	// Output: standard false, gp2 false, gp3 true, io2 true, sc1 false, st1 false,
}

// A pool may name the wrapper of its node class, or a kind that the platform adds (G20).
func ExampleResolveNodeClass() {
	class, _ := policy.ResolveNodeClass(&policy.NodeClass{Group: "karpenter.hypershift.openshift.io",
		Kind: "OpenshiftEC2NodeClass", Name: "large"})
	fmt.Println(class)
	kwok := policy.NodeClass{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"}
	_, problem := policy.ResolveNodeClass(&kwok)
	fmt.Println(problem.Reason)
	class, _ = policy.ResolveNodeClass(&kwok, policy.NodeClassKind{Group: kwok.Group, Kind: kwok.Kind})
	fmt.Println(class)
	// Output:
	// {karpenter.k8s.aws EC2NodeClass large}
	// InvalidNodeClassRef
	// {karpenter.kwok.sh KWOKNodeClass default}
}

// A NodeClaim has to lie within the policy (A-04).
func ExampleConforms() {
	for _, kind := range []string{"m5.large", "c5.large"} {
		fmt.Println(policy.Conforms(provided().Requirements, policy.Claim{
			Requirements: []fold.Requirement{{Key: instanceType, Operator: fold.In, Values: []string{kind}}},
			Labels:       map[string]string{"team": "red"},
		}))
	}
	// Output:
	// []
	// [node.kubernetes.io/instance-type]
}

// Reasons are for programs: here, who has to do something.
func Example_reasons() {
	party := func(reason string) string {
		switch reason {
		case policy.ReasonConflictingRequirements, policy.ReasonInvalidRootVolume:
			return "provider"
		case policy.ReasonNoCompatibleInstanceTypes, policy.ReasonInvalidNodeClassRef:
			return "user"
		case policy.ReasonInvalidRequirements, policy.ReasonTooManyRequirements, policy.ReasonMinValuesUnsatisfiable:
			return "whose object it is"
		case policy.ReasonCompatible:
			return "nobody"
		}
		return "?"
	}
	var status policy.Status = policy.True
	fmt.Println(status, party(policy.ReasonCompatible), policy.MaxRequirements, policy.MaxValues)
	// Output: True nobody 100 1000
}
