package dump

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
)

const (
	top     = `{"format":"dump.joiner.sh/v1","program":"test","source":"rebuilt","redaction":"none","sha256":"SUM"}`
	picture = `{"picture":{"version":1,"resources":["cpu","memory","ephemeral-storage","pods"],"options":{"now":0}}}`
	limits  = `"limits":{"softNodes":-1,"hardNodes":-1},"used":{"nodes":0},"freeSlots":null,"surgeSlots":null`
)

// TestU36_WhatCannotBeRead is told by line, field, value and what is allowed.
func TestU36_WhatCannotBeRead(t *testing.T) {
	t.Parallel()
	whole := packed(top, picture)
	for _, c := range []struct {
		want string
		data []byte
	}{
		{"it is no dump: it is not packed by gzip",
			[]byte("hello")},
		{"it is no dump: it is empty",
			packedText("")},
		{"it is no dump: its first line does not say the format",
			packedText("{}\n")},
		{"the format is dump.joiner.sh/v2, which is newer than this program: it",
			packed(strings.Replace(top, "/v1", "/v2", 1), picture)},
		{"the file is cut off",
			whole[:len(whole)-12]},
		{"line 1: it ends early: the file is cut off",
			packedText(top)},
		{"the lines are not those that were written: sha256 is ",
			packedText(strings.Replace(top, "SUM", "0", 1) + "\n" + picture + "\n")},
		{"0 lines are a picture; want one",
			packed(top)},
		{"2 lines are a picture; want one",
			packed(top, picture, picture)},
		{"line 2: it is no JSON: ",
			packed(top, "{")},
		{`line 3: "colour" is not known`,
			packed(top, picture, `{"pool":{"colour":"red"}}`)},
		{"line 3: pool.weight is a string; want a whole number of 32 b",
			packed(top, picture, `{"pool":{"weight":"heavy"}}`)},
		{"line 3: pool.static is a number; want true or false",
			packed(top, picture, `{"pool":{"static":1}}`)},
		{`line 1: redaction is "some"; want none, names or all`,
			packed(strings.Replace(top, `"none"`, `"some"`, 1), picture)},
		{`line 1: source is ""; want controller or rebuilt`,
			packed(strings.Replace(top, `"rebuilt"`, `""`, 1), picture)},
		{`picture: resources are ["cpu"]; want ["cpu" "memory" "epheme`,
			packed(top, `{"picture":{"resources":["cpu"]}}`)},
		{"picture: pod 3; want 0 to -1",
			packed(top, strings.Replace(picture, `"options"`, `"pending":[3],"options"`, 1))},
		{"pool p: it stands twice",
			packed(top, picture, `{"pool":{"name":"p",`+limits+`}}`, `{"pool":{"name":"p",`+limits+`}}`)},
		{"pool p: catalogue is 0; want 0 to -1",
			packed(top, picture, `{"pool":{"name":"p","catalogue":0,`+limits+`}}`)},
		{"pool p: replicas is -2; want 0 or more",
			packed(top, picture, `{"pool":{"name":"p","replicas":-2,`+limits+`}}`)},
		{"daemon ns/d: shape is 1; want 0 to -1",
			packed(top, picture, `{"daemon":{"name":"ns/d","shape":1}}`)},
		{"node n c: allocatable has 5 amounts; want at most 4",
			packed(top, picture, `{"node":{"name":"n","claim":"c","allocatable":[1,2,3,4,5]}}`)},
		{"shape 0: requests has the amount -1; want 0 or more",
			packed(top, picture, `{"shape":{"namespace":"a","requests":[-1]}}`)},
		{`plan dance: question is "dance"; want one of consolidate, dri`,
			packed(top, picture, `{"plan":{"question":"dance"}}`)},
		{`catalogue 0: type "": want names in order, each once`,
			packed(top, picture, `{"catalogue":{"types":[{"name":""}]}}`)},
		{`catalogue 0: offer 0: capacityType is "x"; want on-demand`,
			packed(top, picture, `{"catalogue":{"types":[{"name":"a"}],"offers":[{"type":0,"capacityType":"x"}]}}`)},
		{`shape 0: requirement "k": absent and in stand together`,
			packed(top, picture,
				`{"shape":{"alternatives":[{"labels":[{"key":"k","absent":true,"in":["a"]}],"names":{"key":""}}]}}`)},
	} {
		_, _, err := Read(bytes.NewReader(c.data), Options{Strict: true})
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("want %q, got %v", c.want, err)
		} else if strings.Contains(err.Error(), "Record") || strings.Contains(err.Error(), "json:") {
			t.Errorf("%q names a type of ours", err)
		}
	}
}

func packedText(text string) []byte {
	var b bytes.Buffer
	w := newPacker(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.Bytes()
}

// TestU06_WhatIsNotKnownIsLeftOutWithAWarning, in a field and as a line of its own, unless reading is strict.
func TestU06_WhatIsNotKnownIsLeftOutWithAWarning(t *testing.T) {
	t.Parallel()
	data := packed(top, picture, `{"weather":{"sun":true}}`, `{"pool":{"name":"p","colour":"red","weight":3,`+limits+
		`}}`)
	d, warnings, err := Read(bytes.NewReader(data), Options{})
	want := `line 3: "weather" is not known, and left out|line 4: "colour" is not known, and left out`
	if err != nil || strings.Join(warnings, "|") != want || len(d.Snapshot.Pools) != 1 ||
		d.Snapshot.Pools[0].Weight != 3 {
		t.Errorf("%v %v %+v", err, warnings, d.Snapshot)
	}
}

// TestU06_ASmallFileCannotFillTheMemory: what unpacks to more than the limit is not unpacked.
func TestU06_ASmallFileCannotFillTheMemory(t *testing.T) {
	t.Parallel()
	bomb := packedText(top + "\n" + strings.Repeat(" ", 4<<20) + "\n")
	if len(bomb) > 64<<10 {
		t.Fatalf("the file has %d bytes; it is to be small", len(bomb))
	}
	_, _, err := Read(bytes.NewReader(bomb), Options{MaxUnpacked: 1 << 20})
	if err == nil || err.Error() != "it unpacks to more than 1048576 bytes, which is the most that is read" {
		t.Error(err)
	}
}

// FuzzU06_Read: whatever the bytes are, reading ends without a panic. What can be read can be planned for, and is
// written unchanged.
func FuzzU06_Read(f *testing.F) {
	f.Add([]byte("hello"), "")
	f.Add(packed(top, picture), "")
	s, err := enginetest.Parse("type m cpu=2 mem=8Gi od=0.1\npool p hard.nodes=2\nnode n type=m pool=p\n" +
		"pod a node=n cpu=1\npod web-0..3 cpu=500m labels=a=b spread=zone:1 apart=host\ndaemon d cpu=100m")
	if err != nil {
		f.Fatal(err)
	}
	data := written(f, made(f, s, terms(s)))
	f.Add(data, "")
	_, rest, _ := strings.Cut(unpacked(f, data), "\n")
	f.Add([]byte{}, rest)
	f.Fuzz(func(t *testing.T, data []byte, lines string) {
		if lines != "" { // a sum that is right gets further
			data = packed(top, strings.Split(strings.TrimSuffix(lines, "\n"), "\n")...)
		}
		d, _, err := Read(bytes.NewReader(data), Options{MaxUnpacked: 1 << 20})
		if err != nil {
			if fmt.Sprint(err) == "" {
				t.Error("an error that says nothing")
			}
			return
		}
		first := written(t, d)
		if again := written(t, readBack(t, first)); !bytes.Equal(first, again) {
			t.Fatalf("written once\n%s\nread, and written again\n%s", unpacked(t, first), unpacked(t, again))
		}
		if _, err := Replay(d); err != nil {
			t.Fatal(err)
		}
	})
}
