package tidy

import (
	"go/scanner"
	"go/token"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	// maxColumns is how wide a line may be, with tabs of tabColumns.
	maxColumns = 119
	tabColumns = 4
	// maxString is how wide a line may be that a string makes wide.
	maxString = 140
	// closing is how many columns may follow such a string: a comma, an operator, or what closes calls.
	closing = 6
)

// columns returns how wide a line is.
func columns(line string) int {
	return utf8.RuneCountInString(line) + strings.Count(line, "\t")*(tabColumns-1)
}

// marker is a comment that a tool reads. It has to be one line.
var marker = regexp.MustCompile(`^\s*(//[a-z]+:|// \+|//nolint)`)

// output begins what an example prints.
var output = regexp.MustCompile(`^\t// (Output|Unordered output):`)

// wideStrings returns the lines of a Go file that some string literal makes wide: raw strings, and others that end at
// the last column or beyond, with nothing after them but what closes a call. Nobody who looks for a message finds one
// that is in two pieces.
func wideStrings(source string) map[int]bool {
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(source))
	var s scanner.Scanner
	s.Init(file, []byte(source), nil, 0)
	lines, wide := strings.Split(source, "\n"), map[int]bool{}
	for {
		pos, kind, literal := s.Scan()
		if kind == token.EOF {
			return wide
		}
		if kind != token.STRING {
			continue
		}
		at := fset.Position(pos)
		for i := range strings.Count(literal, "\n") + 1 {
			line := lines[at.Line-1]
			ends := strings.HasPrefix(literal, "`") || columns(line)-columns(line[:at.Column-1]+literal) <= closing
			wide[at.Line+i] = wide[at.Line+i] || strings.Contains(literal, "\n") || ends && columns(line) <= maxString
		}
	}
}

// Lines of code and comments end before column 120, as far as they can be broken.
func TestLinesOfCodeAreNarrow(t *testing.T) {
	t.Parallel()
	for _, name := range tracked(t, ".go") {
		if generated(name) {
			continue
		}
		source := read(t, name)
		var wide map[int]bool
		printed := false // what an example prints is compared line by line
		for i, line := range strings.Split(source, "\n") {
			if printed = output.MatchString(line) || printed && strings.HasPrefix(line, "\t//"); printed ||
				columns(line) <= maxColumns || marker.MatchString(line) {
				continue
			}
			if wide == nil {
				wide = wideStrings(source)
			}
			if !wide[i+1] {
				t.Errorf("%s:%d has %d columns; at most %d", name, i+1, columns(line), maxColumns)
			}
		}
	}
}

var (
	fence = regexp.MustCompile("^ *(```|~~~)")
	// unbreakable is a row of a table, a picture, an HTML tag, a heading, or the target of a link.
	unbreakable = regexp.MustCompile(`^ *(\||!\[|<|#|\[[^]]+\]: )`)
	// onePiece is a word, or code.
	onePiece = regexp.MustCompile("^ *([-*] )?(\\S+|`[^`]+`\\S?)$")
)

// Lines of pages end before column 120, except what cannot be broken and what is quoted.
func TestLinesOfPagesAreNarrow(t *testing.T) {
	t.Parallel()
	for _, name := range tracked(t, ".md") {
		quoted := false
		for i, line := range strings.Split(read(t, name), "\n") {
			if fence.MatchString(line) {
				quoted = !quoted
			}
			n := columns(line)
			if n > maxColumns && !quoted && !unbreakable.MatchString(line) && !onePiece.MatchString(line) {
				t.Errorf("%s:%d has %d columns; at most %d", name, i+1, n, maxColumns)
			}
		}
	}
}
