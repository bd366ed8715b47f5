package main

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joiner-autoscaler/joiner/autonodepolicy/api/v1beta1"
	"github.com/joiner-autoscaler/joiner/autonodepolicy/fold"
	"github.com/joiner-autoscaler/joiner/autonodepolicy/policy"
)

// The module has nobody's API types in its signatures. These are the ten lines each that a caller writes.

func policyOf(object *v1beta1.AutoNodePolicy) *policy.Policy {
	if object == nil {
		return nil
	}
	p := &policy.Policy{}
	for _, r := range object.Spec.NodePoolDefaults.Requirements {
		p.Requirements = append(p.Requirements, fold.Requirement{
			Key: r.Key, Operator: fold.Operator(r.Operator), Values: r.Values, MinValues: r.MinValues,
		})
	}
	if v := object.Spec.EC2NodeClassDefaults.RootVolume; v != nil {
		p.RootVolume = &policy.RootVolumeChange{Size: v.VolumeSize, Type: v.VolumeType, Encrypted: v.Encrypted,
			IOPS: v.IOPS, Throughput: v.Throughput}
	}
	return p
}

func fromKarpenter(list []karpenterv1.NodeSelectorRequirementWithMinValues) []fold.Requirement {
	entries := make([]fold.Requirement, len(list))
	for i, r := range list {
		entries[i] = fold.Requirement{Key: r.Key, Operator: fold.Operator(r.Operator), Values: r.Values,
			MinValues: r.MinValues}
	}
	return entries
}

func toKarpenter(list []fold.Requirement) []karpenterv1.NodeSelectorRequirementWithMinValues {
	entries := make([]karpenterv1.NodeSelectorRequirementWithMinValues, len(list))
	for i, r := range list {
		entries[i] = karpenterv1.NodeSelectorRequirementWithMinValues{
			Key: r.Key, Operator: corev1.NodeSelectorOperator(r.Operator), Values: r.Values, MinValues: r.MinValues,
		}
	}
	return entries
}

// mapping is a root volume as the block device mapping of an EC2NodeClass.
func mapping(v policy.RootVolume) map[string]any {
	size, _ := policy.NormalSize(v.Size) // checked before
	ebs := map[string]any{"volumeSize": size.String(), "volumeType": v.Type, "encrypted": v.Encrypted}
	if v.IOPS != nil {
		ebs["iops"] = *v.IOPS
	}
	if v.Throughput != nil {
		ebs["throughput"] = *v.Throughput
	}
	return map[string]any{"deviceName": policy.RootDevice, "rootVolume": true, "ebs": ebs}
}

// ready is the condition Ready of a policy: that it is not valid, with the reason of the first problem, or that it is
// in use.
func ready(object *v1beta1.AutoNodePolicy) v1beta1.Condition {
	condition := v1beta1.Condition{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "Applied", ObservedGeneration: object.Generation,
		LastTransitionTime: metav1.Now(),
	}
	if problems := policy.Check(*policyOf(object)); len(problems) > 0 {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, problems[0].Reason,
			policy.Join(problems)
	}
	return condition
}
