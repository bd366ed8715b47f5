package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

type step func(context.Context) error

// chapter is a part of the story that can be told on its own.
type chapter struct {
	name  string // the value of --chapter
	about string
	needs []step // steps of earlier chapters that it needs when told on its own
	steps []step
}

// chapters returns the story, in order.
func (s *story) chapters() []chapter {
	return []chapter{
		{"nodes", "pods get nodes, and nodes go with their pods", nil,
			[]step{s.pool, s.scaleUp, s.explain, s.foretell, s.scaleDown, s.status}},
		{"protection", "who may place pods on control plane nodes", nil, []step{s.protect}},
		{"policy", "a provider's policy for the nodes of a hosted cluster", []step{s.pool},
			[]step{s.host, s.policy, s.tenant, s.editPool, s.nothing, s.deleteBinding, s.attacked, s.lifted}},
		{"ec2", "nodes that are instances of EC2", nil, []step{s.onEC2}},
	}
}

// chapterNames returns the values of --chapter.
func chapterNames() (names []string) {
	for _, c := range (&story{}).chapters() {
		names = append(names, c.name)
	}
	return names
}

// checkChapter refuses an unknown chapter; "" means all.
func checkChapter(name string) error {
	if names := chapterNames(); name != "" && !slices.Contains(names, name) {
		return fmt.Errorf("--chapter is %q: %s are allowed", name, strings.Join(names, ", "))
	}
	return nil
}

// teller runs chapters.
type teller struct {
	only  string // the only chapter to tell; "" means all
	out   io.Writer
	pause func(context.Context) error // between steps
}

// tell runs chapters until a step fails.
func (t teller) tell(ctx context.Context, chapters []chapter) error {
	for _, c := range chapters {
		if t.only != "" && c.name != t.only {
			continue
		}
		fmt.Fprintf(t.out, "\nChapter %s: %s\n", c.name, c.about)
		steps := c.steps
		if t.only != "" {
			steps = slices.Concat(c.needs, c.steps)
		}
		for i, do := range steps {
			if err := t.pause(ctx); err != nil {
				return err
			}
			if err := do(ctx); err != nil {
				return fmt.Errorf("chapter %s, step %d of %d: %w", c.name, i+1, len(steps), err)
			}
		}
	}
	return nil
}

// onward is a pause of no length.
func onward(context.Context) error { return nil }

// pressed returns a pause that waits for Enter, so that a presenter can talk. At the end of input it does not wait.
func pressed(in io.Reader, out io.Writer) func(context.Context) error {
	read := bufio.NewReader(in)
	return func(ctx context.Context) error {
		fmt.Fprint(out, "\n(Enter goes on) ")
		got := make(chan error, 1)
		go func() { // if nobody presses Enter any more, it ends with the process
			_, err := read.ReadString('\n')
			got <- err
		}()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-got:
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}
