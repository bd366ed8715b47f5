package ec2

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// E-07, E-20, E-33, E-34: machines of Bottlerocket join by settings of their own, with the pool's taints and the
// class's kubelet.
func TestBottlerocketJoins(t *testing.T) {
	t.Parallel()
	n := newTown(t, nil)
	bottle := strings.Replace(
		class("bottle",
			"kubelet: {maxPods: 17, kubeReserved: {cpu: 100m, memory: 200Mi}}\nuserData: |\n  [settings]\n  motd = \"hello\""),
		"al2023@latest", "bottlerocket@latest", 1)
	tainted := strings.Replace(pool("bottle", "bottle", plain+onDemand+
		"\n- {key: kubernetes.io/arch, operator: In, values: [arm64]}", quick),
		"      requirements:", "      taints: [{key: dedicated, value: web, effect: NoSchedule}]\n      requirements:",
		1)
	n.apply(bottle, tainted,
		deployment("web", 2, "{cpu: 500m}", apart("web")+"\ntolerations: [{key: dedicated, operator: Exists}]"))
	n.running(2, 2*soon)
	nodes, err := n.nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(nodes) != 2 {
		t.Fatalf("there are %d nodes, want 2", len(nodes))
	}
	for _, node := range nodes {
		tainted := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
			return t.Key == "dedicated" && t.Value == "web"
		})
		if !tainted || node.Status.Capacity.Pods().Value() != 17 || node.Labels[corev1.LabelArchStable] != "arm64" ||
			!strings.HasPrefix(node.Status.NodeInfo.OSImage, "bottlerocket-") {
			t.Errorf("node %s has taints %v, %s pods, architecture %s and image %s", node.Name, node.Spec.Taints,
				node.Status.Capacity.Pods(), node.Labels[corev1.LabelArchStable], node.Status.NodeInfo.OSImage)
		}
	}
	n.kubectl("delete", "deployment", "web")
	n.nothingLeft(later)
}
