package main

import "strings"

const (
	// width is how wide text is shown that comes as a paragraph in one line.
	width = 120
	// margin is where all lines of a step but the first begin.
	margin = "    "
)

// folded breaks lines between words.
func folded(text string) string { return foldedFrom(0, text) }

// foldedFrom does so for text that begins at a column.
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

// foldedStep breaks the lines of a step between words. Its head is before the first; the others begin at the margin.
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
