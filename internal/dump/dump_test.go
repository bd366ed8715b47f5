package dump

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

func header() Header {
	return Header{Program: "test", Source: Rebuilt, Redaction: RedactNone}
}

// made asks all questions of a picture.
func made(t interface{ Fatal(...any) }, s *cluster.Snapshot, terms engine.Terms) Dump {
	d, err := Make(s, terms, append(All(), AskProvision, AskReplicas)...)
	if err != nil {
		t.Fatal(err)
	}
	d.Header = header()
	return d
}

func written(t interface{ Fatal(...any) }, d Dump) []byte {
	var b bytes.Buffer
	if err := Write(&b, d); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func readBack(t interface{ Fatal(...any) }, data []byte) Dump {
	d, warnings, err := Read(bytes.NewReader(data), Options{Strict: true})
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	return d
}

// terms are some of every kind.
func terms(s *cluster.Snapshot) engine.Terms {
	t := engine.Terms{Now: 1000, MinSaving: 10, MinSavingPercent: 5, SpotToSpot: true, Turn: 3,
		Budgets: map[string][]engine.Budget{}, Passing: map[string]bool{"default": true, "another": true}}
	t.Again = len(s.Pending)%2 == 1
	for i, pool := range s.Pools {
		t.Budgets[pool.Name] = []engine.Budget{{Max: i + 1}, {Reasons: []plan.DisruptionReason{plan.Empty}, Max: 1}}
	}
	return t
}

// holds checks the laws of the format on one snapshot. Writing what was read gives the same bytes, whatever the order
// of the parts. The engine plans the same for both.
func holds(t interface {
	Fatal(...any)
	Fatalf(string, ...any)
}, s *cluster.Snapshot) {
	d := made(t, s, terms(s))
	first := written(t, d)
	back := readBack(t, first)
	if again := written(t, back); !bytes.Equal(first, again) {
		t.Fatalf("written once\n%s\nread, and written again\n%s", unpacked(t, first), unpacked(t, again))
	}
	if different, err := Replay(back); err != nil || len(different) > 0 {
		t.Fatalf("what was read plans differently: %v %v", err, different)
	}
	for i, planned := range d.Plans {
		if got, want := back.Plans[i].Plan.String(), planned.Plan.String(); got != want {
			t.Fatalf("%s: read %s\nwritten %s", planned.Question, got, want)
		}
	}
	shuffled := *s
	chance := rand.New(rand.NewPCG(1, 2))
	shuffled.Pending, shuffled.Nodes = mixed(chance, s.Pending), mixed(chance, s.Nodes)
	shuffled.Pools, shuffled.Daemons = mixed(chance, s.Pools), mixed(chance, s.Daemons)
	shuffled.Repelling = mixed(chance, s.Repelling)
	if other := written(t, made(t, cluster.New(shuffled), terms(s))); !bytes.Equal(first, other) {
		t.Fatalf("written\n%s\nin another order\n%s", unpacked(t, first), unpacked(t, other))
	}
}

func mixed[T any](chance *rand.Rand, list []T) []T {
	own := append([]T(nil), list...)
	chance.Shuffle(len(own), func(i, j int) { own[i], own[j] = own[j], own[i] })
	return own
}

func unpacked(t interface{ Fatal(...any) }, data []byte) string {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// packed makes a file of lines, with the sum that they have.
func packed(header string, lines ...string) []byte {
	rest := ""
	for _, l := range lines {
		rest += l + "\n"
	}
	sum := sha256.Sum256([]byte(rest))
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, strings.ReplaceAll(header, "SUM", hex.EncodeToString(sum[:]))+"\n"+rest)
	_ = w.Close()
	return b.Bytes()
}

// generators make random clusters.
func generators() map[string]func(*rapid.T) string {
	return map[string]func(*rapid.T) string{"tied": enginetest.Script, "plain": enginetest.PlainScript}
}

// TestU06_WriteReadWriteIsTheIdentity on random clusters. The plan for what was read is the plan for what was written.
func TestU06_WriteReadWriteIsTheIdentity(t *testing.T) {
	t.Parallel()
	for name, script := range generators() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				s, err := enginetest.Parse(script(t))
				if err != nil {
					t.Fatal(err)
				}
				holds(t, s)
			})
		})
	}
}

// scripts visits the clusters of the engine's scripts.
func scripts(t *testing.T, visit func(t *testing.T, d *datadriven.TestData, s *cluster.Snapshot)) {
	t.Helper()
	paths, err := filepath.Glob("../engine/testdata/*/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, path := range paths {
		if _, err := os.Stat(path); err != nil {
			t.Fatal(err)
		}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s, err := enginetest.Parse(d.Input)
			if err != nil {
				t.Fatal(err)
			}
			visit(t, d, s)
			return d.Expected
		})
	}
}

// TestU06_TheEnginesScripts: the same for all that the engine's behaviour is written down in.
func TestU06_TheEnginesScripts(t *testing.T) {
	t.Parallel()
	n := 0
	scripts(t, func(t *testing.T, _ *datadriven.TestData, s *cluster.Snapshot) {
		holds(t, s)
		n++
	})
	if n < 100 {
		t.Errorf("%d clusters of scripts were tried; want all", n)
	}
}

// TestU06_ADifferenceIsFound: a plan that was made under other terms, or is not what the engine says, is told apart.
func TestU06_ADifferenceIsFound(t *testing.T) {
	t.Parallel()
	s, err := enginetest.Parse("type m cpu=2 mem=8Gi od=0.1\npool p\npod web-0..1 cpu=500m")
	if err != nil {
		t.Fatal(err)
	}
	d := made(t, s, terms(s))
	if different, err := Replay(d); err != nil || len(different) > 0 {
		t.Fatal(err, different)
	}
	d.Plans[0].Plan.Launches[0].Pods = d.Plans[0].Plan.Launches[0].Pods[:1]
	different, err := Replay(d)
	want := "- launch p m zone=a on-demand 0.100/h: web-0\n+ launch p m zone=a on-demand 0.100/h: web-0..1"
	if err != nil || len(different) != 1 || different[0].Question != AskLaunches ||
		strings.Join(different[0].Lines, "\n") != want {
		t.Errorf("%v %+v", err, different)
	}
	d = made(t, s, terms(s))
	d.Plans[0].Plan.Launches[0].Requests = resources.Vector{1}
	different, err = Replay(d)
	if err != nil || len(different) != 1 || !strings.Contains(fmt.Sprint(different[0].Lines), `"requests":[1]`) {
		t.Errorf("%v %+v", err, different)
	}
}

func newPacker(out io.Writer) *gzip.Writer { return gzip.NewWriter(out) }
