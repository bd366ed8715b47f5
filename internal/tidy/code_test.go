package tidy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	maxFileLines     = 500
	maxFunctionLines = 70
	maxTestLines     = 100
)

// tracked lists the files that git knows or would take, with the given suffix, relative to the root.
func tracked(t *testing.T, suffix string) []string {
	t.Helper()
	command := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard")
	command.Dir = "../.."
	out, err := command.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	var files []string
	for _, name := range strings.Fields(string(out)) {
		if _, err := os.Stat(filepath.Join("../..", name)); err == nil && strings.HasSuffix(name, suffix) {
			files = append(files, name)
		}
	}
	if len(files) == 0 {
		t.Fatalf("git knows no file that ends in %q", suffix)
	}
	return files
}

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("../..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func generated(name string) bool { return strings.Contains(filepath.Base(name), "zz_generated") }

// longFunctions may be longer than the rule, each with its reason.
var longFunctions = map[string]string{}

func TestFilesAndFunctionsAreShort(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	eachFile(t, "", func(name string, fset *token.FileSet, file *ast.File) {
		if n := fset.Position(file.End()).Line; n > maxFileLines {
			t.Errorf("%s has %d lines; at most %d", name, n, maxFileLines)
		}
		for _, declaration := range file.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok {
				continue
			}
			limit := maxFunctionLines
			if strings.HasSuffix(name, "_test.go") {
				limit = maxTestLines
			}
			id := name + " " + function.Name.Name
			n := fset.Position(function.End()).Line - fset.Position(function.Pos()).Line + 1
			if _, excused := longFunctions[id]; excused {
				seen[id] = true
			} else if n > limit {
				t.Errorf("%s: function %s has %d lines; at most %d", name, function.Name.Name, n, limit)
			}
		}
	})
	for id := range longFunctions {
		if !seen[id] {
			t.Errorf("%s is excused but does not exist", id)
		}
	}
}

// eachFile parses every Go file of ours below folder ("" for all) that is not generated.
func eachFile(t *testing.T, folder string, look func(string, *token.FileSet, *ast.File)) {
	t.Helper()
	for _, name := range tracked(t, ".go") {
		if generated(name) || !strings.HasPrefix(name, folder) {
			continue
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, filepath.Join("../..", name), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		look(name, fset, file)
	}
}

// pure are the packages that decide: no clock, no concurrency, no environment, no chance.
var pure = []string{"internal/history/", "autonodepolicy/", "internal/engine/", "internal/translate/",
	"internal/autonode/merge/",
	"internal/autonode/approver/", "internal/readmodel/", "internal/admission/", "internal/convert/",
	"internal/migrate/", "internal/foretell/"}

// impure are imports that a pure package has no use for.
var impure = map[string]string{
	"sync": "nothing is shared", "sync/atomic": "nothing is shared", "os": "no environment",
	"context":   "nothing waits",
	"math/rand": "no chance", "math/rand/v2": "no chance", "log": "the engine does not log",
	"log/slog": "the engine does not log", "net": "no I/O", "net/http": "no I/O", "os/exec": "no I/O",
}

// TestPurePackagesArePure is rule 3 of AGENTS.md and rule 4 of architecture 4.3.
func TestPurePackagesArePure(t *testing.T) {
	t.Parallel()
	for _, folder := range pure {
		eachFile(t, folder, func(name string, fset *token.FileSet, file *ast.File) {
			if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "internal/engine/enginetest/") {
				return
			}
			for _, imported := range file.Imports {
				path := strings.Trim(imported.Path.Value, `"`)
				if reason, bad := impure[path]; bad {
					t.Errorf("%s imports %s: %s", name, path, reason)
				}
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if what := impurity(n); what != "" {
					t.Errorf("%s: %s: not in a pure package", fset.Position(n.Pos()), what)
				}
				return true
			})
		})
	}
}

func impurity(n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "a goroutine"
	case *ast.SelectStmt:
		return "select"
	case *ast.ChanType:
		return "a channel"
	case *ast.SelectorExpr:
		if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" &&
			slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After"}, n.Sel.Name) {
			return "the clock (time." + n.Sel.Name + ")"
		}
	}
	return ""
}

// goroutines may be started in these places only (style guide 23).
var goroutines = []string{"internal/app/", "internal/world/", "internal/provider/", "nodescheduling/plugin/",
	"localcluster/", "cmd/", "bench/", "tools/"}

func TestNoHiddenState(t *testing.T) {
	t.Parallel()
	eachFile(t, "", func(name string, fset *token.FileSet, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Name.Name == "init" && n.Recv == nil {
					t.Errorf("%s: init(): nothing happens by being imported", fset.Position(n.Pos()))
				}
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "context" && n.Sel.Name == "WithValue" {
					t.Errorf("%s: context.WithValue: pass what is needed", fset.Position(n.Pos()))
				}
			case *ast.GoStmt:
				if !strings.HasSuffix(name, "_test.go") &&
					!slices.ContainsFunc(goroutines, func(p string) bool { return strings.HasPrefix(name, p) }) {
					t.Errorf("%s: a goroutine: only %v may start one", fset.Position(n.Pos()), goroutines)
				}
			}
			return true
		})
		assignedGlobals(t, name, fset, file)
	})
}

// assignedGlobals finds package variables of a file that a function of the same file writes. It goes by names: one
// that the function declares itself is not the package's.
func assignedGlobals(t *testing.T, name string, fset *token.FileSet, file *ast.File) {
	t.Helper()
	globals := map[string]bool{}
	for _, declaration := range file.Decls {
		if general, ok := declaration.(*ast.GenDecl); ok && general.Tok == token.VAR {
			for _, spec := range general.Specs {
				for _, id := range spec.(*ast.ValueSpec).Names {
					globals[id.Name] = true
				}
			}
		}
	}
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok || function.Body == nil {
			continue
		}
		own := declared(function)
		ast.Inspect(function.Body, func(n ast.Node) bool {
			assign, ok := n.(*ast.AssignStmt)
			if !ok {
				return true
			}
			for _, left := range assign.Lhs {
				if index, ok := left.(*ast.IndexExpr); ok {
					left = index.X
				}
				if id, ok := left.(*ast.Ident); ok && id.Name != "_" && globals[id.Name] && !own[id.Name] {
					t.Errorf("%s: %s: package variable %s is written", fset.Position(n.Pos()), name, id.Name)
				}
			}
			return true
		})
	}
}

// declared lists the names that a function declares anywhere: receiver, parameters, results, variables.
func declared(function *ast.FuncDecl) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(function, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			for _, id := range n.Names {
				names[id.Name] = true
			}
		case *ast.ValueSpec:
			for _, id := range n.Names {
				names[id.Name] = true
			}
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				if id, ok := left.(*ast.Ident); ok && n.Tok == token.DEFINE {
					names[id.Name] = true
				}
			}
		}
		return true
	})
	return names
}
