package operator_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
)

// U-10: alerts ask for these names and labels; docs/autonode-policy.md lists them.
func TestNamesAndLabelsOfTheMetrics(t *testing.T) {
	t.Parallel()
	m := operator.NewMetrics(prometheus.NewRegistry())
	for name, test := range map[string]struct {
		collector prometheus.Collector
		labels    string
	}{
		"autonode_policy_read_state":           {m.ReadState, "{state}"},
		"autonode_policy_reads_total":          {m.Reads, "{result}"},
		"autonode_writes_total":                {m.Writes, "{kind,verb}"},
		"autonode_repairs_total":               {m.Repairs, "{kind}"},
		"autonode_wrappers":                    {m.Wrappers, "{kind,applied}"},
		"autonode_unmanaged_objects":           {m.Unmanaged, "{kind}"},
		"autonode_certificate_approvals_total": {m.Approvals, "{signer}"},
		"autonode_certificate_requests_left":   {m.Pending, "{reason}"},
	} {
		described := make(chan *prometheus.Desc, 1)
		test.collector.Describe(described)
		got := (<-described).String()
		if !strings.Contains(got, `"`+name+`"`) || !strings.Contains(got, test.labels) {
			t.Errorf("described as %s, want %s %s", got, name, test.labels)
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
	if err != nil || len(families) != 1 {
		t.Fatalf("%d families, error %v", len(families), err)
	}
	shown, sum := families[0].GetMetric(), 0.0
	for _, state := range shown {
		sum += state.GetGauge().GetValue()
	}
	if len(shown) != len(operator.ReadStates()) || sum != 1 {
		t.Errorf("%d states are shown with the sum %v, want all of %v and 1", len(shown), sum, operator.ReadStates())
	}
}
