package plug

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/offering"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/tables"
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

// E-76: that the queue cannot be read is told on each class once, and a gauge shows it until it can.
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

// E-25, E-26: prices that cannot be asked for, and those of another region, are told on each class once; nothing stops.
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
