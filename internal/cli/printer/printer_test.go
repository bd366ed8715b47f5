package printer_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/cli/printer"
)

// answer is one with a table of its own text.
type answer struct {
	Kind  string
	text  string
	fails error
}

func (answer) Clean() bool { return true }

func (a answer) WriteText(out io.Writer) error {
	if _, err := io.WriteString(out, a.text); err != nil {
		return err
	}
	return a.fails
}

func printed(t interface{ Fatal(...any) }, where printer.Surroundings, a printer.Answer, footer string,
	args ...string) (string,
	error) {
	var flags printer.Flags
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.Add(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	p, err := flags.Printer(where)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	err = p.Print(&out, a, footer)
	return out.String(), err
}

// TestU13_PaintChangesNoLetter: a painted text without its colours is the original text. A code is painted where it
// stands alone.
func TestU13_PaintChangesNoLetter(t *testing.T) {
	t.Parallel()
	codes := []string{"NoCapacity", "Paused"}
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.SampledFrom([]string{"NoCapacity", "Paused", "NoCapacityx", "x", " ", "\n", "—",
			"é", ": ", "/"}))
		text := strings.Join(parts.Draw(t, "text"), "")
		out, err := printed(t, printer.Surroundings{Codes: codes}, answer{text: text}, "", "--color", "always")
		plain := strings.NewReplacer("\x1b[1;33m", "", "\x1b[0m", "").Replace(out)
		if err != nil || plain != text || strings.Count(out, "\x1b[1;33m") != strings.Count(out, "\x1b[0m") {
			t.Fatalf("%q is painted %q, %v", text, out, err)
		}
	})
	out, _ := printed(t, printer.Surroundings{Codes: codes}, answer{text: "a: Paused, NoCapacityx é"}, "Paused",
		"--color", "always")
	if out != "a: \x1b[1;33mPaused\x1b[0m, NoCapacityx é\x1b[1;33mPaused\x1b[0m" {
		t.Errorf("%q", out)
	}
}

// TestU30_NothingHalfIsPrinted: an answer that cannot be written whole is not written.
func TestU30_NothingHalfIsPrinted(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, args := range [][]string{nil, {"-o", "go-template={{.Kind}} {{.Kind.x}}"}, {"-o",
		"jsonpath={.Kind} {.Kind[0].x}"},
		{"-o", "name"}} {
		out, err := printed(t, printer.Surroundings{}, answer{Kind: "K", text: "half", fails: broken}, "footer",
			args...)
		if err == nil || out != "" || !strings.HasPrefix(err.Error(), "writing the answer: ") {
			t.Errorf("%v: %q, %v", args, out, err)
		}
	}
}

// TestU13_WhatIsBelowATableIsNotInData: the footer is for people.
func TestU13_WhatIsBelowATableIsNotInData(t *testing.T) {
	t.Parallel()
	for form, want := range map[string]string{"table": "text\nfooter", "wide": "text\nfooter",
		"json": "{\n  \"Kind\": \"<K>\"\n}\n",
		"yaml": "Kind: <K>\n", "jsonpath={.Kind}": "<K>", "jsonpath={.Missing}": "", "go-template={{.Kind}}": "<K>"} {
		out, err := printed(t, printer.Surroundings{}, answer{Kind: "<K>", text: "text\n"}, "footer", "-o", form)
		if err != nil || out != want {
			t.Errorf("%s: %q, %v; want %q", form, out, err, want)
		}
	}
}

// rows is an answer with a list.
type rows struct {
	answer
	List []map[string]any `json:"list"`
}

func (rows) Rows() string { return "list" }

// TestU13_CustomColumns: a row for each entry, and one for an answer without a list.
func TestU13_CustomColumns(t *testing.T) {
	t.Parallel()
	list := rows{List: []map[string]any{{"name": "a", "of": map[string]any{"cpu": 1}}, {"name": "b c"}}}
	for _, c := range []struct {
		of   printer.Answer
		args []string
		want string
	}{
		{list, []string{"-o", "custom-columns=NAME:.name,CPU:.of.cpu"}, "NAME   CPU\na      1\nb c    <none>\n"},
		{list, []string{"-o", "custom-columns=NAME:{.name}", "--no-headers"}, "a\nb c\n"},
		{answer{Kind: "Status"}, []string{"-o", "custom-columns=KIND:.Kind"}, "KIND\nStatus\n"},
	} {
		if out, err := printed(t, printer.Surroundings{}, c.of, "footer", c.args...); err != nil || out != c.want {
			t.Errorf("%v: %v\n%s\nwant\n%s", c.args, err, out, c.want)
		}
	}
	for _, wrong := range []string{"custom-columns", "custom-columns=", "custom-columns=NAME", "custom-columns=:.a",
		"custom-columns=A:{.a"} {
		if _, err := printed(t, printer.Surroundings{}, list, "", "-o", wrong); err == nil ||
			!strings.HasPrefix(err.Error(), "--output is ") {
			t.Errorf("-o %s: %v", wrong, err)
		}
	}
}
