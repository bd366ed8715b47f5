package translate

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Daemon converts a DaemonSet to the shape of the pods that its controller will make: those of the template with the
// tolerations that every daemon gets. The shape is not interned yet.
func Daemon(space *resources.Space, set *appsv1.DaemonSet) (cluster.Daemon, error) {
	name := set.Namespace + "/" + set.Name
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: set.Name, Labels: set.Spec.Template.Labels},
		Spec:       *set.Spec.Template.Spec.DeepCopy(),
	}
	pod.Spec.NodeName = ""
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		tolerate(&pod.Spec, key, corev1.TaintEffectNoExecute)
	}
	for _, key := range []string{corev1.TaintNodeDiskPressure, corev1.TaintNodeMemoryPressure, corev1.TaintNodePIDPressure, corev1.TaintNodeUnschedulable} {
		tolerate(&pod.Spec, key, corev1.TaintEffectNoSchedule)
	}
	if pod.Spec.HostNetwork {
		tolerate(&pod.Spec, corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule)
	}
	shape, err := podShape(space, pod)
	if err != nil {
		err = fmt.Errorf("DaemonSet %s: %w", name, err)
	}
	return cluster.Daemon{Name: name, Shape: shape}, err
}

func tolerate(spec *corev1.PodSpec, key string, effect corev1.TaintEffect) {
	spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect})
}
