package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Patch changes a part of an object as a merge patch or a JSON patch says, and returns what is stored then.
func (s *Server) Patch(like client.Object, key client.ObjectKey, format types.PatchType, data []byte, part Part) (client.Object, error) {
	k, err := s.kindOf(like)
	if err != nil {
		return nil, err
	}
	old := s.stores[k].objects[key]
	if old == nil {
		return nil, apierrors.NewNotFound(k.resource, key.Name)
	}
	fresh := old.DeepCopyObject().(client.Object)
	switch format {
	case types.MergePatchType:
		if err := s.fields.merge(reflect.ValueOf(fresh).Elem(), data); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	case types.JSONPatchType:
		if err := s.fields.patch(reflect.ValueOf(fresh).Elem(), data); err != nil {
			return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
		}
	default:
		return nil, apierrors.NewBadRequest("the simulated API server knows no patch of type " + string(format))
	}
	if fresh.GetName() != key.Name || fresh.GetNamespace() != key.Namespace {
		return nil, apierrors.NewBadRequest("a patch cannot change name or namespace")
	}
	if fresh.GetUID() != old.GetUID() {
		return nil, apierrors.NewInvalid(k.gvk.GroupKind(), key.Name, field.ErrorList{
			field.Invalid(field.NewPath("metadata", "uid"), fresh.GetUID(), "field is immutable")})
	}
	return s.write(k, old, fresh, part)
}

// fields finds struct fields by their names in JSON.
type fields map[reflect.Type]map[string][]int

func (f fields) of(t reflect.Type) map[string][]int {
	if known := f[t]; known != nil {
		return known
	}
	all := map[string][]int{}
	for i := range t.NumField() {
		each := t.Field(i)
		name, _, _ := strings.Cut(each.Tag.Get("json"), ",")
		if name == "" && each.Anonymous {
			for inner, index := range f.of(each.Type) {
				all[inner] = append([]int{i}, index...)
			}
		} else if name != "" && name != "-" {
			all[name] = []int{i}
		}
	}
	f[t] = all
	return all
}

// opaque reports whether values of the type read themselves from JSON, as times and quantities do.
func opaque(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}

func isNull(raw []byte) bool { return string(raw) == "null" }

// merge carries a JSON merge patch (RFC 7386) out on a typed value. Fields that the type does not have are left out, as
// the API server prunes them.
func (f fields) merge(target reflect.Value, raw []byte) error {
	t := target.Type()
	switch {
	case isNull(raw):
		target.SetZero()
		return nil
	case t.Kind() == reflect.Struct && !opaque(t):
		var entries map[string]json.RawMessage
		if err := json.Unmarshal(raw, &entries); err != nil {
			return err
		}
		known := f.of(t)
		for name, entry := range entries {
			if index, found := known[name]; found {
				if err := f.merge(target.FieldByIndex(index), entry); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
		}
		return nil
	case t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct && !opaque(t.Elem()) && !opaque(t):
		if target.IsNil() {
			target.Set(reflect.New(t.Elem()))
		}
		return f.merge(target.Elem(), raw)
	case t.Kind() == reflect.Map && !opaque(t):
		return f.mergeMap(target, raw)
	}
	return set(target, raw)
}

func (f fields) mergeMap(target reflect.Value, raw []byte) error {
	var entries map[string]json.RawMessage
	if err := json.Unmarshal(raw, &entries); err != nil {
		return err
	}
	if target.IsNil() {
		target.Set(reflect.MakeMap(target.Type()))
	}
	for name, entry := range entries {
		key := reflect.ValueOf(name).Convert(target.Type().Key())
		if isNull(entry) {
			target.SetMapIndex(key, reflect.Value{})
			continue
		}
		value := reflect.New(target.Type().Elem()).Elem()
		if old := target.MapIndex(key); old.IsValid() {
			value.Set(old)
		}
		if err := f.merge(value, entry); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		target.SetMapIndex(key, value)
	}
	return nil
}

// set replaces a value by what JSON says.
func set(target reflect.Value, raw []byte) error {
	value := reflect.New(target.Type())
	if err := json.Unmarshal(raw, value.Interface()); err != nil {
		return err
	}
	target.Set(value.Elem())
	return nil
}

// step is an operation of a JSON patch (RFC 6902).
type step struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value"`
}

// patch carries a JSON patch out on a typed value: test, add, replace and remove of fields and of entries of maps. The
// elements of lists cannot be addressed; nothing here does.
func (f fields) patch(target reflect.Value, data []byte) error {
	var steps []step
	if err := json.Unmarshal(data, &steps); err != nil {
		return err
	}
	for _, each := range steps {
		if err := f.do(target, each); err != nil {
			return fmt.Errorf("%s %s: %w", each.Op, each.Path, err)
		}
	}
	return nil
}

func (f fields) do(target reflect.Value, s step) error {
	segments := strings.Split(strings.TrimPrefix(s.Path, "/"), "/")
	for i := range segments {
		segments[i] = strings.ReplaceAll(strings.ReplaceAll(segments[i], "~1", "/"), "~0", "~")
	}
	for _, name := range segments[:len(segments)-1] {
		next, err := f.child(target, name)
		if err != nil {
			return err
		}
		target = next
	}
	last := segments[len(segments)-1]
	if target.Kind() == reflect.Map {
		return inMap(target, last, s)
	}
	child, err := f.child(target, last)
	if err != nil {
		return err
	}
	switch s.Op {
	case "test":
		want := reflect.New(child.Type()).Elem()
		if err := set(want, s.Value); err != nil || !equality.Semantic.DeepEqual(want.Interface(), child.Interface()) {
			return fmt.Errorf("testing value %s failed", s.Value)
		}
		return nil
	case "add":
		return set(child, s.Value)
	case "replace", "remove":
		if child.IsZero() {
			return fmt.Errorf("missing key: %s", last)
		}
		if s.Op == "remove" {
			child.SetZero()
			return nil
		}
		return set(child, s.Value)
	}
	return fmt.Errorf("unknown operation")
}

// child returns the field of a struct.
func (f fields) child(target reflect.Value, name string) (reflect.Value, error) {
	if target.Kind() == reflect.Pointer && !target.IsNil() {
		target = target.Elem()
	}
	if target.Kind() != reflect.Struct {
		return reflect.Value{}, fmt.Errorf("doc is missing path")
	}
	index, found := f.of(target.Type())[name]
	if !found {
		return reflect.Value{}, fmt.Errorf("doc is missing path: %s", name)
	}
	return target.FieldByIndex(index), nil
}

func inMap(target reflect.Value, name string, s step) error {
	key := reflect.ValueOf(name).Convert(target.Type().Key())
	old := target.MapIndex(key)
	switch s.Op {
	case "test":
		want := reflect.New(target.Type().Elem()).Elem()
		if isNull(s.Value) && !old.IsValid() {
			return nil
		}
		if err := set(want, s.Value); err != nil || !old.IsValid() || !equality.Semantic.DeepEqual(want.Interface(), old.Interface()) {
			return fmt.Errorf("testing value %s failed", s.Value)
		}
		return nil
	case "remove", "replace":
		if !old.IsValid() {
			return fmt.Errorf("missing key: %s", name)
		}
	}
	if s.Op == "remove" {
		target.SetMapIndex(key, reflect.Value{})
		return nil
	}
	if target.IsNil() { // there is no such object yet to add an entry to
		return fmt.Errorf("doc is missing path")
	}
	value := reflect.New(target.Type().Elem()).Elem()
	if err := set(value, s.Value); err != nil {
		return err
	}
	target.SetMapIndex(key, value)
	return nil
}
