package operator_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/joiner-autoscaler/joiner/internal/autonode/conformance"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
)

// U-10: alerts ask for these names and labels; docs/autonode-policy.md lists them.
func TestNamesAndLabelsOfTheMetrics(t *testing.T) {
	t.Parallel()
	m := operator.NewMetrics(prometheus.NewRegistry())
	for name, test := range map[string]struct {
		collector prometheus.Collector
		labels    string
		help      string // how it begins
	}{
		"autonode_policy_read_state":    {m.ReadState, "{state}", "1 for the state"},
		"autonode_policy_reads_total":   {m.Reads, "{result}", "Attempts to read"},
		"autonode_writes_total":         {m.Writes, "{kind,verb}", "Writes of objects"},
		"autonode_repairs_total":        {m.Repairs, "{kind}", "Objects that somebody else"},
		"autonode_wrappers":             {m.Wrappers, "{kind,applied,party}", "Wrappers by whether"},
		"autonode_policy_not_ready":     {m.NotReady, "{party}", "1 for each party"},
		"autonode_protected":            {m.Protected, "{reason}", "1 for whether the guest's"},
		"autonode_unmanaged_objects":    {m.Unmanaged, "{kind}", "Karpenter objects that"},
		"autonode_foreign_objects":      {m.Foreign, "{kind}", "Those of the unmanaged objects"},
		"autonode_altered_writes_total": {m.Altered, "{kind}", "Writes that were accepted"},
		"autonode_certificate_approvals_total": {m.Approvals, "{signer}",
			"Certificate requests of kubelets that the operator approved"},
		"autonode_certificate_requests_left": {m.Pending, "{reason}", "Pending certificate requests"},
	} {
		described := make(chan *prometheus.Desc, 1)
		test.collector.Describe(described)
		got := (<-described).String()
		if !strings.Contains(got, `"`+name+`"`) || !strings.Contains(got, test.labels) || !strings.Contains(got,
			`help: "`+test.help) {
			t.Errorf("described as %s, want %s %s: %s", got, name, test.labels, test.help)
		}
	}
}

// R45: exactly one state is shown, always.
func TestOneReadStateIsShown(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m := operator.NewMetrics(registry)
	m.ShowState(operator.StatePermissive)
	m.ShowState(operator.StateRead)
	families, err := registry.Gather()
	if err != nil || len(families) != 2 || families[1].GetName() != "autonode_policy_read_state" {
		t.Fatalf("%d families, error %v: want that of altered writes, which begins with 0, and this one",
			len(families), err)
	}
	shown, sum := families[1].GetMetric(), 0.0
	for _, state := range shown {
		sum += state.GetGauge().GetValue()
	}
	if len(shown) != len(operator.ReadStates()) || sum != 1 {
		t.Errorf("%d states are shown with the sum %v, want all of %v and 1", len(shown), sum, operator.ReadStates())
	}
}

// R45, U-10: the state before the first answer is shown, too; each attempt to read counts by what came of it.
func TestReadsAreCounted(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m := operator.NewMetrics(registry)
	if got := controllertest.Count(t, registry, "autonode_policy_read_state",
		string(operator.StateStarting)); got != 1 {
		t.Errorf("Starting shows %v, want 1", got)
	}
	for _, err := range []error{nil, nil, nil, errForbidden, errNotServed, errBusy} {
		m.CountRead(operator.Answer{Err: err})
	}
	for result, want := range map[string]float64{"read": 3, "denied": 2, "failed": 1} {
		if got := controllertest.Count(t, registry, "autonode_policy_reads_total", result); got != want {
			t.Errorf("%v reads count as %s, want %v", got, result, want)
		}
	}
}

// what is not found any more is not shown any more.
func TestA23_WhatIsFoundIsShown(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m := operator.NewMetrics(registry)
	for _, state := range []conformance.State{conformance.NotConforming, conformance.Conforms} {
		counts := []conformance.Count{{Kind: "Node", State: state, Objects: 3}}
		m.ShowConformance(conformance.Report{Counts: counts}, time.Now())
		want := "cause=,kind=Node,party=,state=" + string(state) + " 3"
		if got := shown(t, registry, "autonode_conformance_objects"); got != want {
			t.Errorf("%q is shown, want %q", got, want)
		}
	}
}

// a wrapper to which the policy is applied is nobody's business: there is no series that says otherwise.
func TestA45_WhatIsAppliedIsNobodysBusiness(t *testing.T) {
	t.Parallel()
	s := newScene(t, nil)
	registry := s.behind(s.guest)
	s.step(s.summing(s.guest, s.management), "")
	families, err := registry.Gather()
	s.must(err)
	parties := map[string]int{} // by what is said of PolicyApplied
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == "autonode_wrappers" {
				parties[metric.GetLabel()[0].GetValue()]++
			}
		}
	}
	all := (len(conformance.Parties()) + 1) * len(s.kinds)
	if want := map[string]int{"True": len(s.kinds), "False": all, "Unknown": all}; !maps.Equal(parties, want) {
		t.Errorf("there are %v series, want %v", parties, want)
	}
}
