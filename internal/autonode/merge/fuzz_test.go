package merge_test

import (
	"testing"

	"sigs.k8s.io/yaml"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// FuzzNodePool: for any policy and wrapper, nothing panics, and a refusal says why. A written NodePool has the
// policy's entries first, is not too long, and is never wider than the policy.
func FuzzNodePool(f *testing.F) {
	for _, seed := range [][2]string{
		{"{}", "{}"},
		{"nodePoolDefaults: {requirements: [{key: a, operator: In, values: [x, y], minValues: 2}]}",
			"template: {spec: {requirements: [{key: a, operator: NotIn, values: [x]}]}}"},
		{
			"nodePoolDefaults: {requirements: [{key: a, operator: In, values: [x]}, {key: a, operator: Lt, values: ['3']}]}",
			"{}",
		},
		{"nodePoolDefaults: {requirements: [{key: '', operator: Gte, values: ['-1']}]}", "{}"},
		{"ec2NodeClassDefaults: {rootVolume: {volumeSize: 1e30, volumeType: IO1}}", "{}"},
		{"nodePoolDefaults: {requirements: [{key: kubernetes.io/arch, operator: Exists}]}",
			"template: {metadata: {labels: {beta.kubernetes.io/arch: amd64}}, spec: {nodeClassRef: {kind: X}, " +
				"requirements: [{key: kubernetes.io/arch, operator: Exists, values: [a]}]}}"},
		{"{}", "template: {spec: {requirements: [{key: a, operator: Gt, values: [b]}, {operator: In}]}}"},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, policySpec, poolSpec []byte) {
		policy, pool := &hypershiftv1beta1.AutoNodePolicy{}, &hypershiftv1beta1.OpenshiftNodePool{}
		if yaml.Unmarshal(policySpec, &policy.Spec) != nil || yaml.Unmarshal(poolSpec, &pool.Spec) != nil {
			return
		}
		result := merge.NodePool(policy, pool, merge.NodePoolSettings{})
		explained(t, result.Problems)
		result.Compatible()
		if result.NodePool == nil {
			if len(result.Problems) == 0 {
				t.Fatal("not written, and nothing is wrong")
			}
			return
		}
		provided, written := policy.Spec.NodePoolDefaults.Requirements, result.NodePool.Spec.Template.Spec.Requirements
		if len(merge.Check(policy)) > 0 || len(result.Problems) > 0 {
			t.Fatal("written in spite of a problem")
		}
		if len(written) > merge.MaxRequirements || len(written) < len(provided) {
			t.Fatalf("%d entries, of which the policy has %d", len(written), len(provided))
		}
		for i, entry := range spelled(provided) {
			if spelled(written)[i] != entry {
				t.Fatalf("entry %d is %s, the policy has %s", i, spelled(written)[i], entry)
			}
		}
		if allowed, _, _ := translate.Requirements(provided); !result.Folded.And(allowed).Equal(result.Folded) {
			t.Fatalf("%s is wider than the policy's %s", result.Folded, allowed)
		}
	})
}

// FuzzEC2NodeClass: the root volume is the provider's, whatever the wrapper says.
func FuzzEC2NodeClass(f *testing.F) {
	for _, seed := range [][2]string{
		{"{}", "{}"},
		{"ec2NodeClassDefaults: {rootVolume: {volumeSize: 100Gi, volumeType: GP3, throughput: 250}}",
			"blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSizeGiB: 1}}, {rootVolume: RootVolume}]"},
		{"ec2NodeClassDefaults: {rootVolume: {volumeSize: 0.1m}}",
			"blockDeviceMappings: [{ebs: {volumeSizeGiB: -9223372036854775808}}]"},
		{"{}", "{tags: {'': a, b: c}, subnetSelectorTerms: [{}], metadataOptions: {access: Elsewhere}}"},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, policySpec, classSpec []byte) {
		policy, class := &hypershiftv1beta1.AutoNodePolicy{}, &hypershiftv1.OpenshiftEC2NodeClass{}
		if yaml.Unmarshal(policySpec, &policy.Spec) != nil || yaml.Unmarshal(classSpec, &class.Spec) != nil {
			return
		}
		result := merge.EC2NodeClass(policy, class, merge.DefaultRootVolume(), defaultInfra())
		explained(t, result.Problems)
		result.RootVolume()
		if result.EC2NodeClass == nil {
			if len(result.Problems) == 0 {
				t.Fatal("not written, and nothing is wrong")
			}
			return
		}
		for i, mapping := range result.EC2NodeClass.Spec.BlockDeviceMappings {
			root := mapping.RootVolume != nil && *mapping.RootVolume ||
				mapping.DeviceName != nil && *mapping.DeviceName == merge.RootDevice
			if root != (i == 0) {
				t.Fatalf("mapping %d: root volume %t", i, root)
			}
		}
		if _, found := result.EC2NodeClass.Spec.Tags[""]; found {
			t.Fatal("an empty tag")
		}
	})
}

func explained(t *testing.T, problems []merge.Problem) {
	t.Helper()
	for _, p := range problems {
		if p.Reason == "" || p.Field == "" || p.Message == "" {
			t.Fatalf("a problem without a word: %+v", p)
		}
	}
}
