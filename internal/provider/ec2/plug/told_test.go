package plug

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/offering"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/tables"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/userdata"
)

// saidOf counts the events with a reason.
func (r *region) saidOf(reason string) int {
	count := 0
	for _, e := range r.events {
		if strings.Contains(e, reason) {
			count++
		}
	}
	return count
}

// E-76: an unreadable queue is reported on each class once, and a gauge shows it until it can be read.
func TestAQueueThatCannotBeReadIsTold(t *testing.T) {
	t.Parallel()
	r := newRegion(t, func(s *settings) { s.queue = "warnings" }, aClass("one"), aClass("two"))
	c, reader := r.connectNow(), newReader(r.link)
	shown := prometheus.NewRegistry()
	shown.MustRegister(r.meter.queue)
	gauge := func() float64 {
		families, err := shown.Gather()
		if err != nil {
			t.Fatal(err)
		}
		return families[0].GetMetric()[0].GetGauge().GetValue()
	}
	step := func() {
		t.Helper()
		if _, err := reader.step(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	step()
	step()
	if told := r.saidOf(EventQueue); told != 2 || gauge() != 1 {
		t.Errorf("%d events for two classes, the gauge is %v: %q", told, gauge(), r.events)
	}
	r.server.AddQueue("warnings")
	r.server.Send("warnings", "{}") // nobody waits for it
	step()
	if gauge() != 0 {
		t.Errorf("the gauge is %v once the queue is read", gauge())
	}
}

// E-76, E-62: with a leader, the event is on the leader's lease, once as long as the text is the same, and on no
// class. If the lease cannot be read, the event still appears.
func TestAQueueThatCannotBeReadIsToldOnTheLease(t *testing.T) {
	t.Parallel()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "leader",
		UID: "uid-of-lease"}}
	r := newRegion(t, func(s *settings) { s.queue = "warnings" }, aClass("one"), aClass("two"), lease)
	r.deps.Lease = client.ObjectKeyFromObject(lease)
	c, reader := r.connectNow(), newReader(r.link)
	step := func(want ...string) {
		t.Helper()
		if _, err := reader.step(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(r.about, ", "); got != strings.Join(want, ", ") {
			t.Errorf("events about %s, want %v: %q", got, want, r.events)
		}
	}
	const onLease = "*v1.Lease leader"
	step(onLease)
	step(onLease)
	r.server.AddQueue("warnings")
	r.faults(ec2test.Faults{Deny: []ec2test.Denial{{Action: "sqs:ReceiveMessage"}}})
	step(onLease, onLease) // another text
	if err := r.kube.Delete(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	step(onLease, onLease, "*v1.EC2NodeClass one", "*v1.EC2NodeClass two")
}

// E-76: a queue whose messages cannot be deleted is read all the same: the gauge stays at 0, nothing waits, and an
// event says once what is wrong.
func TestMessagesThatStayAreTold(t *testing.T) {
	t.Parallel()
	r := newRegion(t, func(s *settings) { s.queue = "warnings" }, aClass("one"))
	c, reader := r.connectNow(), newReader(r.link)
	r.server.AddQueue("warnings")
	r.faults(ec2test.Faults{Deny: []ec2test.Denial{{Action: "sqs:DeleteMessage"}}})
	const failures = "joiner_ec2_upkeep_failures_total"
	until := func(done func() bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !done(); <-time.After(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("nobody says that messages cannot be deleted: %q", r.events)
			}
			r.server.Send("warnings", "{}") // nobody waits for it
			if again, err := reader.step(t.Context(), c); err != nil || again >= queueAgain {
				t.Fatalf("again after %s, error %v", again, err)
			}
		}
	}
	until(func() bool { return r.shown(failures)["what=messages"] >= 3 })
	if told := r.saidOf(EventUndeleted); told != 1 || r.saidOf(EventQueue) != 0 ||
		!strings.Contains(r.events[0], "sqs:DeleteMessage") {
		t.Errorf("events %q, want one %s", r.events, EventUndeleted)
	}
	r.wantShown("joiner_ec2_queue_unavailable", map[string]float64{"": 0})
	if count := r.shown(failures)["what=queue"]; count != 0 {
		t.Errorf("%v failures of the queue are counted", count)
	}
	r.faults(ec2test.Faults{})
	until(func() bool { return reader.undeleted == "" })
}

// E-34, E-62: the size of a class's user data is shown under Karpenter's name, before a launch and even if it is too
// large. Additions of a pool count, another spec is measured again, and a deleted class disappears.
func TestUserDataIsMeasured(t *testing.T) {
	t.Parallel()
	r := newRegion(t, func(s *settings) { s.dryRunOff = true }, aClass("default"))
	shown := prometheus.NewRegistry()
	shown.MustRegister(r.meter.userData)
	bytes := func() float64 {
		t.Helper()
		families, err := shown.Gather()
		if err != nil {
			t.Fatal(err)
		}
		if len(families) == 0 {
			return 0
		}
		m := families[0]
		if m.GetName() != "karpenter_ec2nodeclasses_userdata_bytes" ||
			m.GetMetric()[0].GetLabel()[0].GetValue() != "default" {
			t.Fatalf("metric %s of %v", m.GetName(), m.GetMetric()[0].GetLabel())
		}
		return m.GetMetric()[0].GetGauge().GetValue()
	}
	change := func(text string, generation int64) {
		t.Helper()
		class := r.class("default")
		class.Spec.UserData, class.Generation = &text, generation
		if err := r.kube.Update(t.Context(), class); err != nil {
			t.Fatal(err)
		}
		r.look()
	}
	c := r.connectNow()
	r.look()
	plain := bytes()
	if plain < 500 || plain > userdata.Limit/2 {
		t.Errorf("%v bytes without user data of the user's", plain)
	}
	if trial := c.machines.Try(t.Context(), r.class("default"), strings.Repeat("p", 63)); trial.Untold != nil {
		t.Fatal(trial.Untold)
	}
	if got := bytes(); got < plain+60 {
		t.Errorf("%v bytes with the name of a pool that has 63, want at least %v", got, plain+60)
	}
	r.look()
	if got := bytes(); got < plain+60 {
		t.Errorf("%v bytes after another look, want what the pool came to", got)
	}
	large := strings.Repeat("# 0123456\n", userdata.Limit/10)
	change("#!/bin/bash\n"+large, 2)
	if got := bytes(); got < userdata.Limit {
		t.Errorf("%v bytes, want more than EC2 takes", got)
	}
	change("#!/bin/bash\n", 3)
	if got := bytes(); got <= plain || got > userdata.Limit/2 {
		t.Errorf("%v bytes of another spec, want a little more than %v", got, plain)
	}
	r.meter.forget("default")
	if got := bytes(); got != 0 {
		t.Errorf("%v bytes of a class that is gone", got)
	}
}

// E-25, E-26: unavailable prices, and prices of another region, are reported on each class once; nothing stops.
func TestPricesThatAreNotTheRegionsAreTold(t *testing.T) {
	t.Parallel()
	r := newRegion(t, nil, aClass("one"))
	c, o := r.connectNow(), newOffers(r.link)
	r.faults(ec2test.Faults{Deny: []ec2test.Denial{{Action: "pricing:GetProducts"}}})
	step := func() {
		t.Helper()
		if _, err := o.step(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		r.wait(13 * time.Hour) // they are due every 12
		step()
	}
	if told := r.saidOf(EventPricesUnavailable); told != 1 {
		t.Errorf("%d events, want one: %q", told, r.events)
	}
	if told := r.saidOf(EventPricesBorrowed); told != 0 {
		t.Errorf("%d events of borrowed prices in a region that has a table: %q", told, r.events)
	}
	known, err := tables.Read()
	if err != nil {
		t.Fatal(err)
	}
	c.prices = offering.NewPrices(offering.PricesConfig{
		Clock: r.clock, Region: "eu-west-3", EC2: c.clients.EC2, Table: known.Prices("eu-west-3"),
	})
	step()
	step()
	if told := r.saidOf(EventPricesBorrowed); told != 1 {
		t.Errorf("%d events of borrowed prices, want one: %q", told, r.events)
	}
}
