// Package patch makes the patches of objects that others write to all the while: kubelets, node controllers, users. A
// merge patch would replace whole lists and so undo what others added, unless it is tied to the resource version; and
// then it collides with every heartbeat. These are JSON patches that test just the lists they change: refused as invalid
// when others have changed those, passing when anything else has changed.
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

// LosesOriginal says that an object stands for one of v1beta1 that could not be converted and has no room for it (V-24). Whatever
// writes it takes the other one's place in the storage, so nothing of ours does.
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

// RemoveFinalizer takes a finalizer off the object, which must have it.
func RemoveFinalizer(object client.Object, name string) client.Patch {
	return patchOf(object.GetUID(), without(object, name))
}

// RemoveFinalizerOfUnchanged takes a finalizer off the object, which must have it, provided that nobody has written the
// object since it was read.
func RemoveFinalizerOfUnchanged(object client.Object, name string) client.Patch {
	unchanged := operation{"test", "/metadata/resourceVersion", object.GetResourceVersion()}
	return patchOf(object.GetUID(), append([]operation{unchanged}, without(object, name)...))
}

// without takes a finalizer out of the list, provided that it is still the object's.
func without(object client.Object, name string) []operation {
	before := object.GetFinalizers()
	after := slices.DeleteFunc(slices.Clone(before), func(f string) bool { return f == name })
	return list("/metadata/finalizers", before, after)
}

// Node writes what differs between two states of a node in its labels, annotations, finalizers, owners and taints.
// Labels and annotations that after lacks stay, and so do taints that others write meanwhile: Kubernetes itself does while a node
// comes up.
func Node(before, after *corev1.Node) client.Patch {
	return patchOf(before.UID, slices.Concat(
		list("/metadata/finalizers", before.Finalizers, after.Finalizers),
		list("/metadata/ownerReferences", before.OwnerReferences, after.OwnerReferences),
		items("/spec/taints", before.Spec.Taints, after.Spec.Taints),
		entries("/metadata/labels", before.Labels, after.Labels),
		entries("/metadata/annotations", before.Annotations, after.Annotations),
	))
}

// WithoutLabel takes a label off that very object, which must have it.
func WithoutLabel(object client.Object, key string) client.Patch {
	return patchOf(object.GetUID(), []operation{{"remove", "/metadata/labels/" + escaped(key), nil}})
}

// Meta writes what differs between two states of an object in its labels and annotations, onto that very object. What
// after lacks stays.
func Meta(before, after client.Object) client.Patch {
	return patchOf(before.GetUID(), slices.Concat(
		entries("/metadata/labels", before.GetLabels(), after.GetLabels()),
		entries("/metadata/annotations", before.GetAnnotations(), after.GetAnnotations()),
	))
}

// MetaUnlessChanged is Meta, provided that these annotations are still as before has them, or still missing: somebody else may have
// decided meanwhile.
func MetaUnlessChanged(before, after client.Object, keys ...string) client.Patch {
	return patchOf(before.GetUID(), slices.Concat(
		still(before, keys...),
		entries("/metadata/labels", before.GetLabels(), after.GetLabels()),
		entries("/metadata/annotations", before.GetAnnotations(), after.GetAnnotations()),
	))
}

// MetaWhere is Meta, provided that the object has an annotation of this value. It may change nothing, and then brings the object as
// it is.
func MetaWhere(before, after client.Object, key, value string) client.Patch {
	return patchOf(before.GetUID(), slices.Concat(
		[]operation{{"test", annotation(key), value}},
		entries("/metadata/labels", before.GetLabels(), after.GetLabels()),
		entries("/metadata/annotations", before.GetAnnotations(), after.GetAnnotations()),
	))
}

// Annotation sets an annotation of that very object, provided that it still has the value that object has, or is still
// missing: somebody else may have decided meanwhile.
func Annotation(object client.Object, key, value string) client.Patch {
	return patchOf(object.GetUID(), slices.Concat(
		still(object, key),
		entries("/metadata/annotations", object.GetAnnotations(), map[string]string{key: value}),
	))
}

// Place writes the nominated node of a pod ("" for none) and one of its conditions into its status, provided that the pod is
// still not bound, and nominated as it was: kube-scheduler nominates pods too.
func Place(pod *corev1.Pod, node string, condition corev1.PodCondition) client.Patch {
	const nominated = "/status/nominatedNodeName"
	operations := []operation{{"test", "/spec/nodeName", nil}, {"test", nominated, orNil(pod.Status.NominatedNodeName)}}
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
		operations = append(operations, operation{"test", path + "/type", condition.Type}, operation{"replace", path, condition})
	}
	return patchOf(pod.UID, operations)
}

// orNil is what a JSON patch finds where an object has no text.
func orNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// still tests that annotations are as object has them. Where it has none at all, what adds the first tests that itself.
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

// annotation is the path of an annotation.
func annotation(key string) string { return "/metadata/annotations/" + escaped(key) }

func escaped(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// LaunchUntil sets an annotation of that very claim, provided that it is still as object has it in that annotation and in
// its finalizers, and that it is not being deleted.
func LaunchUntil(object client.Object, key, value string) client.Patch {
	return patchOf(object.GetUID(), slices.Concat(
		[]operation{{"test", "/metadata/deletionTimestamp", nil}, {"test", "/metadata/finalizers", object.GetFinalizers()}},
		still(object, key),
		entries("/metadata/annotations", object.GetAnnotations(), map[string]string{key: value}),
	))
}

// list replaces a list, provided it is still the one before.
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

// items takes out of a list what after lacks, provided that it is still where it was, and adds at the end what before lacks. Other items
// stay, also those that came meanwhile, but for a list that was empty: it has to be empty still.
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

// patchOf makes the patch, for the object of that UID only: another may have taken its name.
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
