package pages

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/yuin/goldmark/ast"
	extension "github.com/yuin/goldmark/extension/ast"
)

// mostWords is how long a sentence may be, in words. A list of names in a sentence may need many; a thought does not.
const mostWords = 45

// worn returns phrases that make a page read like a translation, each with what to write instead. Only prose is
// searched, not code.
func worn() map[*regexp.Regexp]string {
	list := map[*regexp.Regexp]string{}
	for phrase, better := range map[string]string{
		`but for (a|an|the|those|what|one|its)\b`: "except",
		`(is|are|was|were) to be\b`:               "must be, should be, will be; or the verb alone",
		`it is to\b`:                              "it must, it should",
		`whoever`:                                 "anyone who, no matter who, or the person or program itself",
		`what there is\b`:                         "name the things",
		`that there (is|are)\b`:                   "leave it out: all pods, not the pods that there are",
		`of which there (is|are)\b`:               "a sentence of its own",
		`save for\b`:                              "except",
		`in order to\b`:                           "to",
		`(hence|thereby|whereby|lest)\b`:          "so, by this, by which, so that not",
	} {
		list[regexp.MustCompile(`(?i)\b`+phrase)] = better
	}
	return list
}

// U-12: pages are written in short sentences and plain words (AGENTS.md).
func TestU12_PagesArePlainEnglish(t *testing.T) {
	worn := worn()
	for _, p := range pages(t) {
		for _, problem := range heavy(p, worn) {
			t.Error(problem)
		}
	}
}

// heavy returns what is hard to read in a page.
func heavy(p *page, worn map[*regexp.Regexp]string) (wrong []string) {
	p.walk(func(n ast.Node) {
		switch n.(type) {
		case *ast.Paragraph, *ast.TextBlock, *ast.Heading, *extension.TableCell:
		default:
			return
		}
		prose := proseOf(n, p.source)
		for phrase, better := range worn {
			if found := phrase.FindString(prose); found != "" {
				wrong = append(wrong, fmt.Sprintf("%s: %q in %q; better: %s", p.name, found, around(prose, found),
					better))
			}
		}
		for _, sentence := range sentences(prose) {
			if words := len(strings.Fields(sentence)); words > mostWords {
				wrong = append(wrong, fmt.Sprintf("%s: a sentence of %d words, want at most %d: %s", p.name, words,
					mostWords, sentence))
			}
		}
	})
	return wrong
}

// proseOf returns the text of a node in one line. Code appears in it as one word.
func proseOf(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.CodeSpan:
			b.WriteString("code")
			return ast.WalkSkipChildren, nil
		case *ast.Text:
			b.Write(n.Segment.Value(source))
			if n.SoftLineBreak() || n.HardLineBreak() {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// ends matches what ends a sentence. A colon and a semicolon do: a reader may rest there.
var ends = regexp.MustCompile(`[.!?:;]['")]*\s+`)

func sentences(prose string) []string { return ends.Split(prose, -1) }

// around returns a found phrase with some words beside it.
func around(prose, found string) string {
	at := strings.Index(prose, found)
	return prose[max(0, at-40):min(len(prose), at+len(found)+40)]
}

// The check of pages finds heavy prose, and only that.
func TestHeavyProseIsFound(t *testing.T) {
	worn := worn()
	long := strings.Repeat("word ", mostWords+1)
	for text, want := range map[string]int{
		"Nodes go, but for those of static pools.":                1,
		"What is to be applied, whoever does it.":                 2,
		"Look at the `nodes that there are` of `whoever`.":        0,
		"All pods but one wait. The rest, but for two hours, ran": 0,
		long + ".": 1,
		strings.Repeat("word ", mostWords) + ". " + long[:20]:  0,
		"| a | b |\n|---|---|\n| " + long + " | save for it |": 2,
		"```\nwhoever " + long + "\n```":                       0,
	} {
		if got := heavy(parse("page.md", []byte(text)), worn); len(got) != want {
			t.Errorf("%.60q: %d problems, want %d: %q", text, len(got), want, got)
		}
	}
}
