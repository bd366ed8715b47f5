package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const manifest = `---
spec:
  limits:
    additionalProperties:
      pattern: ` + generatedQuantity + `
      x-kubernetes-int-or-string: true
  taints:
    items:
      properties:
        key:
          type: string
`

func TestFinishWritesWhatMarkersCannotSay(t *testing.T) {
	t.Parallel()
	finished, counts, err := finish([]byte(manifest), schemaRules())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"maxLength: 316", "pattern: " + decodableQuantity} {
		if !strings.Contains(string(finished), want) {
			t.Errorf("%q is missing in\n%s", want, finished)
		}
	}
	if counts[0] != 1 || counts[1] != 0 {
		t.Errorf("counts = %v, want the taint key found once and the taint value not at all", counts)
	}
}

func TestFinishTakesAwayWhatHasNoPlace(t *testing.T) {
	t.Parallel()
	const volume = `---
ebs:
  properties:
    volumeSize:
      anyOf:
      - type: integer
      - type: string
      pattern: ` + generatedQuantity + `
      x-kubernetes-int-or-string: true
`
	finished, _, err := finish([]byte(volume), schemaRules())
	if err != nil {
		t.Fatal(err)
	}
	want := "---\nebs:\n  properties:\n    volumeSize:\n      maxLength: 32\n      type: string\n"
	if string(finished) != want {
		t.Errorf("finished:\n%s\nwant:\n%s", finished, want)
	}
}

func TestFinishTwiceChangesNothingMore(t *testing.T) {
	t.Parallel()
	once, _, err := finish([]byte(manifest), schemaRules())
	if err != nil {
		t.Fatal(err)
	}
	twice, _, err := finish(once, schemaRules())
	if err != nil {
		t.Fatal(err)
	}
	if string(once) != string(twice) {
		t.Errorf("first run:\n%s\nsecond run:\n%s", once, twice)
	}
}

func TestARuleThatFitsNothingIsAnError(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "crd.yaml")
	if err := os.WriteFile(path, []byte(manifest), 0o644); err != nil {
		t.Fatal(err)
	}
	err := run([]string{path})
	if err == nil || !strings.Contains(err.Error(), "fits no field") {
		t.Fatalf("error = %v, want one that names a rule without a field", err)
	}
}
