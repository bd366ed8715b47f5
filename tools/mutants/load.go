package main

import (
	"bytes"
	_ "embed" // the source of the switches
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed mutant/mutant.go
var switchSource []byte

// unit is one package: its source and its types.
type unit struct {
	path  string // as it is imported
	dir   string
	fset  *token.FileSet
	files []*source
	info  *types.Info
	pkg   *types.Package

	imports types.Importer
	module  moduleOf
}

// moduleOf is the module of a package. The switches go into the same module, so that everything that imports the
// package finds them.
type moduleOf struct{ Path, Dir string }

// source is one file of a package.
type source struct {
	name string // absolute
	text []byte
	tree *ast.File

	generated bool // not mutated
}

type listed struct {
	Dir        string
	ImportPath string
	Export     string
	GoFiles    []string
	DepOnly    bool
	Module     *moduleOf
}

// load reads the package in dir, below the module's root, with the types of all that it imports.
func load(root, dir string) (*unit, error) {
	command := exec.Command("go", "list", "-deps", "-export", "-json=Dir,ImportPath,Export,GoFiles,DepOnly,Module",
		dir, "cmp", "os", "strconv", "sync/atomic") // what the switches import
	command.Dir, command.Stderr = root, os.Stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", dir, err)
	}
	exports := map[string]string{}
	var target *listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly && p.Module != nil {
			target = &p
		}
	}
	if target == nil {
		return nil, fmt.Errorf("%s is no package", dir)
	}
	u := &unit{path: target.ImportPath, dir: target.Dir, fset: token.NewFileSet(), module: *target.Module}
	u.imports = importer.ForCompiler(u.fset, "gc",
		func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, name := range target.GoFiles {
		text, err := os.ReadFile(filepath.Join(target.Dir, name))
		if err != nil {
			return nil, err
		}
		generated := strings.Contains(name, "zz_generated")
		u.files = append(u.files, &source{name: filepath.Join(target.Dir, name), text: text, generated: generated})
	}
	return u, u.check()
}

// check parses the package as it is in the tree, and checks its types.
func (u *unit) check() error {
	var trees []*ast.File
	for _, f := range u.files {
		tree, err := parser.ParseFile(u.fset, f.name, f.text, parser.ParseComments)
		if err != nil {
			return err
		}
		f.tree = tree
		trees = append(trees, tree)
	}
	u.info = &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{},
		Defs: map[*ast.Ident]types.Object{},
	}
	var err error
	u.pkg, err = (&types.Config{Importer: u.imports}).Check(u.path, u.fset, trees, u.info)
	return err
}

// withSwitches imports the switches from their source, everything else as before.
type withSwitches struct {
	types.Importer
	path string
	pkg  *types.Package
}

func (w withSwitches) Import(path string) (*types.Package, error) {
	if path == w.path {
		return w.pkg, nil
	}
	return w.Importer.Import(path)
}

// mistakes checks the types of the instrumented package, and returns what does not compile, by file and line.
func (u *unit) mistakes(switchPath string, instrumented map[string][]byte) ([]types.Error, error) {
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, "mutant.go", switchSource, 0)
	if err != nil {
		return nil, err
	}
	pkg, err := (&types.Config{Importer: u.imports}).Check(switchPath, fset, []*ast.File{tree}, nil)
	if err != nil {
		return nil, err
	}
	var trees []*ast.File
	for _, f := range u.files {
		tree, err := parser.ParseFile(fset, f.name, instrumented[f.name], 0)
		if err != nil {
			return nil, fmt.Errorf("instrumented source: %w", err)
		}
		trees = append(trees, tree)
	}
	var found []types.Error
	config := types.Config{Importer: withSwitches{u.imports, switchPath, pkg}, Error: func(err error) {
		var e types.Error
		if errors.As(err, &e) {
			found = append(found, e)
		}
	}}
	_, _ = config.Check(u.path, fset, trees, nil)
	return found, nil
}
