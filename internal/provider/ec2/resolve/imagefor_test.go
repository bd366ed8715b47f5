package resolve_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
)

func ami(id string, requirements ...corev1.NodeSelectorRequirement) awsv1.AMI {
	return awsv1.AMI{ID: id, Requirements: requirements}
}

func requirement(key string, operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: operator, Values: values}
}

// E-09: a type gets the first image that fits, or none.
func TestATypeGetsTheFirstImageThatFits(t *testing.T) {
	t.Parallel()
	const gpu, accelerator = "karpenter.k8s.aws/instance-gpu-count", "karpenter.k8s.aws/instance-accelerator-count"
	amd64 := requirement("kubernetes.io/arch", corev1.NodeSelectorOpIn, "amd64")
	arm64 := requirement("kubernetes.io/arch", corev1.NodeSelectorOpIn, "arm64")
	amis := []awsv1.AMI{
		ami("plain", amd64, requirement(gpu, corev1.NodeSelectorOpDoesNotExist),
			requirement(accelerator, corev1.NodeSelectorOpDoesNotExist)),
		ami("gpu", amd64, requirement(gpu, corev1.NodeSelectorOpExists)),
		ami("arm", arm64), ami("arm too", arm64),
		ami("strange", amd64, requirement(accelerator, corev1.NodeSelectorOpGt, "0")),
		ami("neuron", requirement("kubernetes.io/arch", corev1.NodeSelectorOpNotIn, "arm64"),
			requirement(accelerator, corev1.NodeSelectorOpExists)),
	}
	for _, c := range []struct {
		architecture, accelerator, want string
	}{
		{"amd64", "", "plain"}, {"amd64", resolve.Nvidia, "gpu"}, {"amd64", resolve.Neuron, "neuron"},
		{"arm64", "", "arm"}, {"arm64", resolve.Nvidia, "arm"}, {"riscv64", "", ""},
	} {
		got, found := resolve.ImageFor(amis, c.architecture, c.accelerator)
		if got.ID != c.want || found != (c.want != "") {
			t.Errorf("%s, %q: %q (%t), want %q", c.architecture, c.accelerator, got.ID, found, c.want)
		}
	}
	labels := map[string]string{"kubernetes.io/arch": "amd64", gpu: "8"}
	if got, _ := resolve.ImageForLabels(amis, labels); got.ID != "gpu" {
		t.Errorf("by labels: %q", got.ID)
	}
}

// E-02, E-13: Ready is False when one condition is, Unknown when one is, and True without reservations.
func TestReadySumsUp(t *testing.T) {
	t.Parallel()
	of := func(kind, status string) karpenterv1.Condition {
		return karpenterv1.Condition{Type: kind, Status: map[string]karpenterv1.Condition{
			"T": {Status: "True"}, "F": {Status: "False"}, "U": {Status: "Unknown"},
		}[status].Status, Reason: "Because" + kind, Message: "why " + kind}
	}
	for _, c := range []struct {
		a, b, reservations string
		want, reason, text string
	}{
		{"T", "T", "T", "True", "Ready", ""}, {"T", "T", "F", "True", "Ready", ""},
		{"T", "T", "U", "Unknown", "BecauseCapacityReservationsReady",
			"CapacityReservationsReady: why CapacityReservationsReady"},
		{"U", "F", "T", "False", "BecauseB", "B: why B"}, {"F", "F", "T", "False", "BecauseA", "A: why A; B: why B"},
		{"U", "T", "F", "Unknown", "BecauseA", "A: why A"},
	} {
		got := resolve.Ready([]karpenterv1.Condition{of("A", c.a), of("B", c.b),
			of(resolve.CapacityReservationsReady, c.reservations), of("Ready", "F")})
		if string(got.Status) != c.want || got.Reason != c.reason || got.Message != c.text || got.Type != "Ready" {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}
