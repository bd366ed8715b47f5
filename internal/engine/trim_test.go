package engine_test

import (
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// L-41: the order is total, so that two controllers choose the same nodes. A snapshot lists nodes by name already; that the
// name decides among equals shows only in the comparison itself.
func TestTheTrimOrderEndsWithTheName(t *testing.T) {
	t.Parallel()
	a, b := &cluster.Node{Claim: "a"}, &cluster.Node{Claim: "b"}
	if engine.CompareTrim(a, b) >= 0 || engine.CompareTrim(b, a) <= 0 || engine.CompareTrim(a, a) != 0 {
		t.Error("of two nodes that differ in nothing else the first by name goes first")
	}
}
