package engine

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// WhyAll returns everything that keeps a node: first what Why says, then what would be in the way after that. A node
// that goes, that is not ours, or that is not ready has only what Why says.
func WhyAll(s *cluster.Snapshot, terms Terms, node *cluster.Node) []Standing {
	all := []Standing{Why(s, terms, node)}
	if all[0].Goes != "" {
		return all
	}
	for _, look := range []func(*cluster.Snapshot, Terms, *cluster.Node) (Standing, bool){whyGoing, whyNotReady} {
		if _, so := look(s, terms, node); so {
			return all
		}
	}
	add := func(more ...Standing) {
		for _, found := range more {
			same := func(s Standing) bool { return s.Cause == found.Cause && s.Text == found.Text }
			if !slices.ContainsFunc(all, same) {
				all = append(all, found)
			}
		}
	}
	for found := range forbidding(s, node) {
		add(found)
	}
	if found, so := whyDue(s, terms, node); so {
		if found.Cause != cause.OthersFirst {
			add(found)
		}
		return all // what it costs is not asked
	}
	quiet, so := whyQuiet(s, terms, node)
	if so && quiet.Cause != cause.PodsComing { // not true of an empty node that something else keeps
		add(quiet)
	}
	_, pods := DisruptionCost(node)
	waits := quiet.Cause == cause.QuietTime || quiet.Cause == cause.BudgetClosed || quiet.Cause == cause.BudgetUsedUp
	if pods > 0 && (!so || waits && s.Pool(node.Pool).Consolidates != cluster.WhenEmpty) {
		if found := whyNotCheaper(beginFrom(s, s, terms), node); found.Cause != cause.OthersFirst {
			add(found)
		}
	}
	return all
}
