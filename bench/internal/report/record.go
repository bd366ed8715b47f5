// Package report keeps results: as records in a file for programs, as tables for people.
package report

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/joiner-autoscaler/joiner/bench/internal/measure"
	"github.com/joiner-autoscaler/joiner/bench/internal/system"
)

// Record is one line of results.json: a scenario planned by a side (docs/spec/performance.md).
type Record struct {
	Scenario string `json:"scenario"`
	Side     string `json:"side"`
	measure.Cost
	PodsPlaced   int     `json:"pods_placed"`
	PodsUnplaced int     `json:"pods_unplaced"`
	Nodes        int     `json:"nodes"` // launched; after disruptions those that are left
	PricePerHour float64 `json:"price_per_hour"`
	LowerBound   float64 `json:"lower_bound"` // on the price of any plan for the placed pods, in dollars per hour
	// LowerBoundKind is how LowerBound was found, LowerBounds all bounds by kind: LowerBound is the highest.
	LowerBoundKind string             `json:"lower_bound_kind,omitempty"`
	LowerBounds    map[string]float64 `json:"lower_bounds,omitempty"`
	// Violations is nil if the plan was not checked.
	Violations *int `json:"violations"`
	// CutOff says that the side did not finish in time: it would have taken longer, and its other pods are unplaced.
	CutOff bool `json:"cut_off,omitempty"`
	// Rounds and FirstRound are of disruptions only: how many rounds did something, and nodes that went in the first.
	Rounds     int `json:"rounds,omitempty"`
	FirstRound int `json:"first_round,omitempty"`
	// FreshPrice, in dollars per hour, and FreshNodes are those of Joiner's plan for all pods of the cluster if there
	// were no node yet (B-17); after consolidation only.
	FreshPrice float64 `json:"fresh_price_per_hour,omitempty"`
	FreshNodes int     `json:"fresh_nodes,omitempty"`
	// Frontier is nodes against price (B-20), of some scenarios on Joiner's side.
	Frontier []Point `json:"frontier,omitempty"`
	// System is of whole controllers only.
	*System
	// Rest is of controllers at rest only (B-22).
	Rest *Rest `json:"rest,omitempty"`
	// Stream is of recorded streams only (B-19).
	Stream *Stream `json:"stream,omitempty"`
}

// Rest has further figures of a controller at rest. The Record's wall seconds are the time of rest; its CPU seconds
// and peak of memory are those in that time.
type Rest struct {
	Requests     map[string]int `json:"requests"`      // in that time, by verb and resource, watches aside
	ReadySeconds float64        `json:"ready_seconds"` // of a new process, until it says that it is ready
	Writes       map[string]int `json:"writes"`        // of the new process, by verb and resource, leases aside
	Went         int            `json:"went"`          // nodes that came or went after the restart
}

// System has further figures of a phase in which a whole controller ran (B-10 to B-13).
type System struct {
	// NodesPlanned counts the claims of the first plan of the phase that launches any (B-16, B-11): those that came
	// until the first pod was bound, or else the first one, and then each within a second of the one before.
	NodesPlanned  int `json:"nodes_planned"`
	NodesLaunched int `json:"nodes_launched"`
	NodesRemoved  int `json:"nodes_removed"`
	// Requests are the controller's, by verb and resource, watches aside.
	Requests map[string]int `json:"requests"`
	// Expected are the pods that were bound where a plan expected them, Elsewhere those that were not (K-60).
	Expected  int `json:"bound_as_expected,omitempty"`
	Elsewhere int `json:"bound_elsewhere,omitempty"`
	// PassedOver is of kube-scheduler alone: the seconds until it had found no node for each pod.
	PassedOver float64 `json:"passed_over_seconds,omitempty"`
	// RoundSeconds and RoundPrices are the time of each round and the price at its end, by time; the record is the
	// median's.
	RoundSeconds []float64 `json:"round_seconds"`
	RoundPrices  []float64 `json:"round_prices"`
}

// The sides, and kube-scheduler alone, of the scenarios apply-N. No controller can be faster than kube-scheduler
// alone.
const (
	Joiner    = "joiner"
	Karpenter = "karpenter"
	Scheduler = system.Scheduler
)

// Write puts the records into a file, in place of what was in it.
func Write(file string, records []Record) error {
	data, err := json.MarshalIndent(records, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing results: %w", err)
	}
	return nil
}
