package quota_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/quota"
)

var start = time.Unix(1_700_000_000, 0)

// E-43: each type that EC2 sells is in one of AWS's groups, and the groups have the known sizes.
func TestEveryTypeHasItsQuota(t *testing.T) {
	t.Parallel()
	counts := map[quota.Group]int{}
	types := ec2test.Types(t)
	for kind := range types {
		counts[quota.GroupOf(kind)]++
	}
	want := map[quota.Group]int{
		quota.Standard: 1186, quota.Graphics: 64, quota.P: 9, quota.F: 3, quota.X: 69, quota.Inf: 8, quota.Trn: 5,
		quota.DL: 1, quota.HPC: 10,
		quota.HighMemory: 9, quota.Mac: 9,
	}
	if fmt.Sprint(counts) != fmt.Sprint(want) {
		t.Errorf("groups %v, want %v", counts, want)
	}
	for kind, group := range map[string]quota.Group{
		"m5.large": quota.Standard, "d3en.xlarge": quota.Standard, "dl1.24xlarge": quota.DL,
		"dl2q.24xlarge": quota.DL, "im4gn.large": quota.Standard,
		"is4gen.large": quota.Standard, "inf2.xlarge": quota.Inf, "i7ie.metal-24xl": quota.Standard,
		"h1.2xlarge":    quota.Standard,
		"hpc7g.4xlarge": quota.HPC, "t3.micro": quota.Standard, "trn1n.32xlarge": quota.Trn,
		"gr6.4xlarge": quota.Graphics, "g6e.xlarge": quota.Graphics,
		"vt1.3xlarge": quota.Graphics, "p5en.48xlarge": quota.P, "f2.6xlarge": quota.F, "x2iedn.xlarge": quota.X,
		"u-6tb1.metal":        quota.HighMemory,
		"u7in-16tb.224xlarge": quota.HighMemory, "mac2-m2.metal": quota.Mac, "q9.large": "Q", "": "",
	} {
		if got := quota.GroupOf(kind); got != group {
			t.Errorf("%s is in %q, want %q", kind, got, group)
		}
	}
	for name, got := range map[string]string{
		"Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances": quota.Standard.Name(false),
		"All G and VT Spot Instance Requests":                              quota.Graphics.Name(true),
	} {
		if got != name {
			t.Errorf("the quota is %q, want %q", got, name)
		}
	}
}

// E-43: which offerings a refusal marks, for how long, and the message for users.
func TestWhatARefusalMarks(t *testing.T) {
	t.Parallel()
	refusal := func(code string) quota.Refusal {
		return quota.Refusal{Code: code, Type: "m5.2xlarge", VCPUs: 8, CapacityType: "on-demand", Region: "eu-west-1"}
	}
	for _, c := range []struct {
		code                                    string
		same, other, smaller, spot, otherFamily bool // marked?
		lasts                                   time.Duration
		text                                    []string
	}{
		{code: "VcpuLimitExceeded", same: true, other: true, lasts: time.Minute,
			text: []string{"QuotaExceeded", "Running On-Demand Standard", "eu-west-1", "8 vCPUs or more", "1m0s"}},
		{code: "InstanceLimitExceeded", same: true, other: true, smaller: true, lasts: time.Minute,
			text: []string{"QuotaExceeded", "eu-west-1"}},
		{code: "MaxFleetCountExceeded", same: true, other: true, smaller: true, otherFamily: true, lasts: time.Minute,
			text: []string{"fleets", "eu-west-1"}},
		{code: "AuthFailure.ServiceLinkedRoleCreationNotPermitted", spot: true, lasts: 30 * time.Minute,
			text: []string{"SpotServiceLinkedRoleMissing",
				"aws iam create-service-linked-role --aws-service-name spot.amazonaws.com"}},
		{code: "InsufficientInstanceCapacity"},
	} {
		var m quota.Marks
		event := m.Refused(refusal(c.code), start)
		marked := func(kind string, vcpus int64, capacityType string, want bool, what string) {
			t.Helper()
			for _, at := range []struct {
				when time.Duration
				want bool
			}{{0, want}, {c.lasts - 1, want}, {c.lasts, false}} {
				if got := m.Marked(kind, vcpus, capacityType, start.Add(at.when)); c.lasts > 0 && got != at.want {
					t.Errorf("%s: %s is marked after %s: %t", c.code, what, at.when, got)
				}
			}
		}
		marked("m5.2xlarge", 8, "on-demand", c.same, "the type")
		marked("r7g.4xlarge", 16, "on-demand", c.other, "another of the group")
		marked("c7g.large", 2, "on-demand", c.smaller, "a smaller one of the group")
		marked("m5.2xlarge", 8, "spot", c.spot, "spot")
		marked("g6.2xlarge", 8, "on-demand", c.otherFamily, "another group")
		if (event == nil) != (c.lasts == 0) {
			t.Fatalf("%s: the event is %v", c.code, event)
		}
		for _, part := range c.text {
			if text := event.Reason + " " + event.Message; !strings.Contains(text, part) {
				t.Errorf("%s: %q is not in %q", c.code, part, text)
			}
		}
	}
}

// E-43: one event for each mark; marks double while refusals go on, and success forgets them.
func TestMarksDoubleAndAreForgotten(t *testing.T) {
	t.Parallel()
	var m quota.Marks
	r := quota.Refusal{Code: "VcpuLimitExceeded", Type: "m5.2xlarge", VCPUs: 8, CapacityType: "spot"}
	small := r
	small.Type, small.VCPUs = "m5.large", 2
	now := start
	for _, lasts := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		lasts *= time.Minute
		if m.Refused(r, now) == nil {
			t.Errorf("no event for a mark of %s", lasts)
		}
		if m.Refused(r, now) != nil {
			t.Errorf("a second event for a mark of %s", lasts)
		}
		if now = now.Add(lasts); m.Marked(r.Type, r.VCPUs, "spot", now) ||
			!m.Marked(r.Type, r.VCPUs, "spot", now.Add(-1)) {
			t.Errorf("a mark does not last %s", lasts)
		}
	}
	m.Refused(r, now)
	m.Refused(small, now)
	if !m.Marked("c5.xlarge", 4, "spot", now) || m.Marked("c5.medium", 1, "spot", now) {
		t.Error("what is refused meanwhile makes the mark hold for smaller types")
	}
	m.Had("c5.medium", 1, "spot")
	if !m.Marked("c5.xlarge", 4, "spot", now) {
		t.Error("a small success forgets a large refusal")
	}
	m.Had("c5.large", 2, "spot")
	if m.Marked("m5.2xlarge", 8, "spot", now) {
		t.Error("success does not forget")
	}
	m.Refused(r, now)
	if !m.Marked(r.Type, 8, "spot", now.Add(time.Minute-1)) || m.Marked(r.Type, 8, "spot", now.Add(time.Minute)) {
		t.Error("after a success the next mark is not a first one")
	}
}

// E-43, as a law: a catalogue loses exactly the marked offerings, in all zones, and the given catalogue is not
// changed.
func TestACatalogueWithoutMarks(t *testing.T) {
	t.Parallel()
	sizes := map[string]int64{"m5.large": 2, "c5.4xlarge": 16, "g6.xlarge": 4, "p5.48xlarge": 192}
	rapid.Check(t, func(t *rapid.T) {
		var all catalog.Catalog
		for _, kind := range []string{"m5.large", "c5.4xlarge", "g6.xlarge", "p5.48xlarge"} {
			one := catalog.Type{Name: kind, Capacity: resources.Amounts{resources.NameCPU: sizes[kind] * 1000}}
			for _, capacityType := range []string{"spot", "on-demand"} {
				for _, zone := range []string{"a", "b"} {
					one.Offerings = append(one.Offerings,
						catalog.Offering{Zone: zone, CapacityType: capacityType,
							Available: rapid.Bool().Draw(t, "had")})
				}
			}
			all.Types = append(all.Types, one)
		}
		before := fmt.Sprint(all)
		var m quota.Marks
		kinds := rapid.SampledFrom([]string{"m5.large", "c5.4xlarge", "g6.xlarge", "p5.48xlarge"})
		codes := rapid.SampledFrom([]string{"VcpuLimitExceeded", "InstanceLimitExceeded", "MaxFleetCountExceeded"})
		for range rapid.IntRange(0, 4).Draw(t, "refusals") {
			kind := kinds.Draw(t, "kind")
			m.Refused(quota.Refusal{
				Code: codes.Draw(t, "code"), Type: kind, VCPUs: sizes[kind],
				CapacityType: rapid.SampledFrom([]string{"spot", "on-demand"}).Draw(t, "capacity type"),
			}, start)
		}
		now := start.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "minutes")) * time.Minute)
		got := m.Without(all, now)
		if fmt.Sprint(all) != before {
			t.Fatal("the catalogue that was handed in has changed")
		}
		for i, kind := range all.Types {
			for j, o := range kind.Offerings {
				want := o.Available && !m.Marked(kind.Name, sizes[kind.Name], o.CapacityType, now)
				if got.Types[i].Offerings[j].Available != want {
					t.Fatalf("%s/%s/%s is available: %t", kind.Name, o.Zone, o.CapacityType, !want)
				}
			}
		}
	})
}
