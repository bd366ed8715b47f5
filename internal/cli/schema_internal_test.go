package cli

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/invopop/jsonschema"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

// answers are the kinds of -o json, each with a value of what it holds.
func answers() map[string]any {
	return map[string]any{
		"AdoptedDefinitions": adoptedAnswer{},
		"Comparison":         whatif.Comparison{}, "ControlPlaneAudit": auditAnswer{},
		"ControlPlaneSuggestion": suggestionAnswer{},
		"Explanation":            whatif.Explained{}, "Headroom": headroomAnswer{}, "History": historyAnswer{},
		"MigrationCheck": migrationAnswer{}, "Pause": switched{},
		"NodeList": whatif.Top{}, "PolicyCheck": policyCheckAnswer{}, "PolicyStatus": policyAnswer{},
		"Replay": replayAnswer{}, "Simulation": whatif.Result{}, "Status": whatif.Status{},
		"StorageMigration": storageAnswer{},
		"TakeoverCheck":    takeoverAnswer{},
		"Version":          versions{},
	}
}

// spelled are the types that write themselves.
func spelled(t *testing.T) func(reflect.Type) *jsonschema.Schema {
	writes := reflect.TypeFor[json.Marshaler]()
	return func(of reflect.Type) *jsonschema.Schema {
		switch of {
		case reflect.TypeFor[whatif.Dollars]():
			return &jsonschema.Schema{Type: "number"}
		case reflect.TypeFor[metav1.Time](), reflect.TypeFor[time.Time]():
			return &jsonschema.Schema{Type: "string", Format: "date-time"}
		}
		if of.Implements(writes) || reflect.PointerTo(of).Implements(writes) {
			t.Errorf("%s writes itself: say as what", of)
		}
		return nil
	}
}

// orNothing corrects what invopop does not know. A nil pointer without omitempty is written as null, and a field with
// omitzero may be missing.
func orNothing(of reflect.Type, s *jsonschema.Schema) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch {
	case s == nil || s.Properties == nil && s.Items == nil:
		return
	case of.Kind() == reflect.Slice:
		orNothing(of.Elem(), s.Items)
		return
	case of.Kind() != reflect.Struct:
		return
	}
	for _, field := range reflect.VisibleFields(of) {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		property, found := s.Properties.Get(name)
		if !found || field.Anonymous {
			continue
		}
		orNothing(field.Type, property)
		if options == "omitzero" {
			s.Required = slices.DeleteFunc(s.Required, func(required string) bool { return required == name })
		}
		if field.Type.Kind() == reflect.Pointer && options == "" {
			own := *property
			*property = jsonschema.Schema{Description: own.Description,
				AnyOf: []*jsonschema.Schema{&own, {Type: "null"}}}
			own.Description = ""
		}
	}
}

// schemas are the schemas of all answers, by kind.
func schemas(t *testing.T) map[string][]byte {
	t.Helper()
	r := jsonschema.Reflector{DoNotReference: true, Anonymous: true, AllowAdditionalProperties: true,
		Mapper: spelled(t)}
	for _, folder := range []string{"internal/cli", "internal/whatif", "internal/view", "internal/migrate",
		"internal/dump", "internal/history",
		"internal/admission"} {
		if err := r.AddGoComments("github.com/joiner-autoscaler/joiner", folder,
			jsonschema.WithFullComment()); err != nil {
			t.Fatal(err)
		}
	}
	made := map[string][]byte{}
	for kind, value := range answers() {
		s := r.Reflect(value)
		orNothing(reflect.TypeOf(value), s)
		s.Title = kind
		for name, only := range map[string]string{"apiVersion": whatif.APIVersion, "kind": kind} {
			property, found := s.Properties.Get(name)
			if !found {
				t.Fatalf("%s has no %s", kind, name)
			}
			*property = jsonschema.Schema{Type: "string", Enum: []any{only}}
		}
		data, err := json.MarshalIndent(s, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		made[kind] = append(data, '\n')
	}
	return made
}

// TestU29_TheSchemasAreCurrent: docs/schemas has a JSON schema for each kind of answer, as the types are now.
func TestU29_TheSchemasAreCurrent(t *testing.T) {
	t.Chdir("../..") // comments are found by the folders of packages
	made, folder := schemas(t), "docs/schemas"
	if flag.Lookup("rewrite").Value.String() == "true" { // that of the other tests
		for kind, data := range made {
			if err := os.WriteFile(filepath.Join(folder, kind+".json"), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for kind, data := range made {
		if stored, err := os.ReadFile(filepath.Join(folder, kind+".json")); err != nil || !bytes.Equal(stored, data) {
			t.Errorf("docs/schemas/%s.json is not what the types say (%v): go test ./internal/cli -rewrite", kind, err)
		}
	}
	files, err := filepath.Glob(folder + "/*.json")
	if err != nil || len(files) != len(made) {
		t.Errorf("%d files, want those of %v: %v", len(files), slices.Sorted(maps.Keys(made)), err)
	}
}
