package nodescheduling

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// testsOfThisFolder returns the names of the end-to-end tests of the policy.
func testsOfThisFolder(t *testing.T) map[string]bool {
	t.Helper()
	tests := map[string]bool{}
	for _, pattern := range []string{"*_test.go", "../protection/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`).FindAllStringSubmatch(
				string(content), -1) {
				tests[found[1]] = true
			}
		}
	}
	return tests
}

// testsNamedIn returns the tests that a text names.
func testsNamedIn(text string) []string {
	var names []string
	for _, found := range regexp.MustCompile("`(Test[A-Za-z0-9_]+)`").FindAllStringSubmatch(text, -1) {
		names = append(names, found[1])
	}
	return names
}

// idsOf returns the numbers of the requirements in a cell such as "N45 to N53, N57, F1".
func idsOf(cell string) []int {
	var ids []int
	for _, found := range regexp.MustCompile(`N(\d+)(?: to N(\d+))?`).FindAllStringSubmatch(cell, -1) {
		first, _ := strconv.Atoi(found[1]) // the pattern has digits only
		last := first
		if found[2] != "" {
			last, _ = strconv.Atoi(found[2])
		}
		for id := first; id <= last; id++ {
			ids = append(ids, id)
		}
	}
	return ids
}

// each test that docs/control-plane-bypass.md names exists.
func TestTheBypassPageNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/control-plane-bypass.md")
	if err != nil {
		t.Fatal(err)
	}
	tests, names := testsOfThisFolder(t), testsNamedIn(string(page))
	if len(names) == 0 {
		t.Fatal("the page names no test")
	}
	for _, name := range names {
		if !tests[name] {
			t.Errorf("there is no test %s", name)
		}
	}
}

// Every id of N1 to N71 has its line in the specification, and names a test of this folder that exists.
func TestEveryRequirementNamesATest(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/spec/node-scheduling-policy.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := testsOfThisFolder(t)
	proved := map[int][]string{}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "N") {
			continue
		}
		for _, id := range idsOf(cells[1]) {
			proved[id] = append(proved[id], testsNamedIn(cells[3])...)
		}
	}
	for id := 1; id <= 71; id++ {
		if !slices.ContainsFunc(proved[id], func(name string) bool { return tests[name] }) {
			t.Errorf("N%d: its line names no end-to-end test: %v", id, proved[id])
		}
	}
}
