// Package patch makes patches for objects that others write all the time: kubelets, node controllers, users. A merge
// patch replaces whole lists and so undoes what others added, unless it is tied to the resource version. Then it
// conflicts with every heartbeat. These JSON patches test only the lists they change. They are refused as invalid if
// those lists have changed, and pass if anything else has.
package patch

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// LosesOriginal reports whether an object stands for one of v1beta1 that could not be converted, and has no room to
// keep it (V-24). Any write would overwrite the stored original, so we write nothing.
func LosesOriginal(object client.Object) bool {
	annotations := object.GetAnnotations()
	_, standsIn := annotations[karpenterv1.ConversionProblemAnnotationKey]
	_, keeps := annotations[karpenterv1.UnconvertedAnnotationKey]
	return standsIn && !keeps
}

// operation is one step of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// RemoveFinalizer removes a finalizer from the object, which must have it.
func RemoveFinalizer(object client.Object, name string) client.Patch {
	return patchOf(object.GetUID(), without(object, name))
}

// RemoveFinalizerOfUnchanged is RemoveFinalizer, and fails if anybody has written the object since it was read.
func RemoveFinalizerOfUnchanged(object client.Object, name string) client.Patch {
	unchanged := operation{"test", "/metadata/resourceVersion", object.GetResourceVersion()}
	return patchOf(object.GetUID(), append([]operation{unchanged}, without(object, name)...))
}

// without removes a finalizer from the list, which must not have changed.
func without(object client.Object, name string) []operation {
	before := object.GetFinalizers()
	after := slices.DeleteFunc(slices.Clone(before), func(f string) bool { return f == name })
	return list("/metadata/finalizers", before, after)
}

// Node returns a patch with the difference between two versions of a node: labels, annotations, finalizers, owners and
// taints. It keeps labels and annotations that after lacks. It also keeps taints that others add meanwhile, as
// Kubernetes itself does while a node comes up.
func Node(before, after *corev1.Node) client.Patch {
	return patchOf(before.UID, slices.Concat(
		list("/metadata/finalizers", before.Finalizers, after.Finalizers),
		list("/metadata/ownerReferences", before.OwnerReferences, after.OwnerReferences),
		items("/spec/taints", before.Spec.Taints, after.Spec.Taints),
		entries("/metadata/labels", before.Labels, after.Labels),
		entries("/metadata/annotations", before.Annotations, after.Annotations),
	))
}

// WithoutLabel removes a label from this same object, which must have it.
func WithoutLabel(object client.Object, key string) client.Patch {
	return patchOf(object.GetUID(), []operation{{"remove", "/metadata/labels/" + escaped(key), nil}})
}

// Meta returns a patch with the difference between the labels and annotations of two versions of an object. It keeps
// those that after lacks, and applies only to this same object.
func Meta(before, after client.Object) client.Patch {
	return patchOf(before.GetUID(), changes(before, after))
}

// changes sets the labels and annotations that are new or different.
func changes(before, after client.Object) []operation {
	return slices.Concat(
		entries("/metadata/labels", before.GetLabels(), after.GetLabels()),
		entries("/metadata/annotations", before.GetAnnotations(), after.GetAnnotations()),
	)
}

// MetaUnlessChanged is Meta, and fails if one of these annotations has changed since before, or was added: somebody
// else may have decided meanwhile.
func MetaUnlessChanged(before, after client.Object, keys ...string) client.Patch {
	return patchOf(before.GetUID(), slices.Concat(
		still(before, keys...),
		changes(before, after),
	))
}

// MetaAdding is Meta, and fails if somebody else has added one of the labels that it adds: two processes may each have
// launched a machine, and the labels on the claim are those of one.
func MetaAdding(before, after client.Object) client.Patch {
	var alone []operation
	for _, key := range slices.Sorted(maps.Keys(after.GetLabels())) {
		if _, had := before.GetLabels()[key]; !had && len(before.GetLabels()) > 0 {
			alone = append(alone, operation{"test", "/metadata/labels/" + escaped(key), nil})
		}
	}
	return patchOf(before.GetUID(), slices.Concat(
		alone,
		changes(before, after),
	))
}

// MetaWhere is Meta, and fails if the object does not have the annotation with this value. With no difference it
// changes nothing, and only fetches the object.
func MetaWhere(before, after client.Object, key, value string) client.Patch {
	return patchOf(before.GetUID(), slices.Concat(
		[]operation{{"test", annotation(key), value}},
		changes(before, after),
	))
}

// Annotation sets an annotation of this same object. It fails if the annotation has changed or was added since the
// object was read: somebody else may have decided meanwhile.
func Annotation(object client.Object, key, value string) client.Patch {
	return patchOf(object.GetUID(), slices.Concat(
		still(object, key),
		entries("/metadata/annotations", object.GetAnnotations(), map[string]string{key: value}),
	))
}

// Place writes the nominated node of a pod ("" for none) and one condition into its status. It fails if the pod has
// been bound or its nomination has changed: kube-scheduler nominates pods too.
func Place(pod *corev1.Pod, node string, condition corev1.PodCondition) client.Patch {
	const nominated = "/status/nominatedNodeName"
	operations := []operation{{"test", "/spec/nodeName", nil},
		{"test", nominated, orNil(pod.Status.NominatedNodeName)}}
	switch {
	case node != "":
		operations = append(operations, operation{"add", nominated, node})
	case pod.Status.NominatedNodeName != "":
		operations = append(operations, operation{"remove", nominated, nil})
	}
	at := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == condition.Type })
	switch {
	case len(pod.Status.Conditions) == 0:
		operations = append(operations, list("/status/conditions", nil, []corev1.PodCondition{condition})...)
	case at < 0:
		operations = append(operations, operation{"add", "/status/conditions/-", condition})
	default:
		path := "/status/conditions/" + strconv.Itoa(at)
		operations = append(operations, operation{"test", path + "/type", condition.Type},
			operation{"replace", path, condition})
	}
	return patchOf(pod.UID, operations)
}

// orNil returns the value that a JSON patch finds for an empty text: nil.
func orNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// still tests that annotations are unchanged. If the object has none at all, the operation that adds the first tests
// that.
func still(object client.Object, keys ...string) []operation {
	var operations []operation
	for _, key := range keys {
		if len(object.GetAnnotations()) == 0 {
			break
		}
		var known any
		if text, found := object.GetAnnotations()[key]; found {
			known = text
		}
		operations = append(operations, operation{"test", annotation(key), known})
	}
	return operations
}

// annotation returns the path of an annotation.
func annotation(key string) string { return "/metadata/annotations/" + escaped(key) }

func escaped(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// LaunchUntil sets an annotation of this same claim. It fails if that annotation or the finalizers have changed, or if
// the claim is being deleted.
func LaunchUntil(object client.Object, key, value string) client.Patch {
	return patchOf(object.GetUID(), slices.Concat(
		[]operation{{"test", "/metadata/deletionTimestamp", nil},
			{"test", "/metadata/finalizers", object.GetFinalizers()}},
		still(object, key),
		entries("/metadata/annotations", object.GetAnnotations(), map[string]string{key: value}),
	))
}

// list replaces a list, which must be unchanged.
func list[T any](path string, before, after []T) []operation {
	switch {
	case len(before) == 0 && len(after) == 0, reflect.DeepEqual(before, after):
		return nil
	case len(before) == 0:
		return []operation{{"test", path, nil}, {"add", path, after}}
	case len(after) == 0:
		return []operation{{"test", path, before}, {"remove", path, nil}}
	}
	return []operation{{"test", path, before}, {"replace", path, after}}
}

// items removes the items that after lacks, if they have not moved, and appends those that before lacks. Other items
// stay, also those added meanwhile. But if the list was empty, it must still be empty.
func items[T any](path string, before, after []T) []operation {
	if len(before) == 0 {
		return list(path, before, after)
	}
	has := func(all []T, item T) bool {
		return slices.ContainsFunc(all, func(other T) bool { return reflect.DeepEqual(item, other) })
	}
	var operations []operation
	for i := len(before) - 1; i >= 0; i-- {
		if !has(after, before[i]) {
			at := path + "/" + strconv.Itoa(i)
			operations = append(operations, operation{"test", at, before[i]}, operation{"remove", at, nil})
		}
	}
	for _, item := range after {
		if !has(before, item) {
			operations = append(operations, operation{"add", path + "/-", item})
		}
	}
	return operations
}

// entries sets the entries of a map that are new or different.
func entries(path string, before, after map[string]string) []operation {
	if len(before) == 0 {
		if len(after) == 0 {
			return nil
		}
		return []operation{{"test", path, nil}, {"add", path, after}}
	}
	var operations []operation
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if value, found := before[key]; !found || value != after[key] {
			operations = append(operations, operation{"add", path + "/" + escaped(key), after[key]})
		}
	}
	return operations
}

// patchOf returns the patch, for the object with that UID only: another may have taken its name.
func patchOf(uid types.UID, operations []operation) client.Patch {
	if uid != "" {
		operations = append([]operation{{"test", "/metadata/uid", uid}}, operations...)
	}
	data, err := json.Marshal(operations)
	if err != nil { // strings and API types always marshal
		data = []byte("[]")
	}
	return client.RawPatch(types.JSONPatchType, data)
}
