// Package finalizer makes the one patch that takes our finalizer off an object.
package finalizer

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Remove returns a patch that takes the finalizer off the object, and only if it still stands where it was seen: it is
// refused as invalid when others have changed the list, and passes when anything else of the object has changed. The
// object must have the finalizer.
func Remove(object client.Object, name string) client.Patch {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value,omitempty"`
	}
	finalizers := object.GetFinalizers()
	left := slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool { return f == name })
	operations := []operation{{Op: "test", Path: "/metadata/finalizers", Value: finalizers}}
	if len(left) == 0 {
		operations = append(operations, operation{Op: "remove", Path: "/metadata/finalizers"})
	} else {
		operations = append(operations, operation{Op: "replace", Path: "/metadata/finalizers", Value: left})
	}
	data, err := json.Marshal(operations)
	if err != nil { // strings always marshal
		data = []byte("[]")
	}
	return client.RawPatch(types.JSONPatchType, data)
}
