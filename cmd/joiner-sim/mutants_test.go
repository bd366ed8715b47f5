package main

import (
	"os"
	"strings"
	"testing"
)

// every planted bug can still be planted: what it replaces stands in its file, once.
func TestPlantedBugsCanBePlanted(t *testing.T) {
	t.Chdir("../..")
	text, err := os.ReadFile("internal/sim/testdata/mutants.txt")
	if err != nil {
		t.Fatal(err)
	}
	list, err := readMutants(string(text))
	if err != nil || len(list) == 0 {
		t.Fatalf("%d planted bugs, error %v", len(list), err)
	}
	for _, m := range list {
		if _, err := m.plant(); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}

// What is wrong with a list is said, and where.
func TestBadListsOfPlantedBugs(t *testing.T) {
	for text, want := range map[string]string{
		"file a.go":                            "line 1",
		"== a\n- x":                            "before the file",
		"== a\nfile a.go\nwith y":              "want ==, file, -, +, cloud or by",
		"== a\nfile a.go\n- x\n+ y":            "the checks that catch",
		"== a\nby quiet\n== b\nfile b\nby all": "a: want a file",
	} {
		if list, err := readMutants(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, error %v, want one with %q", text, list, err, want)
		}
	}
}

// A bug may need several pieces, of one file or of several.
func TestABugOfSeveralPieces(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"a": "one two three", "b": "four"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := readMutants("== bug\nfile a\n- one\n+ 1\nfile b\n- four\n+ 4\nfile a\n- three\n+ 3\nby quiet\n")
	if err != nil || len(list) != 1 {
		t.Fatalf("%d planted bugs, error %v", len(list), err)
	}
	planted, err := list[0].plant()
	if err != nil || planted["a"] != "1 two 3" || planted["b"] != "4" {
		t.Errorf("planted %v, error %v", planted, err)
	}
}
