package state

import (
	"io"
	"slices"
	"strconv"
	"strings"
)

// Text is a family of gauges in Prometheus' text format. It is written series by series while iterating over the
// objects. With objects for the library's encoder, a scrape of a large cluster took twice the CPU time (figures.md).
type Text struct {
	Name   string
	Series int

	help  string
	parts [][]byte // of at least partSize bytes, so that nothing is copied when a family grows
}

const partSize = 64 << 10

// label is a label of a series. Without a name, its value is several labels, already formatted.
type label struct{ name, value string }

// written formats labels that several series share, so that this is done once.
func written(labels ...label) label {
	var b []byte
	for i, l := range labels {
		if i > 0 {
			b = append(b, ',')
		}
		b = l.append(b)
	}
	return label{value: string(b)}
}

// append appends the formatted label.
func (l label) append(b []byte) []byte {
	if l.name == "" {
		return append(b, l.value...)
	}
	b = append(append(b, l.name...), '=', '"')
	if strings.IndexByte(l.value, '"') < 0 && strings.IndexByte(l.value, '\\') < 0 &&
		strings.IndexByte(l.value, '\n') < 0 {
		return append(append(b, l.value...), '"')
	}
	for i := range len(l.value) {
		switch c := l.value[i]; c {
		case '\n':
			b = append(b, '\\', 'n')
		case '\\', '"':
			b = append(b, '\\', c)
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// add writes a series; a nil family does nothing.
func (t *Text) add(value float64, labels ...label) {
	if t == nil {
		return
	}
	const rest = 64 // braces, the value, the end of the line
	need := len(t.Name) + rest
	for i := range labels {
		need += len(labels[i].name) + 2*len(labels[i].value) + len(`="",`)
	}
	last := len(t.parts) - 1
	if last < 0 || cap(t.parts[last])-len(t.parts[last]) < need {
		t.parts = append(t.parts, make([]byte, 0, max(partSize, need)))
		last++
	}
	b, next := append(t.parts[last], t.Name...), byte('{')
	for _, l := range labels {
		if l == (label{}) {
			continue
		}
		b, next = l.append(append(b, next)), ','
	}
	if next == ',' {
		b = append(b, '}')
	}
	b = strconv.AppendFloat(append(b, ' '), value, 'g', -1, 64)
	t.parts[last] = append(b, '\n')
	t.Series++
}

// WriteTo implements io.WriterTo: it writes the family with its description.
func (t *Text) WriteTo(to io.Writer) (written int64, err error) {
	help := strings.NewReplacer("\\", `\\`, "\n", `\n`).Replace(t.help)
	head := "# HELP " + t.Name + " " + help + "\n# TYPE " + t.Name + " gauge\n"
	for _, part := range slices.Insert(slices.Clone(t.parts), 0, []byte(head)) {
		n, err := to.Write(part)
		written += int64(n)
		if err != nil {
			return written, err
		}
	}
	return written, nil
}
