package provider_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-autoscaler/joiner/internal/provider"
)

type repairing struct {
	provider.Provider
	policies []provider.RepairPolicy
}

func (r repairing) Name() string                            { return "trial" }
func (r repairing) RepairPolicies() []provider.RepairPolicy { return r.policies }

type rebooting struct{ repairing }

func (rebooting) Reboot(context.Context, string, string) error { return nil }

// K-49: invalid policies are refused, with field, value and what is allowed.
func TestK49_PoliciesThatCannotBe(t *testing.T) {
	t.Parallel()
	minute := time.Minute
	for name, c := range map[string]struct {
		change func(p *provider.RepairPolicy)
		want   string
	}{
		"as it should be": {func(*provider.RepairPolicy) {}, ""},
		"no condition": {func(p *provider.RepairPolicy) { p.ConditionType = "" },
			`condition type is ""; want the type`},
		"another status": {func(p *provider.RepairPolicy) { p.ConditionStatus = "false" },
			`condition status is "false"; want True, False or Unknown`},
		"no pattern": {func(p *provider.RepairPolicy) { p.Reason = "Xid(" },
			`reason is "Xid("; want a regular expression of Go: `},
		"no patience":   {func(p *provider.RepairPolicy) { p.Toleration = 0 }, "toleration is 0s; want more than 0s"},
		"less than all": {func(p *provider.RepairPolicy) { p.Priority = -1 }, "priority is -1; want 0 to 100"},
		"above all":     {func(p *provider.RepairPolicy) { p.Priority = 101 }, "priority is 101; want 0 to 100"},
		"most of all":   {func(p *provider.RepairPolicy) { p.Priority = 100 }, ""},
		"a drain that ended": {func(p *provider.RepairPolicy) { p.TerminationGracePeriod = new(-time.Second) },
			"termination grace period is -1s; want 0s or more"},
		"a reboot whose drain never ends": {func(p *provider.RepairPolicy) { p.TerminationGracePeriod = nil },
			"termination grace period is not set; want 0s or more"},
		"a replacement whose drain is the claim's": {func(p *provider.RepairPolicy) {
			p.TerminationGracePeriod,
				p.Reboot = nil, false
		}, ""},
		"twice": {func(p *provider.RepairPolicy) { p.ConditionType = "Other" },
			`repair policy 2 (Other=True): reason "Xid" has a policy already`},
	} {
		p := provider.RepairPolicy{ConditionType: "Gpu", ConditionStatus: corev1.ConditionTrue, Reason: "Xid",
			Toleration: minute, TerminationGracePeriod: &minute, Reboot: true}
		c.change(&p)
		others := p
		if others.Priority++; name != "twice" {
			others = provider.RepairPolicy{ConditionType: "Ready", ConditionStatus: corev1.ConditionFalse,
				Toleration: minute}
		}
		err := provider.CheckRepairPolicies(rebooting{repairing{policies: []provider.RepairPolicy{p, others}}})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if c.want != "" && !strings.Contains(err.Error(), "provider trial: repair policy ") {
			t.Errorf("%s: %v does not name the policy", name, err)
		}
	}
	p := provider.RepairPolicy{ConditionType: "Gpu", ConditionStatus: corev1.ConditionTrue, Toleration: minute,
		TerminationGracePeriod: &minute, Reboot: true}
	err := provider.CheckRepairPolicies(repairing{policies: []provider.RepairPolicy{p}})
	if err == nil || !strings.Contains(err.Error(), "action is reboot; want replace") {
		t.Errorf("a provider that cannot reboot: %v", err)
	}
}
