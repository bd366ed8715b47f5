package chartstest

import (
	"maps"
	"slices"

	"github.com/joiner-autoscaler/joiner/charts"
)

// Change is one value of a chart that is changed.
type Change struct {
	Path  string
	Value any
	// With are the values without which this one has no effect.
	With map[string]any
	// Served are the kinds without which it has no effect.
	Served Served
}

// Set returns the values with which the chart of the change is rendered: those that it always needs, and those of the
// change.
func (c Change) Set(chart string) map[string]any {
	set := c.Before(chart)
	set[c.Path] = c.Value
	return set
}

// Before returns the same values without the change.
func (c Change) Before(chart string) map[string]any {
	set := Needed(chart)
	maps.Copy(set, c.With)
	return set
}

// Charts returns all charts.
func Charts() []string {
	return []string{charts.Joiner, charts.Operator, charts.Guest, charts.Webhook, charts.CRDs}
}

// Needed returns values that a chart cannot be rendered without.
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

// Changes returns a change of every value of a chart. tools/helm compares the list with the schemas: no value is
// missing, and each change changes the rendered chart.
func Changes(chart string) []Change {
	switch chart {
	case charts.Joiner:
		return slices.Concat(ofJoiner(), ofEC2(), ofTakeover(), ofSettings(), ofContainer(), common("joiner"))
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
			{Path: "capacityBuffers", Value: false}, {Path: "nodeSchedulingGroups", Value: false},
			{Path: "annotations", Value: annotations()}, {Path: "additionalAnnotations", Value: annotations()},
		}
	}
	return nil
}

func annotations() map[string]any { return map[string]any{"example.com/owner": "platform"} }

// serves returns a kind that a cluster serves if it has the operator of Prometheus.
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
		Change{Path: "env",
			Value: []any{map[string]any{"name": "AWS_ENDPOINT_URL", "value": "http://localhost:4566"}}},
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
		"clusterServiceCIDR": "10.100.0.0/16", "isolatedVPC": true, "eksControlPlane": true,
		"vmMemoryOverheadPercent": 0.1,
		"reservedENIs":            1, "disableDryRun": true, "amiRefreshInterval": "2m", "subnetRefreshInterval": "3m",
		"securityGroupRefreshInterval": "4m", "pricingRegion": "us-east-1",
	} {
		all = append(all, Change{Path: "aws." + name, Value: value, With: map[string]any{"aws.clusterName": "prod"}})
	}
	return all
}

// ofTakeover are the values that the chart has for releases of Karpenter's chart, except those of the next two
// functions.
func ofTakeover() []Change {
	monitor := serves("ServiceMonitor")
	scraped := map[string]any{"serviceMonitor.enabled": true}
	compat := map[string]any{"compat.karpenter": true}
	return []Change{
		{Path: "compat.karpenter", Value: true}, {Path: "compat.kwok", Value: true, With: compat},
		{Path: "nameOverride", Value: "scaler"}, {Path: "fullnameOverride", Value: "scaler"},
		{Path: "additionalLabels", Value: annotations()}, {Path: "additionalAnnotations", Value: annotations()},
		{Path: "imagePullPolicy", Value: "Always"},
		{Path: "imagePullSecrets", Value: []any{map[string]any{"name": "registry"}}},
		{Path: "service.annotations", Value: annotations()},
		{Path: "serviceAccount.create", Value: false}, {Path: "serviceAccount.name", Value: "scaler"},
		{Path: "additionalClusterRoleRules", Value: []any{map[string]any{"apiGroups": []any{"coordination.k8s.io"},
			"resources": []any{"leases"}, "verbs": []any{"list"}}}},
		{Path: "serviceMonitor.enabled", Value: true, Served: monitor},
		{Path: "serviceMonitor.additionalLabels", Value: annotations(), With: scraped, Served: monitor},
		{Path: "serviceMonitor.relabelings", Value: []any{map[string]any{"action": "drop"}}, With: scraped,
			Served: monitor},
		{Path: "serviceMonitor.metricRelabelings", Value: []any{map[string]any{"action": "keep"}}, With: scraped,
			Served: monitor},
		{Path: "serviceMonitor.endpointConfig", Value: map[string]any{"interval": "7s"}, With: scraped,
			Served: monitor},
		{Path: "serviceMonitor.sampleLimit", Value: 2000000, With: scraped, Served: monitor},
		{Path: "revisionHistoryLimit", Value: 7},
		{Path: "strategy", Value: map[string]any{"type": "Recreate", "rollingUpdate": nil}},
		{Path: "podLabels", Value: annotations()}, {Path: "podAnnotations", Value: annotations()},
		{Path: "podDisruptionBudget.name", Value: "scaler"},
		{Path: "podDisruptionBudget.maxUnavailable", Value: "50%"},
		{Path: "podSecurityContext", Value: map[string]any{"fsGroup": 1000}},
		{Path: "terminationGracePeriodSeconds", Value: 45}, {Path: "hostNetwork", Value: true},
		{Path: "schedulerName", Value: "other"}, {Path: "dnsPolicy", Value: "None"},
		{Path: "dnsConfig", Value: map[string]any{"nameservers": []any{"10.0.0.10"}}},
		{Path: "initContainers", Value: []any{map[string]any{"name": "first", "image": "first:1"}}},
		{Path: "extraVolumes", Value: []any{map[string]any{"name": "cache", "emptyDir": map[string]any{}}}},
		{Path: "affinity", Value: map[string]any{"podAffinity": map[string]any{
			"preferredDuringSchedulingIgnoredDuringExecution": []any{map[string]any{"weight": 1,
				"podAffinityTerm": map[string]any{"topologyKey": "rack"}}}}}},
		{Path: "topologySpreadConstraints", Value: []any{map[string]any{"maxSkew": 2, "topologyKey": "rack",
			"whenUnsatisfiable": "ScheduleAnyway"}}},
	}
}

// ofSettings are Karpenter's settings.
func ofSettings() []Change {
	all := []Change{
		{Path: "settings.takeover.grace", Value: "30m"}, {Path: "settings.metricsDetail", Value: "Bounded"},
		{Path: "settings.repairVeto", Value: "Karpenter"},
		{Path: "settings.awsFeatureGates", Value: map[string]any{"nodeClassCEL": false}},
	}
	for name, value := range map[string]any{
		"batchMaxDuration": "11s", "batchIdleDuration": "2s", "preferencePolicy": "Ignore",
		"minValuesPolicy":   "BestEffort",
		"ignoreDRARequests": false, "disableClusterStateObservability": true,
		"schedulerConfig": "podTopologySpread: {}\n",
		"clusterName":     "prod", "clusterEndpoint": "https://api.example.com", "clusterCABundle": "Y2E=",
		"isolatedVPC":     true,
		"eksControlPlane": true, "vmMemoryOverheadPercent": 0.1, "interruptionQueue": "warnings", "reservedENIs": 1,
		"disableDryRun": true, "amiRefreshInterval": "2m", "subnetRefreshInterval": "3m", "enableZonalShift": false,
		"featureGates.nodeRepair": true, "featureGates.reservedCapacity": false,
		"featureGates.spotToSpotConsolidation": true,
		"featureGates.nodeOverlay":             false, "featureGates.staticCapacity": false,
		"featureGates.capacityBuffer":      false,
		"featureGates.terminateFirstDrift": false, "featureGates.terminateFirstRepair": true,
		"featureGates.podDeletionCostManagement": true,
	} {
		all = append(all, Change{Path: "settings." + name, Value: value})
	}
	for _, name := range []string{"logOutputPaths", "logErrorOutputPaths"} {
		value := map[string][]any{"logOutputPaths": {"stdout", "/var/log/a"},
			"logErrorOutputPaths": {"stderr", "/var/log/b"}}[name]
		all = append(all, Change{Path: name, Value: value})
	}
	return all
}

// ofContainer are the values of the container, as Karpenter's charts have them.
func ofContainer() []Change {
	mount := func(name, path string) []any { return []any{map[string]any{"name": name, "mountPath": path}} }
	beside := map[string]any{
		"controller.sidecarContainer": []any{map[string]any{"name": "beside", "image": "beside:1"}},
	}
	// A volume for what is mounted, and no image of ours, so that the one of the container counts.
	cache := map[string]any{"extraVolumes": []any{map[string]any{"name": "cache", "emptyDir": map[string]any{}}}}
	image := map[string]any{"image": "", "controller.image.repository": "registry.example.com/joiner"}
	besideCache := maps.Clone(beside)
	maps.Copy(besideCache, cache)
	return []Change{
		{Path: "controller.containerName", Value: "scaler"},
		{Path: "controller.image.repository", Value: "registry.example.com/scaler", With: image},
		{Path: "controller.image.tag", Value: "2", With: image}, {Path: "controller.image.digest", Value: "sha256:ab",
			With: image},
		{Path: "controller.env", Value: []any{map[string]any{"name": "AWS_REGION", "value": "eu-north-1"}}},
		{Path: "controller.envFrom", Value: []any{map[string]any{"configMapRef": map[string]any{"name": "further"}}}},
		{Path: "controller.securityContext",
			Value: map[string]any{"seLinuxOptions": map[string]any{"level": "s0:c1"}}},
		{Path: "controller.resources", Value: map[string]any{"requests": map[string]any{"cpu": 2}}},
		{Path: "controller.extraVolumeMounts", Value: mount("cache", "/cache"), With: cache},
		{Path: "controller.sidecarContainer", Value: beside["controller.sidecarContainer"]},
		{Path: "controller.sidecarVolumeMounts", Value: mount("cache", "/shared"), With: besideCache},
		{Path: "controller.metrics.port", Value: 9090}, {Path: "controller.healthProbe.port", Value: 9091},
	}
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
	given := map[string]any{"certificates.secret": "mine", "certificates.caBundle": "eA==",
		"authentication.path": path}
	shown := map[string]any{"authentication.mode": "ClientCertificate", "authentication.clientCA.configMap": "front",
		"authentication.clientNames": []any{"front"}}
	return []Change{
		{Path: "policy.groups", Value: []any{map[string]any{
			"name": "ControlPlane",
			"labelSelector": map[string]any{
				"matchLabels": map[string]any{"node-role.kubernetes.io/control-plane": ""},
			},
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
