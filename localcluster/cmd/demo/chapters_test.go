package main

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

// told tells two chapters whose steps note that they ran; the step named broken fails.
func told(only, broken string) (ran []string, out string, err error) {
	note := func(name string) step {
		return func(context.Context) error {
			ran = append(ran, name)
			if name == broken {
				return errors.New("broken by hand")
			}
			return nil
		}
	}
	var printed bytes.Buffer
	err = teller{only: only, out: &printed, pause: pressed(strings.NewReader("\n\n"), &printed)}.tell(
		context.Background(),
		[]chapter{{"one", "the first", nil, []step{note("a"), note("b")}},
			{"two", "the second", []step{note("b")}, []step{note("c"), note("d")}}})
	return ran, printed.String(), err
}

// U-01: a step that fails ends the story with an error that names it, and no step after it runs.
func TestU01_ABrokenStepFailsTheDemo(t *testing.T) {
	t.Parallel()
	ran, out, err := told("", "")
	if err != nil || !slices.Equal(ran, []string{"a", "b", "c", "d"}) || strings.Count(out, "Enter") != len(ran) {
		t.Errorf("ran %v: %v\n%s", ran, err, out)
	}
	for _, step := range []string{"a", "b", "c", "d"} {
		ran, _, err := told("", step)
		if err == nil || !strings.Contains(err.Error(), "broken by hand") || ran[len(ran)-1] != step {
			t.Errorf("with %s broken, %v ran: %v", step, ran, err)
		}
	}
}

// U-01: a chapter told alone first makes what the chapters before it would have left.
func TestU01_AChapterIsToldAlone(t *testing.T) {
	t.Parallel()
	ran, out, err := told("two", "")
	if err != nil || !slices.Equal(ran, []string{"b", "c", "d"}) || strings.Contains(out, "Chapter one") {
		t.Errorf("ran %v: %v\n%s", ran, err, out)
	}
	if err := checkChapter("noeds"); err == nil || !strings.Contains(err.Error(), "nodes") {
		t.Errorf("a chapter that is not there: %v", err)
	}
	for _, name := range append(chapterNames(), "") {
		if err := checkChapter(name); err != nil {
			t.Error(err)
		}
	}
}

// U-01: an interrupt in a pause ends the story.
func TestU01_APauseIsInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	silent, hand := make(chan struct{}), bytes.Buffer{}
	defer close(silent)
	err := pressed(reader(func() { <-silent }), &hand)(ctx)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the pause ended with %v", err)
	}
}

// reader is an input at which nobody sits.
type reader func()

func (r reader) Read([]byte) (int, error) {
	r()
	return 0, errors.New("closed")
}
