package whatif

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// FailOn are the conditions that count as a finding. Create it with [ParseFailOn].
type FailOn []func(*Comparison) bool

// DefaultFailOn is what counts as a finding by default.
const DefaultFailOn = "new-waiting,held"

// failOnAllowed describes the values of --fail-on.
const failOnAllowed = "new-waiting, held, drift, disruption, trim, any, price+N% and price+$N, such as price+5% or " +
	"price+$1.50"

// ParseFailOn parses a comma-separated list. The error names the invalid word.
func ParseFailOn(list string) (FailOn, error) {
	var found FailOn
	for word := range strings.SplitSeq(list, ",") {
		happens, known := findings()[word]
		if !known {
			var err error
			if happens, err = dearer(word); err != nil {
				return nil, fmt.Errorf("--fail-on has %q: allowed are %s", word, failOnAllowed)
			}
		}
		found = append(found, happens)
	}
	return found, nil
}

func findings() map[string]func(*Comparison) bool {
	fate := func(happens func(NodeFate) bool) func(*Comparison) bool {
		return func(c *Comparison) bool { return slices.ContainsFunc(c.Nodes, happens) }
	}
	return map[string]func(*Comparison) bool{
		"new-waiting": func(c *Comparison) bool {
			return slices.ContainsFunc(c.Pods, func(p PodFate) bool { return p.NewWaiting > 0 })
		},
		"held":       fate(func(n NodeFate) bool { return n.Fate == Held }),
		"drift":      fate(func(n NodeFate) bool { return n.Reason == string(plan.Drifted) }),
		"disruption": fate(func(n NodeFate) bool { return n.Fate == Goes || n.Fate == Replaced }),
		"trim":       fate(func(n NodeFate) bool { return engine.TooMany(plan.DisruptionReason(n.Reason)) }),
		"any":        func(c *Comparison) bool { return len(c.Changes) > 0 },
	}
}

// dearer parses price+5% or price+$1.
func dearer(word string) (func(*Comparison) bool, error) {
	more, isPrice := strings.CutPrefix(word, "price+")
	if !isPrice {
		return nil, fmt.Errorf("%q is no price", word)
	}
	share, isShare := strings.CutSuffix(more, "%")
	amount, isAmount := strings.CutPrefix(more, "$")
	if isShare == isAmount {
		return nil, fmt.Errorf("%q has neither %% nor $", word)
	}
	if isShare {
		amount = share
	}
	n, err := strconv.ParseFloat(amount, 64)
	if err != nil {
		return nil, err
	}
	money, err := resources.FromDollars(n) // NaN, negative and absurd numbers are refused alike
	if err != nil {
		return nil, err
	}
	return func(c *Comparison) bool {
		rise := resources.Money(c.last().PricePerHour - c.Before.PricePerHour)
		if isShare {
			return rise > 0 && rise.Dollars()*100 >= c.Before.PricePerHour.dollars()*n
		}
		return rise > 0 && rise >= money
	}, nil
}

func (d Dollars) dollars() float64 { return resources.Money(d).Dollars() }

// last returns the final totals.
func (c *Comparison) last() Totals {
	if c.Quiet != nil {
		return *c.Quiet
	}
	return c.After
}

// Judge determines whether there is a finding. Without a change, that is a pod that waits in the end.
func (c *Comparison) Judge(on FailOn) {
	c.found = !c.Changed && c.last().WaitingPods > 0
	for _, happens := range on {
		c.found = c.found || len(c.Changes) > 0 && happens(c)
	}
}

// Clean reports whether nothing was found, see [Comparison.Judge].
func (c Comparison) Clean() bool { return !c.found }
