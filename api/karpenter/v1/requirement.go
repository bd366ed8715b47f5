package v1

import (
	corev1 "k8s.io/api/core/v1"

	autonodev1beta1 "github.com/joiner-autoscaler/joiner/autonodepolicy/api/v1beta1"
)

// Operators that Kubernetes itself does not have. The others are those of corev1: In, NotIn, Exists,
// DoesNotExist, Gt and Lt.
const (
	// NodeSelectorOpGte holds when the label is an integer not less than the value.
	NodeSelectorOpGte corev1.NodeSelectorOperator = "Gte"
	// NodeSelectorOpLte holds when the label is an integer not greater than the value.
	NodeSelectorOpLte corev1.NodeSelectorOperator = "Lte"
)

// NodeSelectorRequirementWithMinValues is a condition on one node label, with an optional wish for
// variety. The CRD holds its rules (V-05).
type NodeSelectorRequirementWithMinValues = autonodev1beta1.Requirement
