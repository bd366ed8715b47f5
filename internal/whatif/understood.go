package whatif

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// Understanding decodes documents of a cluster as they arrive, so that data which planning ignores need not be kept
// (U-31): that is most of a pod. Containers that pods share are kept once. Create it with [NewUnderstanding]. It is
// not safe for concurrent use, see [Understanding.Another].
type Understanding struct {
	reader *reader
	shared map[string][]corev1.Container
}

// mostShared bounds the memory for pods that may be gone.
const mostShared = 20_000

// NewUnderstanding returns an empty Understanding.
func NewUnderstanding() (Understanding, error) {
	r, err := newReader()
	return Understanding{reader: r, shared: map[string][]corev1.Container{}}, err
}

// Another returns an Understanding that may be used concurrently with this one.
func (u Understanding) Another() Understanding {
	return Understanding{reader: u.reader, shared: map[string][]corev1.Container{}}
}

// once returns the first list that is equal to this one.
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

// OfJoiner reports whether a pod with these labels is one of Joiner's chart, also under Karpenter's names (K-23).
func OfJoiner(labels map[string]string) bool {
	const joiner = "joiner"
	return labels[programLabel] == joiner || labels[nameLabel] == joiner
}

// Of returns the document with only what [New] needs. A document that cannot be decoded is returned unchanged, and New
// reports the fault.
func (u Understanding) Of(d Document) Document {
	kind, _ := d.Content["kind"].(string)
	if !d.Stored || !slices.Contains([]string{"Pod", "Node", "NodeClaim", "PersistentVolume", "PersistentVolumeClaim"},
		kind) {
		return d // the others are few
	}
	if kind == "Pod" && d.Content["apiVersion"] == "v1" {
		pod := &corev1.Pod{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(d.Content, pod); err == nil && pod.Name != "" {
			if OfJoiner(pod.Labels) {
				return d // its arguments say how the controller was started
			}
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

// ownOf returns an object for one World, which writes into it. An admitted pod gets only its own version and name, so
// everything it points to is shared: with 100,000 pods that is most of the memory.
func ownOf(o client.Object) client.Object {
	if pod, isPod := o.(*corev1.Pod); isPod && (pod.Status.Phase != "" || pod.Spec.NodeName != "") {
		own := *pod
		return &own
	}
	return o.DeepCopyObject().(client.Object)
}
