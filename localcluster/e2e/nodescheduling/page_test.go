package nodescheduling

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// each test that docs/control-plane-bypass.md names is one, here or in package protection.
func TestTheBypassPageNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/control-plane-bypass.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../*/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tests.Write(content)
	}
	names := regexp.MustCompile("`(Test[A-Za-z0-9_]+)`").FindAllStringSubmatch(string(page), -1)
	if len(names) == 0 {
		t.Fatal("the page names no test")
	}
	for _, name := range names {
		if !strings.Contains(tests.String(), "func "+name[1]+"(") {
			t.Errorf("there is no test %s", name[1])
		}
	}
}
