// Package autonodepolicy_test checks the promises of the module: what it exports, and what it depends on.
package autonodepolicy_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write exported.txt anew; the diff is the review")

// packages are those that others import.
var packages = []string{"admission", "api/v1beta1", "fold", "policy"}

// name is an exported name.
type name struct {
	text       string // its line in the list
	own        string // the name itself
	documented bool
}

// no exported name changes or disappears unnoticed: upstream relies on the list.
func TestExportedNames(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, folder := range packages {
		for _, n := range exported(t, folder) {
			fmt.Fprintf(&b, "%s: %s\n", folder, n.text)
		}
	}
	if *update {
		if err := os.WriteFile("exported.txt", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("exported.txt")
	if err != nil {
		t.Fatal(err)
	}
	now := strings.Split(b.String(), "\n")
	for _, line := range strings.Split(string(want), "\n") {
		if !slices.Contains(now, line) {
			t.Errorf("gone or changed: %s", line)
		}
	}
	if b.String() != string(want) {
		t.Error("exported.txt is not what is exported: go test . -update, and explain the diff")
	}
}

// every exported name has a doc comment, and an example shows its use.
func TestEveryNameHasADocAndAnExample(t *testing.T) {
	t.Parallel()
	for _, folder := range packages {
		shown := map[string]bool{}
		for _, file := range parse(t, folder, func(base string) bool {
			return strings.HasPrefix(base, "example") && strings.HasSuffix(base, "_test.go")
		}) {
			ast.Inspect(file, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					shown[id.Name] = true
				}
				return true
			})
		}
		for _, n := range exported(t, folder) {
			if !n.documented {
				t.Errorf("%s: %s has no doc comment", folder, n.own)
			}
			if !shown[n.own] {
				t.Errorf("%s: %s is in no example", folder, n.own)
			}
		}
	}
}

func parse(t *testing.T, folder string, wanted func(base string) bool) []*ast.File {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, path := range paths {
		if base := filepath.Base(path); wanted(base) {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
	}
	return files
}

// exported returns the exported names of a package, sorted. It omits deep copies, which are generated.
func exported(t *testing.T, folder string) []name {
	t.Helper()
	var names []name
	for _, file := range parse(t, folder, func(base string) bool {
		return !strings.HasSuffix(base, "_test.go") && !strings.HasPrefix(base, "zz_")
	}) {
		for _, declaration := range file.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d))) {
					signature := *d
					signature.Doc, signature.Body = nil, nil
					names = append(names, name{print(t, &signature), d.Name.Name, d.Doc != nil})
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					names = append(names, declared(t, d, spec)...)
				}
			}
		}
	}
	slices.SortFunc(names, func(a, b name) int { return strings.Compare(a.text, b.text) })
	return names
}

func receiver(d *ast.FuncDecl) string {
	kind := d.Recv.List[0].Type
	if star, ok := kind.(*ast.StarExpr); ok {
		kind = star.X
	}
	return kind.(*ast.Ident).Name
}

// declared returns the names of a specification, with the exported fields of a struct.
func declared(t *testing.T, d *ast.GenDecl, spec ast.Spec) []name {
	t.Helper()
	var names []name
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for i, id := range spec.Names {
			if !id.IsExported() {
				continue
			}
			text := d.Tok.String() + " " + id.Name
			if i < len(spec.Values) {
				text += " = " + print(t, spec.Values[i])
			}
			names = append(names, name{text, id.Name, d.Doc != nil || spec.Doc != nil})
		}
	case *ast.TypeSpec:
		if !spec.Name.IsExported() {
			return nil
		}
		fields, isStruct := spec.Type.(*ast.StructType)
		text := "type " + spec.Name.Name + " struct"
		if !isStruct {
			text = "type " + spec.Name.Name + " " + print(t, spec.Type)
		}
		names = append(names, name{text, spec.Name.Name, d.Doc != nil || spec.Doc != nil})
		if !isStruct {
			break
		}
		for _, field := range fields.Fields.List {
			for _, id := range field.Names {
				if id.IsExported() {
					names = append(names, name{"field " + spec.Name.Name + "." + id.Name + " " + print(t, field.Type),
						spec.Name.Name, true})
				}
			}
		}
	}
	return names
}

// print writes a node in one line.
func print(t *testing.T, node any) string {
	t.Helper()
	var b bytes.Buffer
	if err := format.Node(&b, token.NewFileSet(), node); err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
