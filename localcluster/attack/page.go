package attack

import (
	"regexp"
	"strings"
)

// Attempt is a row of a page's table.
type Attempt struct {
	Section string   // the heading above the table
	Text    string   // what is tried
	Outcome string   // what becomes of it, as the page says
	Tests   []string // names of the tests that try it; none for outcomes by design
}

var (
	testName = regexp.MustCompile("`(Test[A-Za-z0-9_]+)`")
	heading  = "attempt"
)

// Attempts reads the tables of a page whose first column is "attempt", in the order of the page.
func Attempts(page string) []Attempt {
	var list []Attempt
	section, within := "", false
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if title, found := strings.CutPrefix(line, "## "); found {
			section = title
		}
		cells := cellsOf(line)
		if len(cells) != 3 {
			within = false
			continue
		}
		switch {
		case cells[0] == heading:
			within = true
		case within && strings.Trim(cells[0], "-: ") != "":
			attempt := Attempt{Section: section, Text: cells[0], Outcome: cells[1]}
			for _, found := range testName.FindAllStringSubmatch(cells[2], -1) {
				attempt.Tests = append(attempt.Tests, found[1])
			}
			list = append(list, attempt)
		}
	}
	return list
}

// cellsOf returns the cells of a table row; nil for any other line. An escaped bar is part of its cell.
func cellsOf(line string) []string {
	if !strings.HasPrefix(line, "|") || !strings.HasSuffix(line, "|") || len(line) < 2 {
		return nil
	}
	const bar = "\x00"
	cells := strings.Split(strings.ReplaceAll(line[1:len(line)-1], `\|`, bar), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(strings.ReplaceAll(cells[i], bar, "|"))
	}
	return cells
}
