package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// inList reports whether a statement is in a list of statements, so that others can be put around it. The
// communication of a select's case is not.
func (w *finder) inList(n ast.Stmt) bool {
	switch parent := w.parent().(type) {
	case *ast.BlockStmt, *ast.CaseClause:
		return true
	case *ast.CommClause:
		return parent.Comm != n
	}
	return false
}

// remove removes a statement.
func (w *finder) remove(n ast.Stmt) { w.wrap(n, "(removed)", "if mutant.Live(%d) { ", " }") }

func (w *finder) statement(n ast.Stmt) bool {
	switch n := n.(type) {
	case *ast.RangeStmt:
		w.loopBody(n.Body, "range "+w.text(n.X))
		return true
	case *ast.ReturnStmt:
		w.returned(n)
		return true
	case *ast.BranchStmt:
		w.branch(n)
		return true
	}
	if !w.inList(n) {
		return true
	}
	switch n := n.(type) {
	case *ast.ExprStmt:
		if w.silent(n.X) {
			return false
		}
		if call, ok := n.X.(*ast.CallExpr); ok && !isPanic(call) {
			w.remove(n)
		}
	case *ast.AssignStmt:
		if name, ok := n.Lhs[0].(*ast.Ident); n.Tok != token.DEFINE && (!ok || name.Name != "_" || len(n.Lhs) > 1) {
			w.remove(n)
		}
	case *ast.IncDecStmt, *ast.SendStmt:
		w.remove(n)
	case *ast.DeferStmt:
		if w.silent(n.Call) {
			return false
		}
		if name, ok := n.Call.Fun.(*ast.Ident); !ok || !strings.HasPrefix(name.Name, "cancel") {
			w.remove(n)
		}
	case *ast.IfStmt:
		if n.Init != nil && n.Else == nil {
			w.wrap2(n, "if "+w.text(n.Init), "(removed)", "if mutant.Live(%d) { ", " }")
		}
	}
	return true
}

func isPanic(call *ast.CallExpr) bool {
	name, ok := call.Fun.(*ast.Ident)
	return ok && name.Name == "panic"
}

// silent reports whether a call is of a kind that no test should check: logs, and locks, which the race detector
// checks.
func (w *finder) silent(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	if slices.Contains([]string{"Lock", "Unlock", "RLock", "RUnlock"}, sel.Sel.Name) {
		return true
	}
	t := w.typeOf(sel.X)
	return t != nil && strings.HasSuffix(t.String(), "logr.Logger")
}

// loopBody makes a loop do nothing.
func (w *finder) loopBody(body *ast.BlockStmt, what string) {
	if len(body.List) == 0 {
		return
	}
	w.add(body, "for "+what, "(no round)", func(id int) []edit {
		return []edit{at(w.offset(body.Lbrace)+1, fmt.Sprintf(" if mutant.On(%d) { break };", id))}
	})
}

// caseBody makes a case do nothing. One that returns is covered by what it returns.
func (w *finder) caseBody(n *ast.CaseClause) {
	if len(n.Body) == 0 {
		return
	}
	switch last := n.Body[len(n.Body)-1].(type) {
	case *ast.ReturnStmt, *ast.BranchStmt:
		return
	case *ast.ExprStmt:
		if call, ok := last.X.(*ast.CallExpr); ok && isPanic(call) {
			return
		}
	}
	var was []string
	for _, e := range n.List {
		was = append(was, w.text(e))
	}
	name := "default"
	if was != nil {
		name = "case " + strings.Join(was, ", ")
	}
	w.add(n, name, "(does nothing)", func(id int) []edit {
		return []edit{at(w.offset(n.Colon)+1, fmt.Sprintf(" if mutant.On(%d) { break };", id))}
	})
}

// branch drops a continue or break, and swaps it for the other.
func (w *finder) branch(n *ast.BranchStmt) {
	if n.Tok != token.CONTINUE && n.Tok != token.BREAK || !w.inList(n) {
		return
	}
	w.remove(n)
	loop := false // whether the next thing that a break would leave is a loop
	for i := len(w.stack) - 1; i >= 0; i-- {
		switch w.stack[i].(type) {
		case *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt, *ast.FuncLit:
			i = 0
		case *ast.ForStmt, *ast.RangeStmt:
			loop, i = true, 0
		}
	}
	if n.Label != nil || !loop {
		return
	}
	other := map[token.Token]string{token.CONTINUE: "break", token.BREAK: "continue"}[n.Tok]
	w.wrap(n, other, "if mutant.On(%d) { "+other+" }; ", "")
}

// returned changes what a function returns: no error, nothing at all, or not yet.
func (w *finder) returned(n *ast.ReturnStmt) {
	results := w.results()
	if len(n.Results) == 0 {
		if results == nil && w.inList(n) {
			w.remove(n)
		}
		return
	}
	failed := false
	for _, e := range n.Results {
		if t := w.typeOf(e); t != nil && types.Identical(t, types.Universe.Lookup("error").Type()) &&
			len(n.Results) == w.count(results) {
			w.wrap(e, "nil", "mutant.NoErr(%d, ", ")")
			failed = true
		}
	}
	if failed && len(n.Results) > 1 || !w.inList(n) || results == nil {
		return
	}
	if !slices.ContainsFunc(n.Results, w.worth) ||
		len(n.Results) == 1 && (w.isBool(n.Results[0]) || failed && !isCall(n.Results[0])) {
		return
	}
	var zeros []string
	for _, field := range results.List {
		for range max(1, len(field.Names)) {
			zeros = append(zeros, "*new("+w.text(field.Type)+")")
		}
	}
	w.add(n, w.text(n), "return (nothing)", func(id int) []edit {
		return []edit{
			at(w.offset(n.Pos()), fmt.Sprintf("if mutant.On(%d) { return %s }; ", id, strings.Join(zeros, ", "))),
		}
	})
}

func (w *finder) count(results *ast.FieldList) int {
	if results == nil {
		return 0
	}
	return results.NumFields()
}

// results returns the results of the enclosing function.
func (w *finder) results() *ast.FieldList {
	for i := len(w.stack) - 1; i >= 0; i-- {
		switch f := w.stack[i].(type) {
		case *ast.FuncDecl:
			return f.Type.Results
		case *ast.FuncLit:
			return f.Type.Results
		}
	}
	return nil
}

func isCall(e ast.Expr) bool {
	_, ok := e.(*ast.CallExpr)
	return ok
}

// worth reports whether a result is more than a zero value.
func (w *finder) worth(e ast.Expr) bool {
	value := w.info.Types[e]
	if value.IsNil() {
		return false
	}
	if value.Value != nil {
		text := value.Value.ExactString()
		return text != `""` && text != "0" && text != "false"
	}
	literal, ok := e.(*ast.CompositeLit)
	return !ok || len(literal.Elts) > 0
}
