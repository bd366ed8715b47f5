package main

import (
	"fmt"
	"go/ast"
	"strings"

	"golang.org/x/mod/semver"
)

// The places in featuresFile. A release has one of the two tables of gates; the one without versions is older. The
// newest release also has a table of dependencies, in which every gate has to be.
const (
	featuresFunction  = "registerOpenshiftFeatures"
	plainTable        = "defaultKubernetesFeatureGates"
	versionedTable    = "defaultVersionedKubernetesFeatureGates"
	dependenciesTable = "defaultKubernetesFeatureGateDependencies"
)

// patchFeatures declares the gate and registers it as the file's other gates are.
func patchFeatures(name string, content []byte) ([]byte, []part, error) {
	s, err := parse(name, content)
	if err != nil {
		return nil, nil, err
	}
	f, err := s.function(featuresFunction)
	if err != nil {
		return nil, nil, err
	}
	last := s.lastEntry(f, plainTable, versionedTable)
	if last == nil {
		return nil, nil, s.missing("function "+featuresFunction,
			fmt.Sprintf("a gate put into %s or %s", plainTable, versionedTable))
	}
	if err := s.declareGate(f, last.pkg); err != nil {
		return nil, nil, err
	}
	if err := s.registerGate(f, last); err != nil {
		return nil, nil, err
	}
	if d := s.lastEntry(f, dependenciesTable); d != nil {
		s.enter(f, dependenciesTable, s.lineAfter(d.statement.End()), s.text(d.value.Type)+"{}")
	}
	return s.apply()
}

// entry is a statement TABLE[GATE] = TYPE{...}.
type entry struct {
	statement *ast.AssignStmt
	table     string
	pkg       string // the file's name for the package of gates
	value     *ast.CompositeLit
}

// entries returns the function's entries for some tables, in order.
func (s *source) entries(f *ast.FuncDecl, tables ...string) []entry {
	var found []entry
	for _, statement := range f.Body.List {
		a, is := statement.(*ast.AssignStmt)
		if !is || len(a.Lhs) != 1 || len(a.Rhs) != 1 {
			continue
		}
		at, is := a.Lhs[0].(*ast.IndexExpr)
		if !is {
			continue
		}
		value, is := a.Rhs[0].(*ast.CompositeLit)
		if !is {
			continue
		}
		t := value.Type
		if list, is := t.(*ast.ArrayType); is {
			t = list.Elt
		}
		of, is := t.(*ast.SelectorExpr)
		for _, table := range tables {
			if is && s.text(at.X) == table {
				found = append(found, entry{a, table, s.text(of.X), value})
			}
		}
	}
	return found
}

func (s *source) lastEntry(f *ast.FuncDecl, tables ...string) *entry {
	if all := s.entries(f, tables...); len(all) > 0 {
		return &all[len(all)-1]
	}
	return nil
}

// declareGate adds a separate declaration: in a block with others, the length of the name could move their columns.
func (s *source) declareGate(f *ast.FuncDecl, pkg string) error {
	const what = "constant " + gate
	declared, value := s.value(gate)
	switch {
	case declared && literal(value) != gate:
		return s.missing(what, fmt.Sprintf("the name free, or set to %q", gate))
	case declared:
		s.there(what)
		return nil
	}
	at := f.Pos()
	if f.Doc != nil {
		at = f.Doc.Pos()
	}
	s.add(what, s.lineOf(at),
		fmt.Sprintf("// %s is the gate of the admission plugin %s.\nconst %s %s.Feature = %q\n\n",
			gate, pluginName, gate, pkg, gate))
	return nil
}

// registerGate puts the gate, alpha and off, behind the last other gate.
func (s *source) registerGate(f *ast.FuncDecl, last *entry) error {
	text := fmt.Sprintf("%s{\n\t\tDefault:    false,\n\t\tPreRelease: %s.Alpha,\n\t}", s.text(last.value.Type),
		last.pkg)
	if last.table == versionedTable {
		since, err := s.newestVersion(f)
		if err != nil {
			return err
		}
		text = fmt.Sprintf("%s{\n\t\t{Version: %s, Default: false, PreRelease: %s.Alpha},\n\t}",
			s.text(last.value.Type), since, last.pkg)
	}
	s.enter(f, last.table, s.lineAfter(last.statement.End()), text)
	return nil
}

// enter adds an entry for the gate to a table, unless there is one.
func (s *source) enter(f *ast.FuncDecl, table string, at int, value string) {
	what := "entry of " + table
	for _, e := range s.entries(f, table) {
		if s.text(e.statement.Lhs[0].(*ast.IndexExpr).Index) == gate {
			s.there(what)
			return
		}
	}
	s.add(what, at, fmt.Sprintf("\t%s[%s] = %s\n", table, gate, value))
}

// newestVersion returns the newest version in which another gate changed, as it is written. A server of that release
// knows the gate, and the tree need not be asked for its own version.
func (s *source) newestVersion(f *ast.FuncDecl) (string, error) {
	newest, written := "", ""
	for _, e := range s.entries(f, versionedTable) {
		ast.Inspect(e.value, func(n ast.Node) bool {
			field, is := n.(*ast.KeyValueExpr)
			if !is || s.text(field.Key) != "Version" {
				return true
			}
			call, is := field.Value.(*ast.CallExpr)
			if !is || len(call.Args) != 1 || !strings.HasSuffix(s.text(call.Fun), ".MustParse") {
				return true
			}
			if v := "v" + literal(call.Args[0]); semver.IsValid(v) && semver.Compare(v, newest) > 0 {
				newest, written = v, s.text(call)
			}
			return true
		})
	}
	if written == "" {
		return "", s.missing("function "+featuresFunction, "a gate in "+versionedTable+" with a version")
	}
	return written, nil
}
