package view_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/view"
)

// U-12, U-16: a cause that a page shows in an answer is one of the catalogue.
func TestU12_CausesOfPagesExist(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, entries := range [][]view.Entry{view.Catalogue(), view.NodeCatalogue(), view.PoolCatalogue(),
		view.ClaimCatalogue()} {
		for _, entry := range entries {
			known[string(entry.Code)] = true
		}
	}
	answer := regexp.MustCompile(
		`(?m)^(?:pod |node |nodepool |nodeclaim )?\S+ (?:waits|stays|launches nothing|is held)(?:, although \w+)?: ([A-Z][A-Za-z]+)$`)
	names, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, name := range append(names, "../../README.md") {
		page, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range answer.FindAllStringSubmatch(string(page), -1) {
			seen++
			if code := found[1]; !known[code] {
				t.Errorf("%s shows the cause %s, which is not in the catalogue", name, code)
			}
		}
	}
	if seen == 0 {
		t.Error("no page shows an answer with a cause")
	}
}
