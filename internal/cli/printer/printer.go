// Package printer writes the answers of commands in the forms that --output names (U-13): tables for people, JSON and
// YAML for programs, names and templates for scripts. Tables are made from the same value as the other forms.
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

// Answer is what a command found. It is encoded as JSON directly, so it has apiVersion and kind (U-29).
type Answer interface {
	// Clean reports whether nothing has to be done.
	Clean() bool
	// WriteText writes it for people.
	WriteText(out io.Writer) error
}

// Tabular is an answer with a table: headers are optional, and a wide table has more columns.
type Tabular interface {
	WriteTable(out io.Writer, wide, headers bool) error
}

// Named is an answer about objects.
type Named interface {
	// Names returns the objects that need attention, each as arguments of kubectl: nodepool/gpu, or pod/web-0 -n shop.
	Names() []string
}

// Applicable is an answer whose YAML form is manifests to apply.
type Applicable interface {
	WriteYAML(out io.Writer) error
}

// Forms of --output. The last three take an argument after =.
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

// All returns the forms that every answer has.
func All() []string { return []string{Table, Wide, JSON, YAML, Name, JSONPath, GoTemplate, Columns} }

// Values of --color.
const (
	colorAuto   = "auto"
	colorAlways = "always"
	colorNever  = "never"
)

// Flags are the output flags of a command that prints an answer.
type Flags struct {
	output, color string
	noHeaders     bool
	forms         []string
}

// Add adds the flags. Without forms, every form is allowed.
func (f *Flags) Add(flags *pflag.FlagSet, forms ...string) {
	f.forms = forms
	if len(forms) == 0 {
		f.forms = All()
		flags.BoolVar(&f.noHeaders, "no-headers", false, "omit the header row of tables")
		flags.StringVar(&f.color, "color", colorAuto,
			"colours in tables: auto, always or never; auto is for terminals, unless NO_COLOR is set")
	}
	flags.StringVarP(&f.output, "output", "o", f.forms[0], "output format: "+f.allowed())
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

// Surroundings describe where a printer writes.
type Surroundings struct {
	// Terminal says that the output is a terminal.
	Terminal bool
	// Plain says that the environment wants no colours.
	Plain bool
	// Codes are the words to paint.
	Codes []string
	// Rename adapts a text to the name that users call the program by; nil changes nothing.
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

// Printer returns the printer that the flags ask for. Errors name the flag, its value and what is allowed.
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

// Paints reports whether the printer uses colours.
func (p *Printer) Paints() bool { return p.paint }

// Print writes an answer, and the footer below a table. It writes everything or, on an error, nothing (U-30).
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

// generic returns the answer as templates see it, with its JSON names.
func generic(a Answer) (any, error) {
	data, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	var content any
	err = utiljson.Unmarshal(data, &content)
	return content, err
}

// Escape sequences: bold and yellow on, and off.
const (
	paintOn  = "\x1b[1;33m"
	paintOff = "\x1b[0m"
)

// painted highlights the codes in a text that is already aligned.
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
