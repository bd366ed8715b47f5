package view_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

var rewrite = flag.Bool("rewrite", false, "write the page of causes anew")

const page = "../../docs/causes.md"

// TestU16_TheCatalogueIsWhole: each code has one entry, in the order of the codes, with a sentence and something to
// do.
func TestU16_TheCatalogueIsWhole(t *testing.T) {
	t.Parallel()
	seen := map[cause.Code]string{}
	for of, c := range map[string]struct {
		codes   []cause.Code
		entries []view.Entry
	}{
		"pods":       {cause.WaitingCodes(), view.Catalogue()},
		"nodes":      {cause.StayingCodes(), view.NodeCatalogue()},
		"pools":      {cause.PoolCodes(), view.PoolCatalogue()},
		"NodeClaims": {cause.ClaimCodes(), view.ClaimCatalogue()},
	} {
		if len(c.codes) != len(c.entries) {
			t.Fatalf("%s: %d codes, %d entries", of, len(c.codes), len(c.entries))
		}
		for i, e := range c.entries {
			if e.Code != c.codes[i] || e.Says == "" || len(e.Remedies) == 0 {
				t.Errorf("%s: entry %d is %+v; want %s with a sentence and a remedy", of, i, e, c.codes[i])
			}
			if other := seen[e.Code]; other != "" {
				t.Errorf("%s is a cause of %s and of %s: one entry of them would never be told", e.Code, other, of)
			}
			seen[e.Code] = of
		}
	}
}

// TestU16_ThePageIsMadeOfTheCatalogue.
func TestU16_ThePageIsMadeOfTheCatalogue(t *testing.T) {
	t.Parallel()
	want := pageOf()
	if *rewrite {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != want {
		t.Errorf("docs/causes.md is not what the catalogue says (%v): go test ./internal/view -rewrite", err)
	}
}

func pageOf() string {
	var b strings.Builder
	b.WriteString(strings.ReplaceAll(`# Causes

Why a pod waits, why a node stays, why a pool launches nothing, and what holds a NodeClaim. Each cause has a code that
never changes, a sentence, what you can do, and what ends it without you. 'joinerctl simulate' and
'joinerctl explain' print them. Words in capitals stand for names.

Several pools may refuse a pod for different causes. The pool that is nearest to taking it is told first. A limit is
nearer than missing capacity; then come the places of other pods, a pool that is not ready, a taint, a label and a
resource. A pool that the pod has chosen by a label, and that lacks only a resource, comes before the pools without
that label. Of pools that are equally near, the one with the greater weight comes first.

This page is made of the code (package 'internal/view').

## A pod waits

`, "'", "`"))
	table(&b, view.Catalogue())
	b.WriteString("\n## A node stays\n\n")
	table(&b, view.NodeCatalogue())
	b.WriteString("\n## A pool launches nothing\n\nThe first of several is told first. NoCapacity, " +
		"ReservationsUsedUp and LaunchesInVain, of a pod that\n" +
		"waits, are causes of pools too.\n\n")
	table(&b, view.PoolCatalogue())
	b.WriteString("\n## A NodeClaim is held at a stage\n\nNotInitialized, ReplacementOnTheWay and Draining, of " +
		"nodes, LaunchesFail, of pools, and HardLimitNodes,\n" +
		"of pods, are causes of NodeClaims too.\n\n")
	table(&b, view.ClaimCatalogue())
	return b.String()
}

func table(b *strings.Builder, entries []view.Entry) {
	b.WriteString("| code | what it says | what to do | by itself |\n|---|---|---|---|\n")
	for _, e := range entries {
		ends := e.ByItself
		if ends == "" {
			ends = "–"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", e.Code, e.Says, strings.Join(e.Remedies, "; or "), ends)
	}
}

// TestWaits: of several pools, the one that is nearest to taking the pod comes first; of equals the first.
func TestWaits(t *testing.T) {
	t.Parallel()
	refusal := func(pool string, code cause.Code, beyond cause.Code) plan.PoolRefusal {
		return plan.PoolRefusal{Pool: pool, Beyond: beyond, Steps: []plan.Step{{Cause: code, Key: "zone",
			Detail: "something"}}}
	}
	ofTypes := func(pool string, code cause.Code) plan.PoolRefusal {
		r := refusal(pool, code, "")
		r.Steps[0].Before = 3
		return r
	}
	for name, c := range map[string]struct {
		refusals []plan.PoolRefusal
		want     string
	}{
		"a limit before capacity": {[]plan.PoolRefusal{refusal("a", cause.NoCapacity, ""),
			refusal("b", cause.SoftLimitNodes, "")}, "SoftLimitNodes b"},
		"capacity before spread": {[]plan.PoolRefusal{refusal("a", cause.SpreadNoDomain, ""),
			refusal("b", cause.ReservationsUsedUp, "")}, "ReservationsUsedUp b"},
		"spread before readiness": {[]plan.PoolRefusal{refusal("a", cause.PoolNotReady, ""),
			refusal("b", cause.SpreadNoDomain, "")}, "SpreadNoDomain b"},
		"readiness before a taint": {[]plan.PoolRefusal{refusal("a", cause.TaintNotTolerated, ""),
			refusal("b", cause.PoolNotReady, "")}, "PoolNotReady b"},
		"a taint before a label": {[]plan.PoolRefusal{refusal("a", cause.LabelUnknown, ""),
			refusal("b", cause.TaintNotTolerated, "")}, "TaintNotTolerated b"},
		"a label of types before a resource": {[]plan.PoolRefusal{refusal("a", cause.ExtendedResource, ""),
			ofTypes("b", cause.LabelMismatch)}, "LabelMismatch b"},
		"a resource in the pool that the pod chose before another pool's label": {[]plan.PoolRefusal{
			refusal("a", cause.LabelMismatch, ""), refusal("b", cause.PodTooLarge, "")}, "PodTooLarge b"},
		"a resource in the pool that the pod chose before a taint with a label": {[]plan.PoolRefusal{
			refusal("a", cause.TaintNotTolerated, cause.LabelUnknown), refusal("b", cause.PodTooLarge, "")},
			"PodTooLarge b"},
		"a resource before replicas": {[]plan.PoolRefusal{refusal("a", cause.StaticPool, ""),
			refusal("b", cause.PodTooLarge, "")}, "PodTooLarge b"},
		"a label before a taint with one": {
			[]plan.PoolRefusal{refusal("a", cause.TaintNotTolerated, cause.LabelMismatch),
				refusal("b", cause.LabelMismatch, "")}, "LabelMismatch b"},
		"the first of equals": {[]plan.PoolRefusal{refusal("a", cause.LaunchesInVain, ""),
			refusal("b", cause.HardLimitNodes, "")}, "LaunchesInVain a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := view.Waits(plan.Unplaced{Pools: c.refusals})
			if got := fmt.Sprint(w.Cause.Code, " ", w.Cause.Object.Name); got != c.want ||
				len(w.Pools) != len(c.refusals) {
				t.Errorf("%s with %d pools, want %s with %d", got, len(w.Pools), c.want, len(c.refusals))
			}
		})
	}
	w := view.Waits(plan.Unplaced{Pools: []plan.PoolRefusal{refusal("a", cause.LabelMismatch, "")}})
	if len(w.Cause.Remedies) != 2 ||
		w.Cause.Remedies[1] != "allow more values of zone in spec.template.spec of NodePool a, if there are such instance types" {
		t.Errorf("remedies %q: pool and key have to stand in them", w.Cause.Remedies)
	}
}

// U-16: what waiting does not help is not said to come right by itself, and nobody is told to remove nodes for it.
func TestU16_ALimitWithoutRoomNeverPasses(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		code     cause.Code
		never    bool
		byItself string
		remedies int
	}{
		{cause.HardLimitNodes, false, "when a node of the pool is removed", 2},
		{cause.HardLimitNodes, true, "never, as the limit has no room for such a node even without any other", 1},
		{cause.SoftLimitNodes, true, "never, as the limit has no room for such a node even without any other", 1},
		{cause.ResourceLimit, false, "when a node of the pool is removed", 2},
		{cause.ResourceLimit, true, "never, as the limit has no room for such a node even without any other", 2},
	} {
		step := plan.Step{Cause: row.code, Detail: "something", Never: row.never}
		c := view.Waits(plan.Unplaced{Pools: []plan.PoolRefusal{{Pool: "a", Steps: []plan.Step{step}}}}).Cause
		if c.ByItself != row.byItself || len(c.Remedies) != row.remedies {
			t.Errorf("%s, never %t: by itself %q, remedies %q", row.code, row.never, c.ByItself, c.Remedies)
		}
	}
}
