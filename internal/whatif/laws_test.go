package whatif

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/foretell"
)

// seeds is how many generated clusters each law is tried on.
const seeds = 16

func eachSeed(t *testing.T, law func(t *testing.T, g generator)) {
	t.Helper()
	t.Parallel()
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { law(t, newGenerator(t, seed)) })
	}
}

// TestU03_NoChangeIsNoDifference: applying equal objects changes nothing, and a cluster at rest stays the same.
func TestU03_NoChangeIsNoDifference(t *testing.T) {
	eachSeed(t, func(t *testing.T, g generator) {
		files := g.cluster()
		c := g.compared(files, Change{Documents: files}, UntilQuiet)
		if len(c.Changes) > 0 {
			t.Errorf("the files themselves are said to change %+v", c.Changes)
		}
		if c.Restless {
			t.Errorf("not at rest after %d rounds", c.Rounds)
		}
		if !reflect.DeepEqual(c.Before, c.After) || !reflect.DeepEqual(c.Before, *c.Quiet) || len(c.Nodes) > 0 {
			t.Errorf("before %+v\nright after %+v\nquiet %+v\nnodes %+v", c.Before, c.After, *c.Quiet, c.Nodes)
		}
	})
}

// TestU03_AChangeAndItsReverse: the plan is that of before.
func TestU03_AChangeAndItsReverse(t *testing.T) {
	t.Parallel()
	moved := 0
	for seed := range uint64(seeds) {
		g := newGenerator(t, seed)
		files := g.cluster()
		w := g.pictured(files)
		before := planned(t, w)
		there := changedTo(t, w, g.change(files).Documents)
		if !reflect.DeepEqual(planned(t, there), before) {
			moved++
		}
		if back := planned(t, changedTo(t, there, files)); !reflect.DeepEqual(back, before) {
			t.Errorf("seed %d: %+v\nafter the change and its reverse, before it\n%+v", seed, back, before)
		}
	}
	if moved == 0 {
		t.Error("no change of any seed changed anything: nothing was tried")
	}
}

// changedTo is the world in which the documents are applied.
func changedTo(t *testing.T, w *World, documents []Document) *World {
	t.Helper()
	edits, err := w.edits(Change{Documents: copied(documents)})
	if err != nil {
		t.Fatal(err)
	}
	after, _, err := w.with(w.told, edits, nil)
	if err != nil {
		t.Fatal(err)
	}
	return after
}

// planned is what one plan comes to.
func planned(t *testing.T, w *World) Totals {
	t.Helper()
	s, err := w.stage(nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Plan()
	return w.totals(s)
}

// TestU22_CompareGivesTheSameBytes: whatever the order of files and of changes, and nothing that was given is changed.
func TestU22_CompareGivesTheSameBytes(t *testing.T) {
	eachSeed(t, func(t *testing.T, g generator) {
		files := g.cluster()
		change := g.change(files)
		given, _ := json.Marshal(files)
		first := printed(t, g.compared(files, change, UntilQuiet))
		for range 2 {
			g.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
			g.Shuffle(len(change.Documents), func(i, j int) {
				change.Documents[i], change.Documents[j] = change.Documents[j], change.Documents[i]
			})
			if again := printed(t, g.compared(files, change, UntilQuiet)); again != first {
				t.Fatalf("%s\nin another order\n%s", first, again)
			}
		}
		slices.SortFunc(files, func(a, b Document) int { return strings.Compare(a.Where, b.Where) })
		if now, _ := json.Marshal(files); len(now) != len(given) {
			t.Errorf("the files were changed: %s\nbefore %s", now, given)
		}
	})
}

func printed(t *testing.T, c Comparison) string {
	t.Helper()
	var out strings.Builder
	if err := c.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	if err := c.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestU03_WhatIsForetoldAddsUp: nodes come and go as the totals say, each pod is on exactly one node, and no pool is
// above its limit in the end.
func TestU03_WhatIsForetoldAddsUp(t *testing.T) {
	t.Parallel()
	came := 0
	for seed := range uint64(seeds) {
		g := newGenerator(t, seed)
		files := g.cluster()
		c := g.compared(files, g.change(files), UntilQuiet)
		if c.Restless {
			t.Errorf("seed %d: not at rest after %d rounds", seed, foretell.MaxRounds)
		}
		sum := c.Before.Nodes
		for _, n := range c.Nodes {
			switch n.Fate {
			case Comes:
				sum++
			case Goes, Replaced:
				sum--
			}
		}
		came += len(c.Nodes)
		if sum != c.Quiet.Nodes {
			t.Errorf("seed %d: %d nodes before, %d by what comes and goes, %d in the end", seed, c.Before.Nodes, sum,
				c.Quiet.Nodes)
		}
		for _, p := range c.Quiet.Pools {
			if p.Limit != nil && int64(p.Nodes) > *p.Limit && !slices.ContainsFunc(c.Nodes,
				func(n NodeFate) bool { return n.Fate == Held && n.Pool == p.Pool }) {
				t.Errorf("seed %d: pool %s has %s, and nothing is said to be held", seed, p.Pool, p.nodesText())
			}
		}
	}
	if came == 0 {
		t.Error("no node came or went in any cluster: nothing was tried")
	}
}
