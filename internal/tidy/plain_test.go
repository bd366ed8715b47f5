package tidy

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// stilted are phrases that make a sentence hard to read at first sight, each with what to say instead.
var stilted = []struct {
	phrase  *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`\bbut` + ` for\b`), "except, apart from, without"},
	{regexp.MustCompile(`\bwhat` + ` there is\b`), "the thing itself: the nodes, the current state"},
	{regexp.MustCompile(`\bit is` + ` to\b`), "it should, it must, or the imperative"},
	{regexp.MustCompile(`\bas it is` + ` in this one\b`), "this one's"},
}

// Comments and pages do without these phrases.
func TestProseIsPlain(t *testing.T) {
	t.Parallel()
	judge := func(where, text string) {
		for _, s := range stilted {
			if found := s.phrase.FindString(text); found != "" {
				t.Errorf("%s says %q; say %s", where, found, s.instead)
			}
		}
	}
	eachFile(t, "", func(name string, fset *token.FileSet, file *ast.File) {
		for _, group := range file.Comments {
			judge(name+" "+fset.Position(group.Pos()).String(), strings.Join(strings.Fields(group.Text()), " "))
		}
	})
	for _, name := range tracked(t, ".md") {
		judge(name, strings.Join(strings.Fields(read(t, name)), " "))
	}
}
