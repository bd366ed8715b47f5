package main

import (
	"os"
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
