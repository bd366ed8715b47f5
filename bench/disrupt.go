package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"

	"github.com/joiner-autoscaler/joiner/bench/internal/joiner"
	"github.com/joiner-autoscaler/joiner/bench/internal/karpenter"
	"github.com/joiner-autoscaler/joiner/bench/internal/oracle"
	"github.com/joiner-autoscaler/joiner/bench/internal/outcome"
	"github.com/joiner-autoscaler/joiner/bench/internal/report"
	"github.com/joiner-autoscaler/joiner/bench/internal/rounds"
	"github.com/joiner-autoscaler/joiner/bench/internal/scenario"
)

// disrupt measures the rounds in which a cluster's nodes go (B-05, B-06).
func (r run) disrupt(s scenario.Scenario) (answer, error) {
	work := rounds.Run{Scenario: s, Limit: r.DisruptLimit}
	fresh, err := r.fresh(s)
	if err != nil {
		return answer{}, err
	}
	var own *joiner.Disrupter
	if r.Side == report.Joiner {
		own, err = joiner.NewDisrupter(s, r.costs())
		if err == nil && r.SchedulerSeed != 0 {
			own.ByScheduler(rand.New(rand.NewPCG(r.SchedulerSeed, 0)))
		}
		work.Side = own
	} else {
		work.Side, err = karpenter.NewDisrupter(s, r.Peer)
	}
	if err != nil {
		return answer{}, err
	}
	checked := r.Oracle != ""
	if checked {
		work.Check = func(s scenario.Scenario, o outcome.Outcome) ([]string, error) {
			violations, err := oracle.Check(r.Oracle, s, o, judgeFor)
			if errors.Is(err, oracle.ErrTooLong) { // then the whole run counts as unchecked
				checked, err = false, nil
			}
			return violations, err
		}
	}
	if r.Trace {
		work.Trace = func(line string) { fmt.Fprintf(os.Stderr, "%s, %s: %s\n", r.Scenario, r.Side, line) }
	}
	stop, err := r.profile()
	if err != nil {
		return answer{}, err
	}
	result, err := work.Do()
	stop()
	if err != nil {
		return answer{}, err
	}
	a := answer{Record: report.Record{
		Scenario: r.Scenario, Side: r.Side, Cost: result.Cost, PodsPlaced: result.Placed,
		PodsUnplaced: result.Unplaced,
		Nodes:        result.Nodes, PricePerHour: result.After.Dollars(), CutOff: result.CutOff,
		Rounds: result.Rounds, FirstRound: result.FirstRemoved,
	}}
	a.Note = fmt.Sprintf(
		"%d rounds (the first: %d nodes), %d nodes went, %d came, pods moved %d times; %d nodes of %.3f $/h before",
		result.Rounds, result.FirstRemoved, result.Removed, result.Launched, result.Moved, len(s.Nodes),
		result.Before.Dollars())
	if fresh != nil {
		a.Record.FreshPrice, a.Record.FreshNodes = fresh.Price().Dollars(), len(fresh.Launches)
		a.Note += fmt.Sprintf("; a fresh plan: %d nodes, %.3f $/h, of which the end is %.3f times",
			a.Record.FreshNodes, a.Record.FreshPrice, a.Record.PricePerHour/a.Record.FreshPrice)
	}
	if r.SchedulerSeed != 0 && own != nil {
		pods, launched := own.Displaced()
		a.Note += fmt.Sprintf("; kube-scheduler's model found no node for %d pods, %d nodes came for these", pods,
			launched)
	}
	if result.CutOff {
		a.Note += fmt.Sprintf("; cut off after %s of planning", work.Limit)
	}
	if checked {
		count := len(result.Violations)
		a.Record.Violations, a.Violations = &count, result.Violations[:min(count, maxViolations)]
	}
	return a, nil
}

// fresh returns what Joiner would launch for all pods of a consolidation scenario if there were no node yet (B-17). It
// is not measured. It is nil for the peer's side, and for drift, whose nodes are not chosen for their price.
func (r run) fresh(s scenario.Scenario) (*outcome.Outcome, error) {
	if r.Side != report.Joiner || s.Disrupt != scenario.Consolidate {
		return nil, nil
	}
	result, err := joiner.Fresh(s, r.costs())
	return &result, err
}
