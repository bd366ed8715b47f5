package whatif

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Understanding reads documents of a cluster as they arrive, so that what planning does not look at need not be kept
// (U-31): most of a pod is that. Use [NewUnderstanding].
type Understanding struct{ reader *reader }

// NewUnderstanding returns an Understanding.
func NewUnderstanding() (Understanding, error) {
	r, err := newReader()
	return Understanding{r}, err
}

// Of returns the document with what [New] needs of it alone. A document that cannot be read is returned as it is: New
// says then what is wrong.
func (u Understanding) Of(d Document) Document {
	kind, _ := d.Content["kind"].(string)
	if !d.Stored || !slices.Contains([]string{"Pod", "Node", "NodeClaim", "PersistentVolume", "PersistentVolumeClaim"}, kind) {
		return d // there are few of them
	}
	if kind == "Pod" && d.Content["apiVersion"] == "v1" {
		pod := &corev1.Pod{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(d.Content, pod); err == nil && pod.Name != "" {
			pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
			return Document{Where: d.Where, Stored: true, object: sparePod(pod)}
		}
	}
	o, err := u.reader.read(d)
	if err != nil || o == nil {
		return d
	}
	if node, isNode := o.Object.(*corev1.Node); isNode {
		node.Status.Images = nil
	}
	o.SetManagedFields(nil)
	return Document{Where: d.Where, Stored: true, object: o.Object}
}

// lastApplied is the annotation in which kubectl keeps the whole of an object once more.
const lastApplied = corev1.LastAppliedConfigAnnotation

// sparePod leaves out of a pod what no plan depends on; what containers run among it, which is nobody's business
// (U-40).
func sparePod(pod *corev1.Pod) *corev1.Pod {
	pod.ManagedFields = nil
	delete(pod.Annotations, lastApplied)
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i, c := range list {
			list[i] = corev1.Container{Name: c.Name, Resources: c.Resources, ResizePolicy: c.ResizePolicy,
				RestartPolicy: c.RestartPolicy, Ports: c.Ports}
		}
	}
	pod.Spec.EphemeralContainers, pod.Spec.ImagePullSecrets, pod.Spec.HostAliases = nil, nil, nil
	pod.Spec.SecurityContext, pod.Spec.DNSConfig = nil, nil
	pod.Status = corev1.PodStatus{Phase: pod.Status.Phase, Conditions: pod.Status.Conditions, Resize: pod.Status.Resize,
		NominatedNodeName: pod.Status.NominatedNodeName, StartTime: pod.Status.StartTime,
		Resources: pod.Status.Resources, ResourceClaimStatuses: pod.Status.ResourceClaimStatuses,
		InitContainerStatuses: spareStatuses(pod.Status.InitContainerStatuses),
		ContainerStatuses:     spareStatuses(pod.Status.ContainerStatuses)}
	return pod
}

func spareStatuses(list []corev1.ContainerStatus) []corev1.ContainerStatus {
	var spare []corev1.ContainerStatus
	for _, c := range list {
		if c.AllocatedResources != nil || c.Resources != nil {
			spare = append(spare, corev1.ContainerStatus{Name: c.Name, AllocatedResources: c.AllocatedResources,
				Resources: c.Resources})
		}
	}
	return spare
}

// ownOf is an object for one World, which writes into it. A pod that is admitted gets nothing but a version and a
// name of its own, so what it points to is shared: of 100,000 that is most.
func ownOf(o client.Object) client.Object {
	if pod, isPod := o.(*corev1.Pod); isPod && (pod.Status.Phase != "" || pod.Spec.NodeName != "") {
		own := *pod
		return &own
	}
	return o.DeepCopyObject().(client.Object)
}
