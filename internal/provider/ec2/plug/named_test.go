package plug

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
)

// shown returns the series of a metric: labels without the metric's name, and the value, or the count of a histogram.
func (r *region) shown(name string) map[string]float64 {
	r.t.Helper()
	families, err := r.deps.Registerer.(prometheus.Gatherer).Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	series := map[string]float64{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			series[strings.Join(labels, " ")] = m.GetCounter().GetValue() + m.GetGauge().GetValue() +
				float64(m.GetHistogram().GetSampleCount())
		}
	}
	return series
}

// wantShown fails unless a metric has these series, all of them.
func (r *region) wantShown(name string, want map[string]float64) {
	r.t.Helper()
	if got := r.shown(name); fmt.Sprint(got) != fmt.Sprint(want) {
		r.t.Errorf("%s: %v, want %v", name, got, want)
	}
}

// claimOf is a claim for a machine of a type, on demand.
func claimOf(name, kind string) *karpenterv1.NodeClaim {
	claim := aClaim(name)
	for key, value := range map[string]string{
		corev1.LabelInstanceTypeStable: kind, karpenterv1.CapacityTypeLabelKey: "on-demand",
	} {
		claim.Spec.Requirements = append(claim.Spec.Requirements,
			karpenterv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn,
				Values: []string{value}})
	}
	return claim
}

// E-62: launches and ends that EC2 refuses are counted under Karpenter's names, by zone and reason, and shared calls
// with the number of their claims.
func TestRefusalsAndBatchesHaveKarpentersNames(t *testing.T) {
	t.Parallel()
	r := newRegion(t, nil, aClass("default"))
	c := r.connectNow()
	r.look()
	r.look()
	launch := func(name, kind string) (string, error) {
		claim := claimOf(name, kind)
		if err := r.kube.Create(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		i, err := c.machines.Launch(t.Context(), claim, time.Time{})
		return i.ProviderID, err
	}
	const kind = "on-demand"
	r.faults(ec2test.Faults{Pools: []ec2test.Pool{
		{Type: "m5.large", Zone: "us-east-1a", CapacityType: kind}, {Type: "m5.large", Zone: "us-east-1b",
			CapacityType: kind},
	}})
	if id, err := launch("n0", "m5.large"); err == nil {
		t.Fatalf("%s came where nothing is left", id)
	}
	refused := map[string]float64{}
	for zone, id := range map[string]string{"us-east-1a": "use1-az1", "us-east-1b": "use1-az2"} {
		refused["capacity_type=on-demand reason=InsufficientInstanceCapacity zone="+zone+" zone_id="+id] = 1
	}
	r.wantShown("karpenter_cloudprovider_instance_launch_failures_total", refused)
	r.faults(ec2test.Faults{})
	id, err := launch("n2", "m5.2xlarge")
	if err != nil {
		t.Fatal(err)
	}
	r.server.Protect(path.Base(id))
	if err := c.machines.Terminate(t.Context(), id, nil); err == nil {
		t.Fatal("a machine that is protected was ended")
	}
	zone := path.Base(path.Dir(id))
	zoneID := map[string]string{"us-east-1a": "use1-az1", "us-east-1b": "use1-az2"}[zone]
	r.wantShown("karpenter_cloudprovider_instance_termination_failures_total",
		map[string]float64{"zone=" + zone + " zone_id=" + zoneID: 1})
	r.faults(ec2test.Faults{Deny: []ec2test.Denial{{Action: "ec2:CreateFleet"}}})
	if id, err := launch("n1", "m5.xlarge"); err == nil {
		t.Fatalf("%s came without rights", id)
	}
	refused["capacity_type=on-demand reason=UnauthorizedOperation zone= zone_id="] = 1
	r.wantShown("karpenter_cloudprovider_instance_launch_failures_total", refused)
	sizes := r.shown("karpenter_cloudprovider_batcher_batch_size")
	times := r.shown("karpenter_cloudprovider_batcher_batch_time_seconds")
	for _, call := range []string{"create_fleet", "terminate_instances"} {
		if n := sizes["batcher="+call]; n < 1 || n != times["batcher="+call] {
			t.Errorf("%s: %v sizes, %v times", call, n, times["batcher="+call])
		}
	}
	if sizes["batcher=create_fleet"] != 3 {
		t.Errorf("%v launches were counted, want 3", sizes["batcher=create_fleet"])
	}
}

// E-62: offerings are shown under Karpenter's names as planning saw them last, and those of a deleted class disappear.
func TestOffersHaveKarpentersNames(t *testing.T) {
	t.Parallel()
	r := newRegion(t, nil, aClass("default"))
	const available = "karpenter_cloudprovider_instance_type_offering_available"
	if got := r.shown(available); len(got) > 0 {
		t.Fatalf("%d offerings before anybody was asked", len(got))
	}
	c := r.connectNow()
	r.look()
	r.look()
	if _, err := c.machines.Catalog(t.Context(), "default"); err != nil {
		t.Fatal(err)
	}
	const m5 = "capacity_type=on-demand instance_type=m5.large zone=us-east-1a"
	all, prices := r.shown(available), r.shown("karpenter_cloudprovider_instance_type_offering_price_estimate")
	if all[m5] != 1 || prices[m5] != 0.096 {
		t.Errorf("m5.large: available %v at %v", all[m5], prices[m5])
	}
	if len(prices) == 0 || len(prices) > len(all) {
		t.Errorf("%d prices of %d offerings", len(prices), len(all))
	}
	cores, memory := r.shown("karpenter_cloudprovider_instance_type_cpu_cores"),
		r.shown("karpenter_cloudprovider_instance_type_memory_bytes")
	if cores["instance_type=m5.large"] != 2 || memory["instance_type=m5.large"] < 7<<30 ||
		memory["instance_type=m5.large"] > 8<<30 {
		t.Errorf("m5.large: %v CPUs, %v bytes", cores["instance_type=m5.large"], memory["instance_type=m5.large"])
	}

	offered, _ := c.machines.OnOffer()
	at := slices.IndexFunc(offered, func(o ec2.Offered) bool {
		return o.Type == "m5.large" && o.Zone == "us-east-1a" && o.CapacityType == "on-demand"
	})
	c.machines.MarkUnavailable(provider.Offering{Type: offered[at].Type, Zone: offered[at].Zone,
		CapacityType: offered[at].CapacityType})
	if _, err := c.machines.Catalog(t.Context(), "default"); err != nil {
		t.Fatal(err)
	}
	if got := r.shown(available)[m5]; got != 0 {
		t.Errorf("m5.large is shown as available (%v) after it was sold out", got)
	}
	c.machines.Forget("default")
	if got := r.shown(available); len(got) > 0 {
		t.Errorf("%d offerings of a class that is gone", len(got))
	}
}

// E-51, E-62: messages of the queue are counted by kind, and their age has Karpenter's name.
func TestMessagesAreCounted(t *testing.T) {
	t.Parallel()
	r := newRegion(t, nil, aClass("default"))
	c := r.connectNow()
	url := r.server.AddQueue("warnings")
	message := func(kind, detail string) {
		r.server.Send("warnings",
			fmt.Sprintf(`{"id": "m", "source": "aws.ec2", "detail-type": %q, "time": %q, "detail": %s}`,
				kind, r.Now().UTC().Add(-3*time.Second).Format(time.RFC3339), detail))
	}
	const id = `"instance-id": "i-0123456789abcdef0"`
	const state = "EC2 Instance State-change Notification"
	message("EC2 Spot Instance Interruption Warning", "{"+id+"}")
	message("EC2 Instance Rebalance Recommendation", "{"+id+"}")
	message("EC2 Capacity Reservation Instance Interruption Warning", "{"+id+"}")
	message(state, `{`+id+`, "state": "stopping"}`)
	message(state, `{`+id+`, "state": "terminated"}`)
	message(state, `{`+id+`, "state": "running"}`)
	message("Something new", "{}")
	r.server.Send("warnings", "garbage")
	if _, err := c.machines.List(t.Context()); err != nil { // before that nobody's messages stay
		t.Fatal(err)
	}
	if received, news, err := c.machines.Receive(t.Context(), url, 0); received != 8 || news || err != nil {
		t.Fatalf("%d messages, news %v, error %v", received, news, err)
	}
	r.wantShown("joiner_ec2_messages_total", map[string]float64{
		"kind=spot_interruption": 1, "kind=rebalance_recommendation": 1, "kind=capacity_reservation_interruption": 1,
		"kind=state_change": 3, "kind=unknown": 1, "kind=malformed": 1,
	})
	r.wantShown("karpenter_interruption_message_queue_duration_seconds", map[string]float64{"": 7})
}
