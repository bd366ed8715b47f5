package plug

import (
	"path"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
)

// E-53: an instance is unhealthy after its check has failed for two minutes, or as soon as an announced event of EC2
// is read. A missing right blocks nothing, and earlier results stay.
func TestSickInstances(t *testing.T) {
	t.Parallel()
	p := newPeer(t, theirVersion)
	p.claim("web-1", "m5.large")
	p.claim("web-2", "m5.large")
	p.claim("web-3", "m5.large")
	c := p.connectNow()
	p.rounds(c, 1)
	if _, err := c.machines.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	ids := map[string]string{}
	for _, claim := range p.claims() {
		ids[claim.Name] = claim.Status.ProviderID
	}
	instance := func(claim string) string { return path.Base(ids[claim]) }
	h := newHealth(p.link)
	look := func(want ...string) {
		t.Helper()
		if again, err := h.step(t.Context(), c); err != nil || again != healthEvery {
			t.Fatalf("again after %s, error %v", again, err)
		}
		notices, err := c.machines.Notices(t.Context())
		if err != nil || len(notices.List) != len(want) {
			t.Fatalf("notices %+v, error %v; want of %v", notices.List, err, want)
		}
		said := map[string]provider.NoticeKind{}
		for _, n := range notices.List {
			said[n.ProviderID] = n.Kind
		}
		for _, claim := range want {
			if said[ids[claim]] != provider.InstanceUnhealthy {
				t.Errorf("notices %+v, want one of %s", notices.List, claim)
			}
		}
	}
	look()
	p.server.Impair(instance("web-1"))
	look()
	p.wait(impairedFor + time.Second)
	look("web-1")
	p.server.Schedule(instance("web-2"), ec2test.ScheduledEvent{Code: "instance-retirement",
		NotBefore: p.Now().Add(time.Hour)})
	p.wait(eventsEvery)
	look("web-1", "web-2")
	const sick = "karpenter_interruption_instance_status_unhealthy_total" // what lasts is counted once (E-62)
	p.wantShown(sick, map[string]float64{"category=EventStatus": 1, "category=InstanceStatus": 1})
	p.faults(ec2test.Faults{Deny: []ec2test.Denial{{Action: "ec2:DescribeInstanceStatus"}}})
	look("web-1", "web-2")
}
