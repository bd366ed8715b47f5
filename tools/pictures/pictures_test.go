package main

import (
	"bytes"
	"encoding/xml"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// U-12: a picture is well-formed and not large, and says in words what it shows.
func TestU12_PicturesAreReadable(t *testing.T) {
	t.Parallel()
	const largest = 60 << 10
	for _, p := range all() {
		made := p.svg()
		if len(made) > largest {
			t.Errorf("%s has %d bytes, at most %d are allowed", p.name, len(made), largest)
		}
		words := map[string]string{}
		for decoder, in := xml.NewDecoder(bytes.NewReader(made)), ""; ; {
			token, err := decoder.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", p.name, err)
			}
			switch token := token.(type) {
			case xml.StartElement:
				in = token.Name.Local
			case xml.CharData:
				words[in] += string(token)
			}
		}
		for _, part := range []string{"title", "desc", "text"} {
			if len(words[part]) < 10 {
				t.Errorf("%s: its %s is %q", p.name, part, words[part])
			}
		}
		if !bytes.Contains(made, []byte("prefers-color-scheme:dark")) {
			t.Errorf("%s looks the same on light and on dark", p.name)
		}
	}
}

// U-12: the parts of a picture do not overlap, and all lie within it.
func TestU12_NothingLiesOnSomethingElse(t *testing.T) {
	t.Parallel()
	for _, p := range all() {
		for _, problem := range p.drawn().problems() {
			t.Errorf("%s: %s", p.name, problem)
		}
	}
	broken := picture{draw: func(c *canvas) {
		c.row(margin, top, 200, 0, cell{ours, "A head that is too long for its box", ""})
		c.row(margin+50, top+10, 300, 0, cell{ours, "Upon it", ""})
	}}
	if got := len(broken.drawn().problems()); got < 3 {
		t.Errorf("in a picture with boxes upon boxes %d problems were found", got)
	}
}

func (c *canvas) problems() (wrong []string) {
	for i, a := range c.boxes {
		for _, b := range c.boxes[:i] {
			if overlap(a, b) {
				wrong = append(wrong, "two boxes lie upon each other")
			}
		}
	}
	for i, l := range c.labels {
		if l.x < 0 || l.right() > width {
			wrong = append(wrong, "goes beyond the picture: "+l.text)
		}
		for _, other := range c.labels[:i] {
			if overlap(l.area, other.area) {
				wrong = append(wrong, "lies on "+other.text+": "+l.text)
			}
		}
		for _, box := range c.boxes {
			inside := l.x >= box.x && l.right() <= box.right() && l.y >= box.y && l.bottom() <= box.bottom()
			if overlap(l.area, box) && !inside {
				wrong = append(wrong, "does not fit into its box: "+l.text)
			}
		}
	}
	return wrong
}

func overlap(a, b area) bool {
	return a.x < b.right() && b.x < a.right() && a.y < b.bottom() && b.y < a.bottom()
}

// U-12: the packages that the picture names exist, and none imports from a layer above its own.
func TestU12_ThePackagesOfThePictureAreLayers(t *testing.T) {
	t.Parallel()
	all, seen := tiers(), 0
	tierOf := func(name string) int {
		return slices.IndexFunc(all, func(one tier) bool {
			return slices.ContainsFunc(one.packages, func(p string) bool {
				return name == p || strings.HasPrefix(name, p+"/")
			})
		})
	}
	for own, one := range all {
		for _, name := range one.packages {
			for _, imported := range importsBelow(t, filepath.Join("../..", name)) {
				target, is := strings.CutPrefix(imported, "github.com/joiner-autoscaler/joiner/")
				if other := tierOf(target); is && other >= 0 {
					seen++
					if other < own {
						t.Errorf("%s imports %s, which stands above it in the picture", name, target)
					}
				}
			}
		}
	}
	if seen == 0 {
		t.Error("no import was looked at")
	}
}

// importsBelow returns the imports of the packages below a folder, without those of their tests.
func importsBelow(t *testing.T, folder string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, one := range file.Imports {
			all = append(all, strings.Trim(one.Path.Value, `"`))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
