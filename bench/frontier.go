package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/joiner-autoscaler/joiner/bench/internal/bound"
	"github.com/joiner-autoscaler/joiner/bench/internal/report"
	"github.com/joiner-autoscaler/joiner/bench/internal/scenario"
)

// frontiers are the scenarios whose nodes are measured against their price, under each of the settings (B-20).
var frontiers = []string{"plain-5000", "consolidate-200"}

// settings are the settings for frontiers: a price tolerance in percent, or what a node costs beside its price in
// dollars per hour. The first is the default.
var settings = []report.Setting{
	{}, {PriceTolerance: 2}, {PriceTolerance: 5}, {PriceTolerance: 10},
	{NodeOverheadPrice: 0.02}, {NodeOverheadPrice: 0.05}, {NodeOverheadPrice: 0.1}, {NodeOverheadPrice: 0.2},
}

// frontier measures Joiner's side of a scenario under each setting, in a process of its own. One run is enough: the
// plan is always the same (P-20), and times do not matter here.
func (s *suite) frontier(name string) ([]report.Point, error) {
	if !slices.Contains(frontiers, name) || !slices.Contains(s.sides, report.Joiner) {
		return nil, nil
	}
	input, err := scenario.Make(name, s.run.Seed)
	if err != nil {
		return nil, err
	}
	least := bound.FrontierOf(input)
	input = scenario.Scenario{}
	var points []report.Point
	for _, setting := range settings {
		r := s.run
		r.Scenario, r.Side = name, report.Joiner
		r.PriceTolerance, r.NodeOverheadPrice = setting.PriceTolerance, setting.NodeOverheadPrice
		a, err := r.inProcess()
		if err != nil {
			return nil, err
		}
		p := report.Point{Setting: setting, Nodes: a.Record.Nodes, PricePerHour: a.Record.PricePerHour,
			Violations: a.Record.Violations, LeastNodes: least.Nodes(a.Record.PricePerHour)}
		fmt.Fprintf(os.Stderr, "%s, %s: %d nodes, %.3f $/h; no plan of that price has fewer than %d\n", name, setting,
			p.Nodes, p.PricePerHour, p.LeastNodes)
		for _, violation := range a.Violations {
			fmt.Fprintf(os.Stderr, "%s, %s: VIOLATION: %s\n", name, setting, violation)
		}
		points = append(points, p)
	}
	for i := range points {
		share := 1 + float64(points[i].PriceTolerance)/100
		points[i].LeastWithin = least.Nodes(points[0].PricePerHour * share)
	}
	return points, nil
}
