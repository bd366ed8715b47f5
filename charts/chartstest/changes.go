package chartstest

import (
	"maps"

	"github.com/joiner-autoscaler/joiner/charts"
)

// Change is one value of a chart that is changed.
type Change struct {
	Path  string
	Value any
	// With are the values without which this one has no effect.
	With map[string]any
	// Served are the kinds without which it has none.
	Served Served
}

// Set are the values with which the chart of the change is rendered: those that it always needs, and those of the
// change.
func (c Change) Set(chart string) map[string]any {
	set := c.Before(chart)
	set[c.Path] = c.Value
	return set
}

// Before are the same values without the change.
func (c Change) Before(chart string) map[string]any {
	set := Needed(chart)
	maps.Copy(set, c.With)
	return set
}

// Charts are all charts.
func Charts() []string {
	return []string{charts.Joiner, charts.Operator, charts.Guest, charts.Webhook, charts.CRDs}
}

// Needed are values that a chart cannot be rendered without.
func Needed(chart string) map[string]any {
	switch chart {
	case charts.Joiner:
		return map[string]any{"image": "joiner:1"}
	case charts.Operator:
		return map[string]any{"image": "joiner-operator:1", "aws.infraID": "infra",
			"aws.instanceProfile": "nodes", "userData.secret": "user-data", "userData.amiIDs": []any{"ami-1"}}
	case charts.Webhook:
		return map[string]any{"image": "joiner-webhook:1"}
	}
	return map[string]any{}
}

// Changes returns a change of every value of a chart. tools/helm holds the list to the schemas: none is missing,
// and each changes what comes out.
func Changes(chart string) []Change {
	switch chart {
	case charts.Joiner:
		return append(append(ofJoiner(), ofEC2()...), common("joiner")...)
	case charts.Operator:
		return append(ofOperator(), common("joiner-operator")...)
	case charts.Guest:
		return []Change{
			{Path: "userName", Value: "operator"}, {Path: "own", Value: []any{"Alongside"}},
			{Path: "approveKubeletCSRs", Value: true}, {Path: "crds.install", Value: false},
		}
	case charts.Webhook:
		return append(append(ofWebhook(), placed()...), common("joiner-webhook")...)
	case charts.CRDs:
		return []Change{
			{Path: "karpenter", Value: false}, {Path: "aws", Value: false}, {Path: "kwok", Value: false},
			{Path: "capacityBuffers", Value: false}, {Path: "nodeSchedulingGroups", Value: false}, {Path: "annotations", Value: annotations()},
		}
	}
	return nil
}

func annotations() map[string]any { return map[string]any{"example.com/owner": "platform"} }

// serves is what a cluster has with the operator of Prometheus.
func serves(kind string) Served { return Served{"monitoring.coreos.com/v1/" + kind} }

// common are the values that all programs have.
func common(image string) []Change {
	monitor, service := serves("PodMonitor"), serves("ServiceMonitor")
	return []Change{
		{Path: "image", Value: image + ":2"},
		{Path: "logLevel", Value: "debug"},
		{Path: "resources.cpu", Value: "20m"},
		{Path: "resources.memory", Value: "65Mi"},
		{Path: "resources.memoryLimit", Value: "2Gi"},
		{Path: "monitoring.enabled", Value: false, Served: monitor},
		{Path: "monitoring.kind", Value: "ServiceMonitor", Served: append(service, monitor...)},
		{Path: "monitoring.labels", Value: map[string]any{"release": "prometheus"}, Served: monitor},
		{Path: "monitoring.interval", Value: "10s", Served: monitor},
	}
}

// placed are the values of programs that choose where their pods run.
func placed() []Change {
	return []Change{
		{Path: "replicas", Value: 3},
		{Path: "nodeSelector", Value: map[string]any{"node-role.kubernetes.io/infra": ""}},
		{Path: "tolerations", Value: []any{map[string]any{"key": "infra", "operator": "Exists",
			"effect": "NoSchedule"}}},
		{Path: "priorityClassName", Value: "system-node-critical"},
	}
}

func ofJoiner() []Change {
	conversion := map[string]any{"v1beta1.mode": "Enable"}
	rules := serves("PrometheusRule")
	all := append(placed(),
		Change{Path: "observeOnly", Value: true},
		Change{Path: "extraArgs", Value: []any{"--batch-idle-duration=2s"}},
		Change{Path: "serviceAccount.annotations", Value: annotations()},
		Change{Path: "env", Value: []any{map[string]any{"name": "AWS_ENDPOINT_URL", "value": "http://localhost:4566"}}},
		Change{Path: "v1beta1.mode", Value: "Enable"},
		Change{Path: "v1beta1.certificates.secret", Value: "mine", With: conversion},
		Change{Path: "v1beta1.certificates.lifetime", Value: "720h", With: conversion},
		Change{Path: "alerts.enabled", Value: false, Served: rules},
		Change{Path: "dashboards.enabled", Value: true},
		Change{Path: "dashboards.labels", Value: map[string]any{"folder": "nodes"},
			With: map[string]any{"dashboards.enabled": true}},
	)
	for name, value := range map[string]any{
		"noLeaderFor": "6m", "notPlanningSeconds": 301, "podsWaitingFor": "16m", "poolLimitedFor": "17m",
		"poolNotReadyFor": "18m",
		"launchesFailFor": "19m", "launchesFailShare": 0.3, "nodesNeverJoin": 4, "noCapacityFor": "21m",
		"drainStuckSeconds": 1801, "pausedFor": "25h", "churnFor": "2h", "churnLaunches": 5, "priceJump": 1.6,
		"priceJumpNodes": 1.2,
	} {
		all = append(all, Change{Path: "alerts.thresholds." + name, Value: value, Served: rules})
	}
	return all
}

// ofEC2 are the values of the provider for Amazon EC2, which the name of a cluster switches on.
func ofEC2() []Change {
	all := []Change{{Path: "aws.clusterName", Value: "prod"}, {Path: "aws.region", Value: "eu-west-1"}}
	for name, value := range map[string]any{
		"interruptionQueue": "warnings", "clusterEndpoint": "https://api.example.com", "clusterCABundle": "Y2E=",
		"clusterServiceCIDR": "10.100.0.0/16", "isolatedVPC": true, "eksControlPlane": true, "vmMemoryOverheadPercent": 0.1,
		"reservedENIs": 1, "disableDryRun": true, "amiRefreshInterval": "2m", "subnetRefreshInterval": "3m",
		"securityGroupRefreshInterval": "4m", "pricingRegion": "us-east-1",
	} {
		all = append(all, Change{Path: "aws." + name, Value: value, With: map[string]any{"aws.clusterName": "prod"}})
	}
	return all
}

func ofOperator() []Change {
	return []Change{
		{Path: "serviceAccountName", Value: "autonode"},
		{Path: "crds.install", Value: true},
		{Path: "guest.kubeconfigSecret", Value: "guest"},
		{Path: "guest.kubeconfigKey", Value: "value"},
		{Path: "guest.userName", Value: "operator"},
		{Path: "guest.operandUserName", Value: "karpenter"},
		{Path: "guest.approveKubeletCSRs", Value: true},
		{Path: "guest.nodeBootstrapperUserName", Value: "bootstrapper",
			With: map[string]any{"guest.approveKubeletCSRs": true}},
		{Path: "protection.nodeClaims", Value: "ByContent"},
		{Path: "protection.foreignObjects", Value: "Report"},
		{Path: "protection.strict", Value: true},
		{Path: "own", Value: []any{"Alongside"}},
		{Path: "onPolicyUnreadable", Value: "KeepLast"},
		{Path: "infraFrom", Value: "HostedControlPlane"},
		{Path: "platforms", Value: []any{"KWOK"}},
		{Path: "aws.infraID", Value: "other"},
		{Path: "aws.instanceProfile", Value: "others"},
		{Path: "aws.defaultRootVolumeSize", Value: "80Gi"},
		{Path: "aws.resourceTags", Value: map[string]any{"owner": "sre"}},
		{Path: "userData.secret", Value: "others"},
		{Path: "userData.key", Value: "ignition"},
		{Path: "userData.amiIDs", Value: []any{"ami-1", "ami-2"}},
		{Path: "userData.releaseVersion", Value: "4.21.0"},
		{Path: "userData.fromSecrets", Value: true},
	}
}

func ofWebhook() []Change {
	const path = "abcdefghijklmnopqrstuvwxyz0123456789"
	given := map[string]any{"certificates.secret": "mine", "certificates.caBundle": "eA==", "authentication.path": path}
	shown := map[string]any{"authentication.mode": "ClientCertificate", "authentication.clientCA.configMap": "front",
		"authentication.clientNames": []any{"front"}}
	return []Change{
		{Path: "policy.groups", Value: []any{map[string]any{
			"name":            "ControlPlane",
			"labelSelector":   map[string]any{"matchLabels": map[string]any{"node-role.kubernetes.io/control-plane": ""}},
			"mode":            "Enable",
			"authorizedUsers": []any{"system:kube-scheduler", "group:system:masters"},
		}}},
		{Path: "policy.authorization", Value: "ListsAndRBAC"},
		{Path: "policy.emergencyOverride", Value: "Enable"},
		{Path: "policy.entryPins", Value: "Require"},
		{Path: "failurePolicy", Value: "Ignore"},
		{Path: "certificates.secret", Value: "mine", With: map[string]any{"certificates.caBundle": "eA==",
			"authentication.path": path}},
		{Path: "certificates.caBundle", Value: "eHg=", With: given},
		{Path: "certificates.lifetime", Value: "720h"},
		{Path: "authentication.mode", Value: "ClientCertificate", With: map[string]any{
			"authentication.clientCA.configMap": "front", "authentication.clientNames": []any{"front"}}},
		{Path: "authentication.path", Value: path + "-2", With: given},
		{Path: "authentication.clientCA.configMap", Value: "other", With: shown},
		{Path: "authentication.clientCA.key", Value: "bundle.crt", With: shown},
		{Path: "authentication.clientNames", Value: []any{"front", "aggregator"}, With: shown},
		{Path: "hostNetwork", Value: false},
		{Path: "ports.https", Value: 9443},
		{Path: "ports.metrics", Value: 9090},
		{Path: "ports.health", Value: 9091},
	}
}
