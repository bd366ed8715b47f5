package translate_test

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// K-41. A pod that requests devices, for itself or for a container, has a shape that no node satisfies, with a reason;
// other errors of the pod come first. A DaemonSet whose pods request devices counts on no node.
func TestK41_PodsThatAskForDevices(t *testing.T) {
	t.Parallel()
	gpu, nic := corev1.PodResourceClaim{Name: "gpu"}, corev1.PodResourceClaim{Name: "nic"}
	container := corev1.Container{Name: "main",
		Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}}}
	wrong := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}}}
	for name, c := range map[string]struct {
		spec  corev1.PodSpec
		names []string
		code  cause.Code
	}{
		"none": {corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}, nil, ""},
		"of the pod": {corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{nic, gpu}}, []string{"gpu", "nic"},
			cause.DevicesUnknown},
		"of a container": {corev1.PodSpec{Containers: []corev1.Container{container}}, []string{"gpu"},
			cause.DevicesUnknown},
		"of an init container": {corev1.PodSpec{InitContainers: []corev1.Container{container}},
			[]string{"gpu"}, cause.DevicesUnknown},
		"of a pod that is wrong": {corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{gpu},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{TopologyKey: "zone", MaxSkew: 1,
				WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &wrong}}}, []string{"gpu"},
			cause.PodMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			space := resources.NewSpace()
			if names := translate.DeviceClaims(&c.spec); !slices.Equal(names, c.names) {
				t.Errorf("claims %q, want %q", names, c.names)
			}
			pod, _ := translate.Pod(space, &corev1.Pod{Spec: c.spec}, time.Time{})
			set := &appsv1.DaemonSet{}
			set.Spec.Template.Spec = c.spec
			daemon, _ := translate.Daemon(space, set, translate.Admission{}, nil)
			for _, shape := range []string{string(pod.Shape.BlockedBy), string(daemon.Shape.BlockedBy)} {
				if shape != string(c.code) {
					t.Errorf("blocked by %q, want %q", shape, c.code)
				}
			}
			node := cluster.Node{Name: "any"}
			if takes := node.MightAdmit(pod.Shape) || node.MightAdmit(daemon.Shape); takes != (c.code == "") {
				t.Errorf("a node takes the pod or the daemon: %t", takes)
			}
		})
	}
}

// K-42. With support for devices, a pod requests those of its claims: named ones, or those made from a template for
// it. A running pod has its devices, and stays; errors of a pod come first.
func TestK42_PodsAskByTheirClaims(t *testing.T) {
	t.Parallel()
	name, template := "shared", "gpus"
	entries := []corev1.PodResourceClaim{{Name: "a", ResourceClaimName: &name},
		{Name: "b", ResourceClaimTemplateName: &template}}
	own := "own-b-x7k"
	made := corev1.PodStatus{ResourceClaimStatuses: []corev1.PodResourceClaimStatus{
		{Name: "b", ResourceClaimName: &own},
	}}
	unneeded := corev1.PodStatus{ResourceClaimStatuses: []corev1.PodResourceClaimStatus{{Name: "b"}}}
	shared := cluster.DeviceClaim{Name: "a", Object: "shared"}
	selector := map[string]string{"zone": "a"}
	for title, c := range map[string]struct {
		spec   corev1.PodSpec
		status corev1.PodStatus
		claims []cluster.DeviceClaim
		code   cause.Code
	}{
		"none": {corev1.PodSpec{}, made, nil, ""},
		"not made yet": {corev1.PodSpec{ResourceClaims: entries}, corev1.PodStatus{},
			[]cluster.DeviceClaim{shared, {Name: "b", Template: "gpus"}}, ""},
		"made": {corev1.PodSpec{ResourceClaims: entries}, made,
			[]cluster.DeviceClaim{shared, {Name: "b", Object: own, Owner: "uid"}}, ""},
		"none is made": {corev1.PodSpec{ResourceClaims: entries}, unneeded, []cluster.DeviceClaim{shared}, ""},
		"unknown entry": {corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{Name: "c"}}}, made,
			[]cluster.DeviceClaim{{Name: "c"}}, ""},
		"it runs": {corev1.PodSpec{ResourceClaims: entries, NodeName: "n1"}, made, nil, cause.DevicesUnknown},
		"it is wrong": {
			corev1.PodSpec{ResourceClaims: entries, TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
				TopologyKey: "zone", MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule,
				LabelSelector: &metav1.LabelSelector{
					MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}}}}}}, made, nil,
			cause.PodMalformed},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			c.spec.NodeSelector = selector
			from := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "uid"}, Spec: c.spec, Status: c.status}
			pod, _ := translate.Pod(resources.NewSpace(), from, time.Time{})
			translate.ResolveDevices(pod, from)
			if !slices.Equal(pod.Shape.Claims, c.claims) || pod.Shape.BlockedBy != c.code {
				t.Errorf("claims %v blocked by %q, want %v and %q", pod.Shape.Claims, pod.Shape.BlockedBy, c.claims,
					c.code)
			}
			elsewhere, there := cluster.Node{Name: "n2"}, cluster.Node{Name: "n3", Labels: selector}
			if elsewhere.MightAdmit(pod.Shape) || there.MightAdmit(pod.Shape) != (c.code == "") {
				t.Errorf("its own selection is not kept: %v", pod.Shape.Alternatives)
			}
		})
	}
}
