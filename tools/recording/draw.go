package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"strings"
)

// The terminal that is drawn.
const (
	columns = 120
	rows    = 30
	cellX   = 8 // pixels
	cellY   = 18
	edge    = 14
	atRest  = 6.0 // seconds for which the end stands
)

// line is one that was printed, and when: in seconds from the start.
type line struct {
	at   float64
	text string
}

// castOf returns asciicast v2: a header, then an event for each line.
func castOf(lines []line) ([]byte, error) {
	var b bytes.Buffer
	to := json.NewEncoder(&b)
	to.SetEscapeHTML(false)
	if err := to.Encode(map[string]any{"version": 2, "width": columns, "height": rows,
		"title": "make demo"}); err != nil {
		return nil, err
	}
	for _, one := range lines {
		at := json.Number(fmt.Sprintf("%.2f", one.at))
		if err := to.Encode([]any{at, "o", one.text + "\r\n"}); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

func parseCast(cast []byte) (lines []line, err error) {
	from := json.NewDecoder(bytes.NewReader(cast))
	var header struct{ Version int }
	if err := from.Decode(&header); err != nil || header.Version != 2 {
		return nil, fmt.Errorf("no asciicast of version 2: %+v, %w", header, err)
	}
	for from.More() {
		var kind, text string
		var one line
		if err := from.Decode(&[]any{&one.at, &kind, &text}); err != nil {
			return nil, fmt.Errorf("event %d: %w", len(lines)+1, err)
		}
		one.text = strings.TrimSuffix(text, "\r\n")
		lines = append(lines, one)
	}
	return lines, nil
}

// textOf returns what was printed.
func textOf(lines []line) []byte {
	var b bytes.Buffer
	for _, one := range lines {
		b.WriteString(one.text + "\n")
	}
	return b.Bytes()
}

// cut cuts lines that are wider than the terminal: a wrapped table cannot be read. The text file has whole lines.
func cut(lines []line) (made []line) {
	for _, one := range lines {
		if whole := []rune(one.text); len(whole) > columns {
			one.text = string(whole[:columns-1]) + "…"
		}
		made = append(made, one)
	}
	return made
}

// svgOf returns an animated picture of the terminal. All lines are below each other, and move up behind a window at
// the recorded times. Readers who prefer no motion see the first screen.
func svgOf(lines []line) []byte {
	lines = cut(lines)
	w, h := columns*cellX+2*edge, rows*cellY+2*edge
	whole := lines[len(lines)-1].at + atRest
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" `+
		`aria-labelledby="title desc">`+"\n<title id=\"title\">make demo, recorded</title>\n"+
		"<desc id=\"desc\">A terminal in which "+
		"the demo runs, chapter by chapter. The same as text stands beside it.</desc>\n", w, h, w, h)
	b.WriteString(
		"<style>\ntext{font:13px 'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#d8dee9;white-space:pre}\n" +
			".head{fill:#8fc7ff;font-weight:bold}.typed{fill:#a9dc8f}\n")
	fmt.Fprintf(&b, "@media (prefers-reduced-motion:no-preference){#all{animation:run %.2fs step-end infinite}}\n"+
		"@keyframes run{\n", whole)
	for i, one := range lines {
		if last := i == len(lines)-1; last || lines[i+1].at > one.at {
			begins := one.at
			if i < rows {
				begins = 0 // the first screen is there at once
			}
			fmt.Fprintf(&b, "%.3f%%{transform:translateY(%dpx)}\n", 100*begins/whole, min(0, rows-i-1)*cellY)
		}
	}
	fmt.Fprintf(&b, "}</style>\n<rect width=\"%d\" height=\"%d\" rx=\"10\" fill=\"#1b212c\"/>\n"+
		`<clipPath id="window"><rect x="0" y="%d" width="%d" height="%d"/></clipPath>`+"\n"+
		`<g clip-path="url(#window)"><g id="all">`+"\n", w, h, edge, w, rows*cellY+2)
	for i, one := range lines {
		if one.text == "" {
			continue
		}
		fmt.Fprintf(&b, `<text%s x="%d" y="%d">%s</text>`+"\n", classOf(one.text), edge, edge+(i+1)*cellY-5,
			html.EscapeString(one.text))
	}
	b.WriteString("</g></g>\n</svg>\n")
	return b.Bytes()
}

// classOf returns the style of lines that stand out: heads of chapters, and what is typed.
func classOf(text string) string {
	switch typed := strings.TrimSpace(text); {
	case strings.HasPrefix(text, "Chapter "):
		return ` class="head"`
	case strings.HasPrefix(typed, "$ ") || strings.Contains(strings.SplitN(typed, " ", 2)[0], "$"):
		return ` class="typed"`
	}
	return ""
}
