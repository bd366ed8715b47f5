package history

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Format is the version of the format of stored pages.
const Format = "history.joiner.sh/v1"

// Bounds for reading a page: this program writes nothing larger.
const (
	mostUnpacked = 16 << 20
	mostLine     = 64 << 10
)

// header is the first line of a page.
type header struct {
	Format   string `json:"format"`
	Sequence uint64 `json:"sequence"`
}

// Packed is a page as a ConfigMap holds it.
type Packed struct {
	Page
	Data []byte
}

// Pack packs a page for ConfigMaps: into several pages if it is larger than limit bytes. The last one is open.
func Pack(p Page, limit int) ([]Packed, error) {
	var all []Packed
	for {
		data, err := pack(p)
		if err != nil {
			return nil, err
		}
		if len(data) <= limit || len(p.Records) <= 1 {
			return append(all, Packed{p, data}), nil
		}
		fits, n := Packed{}, len(p.Records)
		for fits.Data == nil {
			n = max(1, n*3/4)
			part := Page{p.Sequence, p.Records[:n]}
			if data, err = pack(part); err != nil {
				return nil, err
			}
			if len(data) <= limit || n == 1 {
				fits = Packed{part, data}
			}
		}
		all = append(all, fits)
		p = Page{p.Sequence + 1, p.Records[n:]}
	}
}

func pack(p Page) ([]byte, error) {
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	lines := json.NewEncoder(zipped)
	err := lines.Encode(header{Format, p.Sequence})
	for _, r := range p.Records {
		err = errors.Join(err, lines.Encode(r))
	}
	err = errors.Join(err, zipped.Close()) // before its output is used
	return b.Bytes(), err
}

// Unpack reverses Pack. Records that cannot be read, or that are not valid, are counted and left out.
func Unpack(data []byte) (p Page, skipped int, err error) {
	zipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return p, 0, fmt.Errorf("it is not packed by gzip: %w", err)
	}
	lines := bufio.NewScanner(io.LimitReader(zipped, mostUnpacked))
	lines.Buffer(nil, mostLine)
	var first header
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &first) != nil || first.Format != Format || first.Sequence == 0 {
		return p, 0, errors.New("it does not begin with the format " + Format)
	}
	p.Sequence = first.Sequence
	for lines.Scan() {
		var r Record
		if json.Unmarshal(lines.Bytes(), &r) != nil || !r.valid() {
			skipped++
			continue
		}
		p.Records = append(p.Records, r)
	}
	if lines.Err() != nil {
		skipped++ // the rest of it
	}
	return p, skipped, nil
}
