package pages

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

const root = "../.."

// page is a parsed page.
type page struct {
	name    string // from the root, with slashes
	source  []byte
	tree    ast.Node
	anchors map[string]bool
}

// tracked lists the files of the repository with an ending, from the root.
func tracked(t *testing.T, ending string) []string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", "ls-files", "--cached", "--others", "--exclude-standard",
		"*"+ending)
	command.Dir = root
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range strings.Lines(string(out)) {
		name = strings.TrimSpace(name)
		if _, err := os.Stat(filepath.Join(root, name)); err == nil { // one may be deleted and not committed yet
			names = append(names, name)
		}
	}
	return names
}

func pages(t *testing.T) map[string]*page {
	t.Helper()
	all := map[string]*page{}
	for _, name := range tracked(t, ".md") {
		source, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		all[name] = parse(name, source)
	}
	if len(all) < 40 {
		t.Fatalf("%d pages were found", len(all))
	}
	return all
}

func parse(name string, source []byte) *page {
	p := &page{name: name, source: source, anchors: map[string]bool{}}
	p.tree = goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source))
	seen := map[string]int{}
	p.walk(func(n ast.Node) {
		if heading, is := n.(*ast.Heading); is {
			slug := slugOf(textOf(heading, source))
			if count := seen[slug]; count > 0 {
				p.anchors[fmt.Sprintf("%s-%d", slug, count)] = true
			}
			seen[slug]++
			p.anchors[slug] = true
		}
	})
	return p
}

func (p *page) walk(visit func(ast.Node)) {
	_ = ast.Walk(p.tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			visit(n)
		}
		return ast.WalkContinue, nil
	})
}

// textOf returns what a reader sees of a node, in one line.
func textOf(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, is := n.(*ast.Text); is && entering {
			b.Write(t.Segment.Value(source))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// slugOf returns the anchor that a repository's host makes from a heading.
func slugOf(heading string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(heading) {
		switch {
		case r == ' ':
			b.WriteByte('-')
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			b.WriteRune(r)
		}
	}
	return b.String()
}

// wrongLinks returns the links of a page that lead nowhere within the repository. Other hosts are not asked.
func wrongLinks(p *page, all map[string]*page, exists func(string) bool) (wrong []string) {
	p.walk(func(n ast.Node) {
		var to string
		switch n := n.(type) {
		case *ast.Link:
			to = string(n.Destination)
		case *ast.Image:
			to = string(n.Destination)
		default:
			return
		}
		parsed, err := url.Parse(to)
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("%s: %q is no link: %v", p.name, to, err))
			return
		}
		if parsed.Scheme != "" {
			return
		}
		target := p.name
		if parsed.Path != "" {
			target = path.Join(path.Dir(p.name), parsed.Path)
		}
		switch other := all[target]; {
		case !exists(target):
			wrong = append(wrong, fmt.Sprintf("%s: the link %s leads to a file that is not there", p.name, to))
		case parsed.Fragment != "" && other != nil && !other.anchors[parsed.Fragment]:
			wrong = append(wrong, fmt.Sprintf("%s: the link %s leads to a heading that is not there", p.name, to))
		}
	})
	return wrong
}

// delimiter is the second line of a table.
var delimiter = regexp.MustCompile(`^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$`)

// brokenRows returns the rows of a page's tables with another number of cells than the head: a host drops surplus
// cells, and shows the others in the wrong columns. A bar splits cells in backquotes too, unless a backslash stands
// before it.
func brokenRows(p *page) (wrong []string) {
	lines := strings.Split(string(p.source), "\n")
	fenced, cells := false, 0
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		switch {
		case fenced || !strings.Contains(line, "|"):
			cells = 0
		case cells == 0:
			if i+1 < len(lines) && strings.Contains(lines[i+1], "-") && strings.Contains(lines[i+1], "|") &&
				delimiter.MatchString(lines[i+1]) {
				cells = cellsOf(line)
			} else if strings.HasPrefix(line, "|") {
				wrong = append(wrong,
					fmt.Sprintf("%s:%d: a row of no table: no head and no line of dashes come before it", p.name, i+1))
			}
		case cellsOf(line) != cells:
			wrong = append(wrong, fmt.Sprintf("%s:%d: the row has %d cells, the head of its table %d", p.name, i+1,
				cellsOf(line), cells))
		}
	}
	return wrong
}

func cellsOf(line string) int {
	line = strings.TrimSpace(line)
	line = strings.ReplaceAll(line, `\|`, "")
	line = strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|")
	return strings.Count(line, "|") + 1
}

func exists(name string) bool {
	_, err := os.Stat(filepath.Join(root, name))
	return err == nil
}

// U-12: every link and every anchor of every page leads somewhere.
func TestU12_LinksLeadSomewhere(t *testing.T) {
	all := pages(t)
	for _, p := range all {
		for _, problem := range wrongLinks(p, all, exists) {
			t.Error(problem)
		}
	}
}

// U-12: no table of a page is broken.
func TestU12_TablesAreWhole(t *testing.T) {
	for _, p := range pages(t) {
		for _, problem := range brokenRows(p) {
			t.Error(problem)
		}
	}
}

var (
	named    = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)*)(?:/[^`]*)?`")
	declared = regexp.MustCompile(`(?m)^func (Test[A-Z][A-Za-z0-9_]*)\(`)
)

// U-12: the tests that pages name exist, under that name.
func TestU12_TestsThatPagesNameExist(t *testing.T) {
	known := map[string]bool{}
	for _, name := range tracked(t, "_test.go") {
		source, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range declared.FindAllSubmatch(source, -1) {
			known[string(match[1])] = true
		}
	}
	if len(known) < 1000 {
		t.Fatalf("%d tests were found", len(known))
	}
	for _, p := range pages(t) {
		for _, match := range named.FindAllSubmatch(p.source, -1) {
			if !known[string(match[1])] {
				t.Errorf("%s names %s, which does not exist", p.name, match[1])
			}
		}
	}
}

// TestWhatIsWrongIsFound: each kind of mistake is found, and what is right is not.
func TestWhatIsWrongIsFound(t *testing.T) {
	t.Parallel()
	const source = "# One `page`, and more\n\n[a](other.md) [b](other.md#there) [c](#one-page-and-more) [d](https://example.com/x)\n" +
		"[e](gone.md) [f](other.md#gone) [g](#gone) ![h](gone.svg)\n\n" +
		"| a | b |\n|---|---|\n| 1 | 2 |\n| `x\\|y` | 2 |\n| `x|y` | 2 |\n| 1 |\n\n```\n| no | table | here |\n|---|\n```\n"
	all := map[string]*page{"docs/other.md": parse("docs/other.md", []byte("## There\n"))}
	p := parse("docs/page.md", []byte(source))
	all[p.name] = p
	got := append(wrongLinks(p, all, func(name string) bool { return all[name] != nil }), brokenRows(p)...)
	want := []string{"link gone.md leads to a file", "link other.md#gone leads to a heading",
		"link #gone leads to a heading",
		"link gone.svg leads to a file", "docs/page.md:10: the row has 3 cells, the head of its table 2",
		"docs/page.md:11: the row has 1 cells"}
	if len(got) != len(want) {
		t.Fatalf("found %q", got)
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("found %q, want %q", got[i], want[i])
		}
	}
	if _, err := fs.Stat(os.DirFS(root), "README.md"); err != nil {
		t.Error(err)
	}
}
