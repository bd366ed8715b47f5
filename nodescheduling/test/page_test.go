package test

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
)

// page shows the texts of the script mistakes, below markers of the form <!-- says: REQUEST -->.
const (
	page     = "../../docs/control-plane-protection.md"
	mistakes = "14_mistakes.txt"
)

// showPage checks that the texts that users read on the page are those of the script, word for word (N64). `make
// rewrite` puts them there. said are the texts by request.
func showPage(t *testing.T, said map[string]string) {
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	marker := regexp.MustCompile("(?s)<!-- says: (.*?) -->\n```text\n.*?\n```\n")
	used := 0
	want := marker.ReplaceAllStringFunc(string(content), func(block string) string {
		request := marker.FindStringSubmatch(block)[1]
		text, found := said[request]
		if !found {
			t.Errorf("the page asks for %q, which the script does not say", request)
		}
		used++
		return "<!-- says: " + request + " -->\n```text\n" + wrap(text, 120) + "\n```\n"
	})
	if used != len(said) || used < 5 {
		t.Errorf("the page shows %d texts, the script has %d", used, len(said))
	}
	if t.Failed() || want == string(content) {
		return
	}
	if rewrite := flag.Lookup("rewrite"); rewrite != nil && rewrite.Value.String() == "true" {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s does not show what the script says; run `make rewrite` and read the diff", page)
}

// texts adds the messages and warnings in an output of the command ask to said, by request.
func texts(out string, said map[string]string) {
	request := ""
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		if text, found := strings.CutPrefix(line, "  message: "); found {
			said[request] = text
		} else if text, found := strings.CutPrefix(line, "  warning: "); found {
			said[request] = text
		} else if !strings.HasPrefix(line, " ") {
			request = line[strings.LastIndex(line, ": ")+len(": "):]
		}
	}
}

// wrap breaks a text into lines of at most width characters, where a word allows it.
func wrap(text string, width int) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		switch {
		case column == 0:
		case column+1+len(word) > width:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}
