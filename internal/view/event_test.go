package view_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

func refused(pool string, code cause.Code, key, detail string) plan.PoolRefusal {
	return plan.PoolRefusal{Pool: pool, Steps: []plan.Step{
		{Demand: plan.ByPod, Detail: "arch=amd64", Before: 144, Left: 72},
		{Cause: code, Key: key, Detail: detail}}}
}

// TestU17_AnEventBeginsWithWhatBinds: the pool nearest to taking the pod, what to do about it, and counts of the other
// pools. Filters that only count instance types are left out.
func TestU17_AnEventBeginsWithWhatBinds(t *testing.T) {
	t.Parallel()
	for want, pools := range map[string][]plan.PoolRefusal{
		"NoNodePool: there is no NodePool. To do: apply a NodePool.": nil,
		"HardLimitNodes: pool gpu: nodes 2 of 2 (hard limit). To do: raise spec.hardLimits.nodes of NodePool gpu; or " +
			"remove a node of the pool, or make room on one. By itself: when a node of the pool is removed. " +
			"Other pools: 1 TaintNotTolerated, 2 ExtendedResource.": {
			refused("a", cause.ExtendedResource, "example.com/gpu", ""),
			refused("b", cause.TaintNotTolerated, "x", "taint x"),
			refused("gpu", cause.HardLimitNodes, "", "nodes 2 of 2 (hard limit)"),
			refused("c", cause.ExtendedResource, "example.com/gpu", ""),
		},
		"PodMalformed: its specification cannot be understood: cpu: -1. " +
			"To do: correct the field in the pod's template.": {
			refused("a", cause.PodMalformed, "", "its specification cannot be understood: cpu: -1"),
			refused("b", cause.PodMalformed, "", "its specification cannot be understood: cpu: -1"),
		},
	} {
		if got := view.Waits(plan.Unplaced{Pools: pools}).Event(); got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	}
	if got := view.Fits("n1").Cause.Event(); !strings.HasPrefix(got,
		"NodeFits: it should run on node n1, which has room. To do: ") {
		t.Errorf("%q", got)
	}
	if got := view.WaitsFor(cause.WaitsForVictims, "it waits", "n1", "").Cause.Event(); !strings.Contains(got,
		". Nothing to do. By itself: ") {
		t.Errorf("%q", got)
	}
}

// TestU17_TheHeadlineIsShort: whatever the names and values, and however long, code and sentence have at most 160
// bytes. They are the beginning of what explain says.
func TestU17_TheHeadlineIsShort(t *testing.T) {
	t.Parallel()
	for _, letter := range []string{"x", "é", "語", "😀"} {
		for n := range 250 {
			c := view.Waits(plan.Unplaced{Pools: []plan.PoolRefusal{
				refused("a", cause.LaunchesInVain, "", strings.Repeat(letter, n))}}).Cause
			whole := string(c.Code) + ": " + c.Text
			got := c.Headline()
			begin, cut := strings.CutSuffix(got, "...")
			switch {
			case len(got) > 160, !utf8.ValidString(got), !strings.HasPrefix(whole, begin), cut != (len(whole) > 160):
				t.Fatalf("%d times %s: %q of %q", n, letter, got, whole)
			case cut && len(got) <= 160-utf8.UTFMax:
				t.Fatalf("%d times %s: %d bytes, more would have room", n, letter, len(got))
			}
		}
	}
}

// TestU17_PodsThatWaitForTheSameStandTogether.
func TestU17_PodsThatWaitForTheSameStandTogether(t *testing.T) {
	t.Parallel()
	pod := func(name string, pools ...plan.PoolRefusal) plan.Unplaced {
		return plan.Unplaced{Pod: plan.PodRef{Namespace: "default", Name: name}, Pools: pools}
	}
	full := refused("gpu", cause.HardLimitNodes, "", "nodes 2 of 2 (hard limit)")
	taint := refused("b", cause.TaintNotTolerated, "x", "taint x")
	longer := full
	longer.Steps = append([]plan.Step{{Detail: "cpu=1", Before: 3, Left: 2}}, full.Steps...)
	var got []string
	for _, g := range view.Groups([]plan.Unplaced{pod("a", full), pod("b", taint), pod("c", longer),
		pod("d", full, taint), pod("e", full)}) {
		got = append(got, fmt.Sprint(g.Cause.Code, " ", len(g.Pools), " ", g.Pods))
	}
	const want = "HardLimitNodes 1 [default/a default/c default/e]|TaintNotTolerated 1 [default/b]|" +
		"HardLimitNodes 2 [default/d]"
	if strings.Join(got, "|") != want {
		t.Errorf("%s\nwant %s", strings.Join(got, "|"), want)
	}
	for name, o := range map[string]view.Object{"Cluster": {Kind: "Cluster"}, "NodePool a": {Kind: "NodePool",
		Name: "a"}} {
		if o.String() != name {
			t.Errorf("%q, want %q", o, name)
		}
	}
}
