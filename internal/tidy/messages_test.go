package tidy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// messagesPage lists what the programs log.
const messagesPage = "docs/messages.md"

// message is a call that logs: its text, and the names of its fields. The text is "" where it is not written out.
type message struct {
	level, text, where string
	fields             []string
}

// messagesOf are the calls of a file that log something. Words of the libraries are not ours.
func messagesOf(name string, file *ast.File, files *token.FileSet) (all []message) {
	ast.Inspect(file, func(node ast.Node) bool {
		call, is := node.(*ast.CallExpr)
		if !is {
			return true
		}
		selector, is := call.Fun.(*ast.SelectorExpr)
		if !is || selector.Sel.Name != "Info" && selector.Sel.Name != "Error" || !logs(selector.X) {
			return true
		}
		m := message{level: strings.ToLower(selector.Sel.Name), where: name + ":" +
			strconv.Itoa(files.Position(call.Pos()).Line)}
		rest := call.Args
		if m.level == "error" {
			rest = rest[1:] // the error itself
		}
		if of, is := selector.X.(*ast.CallExpr); is && of.Fun.(*ast.SelectorExpr).Sel.Name == "V" {
			m.level = "debug"
		}
		if text, is := written(rest[0]); is {
			m.text = text
		}
		for i := 1; i < len(rest); i += 2 {
			if field, is := written(rest[i]); is {
				m.fields = append(m.fields, field)
			}
		}
		all = append(all, m)
		return true
	})
	return all
}

// logs reports whether an expression is a logger, by its name.
func logs(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name == "log"
	case *ast.SelectorExpr:
		return strings.EqualFold(x.Sel.Name, "log")
	case *ast.CallExpr: // log.V(1), klog.FromContext(ctx)
		selector, is := x.Fun.(*ast.SelectorExpr)
		if !is {
			return false
		}
		return selector.Sel.Name == "FromContext" || selector.Sel.Name == "V" && logs(selector.X)
	}
	return false
}

// written is a string that stands in the source, also in parts.
func written(x ast.Expr) (string, bool) {
	switch x := x.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(x.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		left, is := written(x.X)
		right, also := written(x.Y)
		return left + right, is && also
	}
	return "", false
}

// U-14: every message that a program logs is on the page with its level and its meaning, and the page has no other.
// What is put together while it runs stands on the page by its form.
func TestU14_MessagesAreListed(t *testing.T) {
	t.Parallel()
	type row struct{ level, fields string }
	listed := map[string]row{} // by message
	for _, cells := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([a-z]+) \\| ([^|]+) \\| [^|]+ \\|$").
		FindAllStringSubmatch(read(t, messagesPage), -1) {
		listed[cells[1]] = row{cells[2], cells[3]}
	}
	const fewest = 50
	seen, formed := map[string]bool{}, 0
	for _, name := range tracked(t, ".go") {
		ours := slices.ContainsFunc([]string{"internal/", "cmd/", "nodescheduling/"}, func(folder string) bool {
			return strings.HasPrefix(name, folder)
		})
		if !ours || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "internal/sim/") {
			continue
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, read(t, name), 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range messagesOf(name, file, files) {
			if m.text == "" {
				formed++
				continue
			}
			seen[m.text] = true
			on, is := listed[m.text]
			lacks := slices.ContainsFunc(m.fields, func(field string) bool {
				return !slices.Contains(strings.Split(on.fields, ", "), field)
			})
			if !is || on.level != m.level || lacks {
				t.Errorf("%s logs `%s` at %s with the fields %s; %s has %+v", m.where, m.text, m.level,
					strings.Join(m.fields, ", "), messagesPage, on)
			}
		}
	}
	for text := range listed {
		if !seen[text] {
			t.Errorf("%s has the message %q, which nothing logs", messagesPage, text)
		}
	}
	if len(seen) < fewest {
		t.Errorf("only %d messages were found in the sources, want at least %d", len(seen), fewest)
	}
	const forms = 3
	if formed != forms {
		t.Errorf("%d messages are put together while a program runs; %s has the forms of %d", formed, messagesPage,
			forms)
	}
}
