package patch

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Status writes what differs between two states of an object's status, provided that the object is still the one before:
// lists such as conditions are replaced as a whole. It looks at the status alone, so it costs a fraction of a merge patch
// that is made of two whole objects. S is the struct of the status, with a name in JSON on each field.
func Status[S any](object client.Object, before, after *S) client.Patch {
	changed := map[string]any{}
	was, is := reflect.ValueOf(before).Elem(), reflect.ValueOf(after).Elem()
	for i := range is.NumField() {
		if equality.Semantic.DeepEqual(was.Field(i).Interface(), is.Field(i).Interface()) {
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

// difference is what a merge patch says about one field: null removes it, and the entries that a map has lost.
func difference(was, is reflect.Value) any {
	if is.IsZero() || (is.Kind() == reflect.Slice || is.Kind() == reflect.Map) && is.Len() == 0 {
		return nil
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
