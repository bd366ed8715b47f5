package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// finder walks a file and notes what could be changed.
type finder struct {
	*unit
	file    *source
	stack   []ast.Node // from the file down to the parent of the node at hand
	mutants []*mutant
	consts  map[types.Object]*named
	nths    map[string]int
}

// named is a constant of the package: its mutants change every place that uses it.
type named struct{ twice, half *mutant }

// find returns the mutants of a package, numbered from 1.
func find(u *unit) []*mutant {
	w := &finder{unit: u, consts: map[types.Object]*named{}, nths: map[string]int{}}
	for _, f := range u.files {
		if f.generated {
			continue
		}
		w.file = f
		ast.Inspect(f.tree, func(n ast.Node) bool {
			if n == nil {
				w.stack = w.stack[:len(w.stack)-1]
				return true
			}
			if !w.visit(n) {
				return false
			}
			w.stack = append(w.stack, n)
			return true
		})
	}
	return w.mutants
}

func (w *finder) text(n ast.Node) string {
	return string(w.file.text[w.offset(n.Pos()):w.offset(n.End())])
}

func (w *finder) offset(p token.Pos) int { return w.fset.Position(p).Offset }

// add notes a mutant at a node; the edits get its number.
func (w *finder) add(n ast.Node, was, now string, edits func(id int) []edit) *mutant {
	m := &mutant{id: len(w.mutants) + 1, file: w.file, line: w.fset.Position(n.Pos()).Line, function: w.function(),
		was: oneLine(was), now: oneLine(now)}
	key := m.key()
	w.nths[key]++
	m.nth = w.nths[key]
	m.edits = edits(m.id)
	w.mutants = append(w.mutants, m)
	return m
}

// wrap notes a mutant that puts text around a node; %d is its number.
func (w *finder) wrap(n ast.Node, now, before, after string) {
	w.add(n, w.text(n), now, func(id int) []edit {
		return []edit{around(w.unit, n, strings.ReplaceAll(before, "%d", fmt.Sprint(id)), after)}
	})
}

// function returns the name of the enclosing function, with its receiver.
func (w *finder) function() string {
	for _, n := range w.stack {
		if f, ok := n.(*ast.FuncDecl); ok {
			if f.Recv == nil || len(f.Recv.List) == 0 {
				return f.Name.Name
			}
			receiver := strings.TrimLeft(w.text(f.Recv.List[0].Type), "*")
			return strings.Split(receiver, "[")[0] + "." + f.Name.Name
		}
	}
	return "package"
}

func (w *finder) parent() ast.Node {
	if len(w.stack) == 0 {
		return nil
	}
	return w.stack[len(w.stack)-1]
}

func (w *finder) typeOf(e ast.Expr) types.Type { return w.info.Types[e].Type }

func (w *finder) isConst(e ast.Expr) bool { return w.info.Types[e].Value != nil }

// visit notes the mutants of a node and says whether to look inside.
func (w *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok == token.VAR
	case *ast.ArrayType, *ast.StructType, *ast.InterfaceType, *ast.FuncType, *ast.MapType, *ast.FieldList,
		*ast.Comment, *ast.CommentGroup:
		return false
	case *ast.CaseClause:
		w.caseBody(n)
	case ast.Stmt:
		if !w.statement(n) {
			return false
		}
	case *ast.KeyValueExpr:
		w.keyed(n)
	case ast.Expr:
		if w.isConst(n) {
			w.constant(n)
			return false
		}
		w.expression(n)
	}
	return true
}

func (w *finder) expression(n ast.Expr) {
	if _, parens := n.(*ast.ParenExpr); !parens && w.isBool(n) {
		w.boolean(n)
	}
	switch n := n.(type) {
	case *ast.BinaryExpr:
		w.binary(n)
	case *ast.CallExpr:
		w.extreme(n)
	case *ast.SliceExpr:
		if n.Low != nil && !w.isConst(n.Low) {
			w.wrap(n.Low, w.text(n.Low)+" + 1", "mutant.Plus(%d, ", ")")
		}
		if n.High != nil && !w.isConst(n.High) {
			w.wrap(n.High, w.text(n.High)+" - 1", "mutant.Minus(%d, ", ")")
		}
	}
}

func (w *finder) isBool(e ast.Expr) bool {
	t := w.typeOf(e)
	return t == types.Typ[types.Bool] || t == types.Typ[types.UntypedBool]
}

// comparisons, and the operators that differ from them at the boundary only.
var comparisons = map[token.Token][2]string{
	token.LSS: {"Less", "<="}, token.LEQ: {"LessEq", "<"}, token.GTR: {"Greater", ">="}, token.GEQ: {"GreaterEq", ">"},
}

// sums, and what they become.
var sums = map[token.Token][2]string{
	token.ADD: {"Add", "-"}, token.SUB: {"Sub", "+"}, token.MUL: {"Mul", "/"}, token.QUO: {"Div", "*"},
}

func (w *finder) binary(n *ast.BinaryExpr) {
	change, found := comparisons[n.Op]
	if !found {
		if change, found = sums[n.Op]; !found {
			return
		}
	}
	basic, ok := w.typeOf(n.X).Underlying().(*types.Basic)
	if !ok || sums[n.Op][0] != "" && basic.Info()&types.IsNumeric == 0 {
		return
	}
	start := w.offset(n.OpPos)
	w.add(n, w.text(n), w.text(n.X)+" "+change[1]+" "+w.text(n.Y), func(id int) []edit {
		return []edit{
			around(w.unit, n, fmt.Sprintf("mutant.%s(%d, ", change[0], id), ")"),
			instead(start, start+len(n.Op.String()), ","),
		}
	})
}

// extreme changes a min to a max, and back.
func (w *finder) extreme(n *ast.CallExpr) {
	name, ok := n.Fun.(*ast.Ident)
	if !ok || len(n.Args) != 2 || w.info.Uses[name] == nil || w.info.Uses[name].Parent() != types.Universe {
		return
	}
	other := map[string][2]string{"min": {"max", "Min"}, "max": {"min", "Max2"}}[name.Name]
	if other[0] == "" {
		return
	}
	w.add(n, w.text(n), other[0]+strings.TrimPrefix(w.text(n), name.Name), func(id int) []edit {
		return []edit{
			instead(w.offset(name.Pos()), w.offset(name.End()), "mutant."+other[1]),
			at(w.offset(n.Lparen)+1, fmt.Sprintf("%d, ", id)),
		}
	})
}

// boolean removes each part of a condition: a part of an "and" becomes true, a part of an "or" becomes false. A whole
// "and" also becomes false, and a whole "or" true. Other changes are weaker than these.
func (w *finder) boolean(n ast.Expr) {
	above, in := w.logic(n)
	binary, _ := n.(*ast.BinaryExpr)
	both := binary != nil && binary.Op == token.LAND
	either := binary != nil && binary.Op == token.LOR
	if above == token.LAND && both || above == token.LOR && either {
		return // its parts are parts of what is above
	}
	t, f := false, false
	switch {
	case above == token.LAND:
		t = true
	case above == token.LOR:
		f = true
	case both:
		f = true
	case either:
		t = true
	case in == "if" || in == "case":
		t, f = true, true
	case in == "for":
		f = true
	case binary != nil &&
		slices.Contains([]token.Token{token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ}, binary.Op):
		t, f = true, true
	default:
		if not, ok := n.(*ast.UnaryExpr); !ok || not.Op != token.NOT {
			return
		}
		t, f = true, true
	}
	if in == "for" {
		t = false // it would not end
	}
	if t {
		w.wrap(n, "true", "(mutant.On(%d) || (", "))")
	}
	if f {
		w.wrap(n, "false", "(mutant.Live(%d) && (", "))")
	}
}

// logic returns the && or || that a condition is a part of. If it is the whole condition of an if, a for or a case, it
// returns that word.
func (w *finder) logic(n ast.Expr) (token.Token, string) {
	var child ast.Node = n
	for i := len(w.stack) - 1; i >= 0; i-- {
		switch p := w.stack[i].(type) {
		case *ast.ParenExpr:
			child = p
			continue
		case *ast.BinaryExpr:
			if p.Op == token.LAND || p.Op == token.LOR {
				return p.Op, ""
			}
		case *ast.IfStmt:
			if p.Cond == child {
				return 0, "if"
			}
		case *ast.ForStmt:
			if p.Cond == child {
				return 0, "for"
			}
		case *ast.CaseClause:
			if w.untagged(i) {
				return 0, "case"
			}
		}
		return 0, ""
	}
	return 0, ""
}

// untagged says whether the clause at this height belongs to a switch of conditions.
func (w *finder) untagged(height int) bool {
	s, ok := w.stack[height-2].(*ast.SwitchStmt)
	return ok && s.Tag == nil
}

// constant changes a constant number or boolean.
func (w *finder) constant(n ast.Expr) {
	value := w.info.Types[n]
	switch value.Value.Kind() {
	case constant.Bool:
		if w.isBool(n) {
			w.wrap(n, "!"+w.text(n), "mutant.Not(%d, ", ")")
		}
	case constant.Int, constant.Float:
		w.number(n, value.Type)
	}
}

func (w *finder) number(n ast.Expr, t types.Type) {
	if constant.Sign(w.info.Types[n].Value) == 0 && t.String() == "time.Duration" {
		return
	}
	if object := w.ours(n); object != nil && strings.HasSuffix(t.String(), "time.Duration") {
		w.shared(n, object)
		return
	}
	duration := t.String() == "time.Duration"
	basic, ok := t.(*types.Basic)
	if !duration && (!ok || basic.Info()&types.IsNumeric == 0 || basic.Info()&types.IsUntyped != 0) || w.index(n) {
		return
	}
	if sel, ok := n.(*ast.SelectorExpr); ok && !duration && w.imported(sel) {
		return
	}
	if duration {
		w.wrap(n, "2 * "+w.text(n), "mutant.Twice(%d, ", ")")
		w.wrap(n, w.text(n)+" / 2", "mutant.Half(%d, ", ")")
		return
	}
	if above, ok := w.parent().(*ast.BinaryExpr); ok &&
		(comparisons[above.Op][0] != "" || w.text(n) == "0" && sums[above.Op][0] == "") {
		return // the boundary is changed already; and what is compared with zero is tried as always true and never
	}
	w.wrap(n, w.text(n)+" + 1", "mutant.Plus["+basic.Name()+"](%d, ", ")")
}

// index reports whether a constant has to stay one, since it is a key of a literal.
func (w *finder) index(n ast.Expr) bool {
	kv, ok := w.parent().(*ast.KeyValueExpr)
	return ok && kv.Key == n
}

func (w *finder) imported(sel *ast.SelectorExpr) bool {
	name, ok := sel.X.(*ast.Ident)
	if !ok {
		return false
	}
	_, is := w.info.Uses[name].(*types.PkgName)
	return is
}

// ours returns the constant of this package that an expression names, or nil.
func (w *finder) ours(n ast.Expr) types.Object {
	name, ok := n.(*ast.Ident)
	if !ok {
		return nil
	}
	object, ok := w.info.Uses[name].(*types.Const)
	if !ok || object.Pkg() != w.pkg {
		return nil
	}
	return object
}

// shared changes a constant of the package wherever it is used.
func (w *finder) shared(n ast.Expr, object types.Object) {
	c := w.consts[object]
	none := func(int) []edit { return nil }
	if c == nil {
		c = &named{}
		stack := w.stack
		w.stack = nil
		c.twice = w.add(n, object.Name(), "2 * "+object.Name(), none)
		c.half = w.add(n, object.Name(), object.Name()+" / 2", none)
		w.stack = stack
		w.consts[object] = c
	}
	for _, m := range []*mutant{c.twice, c.half} {
		call := map[*mutant]string{c.twice: "Twice", c.half: "Half"}[m]
		e := around(w.unit, n, fmt.Sprintf("mutant.%s(%d, ", call, m.id), ")")
		e.file, e.rank = w.file, len(w.mutants)+1
		m.edits = append(m.edits, e)
	}
}

// keyed removes the value of a key of a literal.
func (w *finder) keyed(n *ast.KeyValueExpr) {
	value := w.info.Types[n.Value]
	if value.IsNil() || value.Type == nil {
		return
	}
	if _, ok := n.Value.(*ast.FuncLit); ok {
		return
	}
	literal, ok := w.parent().(*ast.CompositeLit)
	if !ok {
		return
	}
	switch w.typeOf(literal).Underlying().(type) {
	case *types.Struct, *types.Map, *types.Pointer:
	default:
		return
	}
	if _, bare := n.Value.(*ast.CompositeLit); bare && n.Value.(*ast.CompositeLit).Type == nil {
		return // its type is left out, so it cannot stand in a call
	}
	if value.Value != nil && value.Value.Kind() != constant.String ||
		value.Value != nil && constant.StringVal(value.Value) == "" {
		return
	}
	instance := ""
	if named, ok := value.Type.(*types.Named); ok && value.Value != nil {
		if _, literal := n.Value.(*ast.BasicLit); literal {
			if instance = w.spelled(named); instance == "" {
				return
			}
			instance = "[" + instance + "]"
		}
	}
	w.wrap2(n.Value, w.text(n), w.text(n.Key)+": (nothing)", "mutant.Zero"+instance+"(%d, ", ")")
}

func (w *finder) wrap2(n ast.Node, was, now, before, after string) {
	w.add(n, was, now, func(id int) []edit {
		return []edit{around(w.unit, n, strings.ReplaceAll(before, "%d", fmt.Sprint(id)), after)}
	})
}

// spelled returns the name of a type in this file, or "" if the file does not import its package.
func (w *finder) spelled(t *types.Named) string {
	if t.Obj().Pkg() == w.pkg {
		return t.Obj().Name()
	}
	for _, imported := range w.file.tree.Imports {
		if strings.Trim(imported.Path.Value, `"`) != t.Obj().Pkg().Path() {
			continue
		}
		name := t.Obj().Pkg().Name()
		if imported.Name != nil {
			name = imported.Name.Name
		}
		return name + "." + t.Obj().Name()
	}
	return ""
}
