package metrics

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Family is a metric of the state of the cluster.
type Family int

// The metrics of the state of the cluster.
const (
	PodsWaiting Family = iota
	NodepoolLimited
	Price
	UnpricedNodes
	NodesStaying
	NodesByState
	Offerings
	OfferingsUnavailable
	HardLimit
	HardLimitUsed
	MaxNodes
	MaxNodesUsed
	MaxClaims
	MaxClaimsUsed
	BufferPods
	Commitment
	CommitmentUsed
	NodepoolReady
	OldestDrain
	Looked
)

// family describes a metric.
type family struct {
	name, help string
	labels     []string
}

// standing returns the metrics of the state of the cluster, indexed by Family.
func standing() []family {
	return []family{
		PodsWaiting: {"pods_waiting",
			"Pods that wait for a node, by cause and by the NodePool that the cause is about; " +
				"without a cause as long as no plan has seen them.", []string{"cause", "nodepool"}},
		NodepoolLimited: {"nodepool_limited", "1 while a limit of a NodePool holds back a pod, otherwise 0.",
			[]string{"nodepool", "limit"}},
		Price: {"price_dollars_per_hour",
			"What the machines of a NodePool cost per hour, as far as their prices are known.",
			[]string{"nodepool", "capacity_type"}},
		UnpricedNodes: {"unpriced_nodes", "Nodes with a NodeClaim whose price is not known.", nil},
		NodesStaying: {"nodes_staying", "Nodes that something wants gone and that stay, by cause.",
			[]string{"nodepool", "cause"}},
		NodesByState: {"nodes", "Nodes, and NodeClaims that have none yet, by state.", []string{"nodepool", "state"}},
		Offerings: {"offerings", "Offerings of instance types that the requirements of a NodePool allow.",
			[]string{"nodepool"}},
		OfferingsUnavailable: {"offerings_unavailable", "Those of the offerings that cannot be had at present.",
			[]string{"nodepool"}},
		HardLimit: {"hard_limit_nodes", "The most NodeClaims that the hard limit of a NodePool allows.",
			[]string{"nodepool"}},
		HardLimitUsed: {"hard_limit_nodes_used",
			"NodeClaims of a NodePool with a hard limit; those made by hand are " +
				"not counted.", []string{"nodepool"}},
		MaxNodes: {"max_nodes",
			"The most nodes and NodeClaims that the whole cluster should have: --max-nodes. Absent " +
				"without it.", nil},
		MaxNodesUsed: {"max_nodes_used",
			"Nodes and NodeClaims that count for --max-nodes, of whatever program. Absent without it.", nil},
		MaxClaims: {"max_node_claims_hard",
			"The most NodeClaims that the whole cluster may have: --max-node-claims-hard, or a " +
				"lower limit that another process keeps. Absent without it.", nil},
		MaxClaimsUsed: {"max_node_claims_hard_used",
			"NodeClaims that count for --max-node-claims-hard, of whatever program. Absent without it.", nil},
		BufferPods: {"buffer_pods",
			"Pods for which a CapacityBuffer asks for room, by state: there is room, it is on its way, " +
				"or there is none.",
			[]string{"namespace", "buffer", "state"}},
		Commitment: {"commitment",
			"What a commitment of --commitments-file covers, in dollars per hour at the price on demand, or in " +
				"instances.", []string{"commitment", "unit"}},
		CommitmentUsed: {"commitment_used", "What nodes use of a commitment, of whatever program.",
			[]string{"commitment", "unit"}},
		NodepoolReady: {"nodepool_ready", "1 while the condition Ready of a NodePool is True, otherwise 0.",
			[]string{"nodepool"}},
		OldestDrain: {"oldest_drain_seconds",
			"For how long that node of a NodePool has been draining that has been longest.", []string{"nodepool"}},
		Looked: {"standing_timestamp_seconds", "Of when what is said of the cluster is.", nil},
	}
}

// Row is one series.
type Row struct {
	Family Family
	Labels []string
	Value  float64
}

// Standing exports the state of the cluster as of the last look. A series that the last look lacks is gone. It is safe
// for concurrent use, and a scrape costs no more than its series.
type Standing struct {
	described []*prometheus.Desc
	shown     atomic.Pointer[[]prometheus.Metric]
}

func newStanding() *Standing {
	s := &Standing{}
	for _, f := range standing() {
		s.described = append(s.described, prometheus.NewDesc(ownPrefix+f.name, f.help, f.labels, nil))
	}
	return s
}

// Show replaces all series by these; there are none when this replica does not lead.
func (s *Standing) Show(rows []Row) {
	shown := make([]prometheus.Metric, len(rows))
	for i, row := range rows {
		desc := s.described[row.Family]
		metric, err := prometheus.NewConstMetric(desc, prometheus.GaugeValue, row.Value, row.Labels...)
		if err != nil {
			metric = prometheus.NewInvalidMetric(desc, err)
		}
		shown[i] = metric
	}
	s.shown.Store(&shown)
}

// Describe implements prometheus.Collector.
func (s *Standing) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range s.described {
		to <- desc
	}
}

// Collect implements prometheus.Collector.
func (s *Standing) Collect(to chan<- prometheus.Metric) {
	if shown := s.shown.Load(); shown != nil {
		for _, metric := range *shown {
			to <- metric
		}
	}
}
