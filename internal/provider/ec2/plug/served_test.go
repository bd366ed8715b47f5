package plug_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// K-25: joinerctl takeover check knows which of Karpenter's metrics this provider serves: all those named in its
// sources.
func TestK25_TheCheckKnowsWhatEC2Serves(t *testing.T) {
	t.Parallel()
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`"(karpenter_[a-z0-9_]+)"`).FindAllStringSubmatch(string(text), -1) {
			names = append(names, found[1])
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	list, err := os.ReadFile("../../../takeover/metrics-ec2.txt")
	if err != nil {
		t.Fatal(err)
	}
	if listed := strings.Fields(string(list)); len(names) == 0 || !slices.Equal(listed, names) {
		t.Errorf("internal/takeover/metrics-ec2.txt has\n%v\nthe sources name\n%v", listed, names)
	}
}
