package takeover_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/settings"
	"github.com/joiner-autoscaler/joiner/internal/takeover"
)

// K-25: the flags that the check takes for Joiner's own are those of the sources which Karpenter does not have.
func TestK25_OwnFlagsAreThoseOfTheProgram(t *testing.T) {
	t.Parallel()
	made := regexp.MustCompile(`flags\.[A-Z]\w*\(\s*(?:&[\w.]+,\s*)?"([a-z0-9-]+)"|UnknownFlags = "([a-z-]+)"`)
	names := []string{"help", "version"} // of the library
	for _, pattern := range []string{"../../cmd/joiner/*.go", "../../cmd/internal/commandline/*.go",
		"../provider/*/plug/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			source, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range made.FindAllStringSubmatch(string(source), -1) {
				name := found[1] + found[2]
				if _, karpenters := settings.Find(name); !karpenters {
					names = append(names, name)
				}
			}
		}
	}
	slices.Sort(names)
	if names = slices.Compact(names); !slices.Equal(names, takeover.OwnFlags()) {
		t.Errorf("internal/takeover/flags.txt has\n%v\nthe sources name\n%v", takeover.OwnFlags(), names)
	}
}
