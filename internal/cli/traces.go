package cli

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/joiner-autoscaler/joiner/internal/convert"
	"github.com/joiner-autoscaler/joiner/internal/migrate"
)

// clean removes mentions of v1beta1 from an object's metadata, and reports whether there were any. Conversion cannot
// do that: the API server takes only labels and annotations from it.
//
// An owner in v1beta1 is changed to v1. The garbage collector asks for owners in the version that the reference names.
// Once that is not served, a NodeClaim is no longer deleted with its NodePool, nor a node with its NodeClaim.
//
// Entries of managedFields about writes in v1beta1 are removed, so that later entries show writes made since. Those of
// server-side apply stay: the manager's next apply replaces them, and needs to know which fields it had.
func clean(o *unstructured.Unstructured) bool {
	found := false
	owners := o.GetOwnerReferences()
	for i := range owners {
		if migrate.IsOldOwner(owners[i].APIVersion, owners[i].Kind) {
			group, _, _ := strings.Cut(owners[i].APIVersion, "/")
			owners[i].APIVersion = group + "/" + convert.V1
			found = true
		}
	}
	if found {
		o.SetOwnerReferences(owners)
	}
	entries := o.GetManagedFields()
	// An object's own fields are written in its own group, so v1beta1 here is always ours.
	left := slices.DeleteFunc(slices.Clone(entries), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Operation == metav1.ManagedFieldsOperationUpdate &&
			strings.HasSuffix(entry.APIVersion, "/"+convert.V1beta1)
	})
	if len(left) == len(entries) {
		return found
	}
	if len(left) == 0 {
		left = append(left, metav1.ManagedFieldsEntry{}) // the API server takes an empty list for no change
	}
	o.SetManagedFields(left)
	return true
}
