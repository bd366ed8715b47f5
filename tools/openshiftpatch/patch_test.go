package main

import (
	"bytes"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/tools/txtar"
)

// shapes returns the trees of the tests.
func shapes() []string { return []string{"blocks", "lines", "names"} }

// tree writes a shape with the stubs below a new directory; show and diff are the wanted results.
func tree(t *testing.T, shape string) (dir, show, diff string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range []string{"stubs", shape} {
		archive, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			switch f.Name {
			case "show":
				show = string(f.Data)
			case "diff":
				diff = string(f.Data)
			default:
				put(t, filepath.Join(dir, f.Name), string(f.Data))
			}
		}
	}
	return dir, show, diff
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// contents returns all files of a tree.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	if err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		found[strings.TrimPrefix(path, dir+string(filepath.Separator))] = string(content)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

// patchTree runs the program, which must end with code.
func patchTree(t *testing.T, code int, args ...string) (out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	if got := run(args, &o, &e); got != code {
		t.Fatalf("%v ends with %d, want %d\n%s%s", args, got, code, &o, &e)
	}
	return o.String(), e.String()
}

// each tree is patched with lines of the plugin only. A second run changes nothing. --check changes nothing and
// says whether the tree is patched. The files are formatted, and the compiled program knows plugin and gate.
func TestA37_TreesArePatched(t *testing.T) {
	t.Parallel()
	for _, shape := range shapes() {
		t.Run(shape, func(t *testing.T) {
			t.Parallel()
			dir, show, want := tree(t, shape)
			before := contents(t, dir)
			if out, _ := patchTree(t, notPatched, "--tree", dir, "--check"); strings.Contains(out, "is there") {
				t.Errorf("a tree that was never patched:\n%s", out)
			}
			differ(t, "--check", before, contents(t, dir), "")

			out, _ := patchTree(t, patched, "--tree", dir)
			if strings.Contains(out, "is there") || !strings.Contains(out, "hack/update-vendor.sh") {
				t.Errorf("the first time:\n%s", out)
			}
			once := contents(t, dir)
			differ(t, "the patch", before, once, want)
			formatted(t, once)

			if out, _ := patchTree(t, patched, "--tree", dir, "--check"); strings.Contains(out, "missing") {
				t.Errorf("a patched tree:\n%s", out)
			}
			if out, _ := patchTree(t, patched, "--tree", dir); strings.Contains(out, "added") {
				t.Errorf("the second time:\n%s", out)
			}
			differ(t, "the second time", once, contents(t, dir), "")

			if got := goRun(t, dir); got != show {
				t.Errorf("the tree shows\n%swant\n%s", got, show)
			}
		})
	}
}

// goRun vets a tree and runs its program, without downloads.
func goRun(t *testing.T, dir string) string {
	t.Helper()
	var out []byte
	for _, args := range [][]string{{"vet", "./..."}, {"run", "./cmd/show"}} {
		command := exec.Command("go", args...)
		command.Dir = dir
		command.Env = append(os.Environ(), "GOFLAGS=-mod=mod -trimpath", "GOPROXY=off", "GOWORK=off", "CGO_ENABLED=0")
		var err error
		if out, err = command.CombinedOutput(); err != nil {
			t.Fatalf("go %v: %v\n%s", args, err, out)
		}
	}
	return string(out)
}

func formatted(t *testing.T, files map[string]string) {
	t.Helper()
	for _, name := range []string{registerFile, featuresFile} {
		if got, err := format.Source([]byte(files[name])); err != nil || string(got) != files[name] {
			t.Errorf("%s is not formatted (%v):\n%s", name, err, files[name])
		}
	}
	f, err := modfile.Parse(modFile, []byte(files[modFile]), nil)
	if err != nil || string(modfile.Format(f.Syntax)) != files[modFile] {
		t.Errorf("go.mod is not formatted (%v):\n%s", err, files[modFile])
	}
}

// differ compares the lines of two trees.
func differ(t *testing.T, what string, before, after map[string]string, want string) {
	t.Helper()
	var got strings.Builder
	for _, name := range []string{registerFile, featuresFile, modFile} {
		got.WriteString(lines(before[name], after[name]))
	}
	if got.String() != want {
		t.Errorf("%s: lines that differ:\n%swant\n%s", what, got.String(), want)
	}
	if len(before) != len(after) {
		t.Errorf("%s: %d files, then %d", what, len(before), len(after))
	}
	for name, content := range before {
		if !slices.Contains([]string{registerFile, featuresFile, modFile}, name) && after[name] != content {
			t.Errorf("%s: %s differs", what, name)
		}
	}
}

// lines returns the lines that only one of two texts has, by their longest common sequence.
func lines(before, after string) string {
	a, b := strings.SplitAfter(before, "\n"), strings.SplitAfter(after, "\n")
	longest := make([][]int, len(a)+1)
	for i := range longest {
		longest[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if longest[i][j] = max(longest[i+1][j], longest[i][j+1]); a[i] == b[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			}
		}
	}
	var out strings.Builder
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && longest[i+1][j] >= longest[i][j+1]:
			out.WriteString("-" + a[i])
			i++
		default:
			out.WriteString("+" + b[j])
			j++
		}
	}
	return out.String()
}
