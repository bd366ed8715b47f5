package resolve

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
)

// Architectures, as Kubernetes names them.
const (
	amd64 = "amd64"
	arm64 = "arm64"
)

// Labels of instance types in the requirements of images. A type without such devices has no such label.
const (
	gpuCount    = awsv1.Group + "/instance-gpu-count"
	neuronCount = awsv1.Group + "/instance-accelerator-count"
)

// Accelerators that images are made for; "" means none.
const (
	Nvidia = "nvidia" // GPUs
	Neuron = "neuron" // Inferentia and Trainium
)

// ImageFor returns the first image for types of an architecture (amd64 or arm64) with an accelerator. It returns false
// when there is none: then these types cannot be offered (E-09).
func ImageFor(amis []awsv1.AMI, architecture, accelerator string) (awsv1.AMI, bool) {
	labels := map[string]string{corev1.LabelArchStable: architecture}
	switch accelerator {
	case Nvidia:
		labels[gpuCount] = "1"
	case Neuron:
		labels[neuronCount] = "1"
	}
	return ImageForLabels(amis, labels)
}

// ImageForLabels returns the first image whose requirements a type's labels satisfy.
func ImageForLabels(amis []awsv1.AMI, labels map[string]string) (awsv1.AMI, bool) {
	for _, ami := range amis {
		if !slices.ContainsFunc(ami.Requirements, func(r corev1.NodeSelectorRequirement) bool {
			return !fulfils(labels, r)
		}) {
			return ami, true
		}
	}
	return awsv1.AMI{}, false
}

// fulfils reports whether labels satisfy a requirement. It is false for operators that images do not have.
func fulfils(labels map[string]string, r corev1.NodeSelectorRequirement) bool {
	value, has := labels[r.Key]
	switch r.Operator {
	case corev1.NodeSelectorOpIn:
		return has && slices.Contains(r.Values, value)
	case corev1.NodeSelectorOpNotIn:
		return !has || !slices.Contains(r.Values, value)
	case corev1.NodeSelectorOpExists:
		return has
	case corev1.NodeSelectorOpDoesNotExist:
		return !has
	}
	return false
}

// requirements returns the requirements of an image.
func requirements(architecture string, v variant) []corev1.NodeSelectorRequirement {
	list := []corev1.NodeSelectorRequirement{
		{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{architecture}},
	}
	add := func(key string, operator corev1.NodeSelectorOperator) {
		list = append(list, corev1.NodeSelectorRequirement{Key: key, Operator: operator})
	}
	switch v {
	case standard:
		add(gpuCount, corev1.NodeSelectorOpDoesNotExist)
		add(neuronCount, corev1.NodeSelectorOpDoesNotExist)
	case plainOrNeuron:
		add(gpuCount, corev1.NodeSelectorOpDoesNotExist)
	case nvidia:
		add(gpuCount, corev1.NodeSelectorOpExists)
	case neuron:
		add(neuronCount, corev1.NodeSelectorOpExists)
	}
	return list
}

// requirementsKey returns a text that is equal for equivalent requirements.
func requirementsKey(list []corev1.NodeSelectorRequirement) string {
	var texts []string
	for _, r := range list {
		texts = append(texts, fmt.Sprintf("%s %s %q", r.Key, r.Operator, slices.Sorted(slices.Values(r.Values))))
	}
	slices.Sort(texts)
	return strings.Join(texts, "; ")
}
