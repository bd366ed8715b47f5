package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// apiFile is one file of testdata/api; its README.md says what the fields mean.
type apiFile struct {
	Base  map[string]any            `json:"base"`
	Also  map[string]map[string]any `json:"also,omitempty"`
	Cases []apiCase                 `json:"cases"`
}

type apiCase struct {
	Name    string          `json:"name"`
	Only    string          `json:"only,omitempty"`
	Patch   map[string]any  `json:"patch,omitempty"`
	Then    *map[string]any `json:"then,omitempty"`
	Refused string          `json:"refused,omitempty"`
	Causes  int             `json:"causes,omitempty"`
	Reads   map[string]any  `json:"reads,omitempty"`
	Warns   string          `json:"warns,omitempty"`
	Strict  bool            `json:"strict,omitempty"`
}

// V-01 to V-09, L-01 to L-05: a real API server checks every rule of the CRDs, from both sides.
func TestTheAPIServerHoldsEveryRuleOfTheCRDs(t *testing.T) {
	t.Parallel()
	env := sharedEnvironment.Get(t)
	for name, file := range apiFiles(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, tc := range file.Cases {
				// One after the other: the cases of a file share the name of their object.
				t.Run(tc.Name, func(t *testing.T) { runAPICase(t, env, file.Base, tc) })
			}
		})
	}
}

// apiFiles reads testdata/api. The keys are the names of the files without their ending. Cases that are also for
// another kind stand under both names together.
func apiFiles(t *testing.T) map[string]apiFile {
	t.Helper()
	paths, err := filepath.Glob("testdata/api/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("files of cases: %v, error %v", paths, err)
	}
	files := map[string]apiFile{}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var file apiFile
		if err := yaml.UnmarshalStrict(content, &file); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		files[name] = file.forKind(file.Base)
		for other, patch := range file.Also {
			files[name+" for "+other] = file.forKind(mergePatch(file.Base, patch))
		}
	}
	return files
}

// forKind returns the file with another base and the cases for the kind of that base.
func (f apiFile) forKind(base map[string]any) apiFile {
	return apiFile{Base: base, Cases: slices.DeleteFunc(slices.Clone(f.Cases), func(tc apiCase) bool {
		return tc.Only != "" && tc.Only != base["kind"]
	})}
}

func runAPICase(t *testing.T, env *environment, base map[string]any, tc apiCase) {
	client, received := env.dynamicClient(t)
	object := &unstructured.Unstructured{Object: mergePatch(base, tc.Patch)}
	resource := resourceClient(t, client, object)
	validation := metav1.FieldValidationWarn
	if tc.Strict {
		validation = metav1.FieldValidationStrict
	}
	stored, err := resource.Create(t.Context(), object, metav1.CreateOptions{FieldValidation: validation})
	if err == nil {
		defer removeObject(t, resource, object.GetName())
	}
	if err == nil && tc.Then != nil {
		received.take()
		changed := &unstructured.Unstructured{Object: mergePatch(stored.Object, *tc.Then)}
		stored, err = resource.Update(t.Context(), changed, metav1.UpdateOptions{FieldValidation: validation})
	} else if err != nil && tc.Then != nil {
		t.Fatalf("the object is refused before the change: %v", err)
	}
	if tc.Refused != "" {
		checkRefused(t, err, tc.Refused, max(tc.Causes, 1))
		return
	}
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	checkReads(t, tc.Reads, stored.Object, "")
	checkWarns(t, tc.Warns, received.take())
	checkDecodes(t, stored)
}

// resourceClient returns the client for objects of this one's kind, version and namespace.
func resourceClient(t *testing.T, client dynamic.Interface,
	object *unstructured.Unstructured) dynamic.ResourceInterface {
	t.Helper()
	resource := client.Resource(resourceOf(t, object))
	if namespace := object.GetNamespace(); namespace != "" {
		return resource.Namespace(namespace)
	}
	return resource
}

// checkRefused wants the text in the message, and this many causes.
func checkRefused(t *testing.T, err error, part string, wantCauses int) {
	t.Helper()
	if err == nil {
		t.Fatalf("accepted; should be refused with %q", part)
	}
	if !strings.Contains(err.Error(), part) {
		t.Errorf("refused with\n  %v\nwithout the text\n  %s", err, part)
	}
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		t.Fatalf("refused with %v, which is no answer of the API server", err)
	}
	if status.ErrStatus.Reason != metav1.StatusReasonInvalid {
		return // Refused before validation, as unknown fields are; there are no causes then.
	}
	causes := slices.DeleteFunc(status.ErrStatus.Details.Causes, func(cause metav1.StatusCause) bool {
		return strings.Contains(cause.Message, "some validation rules were not checked")
	})
	if len(causes) != wantCauses {
		t.Errorf("refused for %d causes, want %d: %v", len(causes), wantCauses, causes)
	}
}

// checkReads wants every field of want in got; null in want means that the field is absent in got.
func checkReads(t *testing.T, want, got any, path string) {
	t.Helper()
	switch want := want.(type) {
	case map[string]any:
		gotMap, ok := got.(map[string]any)
		if !ok && len(want) > 0 {
			t.Errorf("%s reads as %v, want an object", path, got)
		}
		for key, value := range want {
			checkReads(t, value, gotMap[key], path+"."+key)
		}
	case []any:
		gotList, _ := got.([]any)
		if len(gotList) != len(want) || gotList == nil {
			t.Errorf("%s reads as %v, want %v", path, got, want)
			return
		}
		for i, value := range want {
			checkReads(t, value, gotList[i], path)
		}
	default:
		if toJSON(t, want) != toJSON(t, got) {
			t.Errorf("%s reads as %s, want %s", path, toJSON(t, got), toJSON(t, want))
		}
	}
}

func checkWarns(t *testing.T, part string, received []string) {
	t.Helper()
	if part == "" {
		if len(received) != 0 {
			t.Errorf("answered with warnings: %q", received)
		}
		return
	}
	if !slices.ContainsFunc(received, func(text string) bool { return strings.Contains(text, part) }) {
		t.Errorf("warnings %q do not contain %q", received, part)
	}
}

// checkDecodes checks that the Go types can read what the server stores, and that their JSON is the same. Only
// quantities may be spelt differently (8192Mi is 8Gi).
func checkDecodes(t *testing.T, stored *unstructured.Unstructured) {
	t.Helper()
	typed := typedObject(t, stored.GetKind())
	if err := json.Unmarshal([]byte(toJSON(t, stored.Object)), typed); err != nil {
		t.Errorf("the Go type cannot decode what the server accepted: %v", err)
		return
	}
	var again map[string]any
	if err := json.Unmarshal([]byte(toJSON(t, typed)), &again); err != nil {
		t.Fatal(err)
	}
	var before map[string]any
	if err := json.Unmarshal([]byte(toJSON(t, stored.Object)), &before); err != nil {
		t.Fatal(err)
	}
	wantSpec, gotSpec := withoutQuantities(before["spec"]), withoutQuantities(again["spec"])
	if wantSpec == nil {
		wantSpec = map[string]any{}
	}
	if !reflect.DeepEqual(wantSpec, gotSpec) {
		t.Errorf("the Go type writes the spec as\n  %s\nthe server had\n  %s", toJSON(t, gotSpec), toJSON(t, wantSpec))
	}
}

// withoutQuantities leaves out the fields that hold quantities.
func withoutQuantities(spec any) any {
	fields, ok := spec.(map[string]any)
	if !ok {
		return nil
	}
	kept := map[string]any{}
	for key, value := range fields {
		if _, nested := value.(map[string]any); nested {
			value = withoutQuantities(value)
		}
		if !slices.Contains([]string{"limits", "hardLimits", "resources", "capacity", "volumeSize"}, key) {
			kept[key] = value
		}
	}
	return kept
}

// mergePatch applies a JSON merge patch (RFC 7396) to a copy of the document.
func mergePatch(document, patch map[string]any) map[string]any {
	merged := map[string]any{}
	for key, value := range document {
		merged[key] = value
	}
	for key, value := range patch {
		nested, isObject := value.(map[string]any)
		switch {
		case value == nil:
			delete(merged, key)
		case isObject:
			old, _ := merged[key].(map[string]any)
			merged[key] = mergePatch(old, nested)
		default:
			merged[key] = value
		}
	}
	return merged
}

// removeObject deletes an object of a test, whatever finalizers it has.
func removeObject(t *testing.T, resource dynamic.ResourceInterface, name string) {
	t.Helper()
	patch := []byte(`{"metadata":{"finalizers":null}}`)
	ctx := context.WithoutCancel(t.Context()) // It is cancelled before a cleanup runs.
	if _, err := resource.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Errorf("taking the finalizers off %s: %v", name, err)
	}
	if err := resource.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		t.Errorf("deleting %s: %v", name, err)
	}
}

func toJSON(t *testing.T, value any) string {
	t.Helper()
	content, err := json.Marshal(value)
	if err != nil {
		t.Fatalf("writing %v as JSON: %v", value, err)
	}
	return string(content)
}
