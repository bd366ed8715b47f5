package schedulingtest

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// uid is the UID of every node and every owner, so a pod with owner=Node/n belongs to that node.
const uid = "uid"

// ParsePod parses an existing pod: NAMESPACE/NAME ATTRIBUTES, as in a request.
func ParsePod(line string) (*corev1.Pod, error) {
	words := strings.Fields(line)
	if len(words) == 0 || !strings.Contains(words[0], "/") {
		return nil, fmt.Errorf("line %q: want NAMESPACE/NAME ATTRIBUTES", line)
	}
	return newPod(words[0], words[1:])
}

// newPod makes a pod of NAMESPACE/NAME. Attributes: node, tolerate=KEY[=VALUE][:EFFECT] (or *, or *:EFFECT),
// select=LABEL=VALUE, need=REQUIREMENTS (again for OR), prefer=REQUIREMENTS, annotation=KEY=VALUE, mirror,
// override=REASON, no-override, owner=KIND/NAME, image, cpu, label, gated, sa, phase, dry-run.
func newPod(name string, words []string) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name, _ = strings.Cut(name, "/")
	if pod.Name == "-" {
		pod.Name, pod.GenerateName = "", "web-"
	}
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "image"}}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		if err := attribute(pod, key, value); err != nil {
			return nil, err
		}
	}
	return pod, nil
}

func attribute(pod *corev1.Pod, key, value string) error {
	switch key {
	case "node":
		pod.Spec.NodeName = value
	case "tolerate":
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, toleration(value))
	case "select":
		pod.Spec.NodeSelector = with(pod.Spec.NodeSelector, value)
	case "need", "prefer":
		term, err := nodeTerm(value)
		if err != nil {
			return err
		}
		affinity(pod, key == "need", term)
	case "annotation":
		pod.Annotations = with(pod.Annotations, value)
	case "label":
		pod.Labels = with(pod.Labels, value)
	case "mirror":
		pod.Annotations = with(pod.Annotations, corev1.MirrorPodAnnotationKey+"=hash")
	case "override":
		pod.Annotations = with(pod.Annotations, evaluator.OverrideAnnotation+"="+value)
	case "no-override":
		delete(pod.Annotations, evaluator.OverrideAnnotation)
	case "owner":
		kind, name, _ := strings.Cut(value, "/")
		controls := true
		pod.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: kind, Name: name, UID: uid, Controller: &controls},
		}
	case "gated":
		pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "wait"}}
	case "ungated":
		pod.Spec.SchedulingGates = nil
	case "sa":
		pod.Spec.ServiceAccountName = value
	case "finalizer":
		pod.Finalizers = append(pod.Finalizers, value)
	case "image":
		pod.Spec.Containers[0].Image = value
	case "cpu":
		quantity, err := resource.ParseQuantity(value)
		if err != nil {
			return fmt.Errorf("cpu %q: %w", value, err)
		}
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: quantity}
	case "phase":
		pod.Status.Phase = corev1.PodPhase(value)
	case "dry-run":
	default:
		return fmt.Errorf("a pod has no attribute %q", key)
	}
	return nil
}

func toleration(text string) corev1.Toleration {
	rest, effect, _ := strings.Cut(text, ":")
	t := corev1.Toleration{Effect: corev1.TaintEffect(effect), Operator: corev1.TolerationOpExists}
	if rest == "*" {
		return t
	}
	key, value, equal := strings.Cut(rest, "=")
	t.Key = key
	if equal {
		t.Operator, t.Value = corev1.TolerationOpEqual, value
	}
	return t
}

func affinity(pod *corev1.Pod, required bool, term corev1.NodeSelectorTerm) {
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
	}
	nodes := pod.Spec.Affinity.NodeAffinity
	if !required {
		nodes.PreferredDuringSchedulingIgnoredDuringExecution =
			append(nodes.PreferredDuringSchedulingIgnoredDuringExecution, corev1.PreferredSchedulingTerm{
				Weight: 1, Preference: term,
			})
		return
	}
	if nodes.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		nodes.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{}
	}
	terms := &nodes.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	*terms = append(*terms, term)
}

// nodeTerm reads requirements joined by commas; name=NODE is the field metadata.name.
func nodeTerm(text string) (corev1.NodeSelectorTerm, error) {
	term := corev1.NodeSelectorTerm{}
	for _, part := range strings.Split(text, ",") {
		r, err := requirement(part)
		if err != nil {
			return term, err
		}
		if r.Key == "name" {
			r.Key = metav1.ObjectNameField
			term.MatchFields = append(term.MatchFields, r)
			continue
		}
		term.MatchExpressions = append(term.MatchExpressions, r)
	}
	return term, nil
}

// requirement reads KEY=A|B, KEY!=A|B, KEY (Exists), !KEY, KEY>5, KEY<5. KEY= is the empty value.
func requirement(text string) (corev1.NodeSelectorRequirement, error) {
	r := corev1.NodeSelectorRequirement{Operator: corev1.NodeSelectorOpExists, Key: text}
	for _, form := range []struct {
		sign     string
		operator corev1.NodeSelectorOperator
	}{{"!=", corev1.NodeSelectorOpNotIn}, {"=", corev1.NodeSelectorOpIn}, {">", corev1.NodeSelectorOpGt},
		{"<", corev1.NodeSelectorOpLt}} {
		if key, values, found := strings.Cut(text, form.sign); found {
			r.Key, r.Operator, r.Values = key, form.operator, strings.Split(values, "|")
			break
		}
	}
	if key, absent := strings.CutPrefix(r.Key, "!"); absent {
		r.Key, r.Operator = key, corev1.NodeSelectorOpDoesNotExist
	}
	if r.Key == "" {
		return r, fmt.Errorf("requirement %q has no key", text)
	}
	return r, nil
}

// with adds KEY=VALUE to a map that may be nil.
func with(m map[string]string, text string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	key, value, _ := strings.Cut(text, "=")
	m[key] = value
	return m
}

func pairs(texts []string) map[string]string {
	var m map[string]string
	for _, text := range texts {
		m = with(m, text)
	}
	return m
}
