package plug

import (
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/offering"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/queue"
)

// named has the metrics with the names of Karpenter's AWS provider, so that its dashboards and alerts keep working
// (E-62). The buckets are ours.
type named struct {
	log      logr.Logger
	launches *prometheus.CounterVec   // zone, zone_id, capacity_type, reason
	ends     *prometheus.CounterVec   // zone, zone_id
	waited   *prometheus.HistogramVec // batcher
	asks     *prometheus.HistogramVec // batcher
	messages *prometheus.CounterVec   // kind
	late     prometheus.Histogram
	sick     *prometheus.CounterVec // category

	// offers returns the current offerings; nil before it is set.
	offers func() ([]ec2.Offered, []ec2.Size)
}

var _ ec2.Meter = (*named)(nil)

// Offerings are read at scrape time: a catalogue has thousands of them, and changes all the time.
var (
	descPrice = prometheus.NewDesc("karpenter_cloudprovider_instance_type_offering_price_estimate",
		"Dollars an hour that planning counts with, by instance type, capacity type and zone, overlays left aside.",
		[]string{"instance_type", "capacity_type", "zone"}, nil)
	descAvailable = prometheus.NewDesc("karpenter_cloudprovider_instance_type_offering_available",
		"1 where planning may choose an offering, 0 while it is sold out, by instance type, capacity type and zone.",
		[]string{"instance_type", "capacity_type", "zone"}, nil)
	descCPU = prometheus.NewDesc("karpenter_cloudprovider_instance_type_cpu_cores",
		"How many virtual CPUs an instance type has.", []string{"instance_type"}, nil)
	descMemory = prometheus.NewDesc("karpenter_cloudprovider_instance_type_memory_bytes",
		"How many bytes of memory planning counts on in an instance type, the most that a node class leaves.",
		[]string{"instance_type"}, nil)
)

func newNamed(log logr.Logger) named {
	return named{
		log: log,
		launches: counters("karpenter_cloudprovider_instance_launch_failures_total",
			"Offerings that EC2 refused to launch in, by zone, capacity type and EC2's code; without a zone where it named none.",
			"zone", "zone_id", "capacity_type", "reason"),
		ends: counters("karpenter_cloudprovider_instance_termination_failures_total",
			"Machines that EC2 refused to end, by zone, each time.", "zone", "zone_id"),
		waited: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "karpenter_cloudprovider_batcher_batch_time_seconds",
			Help:    "How long the first caller of a call that several share waited for the others.",
			Buckets: []float64{.005, .01, .02, .035, .05, .1, .15, .2, .3, .5, .75, 1, 2, 5, 10},
		}, []string{"batcher"}),
		asks: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "karpenter_cloudprovider_batcher_batch_size",
			Help:    "How many callers' asks became one call.",
			Buckets: []float64{1, 2, 5, 10, 20, 50, 100, 200, 500},
		}, []string{"batcher"}),
		// Karpenter's name counts only notices about machines of the cluster
		messages: counters("joiner_ec2_messages_total",
			"Messages of the interruption queue, by what they say, those about other machines too.", "kind"),
		late: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "karpenter_interruption_message_queue_duration_seconds",
			Help:    "How old a message of the interruption queue was when it was read.",
			Buckets: []float64{.1, .25, .5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600},
		}),
		sick: counters("karpenter_interruption_instance_status_unhealthy_total",
			"Machines whose status checks began to fail for long, or for which EC2 has scheduled something, "+
				"by which it is: InstanceStatus, SystemStatus or EventStatus.", "category"),
	}
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// Gathered implements ec2.Meter.
func (n *named) Gathered(call string, asks int, waited time.Duration) {
	n.asks.WithLabelValues(call).Observe(float64(asks))
	n.waited.WithLabelValues(call).Observe(waited.Seconds())
}

// LaunchRefused implements ec2.Meter.
func (n *named) LaunchRefused(pool offering.Pool, zoneID, code string) {
	n.launches.WithLabelValues(pool.Zone, zoneID, pool.CapacityType, code).Inc()
}

// EndRefused implements ec2.Meter.
func (n *named) EndRefused(zone, zoneID string) { n.ends.WithLabelValues(zone, zoneID).Inc() }

// Heard implements ec2.Meter, and logs messages that cannot be understood.
func (n *named) Heard(m queue.Message, at time.Time) {
	n.messages.WithLabelValues(string(m.Kind)).Inc()
	if !m.Sent.IsZero() {
		n.late.Observe(max(0, at.Sub(m.Sent).Seconds()))
	}
	if m.Explanation != "" {
		n.log.V(1).Info("a message of the interruption queue is not understood", "kind", m.Kind, "reason",
			m.Explanation)
	}
}

// Describe implements prometheus.Collector.
func (n *named) Describe(into chan<- *prometheus.Desc) {
	for _, c := range n.counted() {
		c.Describe(into)
	}
	for _, desc := range []*prometheus.Desc{descPrice, descAvailable, descCPU, descMemory} {
		into <- desc
	}
}

// Collect implements prometheus.Collector.
func (n *named) Collect(into chan<- prometheus.Metric) {
	for _, c := range n.counted() {
		c.Collect(into)
	}
	if n.offers == nil {
		return
	}
	offered, sizes := n.offers()
	for _, o := range offered {
		available := 0.0
		if o.Available {
			available = 1
		}
		labels := []string{o.Type, o.CapacityType, o.Zone}
		into <- prometheus.MustNewConstMetric(descAvailable, prometheus.GaugeValue, available, labels...)
		if price, known := o.Dollars(); known {
			into <- prometheus.MustNewConstMetric(descPrice, prometheus.GaugeValue, price, labels...)
		}
	}
	for _, s := range sizes {
		into <- prometheus.MustNewConstMetric(descCPU, prometheus.GaugeValue, float64(s.CPU)/1000, s.Type)
		into <- prometheus.MustNewConstMetric(descMemory, prometheus.GaugeValue, float64(s.Bytes), s.Type)
	}
}

func (n *named) counted() []prometheus.Collector {
	return []prometheus.Collector{n.launches, n.ends, n.waited, n.asks, n.messages, n.late, n.sick}
}
