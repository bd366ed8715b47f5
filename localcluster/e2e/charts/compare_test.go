package charts

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/charts/chartstest"
)

func resourceOf(groupVersion string, resource metav1.APIResource) schema.GroupVersionResource {
	parsed, err := schema.ParseGroupVersion(groupVersion)
	if err != nil {
		return schema.GroupVersionResource{}
	}
	return parsed.WithResource(resource.Name)
}

// added returns the objects that an earlier inventory does not have, sorted, without Helm's own record of releases.
func added(before, after map[string]*unstructured.Unstructured) (names []string) {
	for name := range after {
		if before[name] == nil && !strings.HasPrefix(name, "Secret/sh.helm.release.v1.") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// holds demands that the cluster has just the objects that it had before, those that a chart renders with these
// values, and those of beside. Objects may have the API server's defaults, too.
func (h *helm) holds(when, chart string, set map[string]any, before map[string]*unstructured.Unstructured,
	beside ...string) {
	h.t.Helper()
	want, err := chartstest.RenderAs(chart, chart, set, served())
	if err != nil {
		h.t.Fatal(err)
	}
	live := h.inventory(h.t)
	expected := slices.Sorted(maps.Keys(want))
	for _, name := range beside {
		if want[name] == nil {
			expected = append(expected, name)
		}
	}
	slices.Sort(expected)
	expected = slices.DeleteFunc(expected, func(name string) bool { return before[name] != nil })
	if got := added(before, live); !slices.Equal(got, expected) {
		h.t.Errorf("%s: %s: the cluster has\n%v\nmore than before, want\n%v", h.name, when, got, expected)
	}
	for name := range before {
		if live[name] == nil && !strings.HasPrefix(name, "Secret/sh.helm.release.v1.") {
			h.t.Errorf("%s: %s: %s is gone", h.name, when, name)
		}
	}
	for name, document := range want {
		var object map[string]any
		if err := yaml.Unmarshal(document, &object); err != nil {
			h.t.Fatal(err)
		}
		delete(object, "stringData") // becomes data
		if live[name] == nil {
			continue // told above
		}
		for _, difference := range lacks(name, live[name].Object, object) {
			h.t.Errorf("%s: %s: %s", h.name, when, difference)
		}
	}
}

// lacks returns what an object lacks of want, or has with another value. Empty values may be left out.
func lacks(at string, have, want any) (differences []string) {
	switch want := want.(type) {
	case map[string]any:
		object, is := have.(map[string]any)
		if !is && len(want) > 0 {
			return []string{fmt.Sprintf("%s is %v, want %v", at, have, want)}
		}
		for name, value := range want {
			differences = append(differences, lacks(at+"."+name, object[name], value)...)
		}
	case []any:
		list, _ := have.([]any)
		if len(list) != len(want) {
			return []string{fmt.Sprintf("%s is %v, want %v", at, have, want)}
		}
		for i := range want {
			differences = append(differences, lacks(fmt.Sprintf("%s[%d]", at, i), list[i], want[i])...)
		}
	default:
		empty := want == nil || reflect.ValueOf(want).IsZero()
		if said(have) != said(want) && !(empty && have == nil) {
			return []string{fmt.Sprintf("%s is %v, want %v", at, have, want)}
		}
	}
	return differences
}

// said returns a value as text: numbers may be read as different types.
func said(value any) string {
	if number, is := value.(float64); is {
		return strconv.FormatFloat(number, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}

// The comparison must not accept everything.
func TestTheComparisonFindsWhatDiffers(t *testing.T) {
	have := map[string]any{"a": []any{map[string]any{"b": int64(1), "default": true}}, "c": "x"}
	for want, differs := range map[string]bool{"{a: [{b: 1}]}": false, "{c: x, d: {}, e: '', f: []}": false,
		"{a: [{b: 2}]}": true, "{a: []}": true, "{a: {b: 1}}": true, "{d: x}": true,
		"{c: x, a: [{b: 1, d: 1}]}": true} {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(want), &object); err != nil {
			t.Fatal(err)
		}
		if got := lacks("", have, object); (len(got) > 0) != differs {
			t.Errorf("%s: %q", want, got)
		}
	}
}
