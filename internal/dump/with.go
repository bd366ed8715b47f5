package dump

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Flags of the controller on which planning depends, and the one feature gate.
const (
	flagSaving    = "consolidation-min-saving"
	flagPercent   = "consolidation-min-saving-percent"
	flagGates     = "feature-gates"
	flagTolerant  = "price-tolerance"
	flagOverhead  = "node-overhead-price"
	flagMaxNodes  = "max-nodes"
	flagMaxClaims = "max-node-claims-hard"
	gateSpot      = "SpotToSpotConsolidation"
	percentLimit  = 99
	mostTolerant  = 100
)

// With returns a dump in which one of the controller's flags has another value; setting is FLAG=VALUE. The node
// overhead price then applies to all pools, whatever their annotations said.
func With(d Dump, setting string) (Dump, error) {
	name, value, given := strings.Cut(strings.TrimPrefix(setting, "--"), "=")
	var err error
	d.Terms.Again = false // it was asked before with the other value
	switch {
	case name == flagSaving && given:
		d.Terms.MinSaving, err = dollarsOf(name, value)
	case name == flagPercent && given:
		d.Terms.MinSavingPercent, err = percentOf(name, value, percentLimit)
	case name == flagTolerant && given:
		var percent int
		percent, err = percentOf(name, value, mostTolerant)
		d.Snapshot = withPools(d.Snapshot, func(p *cluster.Pool) { p.PriceTolerance = percent })
	case name == flagOverhead && given:
		var price resources.Money
		price, err = dollarsOf(name, value)
		d.Snapshot = withPools(d.Snapshot, func(p *cluster.Pool) { p.NodeOverheadPrice = price })
	case name == flagMaxNodes && given:
		parts := *d.Snapshot
		parts.MaxNodes, err = countOf(name, value)
		d.Snapshot = cluster.New(parts)
	case name == flagMaxClaims && given:
		parts := *d.Snapshot
		parts.MaxClaims, err = countOf(name, value)
		parts.Claims = max(cluster.CountClaims(parts.Nodes)+parts.Unseen, d.Snapshot.Claims)
		d.Snapshot = cluster.New(parts)
	case name == flagGates && (value == gateSpot+"=true" || value == gateSpot+"=false"):
		d.Terms.SpotToSpot = strings.HasSuffix(value, "true")
	default:
		return d, fmt.Errorf(
			"%q is none of the flags that a plan depends on: want %s=DOLLARS, %s=PERCENT, %s=PERCENT, %s=DOLLARS, "+
				"%s=NUMBER, %s=NUMBER or %s=%s=true|false",
			setting, flagSaving, flagPercent, flagTolerant, flagOverhead, flagMaxNodes, flagMaxClaims, flagGates,
			gateSpot)
	}
	return d, err
}

func dollarsOf(name, value string) (resources.Money, error) {
	dollars, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is %q; want dollars per hour", name, value)
	}
	price, err := resources.FromDollars(dollars)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return price, nil
}

func countOf(name, value string) (int64, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s is %q; want a number of nodes, or 0 for no limit", name, value)
	}
	return n, nil
}

func percentOf(name, value string, most int) (int, error) {
	percent, err := strconv.Atoi(value)
	if err != nil || percent < 0 || percent > most {
		return 0, fmt.Errorf("%s is %q; want 0 to %d", name, value, most)
	}
	return percent, nil
}

// withPools returns the snapshot with its pools changed.
func withPools(s *cluster.Snapshot, change func(*cluster.Pool)) *cluster.Snapshot {
	parts := *s
	parts.Pools = slices.Clone(s.Pools)
	for i, pool := range parts.Pools {
		own := *pool
		change(&own)
		parts.Pools[i] = &own
	}
	return cluster.New(parts)
}
