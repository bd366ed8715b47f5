package cluster

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
)

// unkeyed are the fields of a shape that its key leaves out.
var unkeyed = map[string]string{
	"BlockedBy": "it follows from Blocked",
}

// Shapes are equal when their keys are. If a field were not in the key, pods that ask for different things would share
// a shape.
func TestEveryFieldOfAShapeIsInItsKey(t *testing.T) {
	t.Parallel()
	leaves := leavesOf(reflect.TypeFor[Shape](), "")
	if len(leaves) < 30 {
		t.Fatalf("only %d leaves: %v", len(leaves), leaves)
	}
	used := map[string]bool{}
	for _, leaf := range leaves {
		key := func(n int) string {
			s := Shape{}
			f := filler{at: leaf, n: n}
			f.fill(reflect.ValueOf(&s).Elem(), "")
			if !f.found {
				t.Fatalf("%s was not filled", leaf)
			}
			return s.canonical()
		}
		differs := key(1) != key(2)
		_, except := unkeyed[leaf]
		used[leaf] = true
		switch {
		case !differs && !except:
			t.Errorf("two shapes that differ in %s have the same key: add it to canonical, or say here why not", leaf)
		case differs && except:
			t.Errorf("%s is in the key, and listed as not being in it", leaf)
		}
	}
	for name := range unkeyed {
		if !used[name] {
			t.Errorf("there is no field %s", name)
		}
	}
}

// Pods that take each other's place ask for the same, whatever labels tell them apart.
func TestWhatAShapeAsksForLeavesItsLabelsOut(t *testing.T) {
	t.Parallel()
	with := func(labels map[string]string, namespace string) string {
		return (&Shape{Namespace: namespace, Labels: labels}).Ask()
	}
	if with(map[string]string{"a": "1"}, "x") != with(map[string]string{"a": "2"}, "x") {
		t.Error("labels are a part of what is asked for")
	}
	if with(nil, "x") == with(nil, "y") {
		t.Error("the namespace is no part of what is asked for")
	}
}

// The selection before volumes is a part of the key too: spread constraints count by it.
func TestTheSelectionBeforeVolumesIsInTheKey(t *testing.T) {
	t.Parallel()
	with := func(zone string) string {
		s := Shape{Alternatives: []Alternative{
			{Labels: requirement.NewSet(requirement.OneOf("zone", zone)), Names: requirement.Any("name")},
		}}
		s.Narrow([]Alternative{
			{Labels: requirement.NewSet(requirement.OneOf("zone", "a")), Names: requirement.Any("name")},
		})
		return s.Key()
	}
	if with("a|b") == with("a|c") {
		t.Error("shapes with different selections have the same key once their volumes narrow them")
	}
}

// isLeaf reports whether values of a type are filled as a whole.
func isLeaf(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[requirement.Set](), reflect.TypeFor[requirement.Requirement]():
		return true
	}
	return t.Kind() != reflect.Struct && t.Kind() != reflect.Slice && t.Kind() != reflect.Pointer
}

// leavesOf lists the paths to all values that a type is made of.
func leavesOf(t reflect.Type, path string) []string {
	switch {
	case isLeaf(t):
		return []string{path}
	case t.Kind() == reflect.Slice:
		return leavesOf(t.Elem(), path+"[]")
	}
	var list []string
	for f := range fieldsOf(t) {
		list = append(list, leavesOf(f.Type, join(path, f.Name))...)
	}
	return list
}

// fieldsOf yields the exported fields of a struct: what is not exported, package cluster derives.
func fieldsOf(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if t.Field(i).IsExported() && !yield(t.Field(i)) {
				return
			}
		}
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// filler fills a value with something everywhere, and with something else at one place.
type filler struct {
	at    string
	n     int
	found bool
}

func (f *filler) fill(v reflect.Value, path string) {
	if isLeaf(v.Type()) {
		n := 1
		if path == f.at {
			n, f.found = f.n, true
		}
		v.Set(valueOf(v.Type(), n))
		return
	}
	if v.Kind() == reflect.Slice {
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		f.fill(v.Index(0), path+"[]")
		return
	}
	for field := range fieldsOf(v.Type()) {
		f.fill(v.FieldByIndex(field.Index), join(path, field.Name))
	}
}

// valueOf returns the first or second value of a type that is not its zero value, where there are two.
func valueOf(t reflect.Type, n int) reflect.Value {
	some := requirement.OneOf("label", fmt.Sprint(n))
	switch t {
	case reflect.TypeFor[requirement.Set]():
		return reflect.ValueOf(requirement.NewSet(some))
	case reflect.TypeFor[requirement.Requirement]():
		return reflect.ValueOf(some)
	}
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint("s", n))
	case reflect.Bool:
		v.SetBool(n == 1)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(n))
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"k": fmt.Sprint(n)}).Convert(t))
	default:
		panic("no value of " + t.String())
	}
	return v
}
