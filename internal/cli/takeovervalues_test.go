package cli_test

import (
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/cli"
)

// K-25: what the chart and its further flags may have is no finding, with a Deployment of Karpenter's or without. Of
// the variables, those of the value env win, and what is written elsewhere is not known.
func TestK25_WhatJoinerTakesIsNoFinding(t *testing.T) {
	t.Parallel()
	for _, objects := range [][]string{nil, {ofTheirs("", "")}} {
		values := "extraArgs: [--price-tolerance=0, --max-nodes, \"9\", --observe-only]\nlogOutputPaths: [stdout, /log]\n" +
			"controller: {env: [{name: FEATURE_GATES, value: NodeRepair=perhaps}]}\nenv: [{name: FEATURE_GATES}]\n"
		if code, findings := findingsOf(t, theirs(t, objects...), "--values",
			file(t, "values.yaml", values)); code != cli.CodeFine {
			t.Errorf("exit %d, %+v", code, findings)
		}
	}
}
