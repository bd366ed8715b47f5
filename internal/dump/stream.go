package dump

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
)

// version is the version in Format, and family the part before it.
const (
	family  = "dump.joiner.sh/v"
	version = 1
)

// MaxUnpacked bounds an unpacked file, in bytes: ten times what a cluster of 100,000 pods needs. A small file can
// unpack to any size.
const MaxUnpacked = 256 << 20

// Write writes a dump. The same dump gives the same bytes.
func Write(out io.Writer, d Dump) error { return write(out, d.Header, contentOf(d)) }

func write(out io.Writer, header Header, c content) error {
	var rest bytes.Buffer
	for _, l := range c.lines() {
		rest.Write(encoded(l))
		rest.WriteByte('\n')
	}
	sum := sha256.Sum256(rest.Bytes())
	header.Format, header.SHA256 = Format, hex.EncodeToString(sum[:])
	packer := gzip.NewWriter(out)
	_, err := packer.Write(append(encoded(header), '\n'))
	if err == nil {
		_, err = packer.Write(rest.Bytes())
	}
	return errors.Join(err, packer.Close())
}

// lines returns the lines of the records.
func (c content) lines() []line {
	list := []line{{Picture: &c.picture}}
	for i := range c.catalogues {
		list = append(list, line{Catalogue: &c.catalogues[i]})
	}
	for i := range c.namespaces {
		list = append(list, line{Namespace: &c.namespaces[i]})
	}
	for i := range c.pools {
		list = append(list, line{Pool: &c.pools[i]})
	}
	for i := range c.shapes {
		list = append(list, line{Shape: &c.shapes[i]})
	}
	for i := range c.daemons {
		list = append(list, line{Daemon: &c.daemons[i]})
	}
	for i := range c.nodes {
		list = append(list, line{Node: &c.nodes[i]})
	}
	for i := range c.guards {
		list = append(list, line{Guard: &c.guards[i]})
	}
	for i := range c.holds {
		list = append(list, line{Hold: &c.holds[i]})
	}
	for i := range c.plans {
		list = append(list, line{Plan: &c.plans[i]})
	}
	return list
}

// encoded returns the JSON of a record. Encoding records cannot fail.
func encoded(record any) []byte {
	var b bytes.Buffer
	to := json.NewEncoder(&b)
	to.SetEscapeHTML(false)
	_ = to.Encode(record)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Options say how to read.
type Options struct {
	// Strict makes unknown fields an error. Otherwise they are left out, with a warning.
	Strict bool
	// MaxUnpacked bounds the unpacked bytes; 0 means the constant.
	MaxUnpacked int64
}

// Read reads a dump. The warnings say what was left out. The error says what is wrong in which line, and what is
// allowed.
func Read(in io.Reader, o Options) (d Dump, warnings []string, err error) {
	if o.MaxUnpacked == 0 {
		o.MaxUnpacked = MaxUnpacked
	}
	unpacked, err := gzip.NewReader(in)
	if err != nil {
		return d, nil, errors.New("it is no dump: it is not packed by gzip")
	}
	l := &lineReader{in: bufio.NewReader(&io.LimitedReader{R: unpacked, N: o.MaxUnpacked + 1}), options: o}
	header, err := l.header()
	if err != nil {
		return d, l.warnings, err
	}
	c, err := l.content(header)
	if err != nil {
		return d, l.warnings, err
	}
	d, err = read(c)
	d.Header = header
	return d, l.warnings, err
}

// lineReader reads one line after the other.
type lineReader struct {
	in       *bufio.Reader
	options  Options
	number   int
	read     int64
	warnings []string
}

// next returns the next line with its newline; io.EOF after the last.
func (l *lineReader) next() ([]byte, error) {
	l.number++
	data, err := l.in.ReadBytes('\n')
	l.read += int64(len(data))
	switch {
	case l.read > l.options.MaxUnpacked:
		return nil, fmt.Errorf("it unpacks to more than %d bytes, which is the most that is read",
			l.options.MaxUnpacked)
	case errors.Is(err, io.EOF) && len(data) == 0:
		return nil, io.EOF
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("line %d: it ends early: the file is cut off", l.number)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errors.New("the file is cut off")
	case err != nil:
		return nil, fmt.Errorf("line %d: %w", l.number, err)
	}
	return data, nil
}

func (l *lineReader) header() (header Header, err error) {
	data, err := l.next()
	if errors.Is(err, io.EOF) {
		return header, errors.New("it is no dump: it is empty")
	}
	if err != nil {
		return header, err
	}
	// A newer format may have unknown fields: report its version, not the fields.
	var first struct {
		Format string `json:"format"`
	}
	number, digits := 0, ""
	if json.Unmarshal(data, &first) == nil {
		digits = strings.TrimPrefix(first.Format, family)
		number, _ = strconv.Atoi(digits)
	}
	switch {
	case first.Format == digits || number < 1:
		return header, fmt.Errorf("it is no dump: its first line does not say the format %s", Format)
	case number > version:
		return header, fmt.Errorf("the format is %s, which is newer than this program: it reads up to %s",
			first.Format, Format)
	}
	if err := l.decode(data, &header); err != nil {
		return header, err
	}
	switch header.Source {
	case FromController, Rebuilt:
	default:
		return header, fmt.Errorf("line 1: source is %q; want %s or %s", header.Source, FromController, Rebuilt)
	}
	if !header.Redaction.Known() {
		return header, fmt.Errorf("line 1: redaction is %q; want %s", header.Redaction, Redactions())
	}
	return header, nil
}

// content reads the lines after the first, and checks them against the sum in the header.
func (l *lineReader) content(header Header) (c content, err error) {
	sum, pictures := sha256.New(), 0
	for {
		data, err := l.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return c, err
		}
		_, _ = sum.Write(data) // a hash takes everything
		var own line
		if err := l.decode(data, &own); err != nil {
			return c, err
		}
		if own.Picture != nil {
			pictures++
		}
		c.add(own)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != header.SHA256 {
		return c, fmt.Errorf("the lines are not those that were written: sha256 is %s, and the header has %q", got,
			header.SHA256)
	}
	if pictures != 1 {
		return c, fmt.Errorf("%d lines are a picture; want one", pictures)
	}
	return c, nil
}

func (c *content) add(l line) {
	switch {
	case l.Picture != nil:
		c.picture = *l.Picture
	case l.Catalogue != nil:
		c.catalogues = append(c.catalogues, *l.Catalogue)
	case l.Namespace != nil:
		c.namespaces = append(c.namespaces, *l.Namespace)
	case l.Pool != nil:
		c.pools = append(c.pools, *l.Pool)
	case l.Shape != nil:
		c.shapes = append(c.shapes, *l.Shape)
	case l.Daemon != nil:
		c.daemons = append(c.daemons, *l.Daemon)
	case l.Node != nil:
		c.nodes = append(c.nodes, *l.Node)
	case l.Guard != nil:
		c.guards = append(c.guards, *l.Guard)
	case l.Hold != nil:
		c.holds = append(c.holds, *l.Hold)
	case l.Plan != nil:
		c.plans = append(c.plans, *l.Plan)
	}
}

// decode reads a line into a record.
func (l *lineReader) decode(data []byte, into any) error {
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	err := strict.Decode(into)
	if field, unknown := unknownField(err); unknown {
		if l.options.Strict {
			return fmt.Errorf("line %d: %s is not known", l.number, field)
		}
		l.warnings = append(l.warnings, fmt.Sprintf("line %d: %s is not known, and left out", l.number, field))
		reflect.ValueOf(into).Elem().SetZero()
		err = json.Unmarshal(data, into)
	}
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &kind):
		return fmt.Errorf("line %d: %s is a %s; want %s", l.number, kind.Field, kind.Value, inWords(kind.Type))
	}
	return fmt.Errorf("line %d: it is no JSON: %s", l.number, err)
}

func unknownField(err error) (string, bool) {
	if err == nil {
		return "", false
	}
	return strings.CutPrefix(err.Error(), "json: unknown field ")
}

// inWords describes the values that a type allows.
func inWords(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return fmt.Sprintf("a whole number of %d bits", t.Bits())
}
