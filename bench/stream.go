package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/joiner-autoscaler/joiner/bench/internal/report"
	"github.com/joiner-autoscaler/joiner/bench/internal/scenario"
	"github.com/joiner-autoscaler/joiner/bench/internal/stream"
)

// streamPrefix begins the names of scenarios in which Joiner takes in a recorded stream: stream-N is N nodes with 20
// pods each.
const streamPrefix = "stream-"

// stream measures a recorded stream on Joiner's side alone: the peer has no store that could be driven without its
// controllers.
func (s *suite) stream(name string) ([]report.Line, error) {
	a, err := s.measure(name, report.Joiner)
	if err != nil {
		return nil, err
	}
	return []report.Line{{Record: a.Record, Note: a.Note}}, nil
}

// stream records the events of a cluster in a file and plays them.
func (r run) stream() (a answer, err error) {
	s, err := scenario.Make(strings.Replace(r.Scenario, streamPrefix, "one-more-pod-", 1), r.Seed)
	if err != nil {
		return answer{}, err
	}
	file, err := os.CreateTemp("", "joiner-stream")
	if err != nil {
		return answer{}, err
	}
	defer func() {
		file.Close()
		os.Remove(file.Name())
	}()
	to := bufio.NewWriterSize(file, 1<<20)
	if err := stream.Record(s, to); err != nil {
		return answer{}, fmt.Errorf("recording: %w", err)
	}
	if err := to.Flush(); err != nil {
		return answer{}, fmt.Errorf("recording: %w", err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return answer{}, fmt.Errorf("recording: %w", err)
	}
	s.Nodes, s.Pending = nil, nil // what is played is in the file
	stop, err := r.profile()
	if err != nil {
		return answer{}, err
	}
	defer stop()
	cost, seen, err := stream.Play(s, file)
	if err != nil {
		return answer{}, err
	}
	return answer{Record: report.Record{Scenario: r.Scenario, Side: r.Side, Cost: cost, PodsPlaced: seen.Pods,
		Nodes: seen.Nodes, Stream: &seen}}, nil
}
