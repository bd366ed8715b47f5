package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// types are the structs of a package, by name.
type types map[string]structure

type structure struct {
	fields []field
	rules  []rule
}

type field struct {
	name string // in JSON; "" for what is embedded
	of   string // the name of the type, "" for one of another package
	list bool
	gate string
}

type rule struct{ gate, rule, message string }

const (
	fieldMarker = "+openshift:enable:FeatureGate="
	ruleMarker  = "+openshift:validation:FeatureGateAwareXValidation:"
)

var ruleForm = regexp.MustCompile(`^featureGate=([A-Za-z0-9]+),rule=("(?:[^"\\]|\\.)*"),message=("(?:[^"\\]|\\.)*")$`)

// readTypes reads the types of a folder.
func readTypes(folder string) (types, error) {
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("%s has no file in Go (%v)", folder, err)
	}
	found := types{}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if err := found.add(name, content); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// add reads the types of a file.
func (t types) add(name string, content []byte) error {
	file, err := parser.ParseFile(token.NewFileSet(), name, content, parser.ParseComments)
	if err != nil {
		return err
	}
	for _, declaration := range file.Decls {
		general, is := declaration.(*ast.GenDecl)
		if !is {
			continue
		}
		for _, spec := range general.Specs {
			named, is := spec.(*ast.TypeSpec)
			if !is {
				continue
			}
			body, is := named.Type.(*ast.StructType)
			if !is {
				continue
			}
			doc := named.Doc
			if doc == nil {
				doc = general.Doc
			}
			read := structure{}
			if read.rules, err = rules(doc); err != nil {
				return fmt.Errorf("%s: type %s: %w", name, named.Name.Name, err)
			}
			for _, f := range body.Fields.List {
				if f, ours := readField(f); ours {
					read.fields = append(read.fields, f)
				}
			}
			t[named.Name.Name] = read
		}
	}
	return nil
}

// rules returns the rules in the markers above a type.
func rules(doc *ast.CommentGroup) ([]rule, error) {
	var found []rule
	for _, text := range markers(doc, ruleMarker) {
		parts := ruleForm.FindStringSubmatch(text)
		if parts == nil {
			return nil, fmt.Errorf("marker %s%s: want featureGate=GATE,rule=\"...\",message=\"...\"", ruleMarker, text)
		}
		expression, err := strconv.Unquote(parts[2])
		if err != nil {
			return nil, fmt.Errorf("marker %s: rule %s: %w", ruleMarker, parts[2], err)
		}
		message, err := strconv.Unquote(parts[3])
		if err != nil {
			return nil, fmt.Errorf("marker %s: message %s: %w", ruleMarker, parts[3], err)
		}
		found = append(found, rule{gate: parts[1], rule: expression, message: message})
	}
	return found, nil
}

// readField reads a field. It returns false if the type is of another package: nothing below it has a gate, and
// metadata is not in a definition.
func readField(f *ast.Field) (field, bool) {
	read := field{}
	if f.Tag != nil {
		if tag, err := strconv.Unquote(f.Tag.Value); err == nil {
			read.name, _, _ = strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		}
	}
	if gates := markers(f.Doc, fieldMarker); len(gates) > 0 {
		read.gate = gates[0]
	}
	expression := f.Type
	if pointer, is := expression.(*ast.StarExpr); is {
		expression = pointer.X
	}
	if list, is := expression.(*ast.ArrayType); is {
		expression, read.list = list.Elt, true
	}
	named, ours := expression.(*ast.Ident)
	if ours {
		read.of = named.Name
	}
	return read, ours
}

// markers returns the texts behind a marker in a comment.
func markers(doc *ast.CommentGroup, marker string) []string {
	if doc == nil {
		return nil
	}
	var found []string
	for _, line := range doc.List {
		if text, is := strings.CutPrefix(strings.TrimSpace(strings.TrimPrefix(line.Text, "//")), marker); is {
			found = append(found, strings.TrimSpace(text))
		}
	}
	return found
}
