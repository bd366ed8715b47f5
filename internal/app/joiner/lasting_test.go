package joiner

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/history"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

// TestU32_WhatLastsIsToldTwice: however many pods wait for a cause, there is one record when the first of them waits,
// and one when none does any more. A pause has two records as well.
func TestU32_WhatLastsIsToldTwice(t *testing.T) {
	t.Parallel()
	var told []string
	kept, now := history.New(0, 1), time.Unix(1_800_000_000, 0)
	l := newLasting(func(r history.Record) (string, bool) {
		id, isNew := kept.Add(r, now)
		told = append(told, fmt.Sprintf("%s %s %s %s %d", r.Verb, r.Cause, r.NodePool, r.Outcome, r.Pods))
		return id, isNew
	})
	look := func(pods, paused string) {
		t.Helper()
		s, err := enginetest.Parse("type m cpu=4 zones=a od=0.2\npool p hard.nodes=1\nnode n type=m zone=a pool=p\n" +
			pods)
		if err != nil {
			t.Fatal(err)
		}
		now = now.Add(10 * time.Second)
		l.found(view.PodGroups(s, engine.Provision(s)), paused, now)
	}
	must := func(want ...string) {
		t.Helper()
		if !slices.Equal(told, want) {
			t.Errorf("told is %q, want %q", told, want)
		}
		told = nil
	}
	look("", "")
	must()
	look("pod big-0..2 cpu=64\npod web-0..1 cpu=3\n", "") // the first web fits
	must("wait PodTooLarge p begun 3", "wait HardLimitNodes p begun 1")
	look("pod big-0..40 cpu=64\npod web-0..1 cpu=3\n", "paused by somebody")
	must("pause Paused  begun 0")
	look("pod big-7 cpu=64\n", "paused by somebody")
	must("wait HardLimitNodes p ended 0")
	look("", "")
	must("wait PodTooLarge p ended 0", "pause Paused  ended 0")
	records := kept.Records()
	for _, r := range records {
		if r.Outcome == history.OutcomeEnded && (r.Of == "" || !strings.HasPrefix(r.Why, "after ")) {
			t.Errorf("%+v does not say what it is the end of", r)
		}
	}
	if r := records[0]; len(r.PodNames) != 3 || r.Why == "" {
		t.Errorf("%+v says too little", r)
	}
}

// TestU32_WhatLastsIsBounded.
func TestU32_WhatLastsIsBounded(t *testing.T) {
	t.Parallel()
	added := 0
	l := newLasting(func(history.Record) (string, bool) { added++; return fmt.Sprint(added), true })
	for i := range 3 * mostLasting {
		l.open[era{history.VerbPause, "Paused", "", fmt.Sprint(i)}] = begun{fmt.Sprint(i), time.Time{}}
	}
	l.found(nil, "one more", time.Unix(0, 0))
	if added != 3*mostLasting || len(l.open) != 0 {
		t.Errorf("%d records, %d open: want only the ends", added, len(l.open))
	}
}
