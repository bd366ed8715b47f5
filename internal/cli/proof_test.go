package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/dump"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
)

// TestU06_WhatDoesNotReplayIsNamedSo: a dump whose plan does not replay is written all the same, without names. Its
// file name says so, and it is an error.
func TestU06_WhatDoesNotReplayIsNamedSo(t *testing.T) {
	t.Parallel()
	s, err := enginetest.Parse("type m cpu=2 mem=8Gi od=0.1\npool p nodes=1\npod hidden-0..2 cpu=1500m")
	if err != nil {
		t.Fatal(err)
	}
	made, err := dump.Make(s, engine.Terms{}, dump.All()...)
	if err != nil {
		t.Fatal(err)
	}
	made.Header = dump.Header{Program: "test", Source: dump.FromController}
	data, _, err := proven(made, dump.RedactNames)
	if err != nil || len(data) == 0 {
		t.Fatal(err)
	}
	made.Plans[0].Plan.Launches = nil
	data, key, err := proven(made, dump.RedactNames)
	if err == nil || !strings.HasPrefix(err.Error(),
		"the dump does not replay to the plan that was made, please report that") ||
		!strings.Contains(err.Error(), "+ launch p m ") {
		t.Error(err)
	}
	with := dumping{out: filepath.Join(t.TempDir(), "dump.gz")}
	var said bytes.Buffer
	if err := with.write(Config{Out: &said}, data, key, true); err != nil || said.Len() > 0 {
		t.Errorf("%v, %s", err, said.String())
	}
	if _, err := os.Stat(with.out); err == nil {
		t.Error("it has the name of one that replays")
	}
	read, _, err := readDump(Config{}, with.out+".differs", true)
	if err != nil {
		t.Fatal(err)
	}
	differences, err := dump.Replay(read)
	if err != nil || len(differences) != 1 || read.Header.Redaction != dump.RedactNames {
		t.Errorf("%v, %v, %+v", err, differences, read.Header)
	}
	for _, p := range read.Plans {
		if strings.Contains(p.Plan.String(), "hidden") {
			t.Errorf("a name is left in %s", p.Plan)
		}
	}
}
