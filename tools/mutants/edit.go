package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"sort"
	"strings"
)

// mutant is one change of one place.
type mutant struct {
	id       int
	file     *source
	line     int
	function string
	was, now string
	nth      int // among equal ones of the function, from 1

	edits []edit
}

// key names a mutant so that it keeps its name when lines move.
func (m *mutant) key() string {
	text := fmt.Sprintf("%s: %s -> %s", m.function, m.was, m.now)
	if m.nth > 1 {
		text += fmt.Sprintf(" (%d)", m.nth)
	}
	return text
}

// edit puts text around a piece of source, or in its place.
type edit struct {
	file          *source // if it is not the mutant's, else nil
	rank          int     // edits are made in this order, outer ones first
	start, end    int
	before, after string
	instead       bool // before takes the place of the piece
}

// around wraps a node. Of two that wrap the same node, the first is outside.
func around(u *unit, n ast.Node, before, after string) edit {
	return edit{start: u.fset.Position(n.Pos()).Offset, end: u.fset.Position(n.End()).Offset, before: before,
		after: after}
}

// at puts text at an offset.
func at(offset int, text string) edit { return edit{start: offset, end: offset, before: text} }

// instead replaces a piece.
func instead(start, end int, text string) edit {
	return edit{start: start, end: end, before: text, instead: true}
}

// render applies the edits of the mutants to a file. Lines stay where they are.
func render(f *source, mutants []*mutant, header string) []byte {
	opens, closes, replaced := map[int]string{}, map[int]string{}, map[int]edit{}
	var edits []edit
	for _, m := range mutants {
		for _, e := range m.edits {
			if in := cmp.Or(e.file, m.file); in == f {
				e.rank = cmp.Or(e.rank, m.id)
				edits = append(edits, e)
			}
		}
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return a.rank - b.rank })
	for _, e := range edits {
		if e.instead {
			replaced[e.start] = e
			continue
		}
		opens[e.start] += e.before
		closes[e.end] = e.after + closes[e.end]
	}
	if len(opens)+len(replaced) > 0 {
		opens[int(f.tree.Name.End()-f.tree.FileStart)] += header
	}
	offsets := map[int]bool{}
	for _, keys := range [][]int{slices.Collect(maps.Keys(opens)), slices.Collect(maps.Keys(closes)),
		slices.Collect(maps.Keys(replaced))} {
		for _, k := range keys {
			offsets[k] = true
		}
	}
	order := slices.Collect(maps.Keys(offsets))
	sort.Ints(order)
	var out bytes.Buffer
	last := 0
	for _, offset := range order {
		out.Write(f.text[last:offset])
		last = offset
		out.WriteString(closes[offset] + opens[offset])
		if e, found := replaced[offset]; found {
			out.WriteString(e.before)
			last = e.end
		}
	}
	out.Write(f.text[last:])
	return out.Bytes()
}

// maxText is how much of a piece of source names a mutant.
const maxText = 100

// oneLine returns source text on one line, cut if it is long.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "..."
}
