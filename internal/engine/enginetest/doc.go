// Package enginetest checks plans: a naive reading of the scheduler's rules, plans carried out, and random clusters
// for the laws that hold for every one of them. Clusters are written in the language of package script.
package enginetest

import (
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/script"
)

// Parse reads a cluster; see [script.Parse].
func Parse(input string) (*cluster.Snapshot, error) { return script.Parse(input) }

// Shorten replaces the long names of labels in a text by those that scripts use.
func Shorten(text string) string { return script.Shorten(text) }
