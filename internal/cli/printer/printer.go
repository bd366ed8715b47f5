// Package printer writes the answers of commands in the forms that --output names (U-13): tables for people, JSON and
// YAML for programs, names and templates for scripts. A table is a function of the same value that the other forms
// show.
package printer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"

	"github.com/spf13/pflag"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"
)

// Answer is what a command found. It is written to JSON as it is, so it has apiVersion and kind (U-29).
type Answer interface {
	// Clean reports whether nothing is to be done.
	Clean() bool
	// WriteText writes it for people.
	WriteText(out io.Writer) error
}

// Tabular is an answer whose table has a row of headers, or more columns when there is room.
type Tabular interface {
	WriteTable(out io.Writer, wide, headers bool) error
}

// Named is an answer about objects.
type Named interface {
	// Names are the objects that need attention, each as arguments of kubectl: nodepool/gpu, or pod/web-0 -n shop.
	Names() []string
}

// Applicable is an answer that stands for objects to be applied: its YAML is theirs.
type Applicable interface {
	WriteYAML(out io.Writer) error
}

// The forms. Two of them take a template after a =.
const (
	Table      = "table"
	Text       = "text" // another word for Table
	Wide       = "wide"
	JSON       = "json"
	YAML       = "yaml"
	Name       = "name"
	JSONPath   = "jsonpath"
	GoTemplate = "go-template"
	Columns    = "custom-columns"
)

// All are the forms that every answer has.
func All() []string { return []string{Table, Wide, JSON, YAML, Name, JSONPath, GoTemplate, Columns} }

// What --color takes.
const (
	colorAuto   = "auto"
	colorAlways = "always"
	colorNever  = "never"
)

// Flags are those of a command that prints an answer.
type Flags struct {
	output, color string
	noHeaders     bool
	forms         []string
}

// Add adds the flags; without forms every form is allowed.
func (f *Flags) Add(flags *pflag.FlagSet, forms ...string) {
	f.forms = forms
	if len(forms) == 0 {
		f.forms = All()
		flags.BoolVar(&f.noHeaders, "no-headers", false, "leave the row of headers out of tables")
		flags.StringVar(&f.color, "color", colorAuto,
			"colours in tables: auto, always or never; auto is for terminals, unless NO_COLOR is set")
	}
	flags.StringVarP(&f.output, "output", "o", f.forms[0], "form of the answer: "+f.allowed())
}

func (f *Flags) allowed() string {
	var words []string
	for _, form := range f.forms {
		switch form {
		case JSONPath, GoTemplate:
			form += "=TEMPLATE"
		case Columns:
			form += "=HEADING:.path,..."
		}
		words = append(words, form)
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Surroundings are what a printer has to know of where it writes.
type Surroundings struct {
	// Terminal says that a person reads along.
	Terminal bool
	// Plain says that the environment wants no colours.
	Plain bool
	// Codes are the words that are painted.
	Codes []string
	// Rename makes a text what its reader types, where the program has another name; nil leaves it.
	Rename func(string) string
}

// Printer writes answers in one form. Use [Flags.Printer].
type Printer struct {
	form      string
	noHeaders bool
	paint     bool
	codes     []string
	rename    func(string) string
	path      *jsonpath.JSONPath
	template  *template.Template
	columns   []column
}

// Printer returns the printer that the flags ask for. The error names the flag, its value and what is allowed.
func (f *Flags) Printer(where Surroundings) (*Printer, error) {
	form, argument, given := strings.Cut(f.output, "=")
	takes := form == JSONPath || form == GoTemplate || form == Columns
	p := &Printer{form: form, noHeaders: f.noHeaders, codes: where.Codes, rename: where.Rename}
	if form == Text && slices.Contains(f.forms, Table) {
		p.form = Table
	}
	if !slices.Contains(f.forms, p.form) || takes != given {
		return nil, fmt.Errorf("--output is %q: it must be %s", f.output, f.allowed())
	}
	switch f.color {
	case colorAlways:
		p.paint = true
	case colorAuto:
		p.paint = where.Terminal && !where.Plain
	case colorNever, "":
	default:
		return nil, fmt.Errorf("--color is %q: it must be auto, always or never", f.color)
	}
	switch form {
	case JSONPath:
		if !strings.Contains(argument, "{") {
			argument = "{." + strings.TrimPrefix(argument, ".") + "}"
		}
		p.path = jsonpath.New("output").AllowMissingKeys(true)
		if err := p.path.Parse(argument); err != nil {
			return nil, fmt.Errorf("--output is %q: %w", f.output, err)
		}
	case Columns:
		var err error
		if p.columns, err = columnsOf(argument); err != nil {
			return nil, fmt.Errorf("--output is %q: %w", f.output, err)
		}
	case GoTemplate:
		var err error
		if p.template, err = template.New("output").Parse(argument); err != nil {
			return nil, fmt.Errorf("--output is %q: %w", f.output, err)
		}
	}
	return p, nil
}

// ForPeople reports whether the form is a table.
func (p *Printer) ForPeople() bool { return p.form == Table || p.form == Wide || p.form == Text }

// Paints reports whether colours are wanted.
func (p *Printer) Paints() bool { return p.paint }

// Print writes an answer, and below a table the footer: at once or, when it cannot be made, not at all (U-30).
func (p *Printer) Print(out io.Writer, a Answer, footer string) error {
	var b bytes.Buffer
	if err := p.write(&b, a); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	text := b.String()
	if p.ForPeople() {
		text += footer
		if p.rename != nil {
			text = p.rename(text)
		}
		if p.paint {
			text = painted(text, p.codes)
		}
	}
	if _, err := io.WriteString(out, text); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

func (p *Printer) write(b *bytes.Buffer, a Answer) error {
	switch p.form {
	case JSON:
		return writeJSON(b, a)
	case YAML:
		if manifest, is := a.(Applicable); is {
			return manifest.WriteYAML(b)
		}
		data, err := yaml.Marshal(a)
		b.Write(data)
		return err
	case Name:
		named, is := a.(Named)
		if !is {
			return errors.New("it has no names: use another --output")
		}
		for _, name := range named.Names() {
			b.WriteString(name + "\n")
		}
		return nil
	case Columns:
		return writeColumns(b, a, p.columns, !p.noHeaders)
	case JSONPath, GoTemplate:
		content, err := generic(a)
		if err != nil {
			return err
		}
		if p.form == JSONPath {
			return p.path.Execute(b, content)
		}
		return p.template.Execute(b, content)
	}
	if table, is := a.(Tabular); is {
		return table.WriteTable(b, p.form == Wide, !p.noHeaders)
	}
	return a.WriteText(b)
}

func writeJSON(out io.Writer, a any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(a)
}

// generic is the answer as templates see it: with the names of its JSON.
func generic(a Answer) (any, error) {
	data, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	var content any
	err = utiljson.Unmarshal(data, &content)
	return content, err
}

// Bold and yellow, and back.
const (
	paintOn  = "\x1b[1;33m"
	paintOff = "\x1b[0m"
)

// painted marks the codes in a text whose columns are in line already.
func painted(text string, codes []string) string {
	isWord := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' }
	var b strings.Builder
	for rest := text; rest != ""; {
		end := strings.IndexFunc(rest, func(r rune) bool { return !isWord(r) })
		switch {
		case end == 0:
			end = strings.IndexFunc(rest, isWord)
			if end < 0 {
				end = len(rest)
			}
			b.WriteString(rest[:end])
		default:
			if end < 0 {
				end = len(rest)
			}
			if slices.Contains(codes, rest[:end]) {
				b.WriteString(paintOn + rest[:end] + paintOff)
			} else {
				b.WriteString(rest[:end])
			}
		}
		rest = rest[end:]
	}
	return b.String()
}
