package v1beta1_test

import (
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/joiner-autoscaler/joiner/autonodepolicy/api/v1beta1"
	"github.com/joiner-autoscaler/joiner/autonodepolicy/fold"
	"github.com/joiner-autoscaler/joiner/autonodepolicy/policy"
)

// converted is the conversion that whoever enforces policies writes, in ten lines.
func converted(spec v1beta1.AutoNodePolicySpec) *policy.Policy {
	p := &policy.Policy{}
	for _, r := range spec.NodePoolDefaults.Requirements {
		p.Requirements = append(p.Requirements, fold.Requirement{
			Key: r.Key, Operator: fold.Operator(r.Operator), Values: r.Values, MinValues: r.MinValues,
		})
	}
	if v := spec.EC2NodeClassDefaults.RootVolume; v != nil {
		p.RootVolume = &policy.RootVolumeChange{Size: v.VolumeSize, Type: v.VolumeType, Encrypted: v.Encrypted,
			IOPS: v.IOPS, Throughput: v.Throughput}
	}
	return p
}

// A policy is read, checked, and its status written.
func ExampleAutoNodePolicy() {
	var object v1beta1.AutoNodePolicy
	err := json.Unmarshal([]byte(`{"metadata": {"name": "default"}, "spec": {
		"nodePoolDefaults": {"requirements": [{"key": "team", "operator": "In", "values": ["red"]}]},
		"ec2NodeClassDefaults": {"rootVolume": {"volumeSize": "100Gi"}}}}`), &object)
	fmt.Println(err, object.Name == v1beta1.PolicyName, policy.Check(*converted(object.Spec)))
	object.Status = v1beta1.AutoNodePolicyStatus{
		Conditions: []v1beta1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Applied"}},
	}
	list := v1beta1.AutoNodePolicyList{Items: []v1beta1.AutoNodePolicy{object}}
	fmt.Println(len(list.Items))
	// Output:
	// <nil> true []
	// 1
}

// Policies can also be written in Go.
func ExampleAutoNodePolicySpec() {
	spec := v1beta1.AutoNodePolicySpec{
		NodePoolDefaults: v1beta1.NodePoolDefaults{
			Requirements: []v1beta1.Requirement{{Key: "team", Operator: "Exists"}},
		},
		EC2NodeClassDefaults: v1beta1.EC2NodeClassDefaults{RootVolume: &v1beta1.RootVolume{VolumeType: new("io1")}},
	}
	fmt.Println(policy.Join(policy.Check(*converted(spec))))
	// Output: spec.ec2NodeClassDefaults.rootVolume.iops: is missing: volumeType io1 needs it
}

// A client of the management cluster knows the kind by its scheme, and the cluster by its definition.
func ExampleAddToScheme() {
	scheme := runtime.NewScheme()
	err := v1beta1.AddToScheme(scheme)
	fmt.Println(err, scheme.Recognizes(v1beta1.GroupVersion().WithKind("AutoNodePolicy")), v1beta1.GroupVersion())
	fmt.Println(strings.Contains(string(v1beta1.CRD()), "name: autonodepolicies."+v1beta1.Group),
		strings.Contains(string(v1beta1.CRD()), "name: "+v1beta1.Version))
	// Output:
	// <nil> true karpenter.hypershift.openshift.io/v1beta1
	// true true
}
