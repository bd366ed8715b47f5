package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// edited returns the shape blocks with a text of a file replaced.
func edited(t *testing.T, file, before, after string) string {
	t.Helper()
	dir, _, _ := tree(t, "blocks")
	path := filepath.Join(dir, file)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(content), before) {
		t.Fatalf("%s has no %q", file, before)
	}
	put(t, path, strings.ReplaceAll(string(content), before, after))
	return dir
}

// a missing place is named with its file, and no file is written, with and without --check.
func TestA37_AMissingPlaceIsNamedAndNothingIsWritten(t *testing.T) {
	t.Parallel()
	const calls = "\tcolourred.Register(plugins)\n\tblue.Register(plugins) // as ever\n\tblue.RegisterLight(plugins)\n"
	for _, row := range []struct{ file, before, after, want string }{
		{registerFile, registerFunction, "RegisterOthers", "function " + registerFunction},
		{registerFile, registerFunction + "(plugins *admission.Plugins) {\n" + calls + "}",
			registerFunction + "(plugins *admission.Plugins) {}", "a body on lines of its own"},
		{registerFile, registerFunction + "(plugins *admission.Plugins) {\n" + calls, registerFunction +
			"(_ *admission.Plugins) {\n", "one parameter with a name"},
		{registerFile, "func Register", "func (own) Register", "function " + registerFunction},
		{registerFile, beforeMutating, "others", "variable " + beforeMutating},
		{registerFile, "= []string{\n\t\t\"colours", "= []any{\n\t\t\"colours", "variable " + beforeMutating},
		{registerFile, beforeMutating + " = []string{", beforeMutating + " = others[:]\n\tothers = [...]string{",
			"variable " + beforeMutating},
		{registerFile, "colourred", importName,
			"is that of k8s.io/kubernetes/openshift-kube-apiserver/admission/colours"},
		{registerFile, "func After()", "func " + importName + "() {}\n\nfunc After()", "the file declares it"},
		{registerFile, "\t\"strings\"", "\t_ \"" + pluginPackage + "\"", "want a name, not _"},
		{registerFile, "package admission", "package", "expected 'package'"},
		{featuresFile, "func " + featuresFunction, "func others", "function " + featuresFunction},
		{featuresFile, "defaultKubernetesFeatureGates[", "others[", "a gate put into " + plainTable},
		{featuresFile, "defaultKubernetesFeatureGates[", versionedTable + "[",
			"a gate in " + versionedTable + " with a version"},
		{featuresFile, "ColourfulNodes", gate, "constant " + gate + " is not as expected: want the name free"},
		{modFile, "module k8s.io/kubernetes", "module k8s.io/other", "want module k8s.io/kubernetes"},
		{modFile, "v0.0.0\n", "v0.0.0 // indirect\n", "a requirement without // indirect"},
		{modFile, "require (", "require", "go.mod:"},
	} {
		dir := edited(t, row.file, row.before, row.after)
		if row.after == gate { // as something else
			put(t, filepath.Join(dir, row.file), strings.ReplaceAll(contents(t, dir)[row.file], `"`+gate+`"`,
				`"other"`))
		}
		before := contents(t, dir)
		for _, args := range [][]string{{"--tree", dir}, {"--tree", dir, "--check"}} {
			out, errs := patchTree(t, refused, args...)
			if !strings.Contains(errs, row.file) || !strings.Contains(errs, row.want) || out != "" {
				t.Errorf("%s: %q for %q: it says %s%s, want %s", row.file, row.after, row.before, out, errs, row.want)
			}
		}
		differ(t, row.want, before, contents(t, dir), "")
	}
}

// everything missing is reported at once, and so are bad arguments.
func TestA37_WhatIsWrongIsToldAtOnce(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	for _, row := range []struct {
		args []string
		want []string
	}{
		{[]string{"--tree", empty}, []string{registerFile + ": the file is not there", featuresFile, modFile, empty}},
		{[]string{"--version", "one", "more"}, []string{"--tree is empty", `--version is "one"`, `argument "more"`}},
		{[]string{"--version", "v2.0.0", "--tree", empty}, []string{`--version is "v2.0.0"`}},
		{[]string{"--chek"}, []string{"-chek", "-check"}},
	} {
		_, errs := patchTree(t, refused, row.args...)
		for _, want := range row.want {
			if !strings.Contains(errs, want) {
				t.Errorf("%v: it says\n%swant %s", row.args, errs, want)
			}
		}
	}
	if files := contents(t, empty); len(files) != 0 {
		t.Errorf("written: %v", files)
	}
}

// if a tree is patched in part, by this program or by hand, the rest is added.
func TestA37_TheRestIsAdded(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ file, before, after, want string }{
		{registerFile, "\tcolourred \"", "\town \"" + pluginPackage + "\"\n\tcolourred \"",
			"+\town.Register(plugins)\n+\t\town.PluginName,\n"},
		{registerFile, "\t\"colours/Red\",\n", "\t\"colours/Red\",\n\t\t\"" + pluginName + "\",\n",
			"+\t" + importName + " \"" + pluginPackage + "\"\n+\t" + importName + ".Register(plugins)\n"},
		{featuresFile, "var ColourfulRoutes ",
			"var " + gate + " featuregate.Feature = \"" + gate + "\"\nvar ColourfulRoutes ",
			"+\tdefaultKubernetesFeatureGates[" + gate + "] = featuregate.FeatureSpec{\n+\t\tDefault:    false,\n" +
				"+\t\tPreRelease: featuregate.Alpha,\n+\t}\n"},
		{modFile, "\tk8s.io/apiserver v", "\t" + pluginModule + " v0.1.0\n\tk8s.io/apiserver v", ""},
	} {
		dir := edited(t, row.file, row.before, row.after)
		before := contents(t, dir)
		patchTree(t, notPatched, "--tree", dir, "--check")
		patchTree(t, patched, "--tree", dir, "--version", "v0.2.0")
		after := contents(t, dir)
		if got := lines(before[row.file], after[row.file]); got != row.want {
			t.Errorf("%s: lines that differ:\n%swant\n%s", row.after, got, row.want)
		}
		if mod := after[modFile]; row.file != modFile && !strings.Contains(mod, pluginModule+" v0.2.0\n") {
			t.Errorf("go.mod requires another version:\n%s", mod)
		}
		patchTree(t, patched, "--tree", dir, "--check")
	}
}

// a patch that would change other lines, or is no Go, is not written.
func TestA37_WhatMovesOtherLinesIsRefused(t *testing.T) {
	t.Parallel()
	const content = "package p\n\nvar (\n\ta = 1\n)\n"
	for text, want := range map[string]string{
		"\tlong = 2\n": "only lines of the plugin's own",
		"\tfunc\n":     "is no Go",
	} {
		s, err := parse("p.go", []byte(content))
		if err != nil {
			t.Fatal(err)
		}
		s.add("text", strings.Index(content, ")"), text)
		_, _, err = s.apply()
		if err == nil || !strings.Contains(err.Error(), "p.go: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// also in an unformatted file only the plugin's lines change.
func TestA37_OtherLinesStayAsTheyAre(t *testing.T) {
	t.Parallel()
	dir := edited(t, registerFile, "strings.ToLower(\"COLOURS/\")", "strings.ToLower( \"COLOURS/\" )")
	before := contents(t, dir)
	patchTree(t, patched, "--tree", dir)
	for _, line := range strings.SplitAfter(lines(before[registerFile], contents(t, dir)[registerFile]), "\n") {
		if line != "" && (line[0] != '+' || !strings.Contains(line, importName)) {
			t.Errorf("another line: %s", line)
		}
	}
}

// if a file cannot be written, the files before it are restored, and nothing is left beside them.
func TestA37_AllFilesAreWrittenOrNone(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(t *testing.T, dir string){
		"no directory": func(t *testing.T, dir string) {
			if err := os.RemoveAll(filepath.Join(dir, filepath.Dir(featuresFile))); err != nil {
				t.Fatal(err)
			}
		},
		"a directory in its place": func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, featuresFile)); err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(dir, featuresFile, "file"), "")
		},
	} {
		dir, _, _ := tree(t, "blocks")
		files, err := read(dir, unreleased)
		if err != nil {
			t.Fatal(err)
		}
		spoil(t, dir)
		before := contents(t, dir)
		if err := write(dir, files); err == nil || !strings.Contains(err.Error(), featuresFile) {
			t.Errorf("%s: %v, want an error about %s", name, err, featuresFile)
		}
		differ(t, name, before, contents(t, dir), "")
	}
}

// the inserted names exist in the module.
func TestA37_TheModuleHasWhatIsPutIn(t *testing.T) {
	t.Parallel()
	module := filepath.Join("..", "..", "nodescheduling")
	mod, err := os.ReadFile(filepath.Join(module, "go.mod"))
	if err != nil || !strings.HasPrefix(string(mod), "module "+pluginModule+"\n") {
		t.Errorf("go.mod (%v) is not of %s:\n%s", err, pluginModule, mod)
	}
	for file, names := range map[string]map[string]string{
		"plugin/register.go":  {"PluginName": pluginName, "Register": "*admission.Plugins"},
		"evaluator/policy.go": {"FeatureGate": gate},
	} {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(module, file), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		s := &source{file: parsed}
		for name, want := range names {
			if got := exported(s, name); got != want {
				t.Errorf("%s: %s is %q, want %q", file, name, got, want)
			}
		}
	}
}

// exported returns the value of a constant, or the type of a function's only parameter.
func exported(s *source, name string) string {
	for _, d := range s.file.Decls {
		f, is := d.(*ast.FuncDecl)
		if !is || f.Name.Name != name || len(f.Type.Params.List) != 1 || f.Type.Results != nil {
			continue
		}
		p, is := f.Type.Params.List[0].Type.(*ast.StarExpr)
		if is && selects(p.X, "admission", "Plugins") {
			return "*admission.Plugins"
		}
	}
	_, value := s.value(name)
	return literal(value)
}
