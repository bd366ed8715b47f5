package ec2_test

import corev1 "k8s.io/api/core/v1"

func onlyAMD64() []corev1.NodeSelectorRequirement {
	return []corev1.NodeSelectorRequirement{{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"amd64"}}}
}
