package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// question is a question to joinerctl, with the expected answer.
type question struct {
	typed string // the command as readers would type it
	args  []string
	input string // of standard input
	code  int
	part  string // of the expected answer
}

// asked asks a question, checks the answer, and shows it.
func (s *story) asked(ctx context.Context, q question) error {
	command := s.Cluster.Program(ctx, s.joinerctl, q.args...)
	command.Stdin = strings.NewReader(q.input)
	output, err := command.CombinedOutput()
	code := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		code, err = exit.ExitCode(), nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", q.typed, err)
	}
	if code != q.code || !strings.Contains(string(output), q.part) {
		return fmt.Errorf("%s ended with %d; want %d and %q:\n%s", q.typed, code, q.code, q.part, output)
	}
	fmt.Printf("\n    $ %s\n    %s\n", q.typed, strings.ReplaceAll(strings.TrimSpace(string(output)), "\n", "\n    "))
	return nil
}

// explained checks that joinerctl names the cause for which a pod waits.
func (s *story) explained(ctx context.Context, pod, cause string) error {
	return s.asked(ctx, question{typed: "joinerctl explain pod " + pod, args: []string{"explain", "pod", pod}, code: 1,
		part: "waits: " + cause + "\n"})
}

// foretell asks what a narrower pool would do before anybody applies it. Nothing is written.
func (s *story) foretell(ctx context.Context) error {
	s.done("What would it do to allow three instance types only? joinerctl tells it of the cluster as it is, " +
		"and writes nothing")
	return s.asked(ctx, question{typed: "joinerctl simulate --change narrower.yaml",
		args: []string{"simulate", "--change", "-"}, input: manifest("narrower"), part: "Drifted"})
}

// status runs joinerctl status: at the end of the chapter nothing needs attention.
func (s *story) status(ctx context.Context) error {
	s.done("One screen for whoever is on call: nothing needs attention, and joinerctl ends with 0")
	return s.asked(ctx, question{typed: "joinerctl status", args: []string{"status"}, part: "default"})
}
