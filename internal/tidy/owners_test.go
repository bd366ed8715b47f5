package tidy

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// holders may hold several providers: fleet does, and who composes a process makes them.
var holders = []string{"internal/provider/fleet/", "internal/app/"}

// TestOnlyTheFleetHoldsProviders keeps the answer to "is this ours?" in one place: nobody else has a list of
// providers to search, compares a provider's node class with a reference, or asks a provider whether it knows the form
// of an ID. And whoever makes a store that ships tells it whose objects are.
func TestOnlyTheFleetHoldsProviders(t *testing.T) {
	t.Parallel()
	held, stores := 0, 0
	eachFile(t, "internal", func(name string, fset *token.FileSet, file *ast.File) {
		if strings.HasSuffix(name, "_test.go") {
			return
		}
		mayHold := slices.ContainsFunc(holders, func(folder string) bool { return strings.HasPrefix(name, folder) })
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ArrayType:
				if s, is := n.Elt.(*ast.SelectorExpr); is && s.Sel.Name == "Provider" && isName(s.X, "provider") {
					if held++; !mayHold {
						t.Errorf("%s: a list of providers: ask package fleet", fset.Position(n.Pos()))
					}
				}
			case *ast.CallExpr:
				if s, is := n.Fun.(*ast.SelectorExpr); is && s.Sel.Name == "Owns" && !mayHold &&
					!strings.HasPrefix(name, "internal/provider/") {
					t.Errorf("%s: Owns is for package fleet: ask it whose the object is", fset.Position(n.Pos()))
				}
			case *ast.CompositeLit:
				if s, is := n.Type.(*ast.SelectorExpr); is && s.Sel.Name == "Config" && isName(s.X, "world") &&
					len(n.Elts) > 0 {
					if stores++; !hasField(n, "Fleet") {
						t.Errorf("%s: a store without Fleet takes everything for ours", fset.Position(n.Pos()))
					}
				}
			}
			return true
		})
	})
	if held == 0 || stores == 0 {
		t.Errorf("%d lists of providers and %d stores found: the rule applies to nothing", held, stores)
	}
}

func isName(e ast.Expr, name string) bool {
	id, is := e.(*ast.Ident)
	return is && id.Name == name
}

func hasField(literal *ast.CompositeLit, name string) bool {
	return slices.ContainsFunc(literal.Elts, func(e ast.Expr) bool {
		pair, is := e.(*ast.KeyValueExpr)
		return is && isName(pair.Key, name)
	})
}
