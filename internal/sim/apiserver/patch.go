package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Patch applies a merge patch or a JSON patch to a part of an object, and returns what is stored then.
func (s *Server) Patch(like client.Object, key client.ObjectKey, format types.PatchType, data []byte,
	part Part) (client.Object, error) {
	k, err := s.kindOf(like)
	if err != nil {
		return nil, err
	}
	old := s.stores[k].objects[key]
	if old == nil {
		return nil, apierrors.NewNotFound(k.resource, key.Name)
	}
	if !json.Valid(data) {
		return nil, apierrors.NewBadRequest("the patch is not JSON")
	}
	fresh := k.shallow(old)
	switch format {
	case types.MergePatchType:
		if err := s.kinds.layouts.merge(reflect.ValueOf(fresh).Elem(), data); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	case types.JSONPatchType:
		if err := s.kinds.layouts.patch(reflect.ValueOf(fresh).Elem(), data); err != nil {
			return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{},
				"", err.Error(), 0, false)
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

// merge applies a JSON merge patch (RFC 7386) to a typed value. Fields that the type lacks are left out, as the API
// server prunes them. The value may share what it points to with others: that is copied before it is changed. raw must
// be valid JSON.
func (l layouts) merge(target reflect.Value, raw []byte) error {
	t := target.Type()
	switch {
	case isNull(raw):
		target.SetZero()
		return nil
	case t.Kind() == reflect.Struct && !l.opaque(t):
		known := l[t].fields
		return members(raw, func(name string, value []byte) error {
			index, found := known[name]
			if !found {
				return nil
			}
			if err := l.merge(target.FieldByIndex(index), value); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		})
	case t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct && !l.opaque(t.Elem()):
		own(target)
		return l.merge(target.Elem(), raw)
	case t.Kind() == reflect.Map && !l.opaque(t):
		return l.mergeMap(target, raw)
	}
	return l.set(target, raw)
}

func isNull(raw []byte) bool { return string(raw) == "null" }

// own gives a pointer or map its own copy of the content; nil becomes an empty value.
func own(target reflect.Value) {
	if target.Kind() == reflect.Map {
		fresh := reflect.MakeMapWithSize(target.Type(), target.Len()+1)
		for each := target.MapRange(); each.Next(); {
			fresh.SetMapIndex(each.Key(), each.Value())
		}
		target.Set(fresh)
		return
	}
	fresh := reflect.New(target.Type().Elem())
	if !target.IsNil() {
		fresh.Elem().Set(target.Elem())
	}
	target.Set(fresh)
}

func (l layouts) mergeMap(target reflect.Value, raw []byte) error {
	own(target)
	return members(raw, func(name string, entry []byte) error {
		key := reflect.ValueOf(name).Convert(target.Type().Key())
		if isNull(entry) {
			target.SetMapIndex(key, reflect.Value{})
			return nil
		}
		value := reflect.New(target.Type().Elem()).Elem()
		if old := target.MapIndex(key); old.IsValid() {
			value.Set(old)
		}
		if err := l.merge(value, entry); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		target.SetMapIndex(key, value)
		return nil
	})
}

// set replaces a value by the one that valid JSON describes. After an error the value is unusable. Lists of objects
// and texts, which are most of what is written, avoid the library's slow search for fields.
func (l layouts) set(target reflect.Value, raw []byte) error {
	target.SetZero()
	t := target.Type()
	switch {
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct && bytes.HasPrefix(raw, []byte("[")):
		return elements(raw, func(each []byte) error {
			target.Grow(1)
			target.SetLen(target.Len() + 1)
			return l.merge(target.Index(target.Len()-1), each)
		})
	case t.Kind() == reflect.String && bytes.HasPrefix(raw, []byte(`"`)) && !l.opaque(t):
		s, err := text(raw)
		target.SetString(s)
		return err
	}
	return json.Unmarshal(raw, target.Addr().Interface())
}

// step is an operation of a JSON patch (RFC 6902).
type step struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value"`
}

// patch applies a JSON patch to a typed value: test, add, replace and remove of fields, map entries and list items,
// except add in the middle of a list.
func (l layouts) patch(target reflect.Value, data []byte) error {
	var steps []step
	if err := json.Unmarshal(data, &steps); err != nil {
		return err
	}
	for _, each := range steps {
		if err := l.do(target, each); err != nil {
			return fmt.Errorf("%s %s: %w", each.Op, each.Path, err)
		}
	}
	return nil
}

func (l layouts) do(target reflect.Value, s step) error {
	segments := strings.Split(strings.TrimPrefix(s.Path, "/"), "/")
	for i := range segments {
		segments[i] = strings.ReplaceAll(strings.ReplaceAll(segments[i], "~1", "/"), "~0", "~")
	}
	for _, name := range segments[:len(segments)-1] {
		next, err := l.child(target, name)
		if err != nil {
			return err
		}
		target = next
	}
	last := segments[len(segments)-1]
	if target.Kind() == reflect.Map {
		return l.inMap(target, last, s)
	}
	if target.Kind() == reflect.Slice {
		return l.inList(target, last, s)
	}
	child, err := l.child(target, last)
	if err != nil {
		return err
	}
	switch s.Op {
	case "test":
		want := reflect.New(child.Type()).Elem()
		if err := l.set(want, s.Value); err != nil ||
			!equality.Semantic.DeepEqual(want.Interface(), child.Interface()) {
			return fmt.Errorf("testing value %s failed", s.Value)
		}
		return nil
	case "add":
		return l.set(child, s.Value)
	case "replace", "remove":
		if child.IsZero() {
			return fmt.Errorf("missing key: %s", last)
		}
		if s.Op == "remove" {
			child.SetZero()
			return nil
		}
		return l.set(child, s.Value)
	}
	return fmt.Errorf("unknown operation")
}

// child returns the field of a struct, or of the struct that target points to, or the item of a list. Afterwards
// target shares it with nothing else.
func (l layouts) child(target reflect.Value, name string) (reflect.Value, error) {
	if target.Kind() == reflect.Slice {
		at, err := itemOf(target, name)
		if err != nil {
			return reflect.Value{}, err
		}
		target.Set(reflect.AppendSlice(reflect.MakeSlice(target.Type(), 0, target.Len()), target))
		return target.Index(at), nil
	}
	if target.Kind() == reflect.Pointer && !target.IsNil() {
		own(target)
		target = target.Elem()
	}
	if target.Kind() != reflect.Struct {
		return reflect.Value{}, fmt.Errorf("doc is missing path")
	}
	index, found := l[target.Type()].fields[name]
	if !found {
		return reflect.Value{}, fmt.Errorf("doc is missing path: %s", name)
	}
	return target.FieldByIndex(index), nil
}

// itemOf returns the index of an existing item of a list.
func itemOf(list reflect.Value, name string) (int, error) {
	at, err := strconv.Atoi(name)
	if err != nil || at < 0 || at >= list.Len() {
		return 0, fmt.Errorf("invalid index referenced: %s", name)
	}
	return at, nil
}

// inList changes or tests an item of a list by its index, or adds one at the end ("-"). The list gets its own copy.
// For the API server an empty list does not exist.
func (l layouts) inList(target reflect.Value, name string, s step) error {
	if target.Len() == 0 {
		return fmt.Errorf("doc is missing path")
	}
	item := reflect.New(target.Type().Elem()).Elem()
	if s.Op != "remove" {
		if err := l.set(item, s.Value); err != nil {
			return err
		}
	}
	fresh := reflect.MakeSlice(target.Type(), 0, target.Len()+1)
	if name == "-" && s.Op == "add" {
		target.Set(reflect.Append(reflect.AppendSlice(fresh, target), item))
		return nil
	}
	at, err := itemOf(target, name)
	if err != nil {
		return err
	}
	switch s.Op {
	case "test":
		if !equality.Semantic.DeepEqual(item.Interface(), target.Index(at).Interface()) {
			return fmt.Errorf("testing value %s failed", s.Value)
		}
		return nil
	case "remove":
		target.Set(reflect.AppendSlice(reflect.AppendSlice(fresh, target.Slice(0, at)),
			target.Slice(at+1, target.Len())))
		return nil
	case "replace":
		target.Set(reflect.AppendSlice(fresh, target))
		target.Index(at).Set(item)
		return nil
	}
	return fmt.Errorf("unknown operation")
}

func (l layouts) inMap(target reflect.Value, name string, s step) error {
	key := reflect.ValueOf(name).Convert(target.Type().Key())
	old := target.MapIndex(key)
	switch s.Op {
	case "test":
		want := reflect.New(target.Type().Elem()).Elem()
		if isNull(s.Value) && !old.IsValid() {
			return nil
		}
		if err := l.set(want, s.Value); err != nil || !old.IsValid() ||
			!equality.Semantic.DeepEqual(want.Interface(), old.Interface()) {
			return fmt.Errorf("testing value %s failed", s.Value)
		}
		return nil
	case "remove", "replace":
		if !old.IsValid() {
			return fmt.Errorf("missing key: %s", name)
		}
	}
	if target.IsNil() { // there is no object to which an entry could be added
		return fmt.Errorf("doc is missing path")
	}
	own(target)
	if s.Op == "remove" {
		target.SetMapIndex(key, reflect.Value{})
		return nil
	}
	value := reflect.New(target.Type().Elem()).Elem()
	if err := l.set(value, s.Value); err != nil {
		return err
	}
	target.SetMapIndex(key, value)
	return nil
}
