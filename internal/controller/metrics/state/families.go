package state

import (
	"slices"
	"strings"
)

// Family is a metric that this package can serve; all are gauges.
type Family struct {
	Name, Help string
	Labels     []string // in alphabetical order
	// Named is true if a label is the name of a node, a pod or another object: there are as many series as objects.
	Named bool
	// observed is true for what --disable-cluster-state-observability leaves out.
	observed bool
	// only is true for what is served only with --metrics-detail=Bounded.
	only bool
}

// Served returns the families that are served with these options.
func Served(o Options) []Family {
	return slices.DeleteFunc(families(o), func(f Family) bool {
		named := f.Named && !strings.HasPrefix(f.Name, "operator_")
		return o.Unobserved && f.observed || o.Bounded && named || !o.Bounded && f.only
	})
}

// Observed returns further metrics of Karpenter's that --disable-cluster-state-observability leaves out: those of
// package metrics.
func Observed() []string {
	return []string{"karpenter_nodepools_limit", "karpenter_nodepools_usage",
		"karpenter_pods_startup_duration_seconds",
		"karpenter_pods_bound_duration_seconds", "karpenter_pods_provisioning_bound_duration_seconds",
		"karpenter_pods_provisioning_startup_duration_seconds"}
}

func families(o Options) []Family {
	node := nodeLabelNames(o.NodeLabels)
	withResource := sortedNames(append(slices.Clone(node), "resource_type"))
	const pods = "karpenter_pods_"
	nodes := func(name, help string) Family {
		return Family{Name: "karpenter_nodes_" + name, Help: help, Labels: withResource, Named: true, observed: true}
	}
	pod := func(name, help string, more ...string) Family {
		return Family{Name: pods + name, Help: help, Labels: sortedNames(append(more, "name", "namespace")),
			Named: true, observed: true}
	}
	all := []Family{
		{Name: "karpenter_cluster_state_node_count", Help: "Known nodes."},
		{Name: "karpenter_cluster_state_synced",
			Help: "1 while every watch has completed its first list, otherwise 0."},
		{Name: "karpenter_cluster_state_unsynced_time_seconds",
			Help: "How long karpenter_cluster_state_synced has been 0."},
		{Name: "karpenter_cluster_utilization_percent",
			Help:   "What pods ask for, in percent of what nodes have for them.",
			Labels: []string{"resource_type"}, observed: true},
		{Name: "karpenter_nodepools_cost_total",
			Help:   "What the machines of a NodePool cost per hour, as far as their prices are known.",
			Labels: []string{"nodepool"}, observed: true},
		{Name: "karpenter_scheduler_queue_depth", Help: "Pods of the planning round under way.",
			Labels: []string{"controller", "scheduling_id"}},
		{Name: "karpenter_scheduler_unfinished_work_seconds",
			Help:   "Age of the planning round under way; 0 while there is none.",
			Labels: []string{"controller", "scheduling_id"}},
		nodes("allocatable", "What a node has for pods."),
		nodes("total_pod_requests", "What the pods of a node ask for, daemons included."),
		nodes("total_pod_limits", "The limits of the pods of a node, daemons included."),
		nodes("total_daemon_requests", "What the daemons of a node ask for."),
		nodes("total_daemon_limits", "The limits of the daemons of a node."),
		nodes("system_overhead", "What of a node its system keeps: capacity less allocatable."),
		{Name: "karpenter_nodes_current_lifetime_seconds", Help: "Age of a node.", Labels: node, Named: true,
			observed: true},
		{Name: pods + "state", Help: "1 for each pod.", Labels: podLabelNames(), Named: true, observed: true},
		pod("unstarted_time_seconds", "Age of a pod that is not ready yet."),
		pod("unbound_time_seconds", "Age of a pod that is not bound yet.", "dynamic_resources"),
		pod("provisioning_unbound_time_seconds",
			"Time since the first plan with a place for a pod that is not bound yet.", "dynamic_resources"),
		pod("provisioning_unstarted_time_seconds",
			"Time since the first plan with a place for a pod that is not ready yet."),
		pod("provisioning_scheduling_undecided_time_seconds", "Time since a pod was seen that no plan has had yet."),
		{Name: "joiner_pods", Help: "Pods, by the NodePool of their node.", Labels: []string{"nodepool", "phase",
			"scheduled"},
			observed: true, only: true},
		{Name: "joiner_nodes_by_type", Help: "Nodes, by what they are.",
			Labels: []string{"capacity_type", "instance_type", "nodepool", "zone"}, observed: true, only: true},
	}
	return append(all, conditionFamilies(o)...)
}

// nodeLabelNames returns the labels of a node's series.
func nodeLabelNames(keys []string) []string {
	names := []string{"node_name", "phase", "managed"}
	for _, key := range keys {
		names = append(names, labelName(key))
	}
	return sortedNames(names)
}

func podLabelNames() []string {
	return []string{"arch", "capacity_type", "instance_type", "managed", "name", "namespace", "node", "nodepool",
		"owner", "phase", "ready", "scheduled", "zone"}
}

func sortedNames(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// labelName returns the name of a node label in metrics: the last part of its key.
func labelName(key string) string {
	_, name, found := strings.Cut(key, "/")
	if !found {
		name = key
	}
	return strings.ReplaceAll(strings.ToLower(name), "-", "_")
}
