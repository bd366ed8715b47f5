package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
)

// The places in registerFile.
const (
	registerFunction = "RegisterOpenshiftKubeAdmissionPlugins"
	beforeMutating   = "openshiftAdmissionPluginsForKubeBeforeMutating"
	// importName is the name of the plugin's package in that file. Its own name, plugin, would say nothing there.
	importName = "nodeschedulingpolicy"
)

// patchRegister imports the plugin, registers it and puts it into the list.
func patchRegister(name string, content []byte) ([]byte, []part, error) {
	s, err := parse(name, content)
	if err != nil {
		return nil, nil, err
	}
	imported, err := s.importPlugin()
	if err != nil {
		return nil, nil, err
	}
	if err := s.callRegister(imported); err != nil {
		return nil, nil, err
	}
	if err := s.list(imported); err != nil {
		return nil, nil, err
	}
	return s.apply()
}

// importPlugin returns the name under which the file knows the plugin's package.
func (s *source) importPlugin() (string, error) {
	const what = "import of " + pluginPackage
	for _, spec := range s.file.Imports {
		known := path.Base(literal(spec.Path))
		if spec.Name != nil {
			known = spec.Name.Name
		}
		switch {
		case literal(spec.Path) == pluginPackage && (known == "_" || known == "."):
			return "", s.missing(what, "a name, not "+known)
		case literal(spec.Path) == pluginPackage:
			s.there(what)
			return known, nil
		case known == importName:
			return "", s.missing(what, "the name "+importName+" free, and it is that of "+literal(spec.Path))
		}
	}
	if declared, _ := s.value(importName); declared {
		return "", s.missing(what, "the name "+importName+" free, and the file declares it")
	}
	var last *ast.GenDecl
	for _, d := range s.file.Decls {
		if g, is := d.(*ast.GenDecl); is && g.Tok == token.IMPORT && len(g.Specs) > 0 {
			last = g
		}
	}
	if last == nil {
		return "", s.missing(what, "a declaration of imports")
	}
	spec := fmt.Sprintf("%s %q\n", importName, pluginPackage)
	if !last.Lparen.IsValid() {
		s.add(what, s.lineAfter(last.End()), "import "+spec)
		return importName, nil
	}
	group := s.lastGroup(last.Specs)
	if commented(group) {
		s.add(what, s.lineAfter(last.Specs[len(last.Specs)-1].End()), "\n\t"+spec)
	} else {
		s.add(what, s.placeAmong(group), "\t"+spec)
	}
	return importName, nil
}

// lastGroup returns the last imports without an empty line in between.
func (s *source) lastGroup(specs []ast.Spec) []ast.Spec {
	first := len(specs) - 1
	for first > 0 && s.line(specs[first].Pos()) <= 1+s.line(specs[first-1].End()) {
		first--
	}
	return specs[first:]
}

// commented reports whether imports have comments behind them: a new line could move their column.
func commented(specs []ast.Spec) bool {
	for _, spec := range specs {
		if spec.(*ast.ImportSpec).Comment != nil {
			return true
		}
	}
	return false
}

// placeAmong returns the offset of the import in a group: gofmt orders a group by path.
func (s *source) placeAmong(specs []ast.Spec) int {
	for _, spec := range specs {
		if i := spec.(*ast.ImportSpec); literal(i.Path) > pluginPackage {
			at := i.Pos()
			if i.Doc != nil {
				at = i.Doc.Pos()
			}
			return s.lineOf(at)
		}
	}
	return s.lineAfter(specs[len(specs)-1].End())
}

// callRegister adds a call of Register after the function's last call that passes its parameter on.
func (s *source) callRegister(imported string) error {
	const what = "call of Register in " + registerFunction
	f, err := s.function(registerFunction)
	if err != nil {
		return err
	}
	there := false
	ast.Inspect(f.Body, func(n ast.Node) bool {
		call, is := n.(*ast.CallExpr)
		there = there || is && selects(call.Fun, imported, "Register")
		return true
	})
	if there {
		s.there(what)
		return nil
	}
	params := f.Type.Params.List
	if len(params) != 1 || len(params[0].Names) != 1 || params[0].Names[0].Name == "_" {
		return s.missing("function "+registerFunction, "one parameter with a name: the plugins")
	}
	plugins := params[0].Names[0].Name
	at := s.lineAfter(f.Body.Lbrace)
	for _, statement := range f.Body.List {
		if passes(statement, plugins) {
			at = s.lineAfter(statement.End())
		}
	}
	s.add(what, at, fmt.Sprintf("\t%s.Register(%s)\n", imported, plugins))
	return nil
}

// passes reports whether a statement is a call with that argument.
func passes(statement ast.Stmt, name string) bool {
	e, is := statement.(*ast.ExprStmt)
	if !is {
		return false
	}
	call, is := e.X.(*ast.CallExpr)
	if !is {
		return false
	}
	for _, a := range call.Args {
		if i, is := a.(*ast.Ident); is && i.Name == name {
			return true
		}
	}
	return false
}

// list adds the plugin's name at the end of the list: the plugin only validates, so its place does not matter.
func (s *source) list(imported string) error {
	const what = "element of " + beforeMutating
	_, value := s.value(beforeMutating)
	list, is := value.(*ast.CompositeLit)
	if !is || list.Type == nil || s.text(list.Type) != "[]string" {
		return s.missing("variable "+beforeMutating, "a list of strings that is written out")
	}
	end := list.Lbrace
	for _, e := range list.Elts {
		if selects(e, imported, "PluginName") || literal(e) == pluginName {
			s.there(what)
			return nil
		}
		end = e.End()
	}
	element := imported + ".PluginName"
	switch {
	case s.line(list.Rbrace) > s.line(end):
		at := s.lineOf(list.Rbrace)
		indent := string(s.content[at : at+blank(s.content[at:])])
		s.add(what, at, indent+"\t"+element+",\n")
	case len(list.Elts) > 0:
		s.add(what, s.offset(end), ", "+element)
	default:
		s.add(what, s.offset(list.Rbrace), element)
	}
	return nil
}

// blank returns the number of spaces and tabs that a text begins with.
func blank(text []byte) int {
	for i, c := range text {
		if c != ' ' && c != '\t' {
			return i
		}
	}
	return len(text)
}
