package dump

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/engine/script"
)

// said checks the script of a snapshot. If it is not refused, it describes the same cluster, and the engine makes the
// plan that stands below it. It returns the reasons of a refusal.
func said(t interface {
	Fatal(...any)
	Fatalf(string, ...any)
}, s *cluster.Snapshot) []string {
	d := made(t, s, terms(s))
	text, refused, err := Script(d)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if len(refused) > 0 {
		if text != "" {
			t.Fatalf("a script was made though %v", refused)
		}
		return refused
	}
	for block := range strings.SplitSeq(text, "\n\n") {
		head, rest, _ := strings.Cut(block, "\n")
		body, want, _ := strings.Cut(rest, "----\n")
		back, err := script.Parse(body)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range verbs(d.Terms) {
			if v.words != head {
				continue
			}
			p, err := Ask(v.question, back, d.Terms)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimSpace(script.Shorten(p.String())); got != strings.TrimSpace(want) {
				t.Fatalf("%s\nplans\n%s", block, got)
			}
		}
	}
	return nil
}

// TestU06_AScriptSaysTheSame of nearly all that scripts were made of; what is refused is named.
func TestU06_AScriptSaysTheSame(t *testing.T) {
	t.Parallel()
	tried, refusals := 0, map[string]int{}
	scripts(t, func(t *testing.T, _ *datadriven.TestData, s *cluster.Snapshot) {
		tried++
		for _, why := range said(t, s) {
			words := strings.Fields(why)
			refusals[words[0]+" "+words[len(words)-1]]++
			break
		}
	})
	sum := 0
	for _, n := range refusals {
		sum += n
	}
	if sum*10 > tried {
		t.Errorf("%d of %d clusters are refused: %v", sum, tried, refusals)
	}
}

// TestU06_RandomClustersAsScripts: the same for random ones.
func TestU06_RandomClustersAsScripts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, err := enginetest.Parse(enginetest.Script(t))
		if err != nil {
			t.Fatal(err)
		}
		said(t, s)
	})
}

// TestU06_WhatAScriptCannotSay is refused by name.
func TestU06_WhatAScriptCannotSay(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*cluster.Snapshot){
		"pods default/web-0: hostPorts": func(s *cluster.Snapshot) {
			shape := *s.Pending[0].Shape
			shape.HostPorts = []cluster.HostPort{{IP: "10.0.0.1", Protocol: "UDP", Port: 53}}
			s.Pending[0].Shape = cluster.NewShapes().Intern(&cluster.Shape{Namespace: "default",
				Requests: shape.Requests, HostPorts: shape.HostPorts})
		},
		"launches that are held back": func(s *cluster.Snapshot) {
			s.Held = map[cluster.Hold]string{{Pool: "p", Ask: "x"}: "in vain"}
		},
		"pool p: surgeSlots": func(s *cluster.Snapshot) { s.Pools[0].SurgeSlots = []int{7} },
	} {
		s, err := enginetest.Parse("type m cpu=2 mem=8Gi od=0.1\npool p\nnode n type=m pool=p\npod web-0 cpu=1")
		if err != nil {
			t.Fatal(err)
		}
		change(s)
		if refused := said(t, s); !slices.Contains(refused, want) {
			t.Errorf("want %q, got %q", want, fmt.Sprint(refused))
		}
	}
}
