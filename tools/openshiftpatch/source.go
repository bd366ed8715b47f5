package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
)

// source is a file of Go and what is to be inserted into it.
type source struct {
	name    string
	content []byte
	set     *token.FileSet
	file    *ast.File
	inserts []insert
	parts   []part
}

// insert is text that comes in front of an offset.
type insert struct {
	at   int
	text string
}

func parse(name string, content []byte) (*source, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &source{name: name, content: content, set: set, file: file}, nil
}

const movesOthers = "%s: other lines would have to be formatted anew, and only lines of the plugin's own are written"

// missing names a place that the file does not have.
func (s *source) missing(place, want string) error { return missing(s.name, place, want) }

func missing(file, place, want string) error {
	return fmt.Errorf("%s: %s is not as expected: want %s", file, place, want)
}

// there notes a part that the file has already.
func (s *source) there(what string) { s.parts = append(s.parts, part{what: what}) }

// add notes a part and the text that makes it.
func (s *source) add(what string, at int, text string) {
	s.parts = append(s.parts, part{what, true})
	s.inserts = append(s.inserts, insert{at, text})
}

// apply returns the content with all additions. If the file was formatted before, it must be formatted afterwards, so
// that the formatter of the checkout changes no other line.
func (s *source) apply() ([]byte, []part, error) {
	slices.SortStableFunc(s.inserts, func(a, b insert) int { return a.at - b.at })
	var out bytes.Buffer
	from := 0
	for _, i := range s.inserts {
		out.Write(s.content[from:i.at])
		out.WriteString(i.text)
		from = i.at
	}
	out.Write(s.content[from:])
	formatted, err := format.Source(out.Bytes())
	if err != nil {
		return nil, nil, fmt.Errorf("%s: what would be written is no Go: %w", s.name, err)
	}
	before, err := format.Source(s.content)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", s.name, err)
	}
	if bytes.Equal(before, s.content) && !bytes.Equal(formatted, out.Bytes()) {
		return nil, nil, fmt.Errorf(movesOthers, s.name)
	}
	return out.Bytes(), s.parts, nil
}

func (s *source) offset(pos token.Pos) int { return s.set.Position(pos).Offset }
func (s *source) line(pos token.Pos) int   { return s.set.Position(pos).Line }

// lineOf returns the offset at which the line of a position begins.
func (s *source) lineOf(pos token.Pos) int {
	return bytes.LastIndexByte(s.content[:s.offset(pos)], '\n') + 1
}

// lineAfter returns the offset at which the line after a position begins.
func (s *source) lineAfter(pos token.Pos) int {
	at := s.offset(pos)
	if end := bytes.IndexByte(s.content[at:], '\n'); end >= 0 {
		return at + end + 1
	}
	return len(s.content)
}

// text returns the source text of a node.
func (s *source) text(n ast.Node) string {
	return string(s.content[s.offset(n.Pos()):s.offset(n.End())])
}

// function returns the function of that name.
func (s *source) function(name string) (*ast.FuncDecl, error) {
	for _, d := range s.file.Decls {
		if f, is := d.(*ast.FuncDecl); is && f.Recv == nil && f.Name.Name == name && f.Body != nil {
			if s.line(f.Body.Lbrace) == s.line(f.Body.Rbrace) {
				return nil, s.missing("function "+name, "a body on lines of its own")
			}
			return f, nil
		}
	}
	return nil, s.missing("function "+name, "a function of that name")
}

// value reports whether the file declares a name, and returns the value of a variable or constant, or nil.
func (s *source) value(name string) (declared bool, value ast.Expr) {
	for _, d := range s.file.Decls {
		if f, is := d.(*ast.FuncDecl); is && f.Recv == nil && f.Name.Name == name {
			return true, nil
		}
		g, is := d.(*ast.GenDecl)
		if !is {
			continue
		}
		for _, spec := range g.Specs {
			if t, is := spec.(*ast.TypeSpec); is && t.Name.Name == name {
				return true, nil
			}
			v, is := spec.(*ast.ValueSpec)
			if !is {
				continue
			}
			if i := slices.IndexFunc(v.Names, func(n *ast.Ident) bool { return n.Name == name }); i >= 0 {
				if len(v.Values) == len(v.Names) {
					return true, v.Values[i]
				}
				return true, nil
			}
		}
	}
	return false, nil
}

// literal returns the value of a string literal, or "" for anything else.
func literal(e ast.Expr) string {
	l, is := e.(*ast.BasicLit)
	if !is || l.Kind != token.STRING {
		return ""
	}
	value, err := strconv.Unquote(l.Value)
	if err != nil {
		return ""
	}
	return value
}

// selects reports whether an expression is pkg.name.
func selects(e ast.Expr, pkg, name string) bool {
	s, is := e.(*ast.SelectorExpr)
	if !is || s.Sel.Name != name {
		return false
	}
	x, is := s.X.(*ast.Ident)
	return is && x.Name == pkg
}
