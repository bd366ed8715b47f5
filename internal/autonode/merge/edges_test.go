package merge_test

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
)

// G4, G5: who is exempted must be somebody, and nobody whom people are too. Each mistake is named with its value.
func TestWhoMayWriteIsChecked(t *testing.T) {
	t.Parallel()
	for want, config := range map[string]merge.AdmissionConfig{
		"operator user name is empty: give the name that the operator has in the guest cluster": {},
		`operator user name is "a\nb": it must be text without control characters`:              {Operator: "a\nb"},
		`operand user name is "\xff": it must be text without control characters`: {Operator: "o",
			Operand: "\xff"},
		`operand user name is "system:admin", which people have too`: {Operator: "o",
			Operand: "system:admin"},
		"strict needs the operand's user name": {Operator: "o",
			Strict: true},
		"nodeClaims is ByIdentity, which needs the operand's user name": {Operator: "o",
			NodeClaims: merge.NodeClaimsByIdentity},
		`nodeClaims is "Never": it must be empty, Open, ByIdentity or ByContent`: {Operator: "o",
			NodeClaims: "Never"},
	} {
		list, err := merge.Admission(config)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || list != nil {
			t.Errorf("%+v: error %v, want %s", config, err, want)
		}
	}
	fine := merge.AdmissionConfig{Operator: "o", Operand: "ö", Strict: true, NodeClaims: merge.NodeClaimsByIdentity}
	if err := fine.Validate(); err != nil {
		t.Error(err)
	}
}

// R34 to R38, G5: each policy is about the API group of its kind. A configuration has the policy of NodeClaims or
// wants it deleted, wherever an operator of another configuration left it.
func TestWhatIsProtectedAndWhatGoes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config merge.AdmissionConfig
		wanted bool
	}{
		{merge.AdmissionConfig{Operator: "o"}, false},
		{merge.AdmissionConfig{Operator: "o", Operand: "k"}, true},
		{merge.AdmissionConfig{Operator: "o", Operand: "k", NodeClaims: merge.NodeClaimsByIdentity}, true},
		{merge.AdmissionConfig{Operator: "o", Operand: "k", NodeClaims: merge.NodeClaimsOpen}, false},
		{merge.AdmissionConfig{Operator: "o", NodeClaims: merge.NodeClaimsByContent}, true},
	} {
		list, err := merge.Admission(c.config)
		if err != nil {
			t.Fatal(err)
		}
		groups := map[string]string{}
		for _, p := range list {
			groups[p.Policy.Name] = strings.Join(p.Policy.Spec.MatchConstraints.ResourceRules[0].APIGroups, ",")
		}
		want := map[string]string{"karpenter.ec2nodeclass.hypershift.io": "karpenter.k8s.aws",
			"karpenter.nodepool.hypershift.io": "karpenter.sh"}
		if c.wanted {
			want["karpenter.nodeclaim.hypershift.io"] = "karpenter.sh"
		}
		if !reflect.DeepEqual(groups, want) {
			t.Errorf("%+v: %v, want %v", c.config, groups, want)
		}
		unwanted := merge.Unwanted(c.config)
		if (len(unwanted) == 0) != c.wanted {
			t.Errorf("%+v: unwanted %+v", c.config, unwanted)
		}
		for _, p := range unwanted {
			if p.Policy.Name != "karpenter.nodeclaim.hypershift.io" ||
				p.Binding.Name != "karpenter-binding.nodeclaim.hypershift.io" ||
				p.Policy.Labels[merge.ManagedByLabel] != merge.ManagedByValue ||
				p.Binding.Labels[merge.ManagedByLabel] != merge.ManagedByValue ||
				!reflect.DeepEqual(p.Policy.Spec, reflect.Zero(reflect.TypeOf(p.Policy.Spec)).Interface()) ||
				p.Binding.Spec.PolicyName != "" {
				t.Errorf("%+v: unwanted %+v", c.config, p)
			}
		}
	}
}

// R9, R28, G18: what is written says what it is, and whose.
func TestWhatIsWrittenSaysWhatItIs(t *testing.T) {
	t.Parallel()
	wrapper := &hypershiftv1.OpenshiftEC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "1",
		Labels: map[string]string{"a": "b"}}}
	class := merge.EC2NodeClass(nil, wrapper, merge.DefaultRootVolume(), defaultInfra()).EC2NodeClass
	if class.APIVersion != "karpenter.k8s.aws/v1" || class.Kind != "EC2NodeClass" || class.Name != "default" ||
		class.Labels["a"] != "b" {
		t.Errorf("%+v %+v", class.TypeMeta, class.ObjectMeta)
	}
	want := metav1.OwnerReference{APIVersion: "karpenter.hypershift.openshift.io/v1", Kind: "OpenshiftEC2NodeClass",
		Name: "default", UID: "1",
		Controller: new(true), BlockOwnerDeletion: new(true)}
	if !reflect.DeepEqual(class.OwnerReferences, []metav1.OwnerReference{want}) {
		t.Errorf("owners %+v", class.OwnerReferences)
	}
	pool := merge.NodePool(nil, &hypershiftv1beta1.OpenshiftNodePool{}, merge.NodePoolSettings{}).NodePool
	if pool.APIVersion != "karpenter.sh/v1" || pool.Kind != "NodePool" {
		t.Errorf("%+v", pool.TypeMeta)
	}
}

// G7, G8: what a policy leaves open is the operator's root volume in every part. One that does not go with the policy
// is a problem, and not half a volume.
func TestTheOperatorsRootVolume(t *testing.T) {
	t.Parallel()
	defaults := merge.RootVolume{Size: resource.MustParse("80Gi"), Type: "gp3", IOPS: new(int64(4000)),
		Throughput: new(int64(250))}
	for _, c := range []struct {
		policy  hypershiftv1beta1.RootVolume
		iops    int64
		problem string
	}{
		{hypershiftv1beta1.RootVolume{Encrypted: new(true)}, 4000, ""},
		{hypershiftv1beta1.RootVolume{IOPS: new(int64(5000))}, 5000, ""},
		{hypershiftv1beta1.RootVolume{VolumeType: new("gp2")}, 0,
			"root volume.iops: is 4000, but volumeType is gp2: only gp3, io1 and io2 take it"},
	} {
		policy := &hypershiftv1beta1.AutoNodePolicy{}
		policy.Spec.EC2NodeClassDefaults.RootVolume = &c.policy
		result := merge.EC2NodeClass(policy, &hypershiftv1.OpenshiftEC2NodeClass{}, defaults, defaultInfra())
		if c.problem != "" {
			if result.EC2NodeClass != nil || len(result.Problems) != 2 || result.Problems[0].String() != c.problem {
				t.Errorf("%+v: %v, written %t", c.policy, result.Problems, result.EC2NodeClass != nil)
			}
			continue
		}
		root := result.EC2NodeClass.Spec.BlockDeviceMappings[0].EBS
		if root.VolumeSize.String() != "80Gi" || *root.IOPS != c.iops || *root.Throughput != 250 {
			t.Errorf("%+v: %+v", c.policy, root)
		}
	}
	without := merge.EC2NodeClass(nil, &hypershiftv1.OpenshiftEC2NodeClass{}, defaults, defaultInfra()).RootVolume()
	if without.Type != "RootVolumeOverridden" || without.Status != metav1.ConditionFalse ||
		without.Reason != "NoRootVolumeMapping" {
		t.Errorf("%+v", without)
	}
}

// G9, G10: a provider has its own labels: a contradiction on one that its instance types may lack closes the pool.
// Labels with nothing left are conflicts, and not short of values too.
func TestConflictsOfAnotherProvider(t *testing.T) {
	t.Parallel()
	policy, pool := &hypershiftv1beta1.AutoNodePolicy{}, &hypershiftv1beta1.OpenshiftNodePool{}
	entry := func(value string) []merge.Requirement {
		return []merge.Requirement{{Key: "node.kubernetes.io/instance-type", Operator: "In", Values: []string{value},
			MinValues: new(2)}}
	}
	policy.Spec.NodePoolDefaults.Requirements = []merge.Requirement{{Key: "node.kubernetes.io/instance-type",
		Operator: "In", Values: []string{"A", "B"}}}
	pool.Spec.Template.Spec.Requirements = entry("C")
	for _, vocabulary := range []merge.Vocabulary{nil, {}} {
		result := merge.NodePool(policy, pool, merge.NodePoolSettings{Vocabulary: vocabulary})
		if result.Closed != (vocabulary != nil) || len(result.Conflicts) != 1 || len(result.MinValues) != 0 {
			t.Errorf("vocabulary %v: closed %t, conflicts %v, too few %v", vocabulary, result.Closed,
				result.Conflicts, result.MinValues)
		}
	}
}

// G9, G16: only pools that say that they conflict are counted as such.
func TestWhichPoolsConflict(t *testing.T) {
	t.Parallel()
	policy := &hypershiftv1beta1.AutoNodePolicy{ObjectMeta: metav1.ObjectMeta{UID: "this", Generation: 7}}
	for _, status := range statuses() {
		pool := &hypershiftv1beta1.OpenshiftNodePool{}
		pool.Name = "web"
		pool.Status.ObservedPolicy = &hypershiftv1.ObservedPolicy{UID: "this", Generation: 7}
		pool.Status.Conditions = []karpenterv1.Condition{
			{Type: hypershiftv1beta1.ConditionTypePolicyApplied, Status: metav1.ConditionTrue},
			{Type: hypershiftv1beta1.ConditionTypeRequirementsCompatible, Status: status},
		}
		told := strings.Contains(merge.Ready(policy, []merge.Target{merge.PoolTarget(pool)}).Message,
			"1 of the pools can launch no node")
		if told != (status == metav1.ConditionFalse) {
			t.Errorf("%s: told %t", status, told)
		}
	}
}
