package chartstest

// Key is a value of Karpenter's charts, and what the chart joiner makes of it (K-20).
type Key struct {
	Path string
	// Default is the default of the chart for AWS at 1.14, as JSON. KWOK is the default of the chart for KWOK at 1.15
	// if it differs, and "-" if that chart does not have the key.
	Default, KWOK string
	// In is the object that shows the value of Changes, and Shows is a part of the line that shows it.
	In, Shows string
}

// KarpentersKeys returns the values of Karpenter's charts. They are facts about the charts, and nothing of their
// templates. A test of the module bench compares them with the chart for KWOK. controller.image is not among them,
// since it is Karpenter's own image.
func KarpentersKeys() []Key {
	all := karpentersSettings()
	for _, part := range [][]Key{karpentersNames(), karpentersPods(), karpentersContainer()} {
		all = append(all, part...)
	}
	return all
}

func karpentersNames() []Key {
	return []Key{
		{"nameOverride", `""`, "", "Deployment/release-scaler", "app.kubernetes.io/name: scaler"},
		{"fullnameOverride", `""`, "", "Deployment/scaler", "  name: scaler"},
		{"additionalLabels", `{}`, "", "ClusterRole/joiner", "example.com/owner: platform"},
		{"additionalAnnotations", `{}`, "", "ClusterRole/joiner", "example.com/owner: platform"},
		{"imagePullPolicy", `"IfNotPresent"`, "", "Deployment/joiner", "imagePullPolicy: Always"},
		{"imagePullSecrets", `[]`, "", "Deployment/joiner", "- name: registry"},
		{"service.annotations", `{}`, "-", "Service/joiner", "example.com/owner: platform"},
		{"serviceAccount.create", `true`, "", "Deployment/joiner", "serviceAccountName: default"},
		{"serviceAccount.name", `""`, "", "ServiceAccount/scaler", "name: scaler"},
		{"serviceAccount.annotations", `{}`, "", "ServiceAccount/joiner", "example.com/owner: platform"},
		{"additionalClusterRoleRules", `[]`, "", "ClusterRole/joiner", "- leases"},
		{"serviceMonitor.enabled", `false`, "", "ServiceMonitor/joiner", "- port: http-metrics"},
		{"serviceMonitor.additionalLabels", `{}`, "", "ServiceMonitor/joiner", "example.com/owner: platform"},
		{"serviceMonitor.relabelings", `[]`, "-", "ServiceMonitor/joiner", "- action: drop"},
		{"serviceMonitor.metricRelabelings", `[]`, "-", "ServiceMonitor/joiner", "- action: keep"},
		{"serviceMonitor.endpointConfig", `{}`, "", "ServiceMonitor/joiner", "interval: 7s"},
		{"serviceMonitor.sampleLimit", `null`, "-", "ServiceMonitor/joiner", "sampleLimit: 2000000"},
	}
}

func karpentersPods() []Key {
	const pods = "Deployment/joiner"
	return []Key{
		{"replicas", `2`, `1`, pods, "replicas: 3"},
		{"revisionHistoryLimit", `10`, "", pods, "revisionHistoryLimit: 7"},
		{"strategy", `{"rollingUpdate":{"maxUnavailable":1}}`, "", pods, "type: Recreate"},
		{"podLabels", `{}`, "", pods, "example.com/owner: platform"},
		{"podAnnotations", `{}`, "", pods, "example.com/owner: platform"},
		{"podDisruptionBudget.name", `"karpenter"`, "", "PodDisruptionBudget/scaler", "name: scaler"},
		{"podDisruptionBudget.maxUnavailable", `1`, "", "PodDisruptionBudget/joiner", "maxUnavailable: 50%"},
		{"podSecurityContext", `{"fsGroup":65532,"seccompProfile":{"type":"RuntimeDefault"}}`, `{"fsGroup":65536}`,
			pods, "fsGroup: 1000"},
		{"priorityClassName", `"system-cluster-critical"`, "", pods, `priorityClassName: "system-node-critical"`},
		{"terminationGracePeriodSeconds", `null`, "", pods, "terminationGracePeriodSeconds: 45"},
		{"hostNetwork", `false`, "", pods, "hostNetwork: true"},
		{"schedulerName", `"default-scheduler"`, "-", pods, `schedulerName: "other"`},
		{"dnsPolicy", `"ClusterFirst"`, `"Default"`, pods, "dnsPolicy: None"},
		{"dnsConfig", `{}`, "", pods, "- 10.0.0.10"},
		{"initContainers", `[]`, "-", pods, "- image: first:1"},
		{"nodeSelector", `{"kubernetes.io/os":"linux"}`, "", pods, `node-role.kubernetes.io/infra: ""`},
		{"affinity", `{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[` +
			`{"matchExpressions":[{"key":"karpenter.sh/nodepool","operator":"DoesNotExist"}]}]}},` +
			`"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"kubernetes.io/hostname"}]}}`,
			"", pods, "topologyKey: rack"},
		{"topologySpreadConstraints", `[{"maxSkew":1,"topologyKey":"topology.kubernetes.io/zone",` +
			`"whenUnsatisfiable":"DoNotSchedule"}]`, `[{"maxSkew":1,"topologyKey":"topology.kubernetes.io/zone",` +
			`"whenUnsatisfiable":"ScheduleAnyway"}]`, pods, "topologyKey: rack"},
		{"tolerations", `[{"key":"CriticalAddonsOnly","operator":"Exists"}]`, "", pods, "key: infra"},
		{"extraVolumes", `[]`, "", pods, "- emptyDir: {}"},
	}
}

func karpentersContainer() []Key {
	const pods = "Deployment/joiner"
	return []Key{
		{"controller.containerName", `"controller"`, "-", pods, "- name: scaler"},
		{"controller.env", `[]`, "", pods, "- name: AWS_REGION"},
		{"controller.envFrom", `[]`, "", pods, "name: further"},
		{"controller.securityContext", `{"appArmorProfile":{},"seLinuxOptions":{},"seccompProfile":{}}`, "-", pods,
			"level: s0:c1"},
		{"controller.resources", `{}`, "", pods, "cpu: 2"},
		{"controller.extraVolumeMounts", `[]`, "", pods, "mountPath: /cache"},
		{"controller.sidecarContainer", `[]`, "", pods, "image: beside:1"},
		{"controller.sidecarVolumeMounts", `[]`, "", pods, "mountPath: /shared"},
		{"controller.metrics.port", `8080`, "", pods, "containerPort: 9090"},
		{"controller.healthProbe.port", `8081`, "", pods, "containerPort: 9091"},
		{"logLevel", `"info"`, "", pods, `value: "debug"`},
		{"logOutputPaths", `["stdout"]`, "-", pods, `value: "stdout,/var/log/a"`},
		{"logErrorOutputPaths", `["stderr"]`, "-", pods, `value: "stderr,/var/log/b"`},
	}
}

func karpentersSettings() []Key {
	const pods = "Deployment/joiner"
	return []Key{
		{"settings.batchMaxDuration", `"10s"`, "", pods, `value: "11s"`},
		{"settings.batchIdleDuration", `"1s"`, "", pods, `value: "2s"`},
		{"settings.preferencePolicy", `"Respect"`, "", pods, `value: "Ignore"`},
		{"settings.minValuesPolicy", `"Strict"`, "", pods, `value: "BestEffort"`},
		{"settings.ignoreDRARequests", `true`, "-", pods, `value: "false"`},
		{"settings.disableClusterStateObservability", `false`, "-", pods, `value: "true"`},
		{"settings.schedulerConfig", `""`, "", pods, `value: "podTopologySpread: {}\n"`},
		{"settings.clusterCABundle", `""`, "-", pods, `value: "Y2E="`},
		{"settings.clusterName", `""`, "-", pods, `value: "prod"`},
		{"settings.clusterEndpoint", `""`, "-", pods, `value: "https://api.example.com"`},
		{"settings.isolatedVPC", `false`, "-", pods, `value: "true"`},
		{"settings.eksControlPlane", `false`, "-", pods, `value: "true"`},
		{"settings.vmMemoryOverheadPercent", `0.075`, "-", pods, `value: "0.1"`},
		{"settings.interruptionQueue", `""`, "-", pods, `value: "warnings"`},
		{"settings.enableZonalShift", `false`, "-", pods, `value: "false"`},
		{"settings.reservedENIs", `"0"`, "-", pods, `value: "1"`},
		{"settings.disableDryRun", `false`, "-", pods, `value: "true"`},
		{"settings.amiRefreshInterval", `"1m"`, "-", pods, `value: "2m"`},
		{"settings.subnetRefreshInterval", `"1m"`, "-", pods, `value: "3m"`},
		{"settings.awsFeatureGates", `{}`, "-", pods, `value: "NodeClassCEL=false"`},
		{"settings.featureGates.nodeRepair", `false`, "", pods, `value: "NodeRepair=true"`},
		{"settings.featureGates.nodeOverlay", `false`, "-", pods, `value: "NodeOverlay=false"`},
		{"settings.featureGates.reservedCapacity", `true`, "-", pods, `value: "ReservedCapacity=false"`},
		{"settings.featureGates.spotToSpotConsolidation", `false`, "", pods, `value: "SpotToSpotConsolidation=true"`},
		{"settings.featureGates.staticCapacity", `false`, "-", pods, `value: "StaticCapacity=false"`},
		{"settings.featureGates.capacityBuffer", `false`, "-", pods, `value: "CapacityBuffer=false"`},
		{"settings.featureGates.terminateFirstDrift", `false`, "-", pods, `value: "TerminateFirstDrift=false"`},
		{"settings.featureGates.terminateFirstRepair", `false`, "-", pods, `value: "TerminateFirstRepair=true"`},
		{"settings.featureGates.podDeletionCostManagement", `false`, "", pods,
			`value: "PodDeletionCostManagement=true"`},
	}
}
