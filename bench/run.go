package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-autoscaler/joiner/bench/internal/joiner"
	"github.com/joiner-autoscaler/joiner/bench/internal/karpenter"
	"github.com/joiner-autoscaler/joiner/bench/internal/measure"
	"github.com/joiner-autoscaler/joiner/bench/internal/oracle"
	"github.com/joiner-autoscaler/joiner/bench/internal/outcome"
	"github.com/joiner-autoscaler/joiner/bench/internal/report"
	"github.com/joiner-autoscaler/joiner/bench/internal/scenario"
)

// planner is a side with a cluster in memory.
type planner interface {
	// Add adds a pending pod, and Remove removes it.
	Add(*corev1.Pod) error
	Remove(*corev1.Pod)
	// Warm brings the side into the state of one that has run for a while. It is not measured.
	Warm()
	// Plan plans for all pending pods.
	Plan() error
	// Outcome returns the last plan, and Note a remark on it.
	Outcome() (outcome.Outcome, error)
	Note() string
}

// run is one measurement in a process of its own.
type run struct {
	Scenario string
	Side     string
	Seed     uint64
	Peer     karpenter.Config
	Passes   int // how often the same is planned; the median pass counts; 0: the scenario's default
	Profile  string
	Oracle   string // program that checks plans; "": none
	// DisruptLimit ends the rounds of a disruption, on either side: what was done until then counts. Trace prints each
	// round.
	DisruptLimit time.Duration
	Trace        bool
	// SchedulerSeed has a model of kube-scheduler place the pods that moved, drawn by this seed; 0: they go where
	// Joiner expects them.
	SchedulerSeed uint64
	// PriceTolerance is Joiner's, in percent.
	PriceTolerance int
	// NodeOverheadPrice is Joiner's, in dollars per hour.
	NodeOverheadPrice float64
}

// answer is the result of a run, which its process prints.
type answer struct {
	Record     report.Record
	Note       string
	Violations []string // the first of them, in words
}

const maxViolations = 5

// warmUp is planned before anything is measured, so that the program's own pages are in memory.
const warmUp = "diverse-100"

// costs are Joiner's settings of what nodes cost.
func (r run) costs() joiner.Costs {
	return joiner.Costs{PriceTolerance: r.PriceTolerance, NodeOverheadPrice: r.NodeOverheadPrice}
}

func (r run) start(s scenario.Scenario) (planner, error) {
	switch r.Side {
	case report.Joiner:
		return joiner.New(s, r.costs())
	case report.Karpenter:
		return karpenter.New(s, r.Peer)
	}
	return nil, fmt.Errorf("side %q; want %s or %s", r.Side, report.Joiner, report.Karpenter)
}

// do measures and returns the answer.
func (r run) do() (answer, error) {
	if strings.HasPrefix(r.Scenario, streamPrefix) {
		return r.stream()
	}
	warm, err := scenario.Make(warmUp, r.Seed+1)
	if err != nil {
		return answer{}, err
	}
	p, err := r.start(warm)
	if err != nil {
		return answer{}, err
	}
	if _, err := batch(p, warm.Pending); err != nil {
		return answer{}, fmt.Errorf("warming up: %w", err)
	}
	s, err := scenario.Make(r.Scenario, r.Seed)
	if err != nil {
		return answer{}, err
	}
	if s.Disrupt != "" {
		return r.disrupt(s)
	}
	if p, err = r.start(s); err != nil {
		return answer{}, err
	}
	pending, oneByOne := s.Pending, s.OneByOne
	if r.Passes == 0 {
		r.Passes = 1
		if oneByOne {
			r.Passes = defaultPasses
		}
	}
	s, warm = scenario.Scenario{}, scenario.Scenario{} // memory that a side does not keep should not count as its own
	stop, err := r.profile()
	if err != nil {
		return answer{}, err
	}
	defer stop()
	var cost measure.Cost
	if oneByOne {
		cost, err = r.inTurn(p, pending)
	} else {
		cost, err = r.together(p, pending)
	}
	if err != nil {
		return answer{}, err
	}
	return r.answer(p, cost)
}

func (r run) profile() (stop func(), err error) {
	if r.Profile == "" {
		return func() {}, nil
	}
	file, err := os.Create(r.Profile)
	if err != nil {
		return nil, err
	}
	return pprof.StopCPUProfile, pprof.StartCPUProfile(file)
}

// batch adds all pods, and plans for them together. Only planning is measured.
func batch(p planner, pods []*corev1.Pod) (measure.Cost, error) {
	for _, pod := range pods {
		if err := p.Add(pod); err != nil {
			return measure.Cost{}, err
		}
	}
	measure.Settle()
	return measure.Of(p.Plan)
}

func (r run) together(p planner, pods []*corev1.Pod) (measure.Cost, error) {
	first, err := batch(p, pods)
	costs := []measure.Cost{first}
	for len(costs) < r.Passes && err == nil {
		var cost measure.Cost
		cost, err = measure.Of(p.Plan)
		costs = append(costs, cost)
	}
	return median(costs), err
}

// defaultPasses is how many pods count when they come in turn.
const defaultPasses = 21

// settling is how many pods are planned before those that count, when they come in turn.
const settling = 3

// inTurn takes one pod after the other. It adds the pod and plans for it alone, both measured, and removes it again.
func (r run) inTurn(p planner, pods []*corev1.Pod) (measure.Cost, error) {
	p.Warm()
	measure.Settle()
	var costs []measure.Cost
	for i, pod := range pods[:min(len(pods), settling+r.Passes)] {
		cost, err := measure.Of(func() error {
			if err := p.Add(pod); err != nil {
				return err
			}
			return p.Plan()
		})
		if err != nil {
			return cost, err
		}
		if i >= settling {
			costs = append(costs, cost)
		}
		if i+1 < min(len(pods), settling+r.Passes) {
			p.Remove(pod)
		}
	}
	return median(costs), nil
}

func median(costs []measure.Cost) measure.Cost {
	slices.SortFunc(costs, func(a, b measure.Cost) int { return cmp.Compare(a.WallSeconds, b.WallSeconds) })
	return costs[len(costs)/2]
}

func (r run) answer(p planner, cost measure.Cost) (answer, error) {
	result, err := p.Outcome()
	if err != nil {
		return answer{}, err
	}
	a := answer{Note: p.Note(), Record: report.Record{
		Scenario: r.Scenario, Side: r.Side, Cost: cost, PodsPlaced: result.Placed(),
		PodsUnplaced: len(result.Unplaced),
		Nodes:        len(result.Launches), PricePerHour: result.Price().Dollars(), CutOff: result.CutOff,
	}}
	violations, checked, err := r.check(result)
	if err != nil {
		return a, err
	}
	if checked {
		count := len(violations)
		a.Record.Violations = &count
		a.Violations = violations[:min(count, maxViolations)]
	}
	return a, nil
}

// judgeFor bounds the judging of one plan. A plan with many violations takes longest, because each is tried in every
// order.
const judgeFor = 5 * time.Minute

// check has the plan judged by the oracle, if there is one.
func (r run) check(result outcome.Outcome) (violations []string, checked bool, err error) {
	if r.Oracle == "" {
		return nil, false, nil
	}
	s, err := scenario.Make(r.Scenario, r.Seed)
	if err != nil {
		return nil, false, err
	}
	violations, err = oracle.Check(r.Oracle, s, result, judgeFor)
	if errors.Is(err, oracle.ErrTooLong) && r.Side == report.Karpenter {
		return nil, false, nil // the table says that it was not checked
	}
	return violations, err == nil, err
}
