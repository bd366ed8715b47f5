package whatif

import (
	"encoding/json"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// overlay replaces a manifest by the result of applying it to the cluster's object, as `kubectl apply` computes it.
// Fields that the manifest lacks stay, unless the last applied manifest had them.
func overlay(old, fresh *object) error {
	if _, isPod := fresh.Object.(*corev1.Pod); isPod {
		return nil
	}
	current, err := json.Marshal(old.Object)
	if err != nil {
		return err
	}
	modified, err := json.Marshal(fresh.Object)
	if err != nil {
		return err
	}
	original := modified
	if last := old.GetAnnotations()[corev1.LastAppliedConfigAnnotation]; json.Valid([]byte(last)) {
		original = []byte(last)
	}
	schema, err := strategicpatch.NewPatchMetaFromStruct(fresh.Object)
	if err != nil {
		return nil //nolint:nilerr // a kind without rules of its own for lists takes the manifest as it is
	}
	patch, err := strategicpatch.CreateThreeWayMergePatch(original, modified, current, schema, true)
	if err != nil {
		return fmt.Errorf("comparing it with what the cluster has: %w", err)
	}
	result, err := strategicpatch.StrategicMergePatchUsingLookupPatchMeta(current, patch, schema)
	if err != nil {
		return fmt.Errorf("comparing it with what the cluster has: %w", err)
	}
	merged, isObject := reflect.New(reflect.TypeOf(fresh.Object).Elem()).Interface().(client.Object)
	if !isObject {
		return nil
	}
	if err := json.Unmarshal(result, merged); err != nil {
		return err
	}
	merged.GetObjectKind().SetGroupVersionKind(fresh.GetObjectKind().GroupVersionKind())
	fresh.Object = merged
	return nil
}
