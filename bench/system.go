package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/joiner-autoscaler/joiner/bench/internal/peer"
	"github.com/joiner-autoscaler/joiner/bench/internal/report"
	"github.com/joiner-autoscaler/joiner/bench/internal/system"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// systemPrefix begins the names of scenarios in which whole controllers run (B-10 to B-13): system-500 has 500 pods.
// qpsInfix precedes a limit of kube-scheduler's client, in requests a second: system-500-qps50 has the limit of a
// scheduler without flags.
const (
	systemPrefix = "system-"
	qpsInfix     = "-qps"
)

// programs are the paths of the programs of a whole system.
type programs struct{ controlPlane, joiner, karpenter string }

// findPrograms finds the programs of a whole system: those beside this one, unless flags say otherwise.
func (s *suite) findPrograms() error {
	own, err := os.Executable()
	if err != nil {
		return err
	}
	for name, path := range map[string]*string{"controlplane": &s.programs.controlPlane, "joiner": &s.programs.joiner,
		"karpenter": &s.programs.karpenter} {
		if *path == "" {
			*path = filepath.Join(filepath.Dir(own), name)
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
		if _, err := os.Stat(*path); err != nil {
			return fmt.Errorf("program %s: %w: run make bench, which builds it, or leave out the scenarios %s...",
				name, err, systemPrefix)
		}
	}
	return nil
}

// restPrefix begins the names of scenarios of a controller at rest (B-22): rest-2000 has 2,000 nodes and 20,000 pods.
const restPrefix = "rest-"

// sidesOf returns the sides to run, with their programs.
func (s *suite) sidesOf() (sides []system.Side) {
	for _, side := range s.sides {
		program := rig.JoinerProgram(s.programs.joiner)
		if side == report.Karpenter {
			program = peer.Program(s.programs.karpenter)
		}
		sides = append(sides, system.Side{Name: side, Program: program})
	}
	return sides
}

// atRest looks at each side's controller while nothing happens, once.
func (s *suite) atRest(name string) ([]report.Line, error) {
	nodes, err := strconv.Atoi(strings.TrimPrefix(name, restPrefix))
	if err != nil || nodes <= 0 || nodes%20 != 0 {
		return nil, fmt.Errorf("scenario %q; want %s and a multiple of 20", name, restPrefix)
	}
	if err := s.findPrograms(); err != nil {
		return nil, err
	}
	config := system.Config{ControlPlane: s.programs.controlPlane, Log: os.Stderr, Sides: s.sidesOf()}
	seen, err := config.Rest(context.Background(), nodes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var lines []report.Line
	for _, r := range seen {
		lines = append(lines, report.Line{Record: report.Record{
			Scenario: name, Side: r.Side, Cost: r.Cost, PodsPlaced: r.Pods, Nodes: r.Nodes, CutOff: r.CutOff,
			Rest: &report.Rest{Requests: r.Requests, ReadySeconds: r.ReadySeconds, Writes: r.Writes, Went: r.Went},
		}})
	}
	return lines, nil
}

// whole measures both sides as whole controllers. For each phase, the median round by time counts.
func (s *suite) whole(name string) ([]report.Line, error) {
	pods, qps, err := sizes(name)
	if err != nil {
		return nil, err
	}
	if err := s.findPrograms(); err != nil {
		return nil, err
	}
	config := system.Config{ControlPlane: s.programs.controlPlane, Rounds: s.rounds, SchedulerQPS: qps,
		Dir: s.stateDir, Log: os.Stderr, Sides: s.sidesOf()}
	phases, err := config.Run(context.Background(), pods)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	size := strings.TrimPrefix(name, systemPrefix)
	lines := []report.Line{summary(system.Apply, system.Scheduler, size, phases)}
	for _, phase := range []string{system.Apply, system.Shrink} {
		for _, side := range s.sides {
			lines = append(lines, summary(phase, side, size, phases))
		}
	}
	return lines, nil
}

// sizes returns the number of pods of a scenario system-N, and the limit of kube-scheduler's client in requests a
// second; 0 means the default.
func sizes(name string) (pods, qps int, err error) {
	count, limit, limited := strings.Cut(strings.TrimPrefix(name, systemPrefix), qpsInfix)
	pods, err = strconv.Atoi(count)
	if err == nil && limited {
		qps, err = strconv.Atoi(limit)
	}
	if err != nil || pods <= 0 || pods%500 != 0 || limited && qps <= 0 {
		return 0, 0,
			fmt.Errorf(
				"scenario %q; want %s, a multiple of 500 and, for a limit of kube-scheduler's client, %s and requests a second",
				name, systemPrefix, qpsInfix)
	}
	return pods, qps, nil
}

// summary returns the median round of one phase of a side. size is the size in the scenario's name.
func summary(name, side, size string, phases []system.Phase) report.Line {
	var own []system.Phase
	for _, p := range phases {
		if p.Name == name && p.Side == side {
			own = append(own, p)
		}
	}
	slices.SortStableFunc(own, func(a, b system.Phase) int { return cmp.Compare(a.WallSeconds, b.WallSeconds) })
	median := own[(len(own)-1)/2]
	line := report.Line{Record: report.Record{
		Scenario: name + "-" + size, Side: side, Cost: median.Cost, PodsPlaced: median.Bound,
		PodsUnplaced: median.Unbound, Nodes: median.Left, PricePerHour: median.Price, CutOff: median.CutOff,
		System: &report.System{NodesPlanned: median.Planned, NodesLaunched: median.Launched,
			NodesRemoved: median.Removed, Requests: median.Requests, PassedOver: median.PassedOver,
			Expected: median.Expected, Elsewhere: median.Elsewhere},
	}}
	for _, p := range own {
		line.System.RoundSeconds = append(line.System.RoundSeconds, p.WallSeconds)
		line.System.RoundPrices = append(line.System.RoundPrices, p.Price)
	}
	return line
}
