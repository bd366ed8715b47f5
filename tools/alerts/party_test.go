package alerts

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/joiner-autoscaler/joiner/internal/autonode/conformance"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
)

// exposed returns the series that a registry shows, each with its present value for an hour.
func exposed(t *testing.T, registry *prometheus.Registry) (series []string) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			var pairs []string
			for _, label := range metric.GetLabel() {
				if label.GetValue() != "" {
					pairs = append(pairs, fmt.Sprintf("%s=%q", label.GetName(), label.GetValue()))
				}
			}
			name := family.GetName()
			if len(pairs) > 0 {
				name += "{" + strings.Join(pairs, ",") + "}"
			}
			if name != "autonode_conformance_checked_timestamp_seconds" { // it goes on
				series = append(series,
					fmt.Sprintf("%s %vx60", name, metric.GetGauge().GetValue()+metric.GetCounter().GetValue()))
			}
		}
	}
	return series
}

// the operator's metrics about each cause make only the alerts of its party fire, and the tenant's page nobody.
// An unknown cause blames nobody.
func TestA45_EachCauseAlertsItsParty(t *testing.T) {
	t.Parallel()
	for _, cause := range conformance.Causes() {
		registry := prometheus.NewRegistry()
		m := operator.NewMetrics(registry)
		m.ShowState(operator.StateRead)
		m.ShowProtected("InForce")
		m.ShowNotReady(nil)
		kind, state := conformance.NodeClaim, conformance.NotConforming
		if cause == conformance.PolicyInvalid ||
			cause == conformance.PolicyUnreadable { // the objects themselves cannot be judged
			kind, state = conformance.Policy, conformance.NotKnown
		}
		m.ShowConformance(report(conformance.Count{Kind: kind, State: state, Cause: cause, Party: cause.Party(),
			Objects: 1}), time.Unix(0, 0))
		found := history(t, with(exposed(t, registry)...), 20)[20]
		if cause.Party() == conformance.Nobody {
			if len(found) != 0 {
				t.Errorf("%s: %+v fire", cause, found)
			}
			continue
		}
		if len(found) != 1 || found[0].name != "AutoNodeNotConforming" || found[0].party != string(cause.Party()) {
			t.Errorf("%s: %+v fire, want AutoNodeNotConforming of %s", cause, found, cause.Party())
		}
		for _, f := range found {
			if (f.severity == "info") != (cause.Party() == conformance.Tenant) {
				t.Errorf("%s: the alert of %s has severity %s", cause, f.party, f.severity)
			}
		}
	}
}

// each party that must repair a policy that is not Ready gets an alert of its own.
func TestA45_EachPartyIsToldOfAPolicyThatIsNotReady(t *testing.T) {
	t.Parallel()
	all := conformance.Parties()
	for i := range 1 << len(all) {
		registry := prometheus.NewRegistry()
		m := operator.NewMetrics(registry)
		m.ShowState(operator.StateRead)
		whose, want := map[conformance.Party]bool{}, []string{}
		for j, party := range all {
			if i&(1<<j) != 0 {
				whose[party] = true
				want = append(want, string(party))
			}
		}
		m.ShowNotReady(whose)
		var got []string
		for _, f := range history(t, with(exposed(t, registry)...), 20)[20] {
			got = append(got, f.party)
			if (f.severity == "info") != (f.party == string(conformance.Tenant)) ||
				f.name != "AutoNodePolicyNotReady" {
				t.Errorf("%v: %+v fires", want, f)
			}
		}
		slices.Sort(got)
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("those who have to mend something are %v, those who are told %v", want, got)
		}
	}
}
