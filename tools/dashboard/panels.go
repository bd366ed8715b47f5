package main

import "strings"

// row is a part of the dashboard.
type row struct {
	title  string
	panels []panel
}

// panel is one graph, or one figure.
type panel struct {
	title, about, unit string
	queries            []query
	figure, stacked    bool
}

// query is an expression, and what its series are called.
type query struct{ expr, legend string }

// of replaces, in an expression, CLUSTER by what selects the cluster, and POOL by what selects cluster and NodePool.
func of(expr, legend string) query {
	const cluster = `cluster=~"$cluster"`
	return query{strings.NewReplacer("CLUSTER", cluster, "POOL", cluster+`,nodepool=~"$nodepool"`).Replace(expr),
		legend}
}

func figure(title, about, unit, expr string) panel {
	return panel{title: title, about: about, unit: unit, figure: true, queries: []query{of(expr, "")}}
}

func graph(title, about, unit string, queries ...query) panel {
	return panel{title: title, about: about, unit: unit, queries: queries}
}

// stack is a graph whose series add up.
func stack(title, about, unit, expr, legend string) panel {
	return panel{title: title, about: about, unit: unit, stacked: true, queries: []query{of(expr, legend)}}
}

// quantiles returns queries for the median and the 95th percentile of a histogram, by the labels of by, which are
// separated by commas.
func quantiles(histogram, by string) []query {
	if by != "" {
		by = ", " + by
	}
	var list []query
	for _, q := range []struct{ value, name string }{{"0.5", "p50"}, {"0.95", "p95"}} {
		legend := q.name
		for label := range strings.SplitSeq(strings.TrimPrefix(by, ", "), ", ") {
			if label != "" {
				legend += " {{" + label + "}}"
			}
		}
		list = append(list, of("histogram_quantile("+q.value+", sum by (le"+by+") (rate("+histogram+
			"[$__rate_interval])))", legend))
	}
	return list
}

// rows returns all rows of the dashboard.
func rows() []row {
	return []row{
		{"Now", now()}, {"Supply", supply()}, {"Launching", launching()}, {"Disruption", disruption()},
		{"Limits", limits()}, {"Provider", provider()}, {"Controller", controller()}, {"Policy", policy()},
	}
}

func now() []panel {
	return []panel{
		figure("Nodes", "Those with a NodeClaim, in any state.", "short",
			`sum(joiner_nodes{POOL,state!="unmanaged"})`),
		figure("Pods that wait", "For a node, for whatever cause.", "short", `sum(joiner_pods_waiting{CLUSTER})`),
		figure("Price per hour", "Of the machines whose price is known.", "currencyUSD",
			`sum(joiner_price_dollars_per_hour{POOL})`),
		figure("Price per month", "The same for 730 hours.", "currencyUSD",
			`730 * sum(joiner_price_dollars_per_hour{POOL})`),
		figure("Leader", "Replicas that lead: one.", "short", `sum(joiner_leader{CLUSTER})`),
		figure("Paused", "1 while voluntary disruption is paused.", "short",
			`max(joiner_voluntary_disruption_paused{CLUSTER})`),
		figure("Grace of the first start",
			"How long nothing is removed voluntarily, on a cluster that another program had.", "s",
			`max(joiner_takeover_grace_seconds{CLUSTER})`),
		stack("Nodes by state", "", "short", `sum by (state) (joiner_nodes{POOL})`, "{{state}}"),
		stack("Pods that wait, by cause",
			"The page of causes says what each means and what to do. Without a cause: no plan "+
				"has seen them yet.", "short", `sum by (cause) (joiner_pods_waiting{POOL})`, "{{cause}}"),
		stack("Pools that are limited", "Limits that hold back pods.", "short",
			`sum by (nodepool, limit) (joiner_nodepool_limited{POOL}) > 0`, "{{nodepool}} {{limit}}"),
	}
}

func supply() []panel {
	return []panel{
		stack("Nodes by NodePool", "", "short", `sum by (nodepool) (joiner_nodes{POOL,state!="unmanaged"})`,
			"{{nodepool}}"),
		stack("Price per hour by NodePool", "", "currencyUSD",
			`sum by (nodepool) (joiner_price_dollars_per_hour{POOL})`, "{{nodepool}}"),
		stack("Price per hour by capacity type", "", "currencyUSD",
			`sum by (capacity_type) (joiner_price_dollars_per_hour{POOL})`, "{{capacity_type}}"),
		graph("Capacity by resource", "What the nodes of each NodePool have: cores, bytes, number.", "short",
			of(`sum by (nodepool, resource_type) (karpenter_nodepools_usage{POOL})`,
				"{{nodepool}} {{resource_type}}")),
		graph("Nodes without a price", "They are in no sum of prices.", "short",
			of(`sum(joiner_unpriced_nodes{CLUSTER})`, "unpriced")),
		graph("Nodes of nobody", "Nodes without a NodeClaim, which Joiner does not touch.", "short",
			of(`sum(joiner_nodes{CLUSTER,state="unmanaged"})`, "unmanaged")),
	}
}

func launching() []panel {
	return []panel{
		graph("Stages of a node", "From the creation of a NodeClaim to its machine, to its node, to its use.", "s",
			quantiles("joiner_node_stage_seconds_bucket{POOL}", "stage")...),
		graph("Launches by outcome", "Per second.", "short", of(`sum by (verb, cause, outcome) `+
			`(rate(joiner_decisions_total{CLUSTER,verb=~"launch|replace"}[$__rate_interval]))`,
			"{{verb}} {{cause}} {{outcome}}")),
		graph("Offerings that cannot be had", "Part of those that the NodePool allows.", "percentunit",
			of(`max by (nodepool) (joiner_offerings_unavailable{POOL}) / max by (nodepool) (joiner_offerings{POOL})`,
				"{{nodepool}}")),
		graph("Nodes that never joined", "In an hour.", "short", of(`sum by (nodepool) `+
			`(increase(karpenter_nodeclaims_disrupted_total{POOL,reason="registration_timeout"}[1h]))`,
			"{{nodepool}}")),
		graph("Launches in vain", "Rounds in an hour after which none of the pods was bound that they were for.",
			"short",
			of(`sum by (nodepool) (increase(joiner_nodepools_launches_in_vain_total{POOL}[1h]))`, "{{nodepool}}")),
		graph("NodePools that are not ready", "", "short",
			of(`min by (nodepool) (joiner_nodepool_ready{POOL}) == 0`, "{{nodepool}}")),
	}
}

func disruption() []panel {
	return []panel{
		graph("Removals by cause", "Per second: planned, done or taken back.", "short", of(`sum by (cause, outcome) `+
			`(rate(joiner_decisions_total{CLUSTER,verb="remove"}[$__rate_interval]))`, "{{cause}} {{outcome}}")),
		stack("Nodes that stay, by cause", "Something wants them gone, and this keeps them.", "short",
			`sum by (cause) (joiner_nodes_staying{POOL})`, "{{cause}}"),
		graph("Disruptions that budgets allow now", "More nodes, by reason.", "short",
			of(`sum by (nodepool, reason) (joiner_nodepools_remaining_disruptions{POOL})`, "{{nodepool}} {{reason}}")),
		graph("Oldest drain", "For how long the node drains that has been longest.", "s",
			of(`max by (nodepool) (joiner_oldest_drain_seconds{POOL})`, "{{nodepool}}")),
		graph("Evictions", "Calls per second, by the status of the answer: 429 is a PodDisruptionBudget that says no.",
			"short", of(`sum by (code) (rate(karpenter_pods_eviction_requests_total{CLUSTER}[$__rate_interval]))`,
				"{{code}}")),
		graph("NodeClaims that went, by reason", "Per second.", "short", of(`sum by (reason) `+
			`(rate(karpenter_nodeclaims_disrupted_total{POOL}[$__rate_interval]))`, "{{reason}}")),
	}
}

func limits() []panel {
	return []panel{
		graph("Usage over limit", "", "percentunit",
			of(`max by (nodepool, resource_type) (karpenter_nodepools_usage{POOL})`+
				` / max by (nodepool, resource_type) (karpenter_nodepools_limit{POOL})`,
				"{{nodepool}} {{resource_type}}")),
		graph("Limited", "1 while the limit holds back a pod.", "short",
			of(`max by (nodepool, limit) (joiner_nodepool_limited{POOL})`, "{{nodepool}} {{limit}}")),
		graph("Hard limits of nodes", "NodeClaims against what may be.", "short",
			of(`max by (nodepool) (joiner_hard_limit_nodes_used{POOL})`, "{{nodepool}}"),
			of(`max by (nodepool) (joiner_hard_limit_nodes{POOL})`, "{{nodepool}} at most")),
		graph("Nodes of the whole cluster", "Against --max-nodes and --max-node-claims-hard; empty without them.",
			"short",
			of(`max(joiner_max_nodes_used{CLUSTER})`, "nodes"), of(`max(joiner_max_nodes{CLUSTER})`, "at most"),
			of(`max(joiner_max_node_claims_hard_used{CLUSTER})`, "NodeClaims"),
			of(`max(joiner_max_node_claims_hard{CLUSTER})`, "NodeClaims at most")),
		graph("Room of CapacityBuffers",
			"Pods for which there is room, for which it comes, and for which there is none.", "short",
			of(`max by (namespace, buffer, state) (joiner_buffer_pods{CLUSTER})`,
				"{{namespace}}/{{buffer}} {{state}}")),
		graph("Replacements that hard limits hold back", "In an hour, by reason.", "short",
			of(`sum by (nodepool, reason) `+
				`(increase(joiner_nodepools_disruptions_blocked_by_node_limit_total{POOL}[1h]))`,
				"{{nodepool}} {{reason}}")),
	}
}

func provider() []panel {
	return []panel{
		graph("Calls", "Per second.", "short", of(`sum by (method) `+
			`(rate(karpenter_cloudprovider_duration_seconds_count{CLUSTER}[$__rate_interval]))`, "{{method}}")),
		graph("Errors", "Per second. ThrottledError is the cloud that asks for fewer calls.", "short",
			of(`sum by (method, error) (rate(karpenter_cloudprovider_errors_total{CLUSTER}[$__rate_interval]))`,
				"{{method}} {{error}}")),
		graph("Duration", "", "s", quantiles("karpenter_cloudprovider_duration_seconds_bucket{CLUSTER}", "method")...),
	}
}

func controller() []panel {
	own := func(expr string) string { return expr + ` and on (namespace, pod) joiner_leader{CLUSTER}` }
	return []panel{
		graph("Duration of a plan", "", "s", quantiles("joiner_plan_duration_seconds_bucket{CLUSTER}", "")...),
		graph("Pods bound where they were expected", "Of those that had a place in a plan.", "percentunit", of(
			`sum(rate(joiner_pods_bound_total{CLUSTER,place="expected"}[$__rate_interval]))`+
				` / sum(rate(joiner_pods_bound_total{CLUSTER}[$__rate_interval]))`, "share")),
		graph("Pods of a plan", "", "short", quantiles("joiner_plan_pods_bucket{CLUSTER}", "")...),
		graph("Age of the last plan", "It counts while pods wait: then there is one every ten seconds.", "s",
			of(`(time() - max by (namespace) (joiner_last_plan_timestamp_seconds{CLUSTER})) and on (namespace) `+
				`sum by (namespace) (joiner_pods_waiting{CLUSTER}) > 0`, "{{namespace}}")),
		graph("Calls to the API server", "Per second. What is read from a cache is none.", "short", of(
			`sum by (verb, kind) (rate(joiner_api_requests_total{CLUSTER}[$__rate_interval]))`, "{{verb}} {{kind}}")),
		graph("CPU", "Cores.", "short",
			of(own(`rate(process_cpu_seconds_total{CLUSTER}[$__rate_interval])`), "{{pod}}")),
		graph("Memory", "", "bytes", of(own(`process_resident_memory_bytes{CLUSTER}`), "{{pod}}")),
		graph("Restarts", "In an hour.", "short", of(own(`changes(process_start_time_seconds{CLUSTER}[1h])`),
			"{{pod}}")),
		graph("Age of how the cluster stands", "What this page shows of pods, nodes and limits is so old.", "s",
			of(`time() - max by (namespace) (joiner_standing_timestamp_seconds{CLUSTER})`, "{{namespace}}")),
		graph("Metrics that are left out", "1 for each: there are too many series.", "short",
			of(`max by (family) (joiner_metrics_family_dropped{CLUSTER})`, "{{family}}")),
		graph("Events that were not sent", "In an hour, by reason: there were too many at a time.", "short",
			of(`sum by (reason) (increase(joiner_events_dropped_total{CLUSTER}[1h]))`, "{{reason}}")),
	}
}

func policy() []panel {
	return []panel{
		graph("AutoNodePolicy: how it was read", "1 for the state that holds.", "short",
			of(`max by (namespace, state) (autonode_policy_read_state{CLUSTER}) == 1`, "{{namespace}} {{state}}")),
		graph("AutoNodePolicy: objects that do not conform", "", "short", of(`sum by (namespace, party) `+
			`(autonode_conformance_objects{CLUSTER,state="NotConforming"})`, "{{namespace}} {{party}}")),
		graph("Node scheduling policy: decisions", "Per second.", "short", of(`sum by (group, decision) `+
			`(rate(node_scheduling_policy_decisions_total{CLUSTER}[$__rate_interval]))`, "{{group}} {{decision}}")),
		graph("Certificate of the webhook", "Until it ends.", "s", of(
			`min by (namespace) (joiner_webhook_certificate_expiry_timestamp_seconds{CLUSTER}) - time()`,
			"{{namespace}}")),
	}
}
