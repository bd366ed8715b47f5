package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const source = `package v1

// Thing is a kind.
type Thing struct {
	metav1.ObjectMeta
	Spec Spec ` + "`json:\"spec\"`" + `
}

// Spec is its spec.
//
// +openshift:validation:FeatureGateAwareXValidation:featureGate=New,rule="self.new != \"x\"",message="not x"
type Spec struct {
	Old   string ` + "`json:\"old\"`" + `
	Added ` + "`json:\",inline\"`" + `
	// +openshift:enable:FeatureGate=Other
	Other string ` + "`json:\"other\"`" + `
	Items []Item ` + "`json:\"items\"`" + `
}

type Added struct {
	// +openshift:enable:FeatureGate=New
	New string ` + "`json:\"new,omitempty\"`" + `
}

type Item struct {
	// +openshift:enable:FeatureGate=New
	New string ` + "`json:\"newItem,omitempty\"`" + `
}
`

const manifest = `
spec:
  names: {kind: Thing}
  versions:
  - name: v1
    schema: {openAPIV3Schema: {properties: {spec: {properties: {
      old: {type: string}, new: {type: string}, other: {type: string},
      items: {type: array, items: {properties: {newItem: {type: string}}}}}}}}}
`

// make2 makes both definitions.
func make2(t *testing.T, gate, types, crd string) (on, off string, err error) {
	t.Helper()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for name, content := range map[string]string{"types.go": types, "crd.yaml": crd} {
		if err := os.WriteFile(path(name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := run([]string{gate, dir, path("crd.yaml"), path("on.yaml"), path("off.yaml")}); err != nil {
		return "", "", err
	}
	read := func(name string) string {
		content, err := os.ReadFile(path(name))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	return read("on.yaml"), read("off.yaml"), nil
}

// with the gate off, its fields and rules are missing; with the gate on, both exist. What has another gate is
// left alone.
func TestA38_GatesDecideAboutFieldsAndRules(t *testing.T) {
	t.Parallel()
	on, off, err := make2(t, "New", source, manifest)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"new:", "newItem:", `rule: self.new != "x"`, "message: not x"} {
		if !strings.Contains(on, part) || strings.Contains(off, part) {
			t.Errorf("%q: with the gate on\n%s\nwith the gate off\n%s", part, on, off)
		}
	}
	for _, part := range []string{"old:", "other:"} {
		if !strings.Contains(on, part) || !strings.Contains(off, part) {
			t.Errorf("%q: with the gate on\n%s\nwith the gate off\n%s", part, on, off)
		}
	}
}

// a marker without effect is reported.
func TestA38_MarkersThatFindNoPlaceAreErrors(t *testing.T) {
	t.Parallel()
	for want, row := range map[string]struct{ gate, types, crd string }{
		"no field of Thing has the gate None": {"None", source, manifest},
		"Thing.spec.new: the definition does not have the field": {"New", source,
			strings.Replace(manifest, " new:", " renamed:", 1)},
		"Thing.spec: the definition does not have the field": {"New", source,
			strings.Replace(manifest, "spec: {", "specs: {", 1)},
		"types.go: type Spec: marker +openshift:validation:Featur": {"New", strings.Replace(source, "featureGate=New,",
			"", 1), manifest},
		"expected 'package'": {"New", "", manifest},
	} {
		if _, _, err := make2(t, row.gate, row.types, row.crd); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
