package cli

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/joiner-autoscaler/joiner/internal/convert"
	"github.com/joiner-autoscaler/joiner/internal/migrate"
)

// clean takes out of an object's metadata what names v1beta1, and says whether there was anything. Conversion does not reach
// there: the API server takes only labels and annotations from it.
//
// An owner in v1beta1 is named in v1: the garbage collector asks for it in the version that is named, and once that is not
// served, a NodeClaim is not deleted with its NodePool any more, nor a node with its NodeClaim.
//
// Entries of managedFields about writes in v1beta1 go, so that those that are there later tell of writes that were made since.
// Those of server-side apply stay: the manager's next apply replaces them, and needs to know which fields it had.
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
	// An object's own fields are written in its own group, so there is no other v1beta1 here than ours.
	left := slices.DeleteFunc(slices.Clone(entries), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Operation == metav1.ManagedFieldsOperationUpdate && strings.HasSuffix(entry.APIVersion, "/"+convert.V1beta1)
	})
	if len(left) == len(entries) {
		return found
	}
	if len(left) == 0 {
		left = append(left, metav1.ManagedFieldsEntry{}) // for the API server, none at all means no change
	}
	o.SetManagedFields(left)
	return true
}
