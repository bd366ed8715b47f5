package whatif

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// Understanding reads documents of a cluster as they arrive, so that what planning does not look at need not be kept
// (U-31): most of a pod is that. What pods of one workload have in common is kept once. Use [NewUnderstanding]; it is
// not safe for concurrent use, see [Understanding.Another].
type Understanding struct {
	reader *reader
	shared map[string][]corev1.Container
}

// mostShared bounds what is remembered of pods that may be gone.
const mostShared = 20_000

// NewUnderstanding returns an Understanding.
func NewUnderstanding() (Understanding, error) {
	r, err := newReader()
	return Understanding{reader: r, shared: map[string][]corev1.Container{}}, err
}

// Another is one that may be used beside this one.
func (u Understanding) Another() Understanding {
	return Understanding{reader: u.reader, shared: map[string][]corev1.Container{}}
}

// once returns the first list that says the same as this one.
func (u Understanding) once(list []corev1.Container) []corev1.Container {
	key, err := json.Marshal(list)
	if err != nil || len(list) == 0 {
		return list
	}
	if known, is := u.shared[string(key)]; is {
		return known
	}
	if len(u.shared) >= mostShared {
		clear(u.shared)
	}
	u.shared[string(key)] = list
	return list
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
			translate.SparePod(pod)
			pod.Spec.Containers, pod.Spec.InitContainers = u.once(pod.Spec.Containers), u.once(pod.Spec.InitContainers)
			return Document{Where: d.Where, Stored: true, object: pod}
		}
	}
	o, err := u.reader.read(d)
	if err != nil || o == nil {
		return d
	}
	spare, _ := translate.Spare(o.Object) // never an error
	return Document{Where: d.Where, Stored: true, object: spare.(client.Object)}
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
