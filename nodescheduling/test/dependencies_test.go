package test

import (
	"encoding/json"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
)

// goMod is what we read of `go mod edit -json`.
type goMod struct {
	Go      string
	Require []struct {
		Path, Version string
		Indirect      bool
	}
	Replace []any
	Tool    []any
}

func readGoMod(t *testing.T, file string) goMod {
	t.Helper()
	out, err := exec.Command("go", "mod", "edit", "-json", file).Output()
	if err != nil {
		t.Fatalf("reading %s: %v", file, err)
	}
	var read goMod
	if err := json.Unmarshal(out, &read); err != nil {
		t.Fatal(err)
	}
	return read
}

// staged is what k8s.io/kubernetes requires of the modules that are released with it.
const staged = "v0.0.0"

func newer(t *testing.T, a, b string) bool {
	t.Helper()
	first, err := version.ParseSemantic(a)
	second, secondErr := version.ParseSemantic(b)
	if err = errors.Join(err, secondErr); err != nil {
		t.Fatal(err)
	}
	return second.LessThan(first)
}

// k8s.io/kubernetes, in the version that localcluster links, requires everything that the module requires
// directly. No requirement raises a version there. The module replaces nothing, and its Go version is that of the
// oldest release that it builds with.
func TestA36_GoModAsksForNothingThatAServerLacks(t *testing.T) {
	t.Parallel()
	command := exec.Command("go", "list", "-m", "-f", "{{.GoMod}}", "k8s.io/kubernetes")
	command.Dir = "../../localcluster"
	file, err := command.Output()
	if err != nil {
		t.Fatalf("where k8s.io/kubernetes is: %v", err)
	}
	server := map[string]string{}
	for _, required := range readGoMod(t, strings.TrimSpace(string(file))).Require {
		server[required.Path] = required.Version
	}
	own := readGoMod(t, "../go.mod")
	direct := 0
	for _, required := range own.Require {
		there, has := server[required.Path]
		if has && there != staged && newer(t, required.Version, there) {
			t.Errorf("go.mod requires %s %s, which would raise k8s.io/kubernetes' %s", required.Path, required.Version,
				there)
		}
		if required.Indirect {
			continue
		}
		direct++
		if !has {
			t.Errorf("go.mod requires %s, which k8s.io/kubernetes does not", required.Path)
		}
		if strings.HasPrefix(required.Path, "k8s.io/") && !strings.HasPrefix(required.Path, "k8s.io/klog/") &&
			!strings.HasPrefix(required.Version, "v0.34.") {
			t.Errorf("go.mod requires %s %s: want the oldest release that is supported, v0.34", required.Path,
				required.Version)
		}
	}
	if direct == 0 || len(own.Replace) > 0 || len(own.Tool) > 0 || own.Go != "1.24.0" {
		t.Errorf("go.mod: %d direct requirements, %d replacements, %d tools, go %s; want some, none, none, 1.24.0",
			direct, len(own.Replace), len(own.Tool), own.Go)
	}
}

// no package of the module reads flags or the environment or is made of k8s.io/kubernetes, and none is
// made of a module that only its tests need.
func TestA36_PackagesAreMadeOfWhatAServerHas(t *testing.T) {
	t.Parallel()
	const module = "github.com/joiner-autoscaler/joiner/nodescheduling/"
	command := exec.Command("go", "list", "-deps", "-test", "-f", "{{.ImportPath}} {{join .Imports \",\"}}",
		module+"...")
	command.Dir = "../../localcluster"
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	seen := 0
	for line := range strings.Lines(string(out)) {
		path, imports, _ := strings.Cut(strings.TrimSpace(line), " ")
		for _, forbidden := range []string{"k8s.io/kubernetes/", "pgregory.net/rapid", "github.com/cockroachdb/"} {
			if strings.HasPrefix(path, forbidden) {
				t.Errorf("the module, with its tests, is made of %s", path)
			}
		}
		if !strings.HasPrefix(path, module) || strings.Contains(line, "[") || strings.HasSuffix(path, ".test") {
			continue
		}
		seen++
		for _, forbidden := range []string{"os", "os/exec", "flag", "github.com/spf13/pflag"} {
			if slices.Contains(strings.Split(imports, ","), forbidden) {
				t.Errorf("%s imports %s", path, forbidden)
			}
		}
	}
	if seen < 5 {
		t.Errorf("only %d packages were seen", seen)
	}
}
