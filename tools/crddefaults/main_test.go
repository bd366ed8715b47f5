package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const manifest = `
spec:
  names: {kind: Thing}
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        properties:
          status: {properties: {phase: {type: string, default: New}}}
          spec:
            properties:
              size: {type: integer, default: 3}
              whole: {type: object, default: {b: 1, a: "x"}, properties: {a: {type: string, default: x}}}
              items: {type: array, items: {properties: {open: {type: boolean, default: true}}}}
              named: {type: object, additionalProperties: {properties: {word: {type: string, default: ""}}}}
              open: {type: object, additionalProperties: true}
`

// every default of the spec is in the table, at any depth, and none of the status.
func TestEveryDefaultOfTheSpecIsFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "crd.yaml"), filepath.Join(dir, "out.go")
	if err := os.WriteFile(in, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{in, "v1", "things", out}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"package things", "func ThingSpecDefaults() map[string]string {", "\"spec.size\":             `3`,",
		"\"spec.whole\":            `{\"a\":\"x\",\"b\":1}`,", "\"spec.whole.a\":          `\"x\"`,",
		"\"spec.items[].open\":     `true`,", "\"spec.named[*].word\":    `\"\"`,",
	} {
		if line = strings.Join(strings.Fields(line), " "); !strings.Contains(strings.Join(strings.Fields(string(got)),
			" "), line) {
			t.Errorf("no %s in\n%s", line, got)
		}
	}
	if strings.Contains(string(got), "phase") {
		t.Errorf("a default of the status is in\n%s", got)
	}
}

func TestWhatCannotBeReadIsNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := filepath.Join(dir, "crd.yaml")
	if err := os.WriteFile(in, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"want four":          {in},
		"no such file":       {filepath.Join(dir, "none"), "v1", "p", "out.go"},
		"it has no version ": {in, "v2", "p", "out.go"},
	} {
		if err := run(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want an error that says %q", args, err, want)
		}
	}
	if _, err := generate([]byte("a: [b"), "v1", "p"); err == nil || !strings.Contains(err.Error(), "manifest") {
		t.Errorf("no YAML: %v", err)
	}
}
