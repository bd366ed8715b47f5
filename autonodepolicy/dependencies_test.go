package autonodepolicy_test

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// go.mod requires exactly these two directly, replaces nothing, and asks for no newer Go than HyperShift's API
// module does (its go.mod of August 2026).
func TestGoModHasTwoRequirements(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	var direct []string
	for _, match := range regexp.MustCompile(`(?m)^(?:require)?\s+(\S+\.\S+/\S+) v\S+$`).FindAllStringSubmatch(
		string(content), -1) {
		direct = append(direct, match[1])
	}
	if want := []string{"k8s.io/api", "k8s.io/apimachinery"}; !slices.Equal(direct, want) {
		t.Errorf("go.mod requires %v directly, want %v", direct, want)
	}
	for _, line := range strings.Split(string(content), "\n") {
		if strings.HasPrefix(line, "replace") || strings.HasPrefix(line, "toolchain") ||
			strings.HasPrefix(line, "go ") && line != "go 1.26.0" {
			t.Errorf("go.mod has the line %q", line)
		}
	}
}

// modules are the modules that k8s.io/api and k8s.io/apimachinery 0.36 require in their go.mod files. HyperShift
// requires both, and so has all of them (U2). It would have to add any other module.
var modules = []string{
	"github.com/fxamacker/cbor/v2", "github.com/go-logr/logr", "github.com/joiner-autoscaler/joiner/autonodepolicy",
	"github.com/json-iterator/go",
	"github.com/modern-go/concurrent", "github.com/modern-go/reflect2", "github.com/x448/float16",
	"go.yaml.in/yaml/v2", "golang.org/x/net",
	"golang.org/x/text", "gopkg.in/inf.v0", "k8s.io/api", "k8s.io/apimachinery", "k8s.io/klog/v2",
	"k8s.io/kube-openapi", "k8s.io/utils",
	"sigs.k8s.io/json", "sigs.k8s.io/randfill", "sigs.k8s.io/structured-merge-diff/v6",
}

// what each package is made of.
func TestDependenciesOfEachPackage(t *testing.T) {
	t.Parallel()
	for folder, allowed := range map[string][]string{
		"./fold":        {"github.com/joiner-autoscaler/joiner/autonodepolicy"},
		"./policy":      slices.DeleteFunc(slices.Clone(modules), func(m string) bool { return m == "k8s.io/api" }),
		"./admission":   modules,
		"./api/v1beta1": modules,
	} {
		command := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", folder)
		out, err := command.Output()
		if err != nil {
			t.Fatalf("go list %s: %v", folder, err)
		}
		for _, module := range strings.Fields(string(out)) {
			if !slices.Contains(allowed, module) {
				t.Errorf("%s is made of %s, among others", folder, module)
			}
		}
	}
}
