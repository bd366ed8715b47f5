package translate

import (
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// templateGeneration is the label with the template generation of a daemon's pod. The DaemonSet has its own in the
// annotation appsv1.DeprecatedTemplateGeneration.
const templateGeneration = "pod-template-generation"

// Daemon converts a DaemonSet to the shape of the pods that its controller will make (P-06). The shape is not interned
// yet.
//
// witness is the newest pod of the set, nil when there is none. A witness of the current template shows what the next
// pods will be like, with all that admission and webhooks add. Otherwise the template counts, filled in as far as we
// know what the API server adds. A witness of an older template then only adds requests that the template lacks. If
// the set never rolls its pods, it does not even do that: an amount that is too high would stay so, since no node
// would come whose pod could correct it.
func Daemon(space *resources.Space, set *appsv1.DaemonSet, given Admission,
	witness *corev1.Pod) (cluster.Daemon, error) {
	name := set.Namespace + "/" + set.Name
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: set.Name, Labels: set.Spec.Template.Labels},
		Spec:       *set.Spec.Template.Spec.DeepCopy(),
	}
	current := witness != nil && OfTemplate(set, witness)
	if current {
		pod.Labels = maps.Clone(witness.Labels)
		delete(pod.Labels, templateGeneration)
		delete(pod.Labels, appsv1.ControllerRevisionHashLabelKey)
		pod.Spec = *witness.Spec.DeepCopy()
		pod.Spec.Affinity = affinityOf(&pod.Spec, &set.Spec.Template.Spec)
	}
	pod.Spec.NodeName = ""
	tolerateAsDaemon(&pod.Spec)
	if !current {
		given.Admit(&pod.Spec)
	}
	shape, err := podShape(space, pod)
	if err != nil {
		err = fmt.Errorf("DaemonSet %s: %w", name, err)
	}
	if witness != nil && !current && set.Spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType {
		old := *witness
		old.Spec.NodeName = ""
		for i, amount := range podRequests(space, &old) {
			if shape.Requests.At(i) == 0 && amount > 0 {
				shape.Requests = shape.Requests.With(i, amount)
			}
		}
	}
	return cluster.Daemon{Name: name, Shape: shape}, err
}

// DaemonSetOf returns the DaemonSet that a pod belongs to as namespace/name, "" for none.
func DaemonSetOf(pod *corev1.Pod) string { return daemonOf(pod) }

// OfTemplate reports whether a pod of the set was made from the set's current template. If one of the two does not
// state its generation, they are taken to agree.
func OfTemplate(set *appsv1.DaemonSet, pod *corev1.Pod) bool {
	now, made := set.Annotations[appsv1.DeprecatedTemplateGeneration], pod.Labels[templateGeneration]
	return now == "" || made == "" || now == made
}

// DaemonNode returns the node that a daemon's pod runs on, or the one that its controller has put into its affinity;
// "" for none.
func DaemonNode(pod *corev1.Pod) string {
	if pod.Spec.NodeName != "" || pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil {
		return pod.Spec.NodeName
	}
	required := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil {
		return ""
	}
	for _, term := range required.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if field.Key == metav1.ObjectNameField && len(field.Values) == 1 {
				return field.Values[0]
			}
		}
	}
	return ""
}

// affinityOf returns the pod's affinity with the node affinity of the template: the controller replaces it in each pod
// by the name of one node.
func affinityOf(spec, template *corev1.PodSpec) *corev1.Affinity {
	affinity := &corev1.Affinity{}
	if spec.Affinity != nil {
		*affinity = *spec.Affinity
	}
	affinity.NodeAffinity = nil
	if template.Affinity != nil {
		affinity.NodeAffinity = template.Affinity.NodeAffinity.DeepCopy()
	}
	return affinity
}

// tolerateAsDaemon adds the tolerations that every daemon gets.
func tolerateAsDaemon(spec *corev1.PodSpec) {
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		tolerate(spec, key, corev1.TaintEffectNoExecute)
	}
	for _, key := range []string{corev1.TaintNodeDiskPressure, corev1.TaintNodeMemoryPressure,
		corev1.TaintNodePIDPressure, corev1.TaintNodeUnschedulable} {
		tolerate(spec, key, corev1.TaintEffectNoSchedule)
	}
	if spec.HostNetwork {
		tolerate(spec, corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule)
	}
}

func tolerate(spec *corev1.PodSpec, key string, effect corev1.TaintEffect) {
	toleration := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect}
	for _, known := range spec.Tolerations {
		if known == toleration {
			return
		}
	}
	spec.Tolerations = append(spec.Tolerations, toleration)
}
