package main

import "strings"

const (
	// width is the width of paragraphs that come in one line.
	width = 120
	// margin precedes all lines of a step except the first.
	margin = "    "
)

// folded wraps lines between words.
func folded(text string) string { return foldedFrom(0, text) }

// foldedFrom wraps text that begins at a column.
func foldedFrom(column int, text string) string {
	var b strings.Builder
	for _, word := range strings.Fields(text) {
		switch {
		case column > 0 && column+1+len(word) > width:
			b.WriteString("\n")
			column = 0
		case b.Len() > 0:
			b.WriteString(" ")
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}

// foldedStep wraps the lines of a step between words. head precedes the first line, margin the others.
func foldedStep(head, text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		begin := margin
		if i == 0 {
			begin = head
		}
		if lines[i] = strings.ReplaceAll(foldedFrom(len(begin), line), "\n", "\n"+margin); line != "" {
			lines[i] = begin + lines[i]
		}
	}
	return strings.Join(lines, "\n")
}
