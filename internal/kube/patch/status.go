package patch

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// Status returns a patch with the difference between two versions of an object's status. It fails if the object has
// changed, because lists such as conditions are replaced as a whole. It compares only the status, so it costs a
// fraction of a merge patch of two whole objects. S is the status struct, with a JSON name on each field.
func Status[S any](object client.Object, before, after *S) client.Patch {
	changed := map[string]any{}
	was, is := reflect.ValueOf(before).Elem(), reflect.ValueOf(after).Elem()
	for i := range is.NumField() {
		if sameField(was.Field(i), is.Field(i)) {
			continue
		}
		name, _, _ := strings.Cut(is.Type().Field(i).Tag.Get("json"), ",")
		changed[name] = difference(was.Field(i), is.Field(i))
	}
	data, err := json.Marshal(map[string]any{
		"metadata": map[string]string{"resourceVersion": object.GetResourceVersion()},
		"status":   changed,
	})
	if err != nil { // API types always marshal
		data = []byte("{}")
	}
	return client.RawPatch(types.MergePatchType, data)
}

// SameStatus reports whether two versions of a status are equal. It has fast paths for the types in our statuses: it
// is called at every step of every object, and mostly nothing has changed.
func SameStatus[S any](a, b *S) bool {
	was, is := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	for i := range is.NumField() {
		if !sameField(was.Field(i), is.Field(i)) {
			return false
		}
	}
	return true
}

func sameField(was, is reflect.Value) bool {
	switch a := was.Addr().Interface().(type) {
	case *string:
		return *a == is.String()
	case **int64:
		b := *is.Addr().Interface().(**int64)
		return *a == b || *a != nil && b != nil && **a == *b
	case *metav1.Time:
		return a.Equal(is.Addr().Interface().(*metav1.Time))
	case *corev1.ResourceList:
		return SameAmounts(*a, *is.Addr().Interface().(*corev1.ResourceList))
	case *[]karpenterv1.Condition:
		return slices.EqualFunc(*a, *is.Addr().Interface().(*[]karpenterv1.Condition), sameCondition)
	}
	return equality.Semantic.DeepEqual(was.Interface(), is.Interface())
}

// SameAmounts reports whether two lists have the same resources with equal amounts.
func SameAmounts(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 })
}

func sameCondition(a, b karpenterv1.Condition) bool {
	sameTime := a.LastTransitionTime.Equal(&b.LastTransitionTime)
	a.LastTransitionTime, b.LastTransitionTime = metav1.Time{}, metav1.Time{}
	return sameTime && a == b
}

// fields returns the merge patch of an object within a status, with null for each field that was removed.
func fields(was, is any) map[string]any {
	lost, result := map[string]any{}, map[string]any{}
	for from, to := range map[any]*map[string]any{was: &lost, is: &result} {
		data, err := json.Marshal(from)
		if err == nil {
			err = json.Unmarshal(data, to)
		}
		if err != nil { // API types always marshal
			return result
		}
	}
	for name := range lost {
		if _, kept := result[name]; !kept {
			result[name] = nil
		}
	}
	return result
}

// difference returns the merge patch of one field. null removes the field, or a removed entry of a map.
func difference(was, is reflect.Value) any {
	if is.IsZero() || (is.Kind() == reflect.Slice || is.Kind() == reflect.Map) && is.Len() == 0 {
		return nil
	}
	if is.Kind() == reflect.Pointer && is.Type().Elem().Kind() == reflect.Struct && !was.IsNil() {
		return fields(was.Interface(), is.Interface())
	}
	if is.Kind() != reflect.Map {
		return is.Interface()
	}
	entries := map[string]any{}
	for key, value := range is.Seq2() {
		old := was.MapIndex(key)
		if !old.IsValid() || !equality.Semantic.DeepEqual(old.Interface(), value.Interface()) {
			entries[fmt.Sprint(key)] = value.Interface()
		}
	}
	for key := range was.Seq() {
		if !is.MapIndex(key).IsValid() {
			entries[fmt.Sprint(key)] = nil
		}
	}
	return entries
}
