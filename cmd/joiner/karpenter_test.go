package main

import (
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/cmd/internal/commandline/commandlinetest"
)

// chart is the environment that Karpenter's own charts make: the one for KWOK nodes, with a gate that it leaves empty, and the
// one for AWS.
func chart() map[string]string {
	return map[string]string{
		"KUBERNETES_MIN_VERSION": "1.19.0-0", "KARPENTER_SERVICE": "karpenter", "LOG_LEVEL": "info", "METRICS_PORT": "0", "HEALTH_PROBE_PORT": "0",
		"SYSTEM_NAMESPACE": "kube-system", "MEMORY_LIMIT": "1073741824", "CPU_REQUESTS": "1000", "DISABLE_CONTROLLER_WARMUP": "true",
		"FEATURE_GATES":      "StaticCapacity=,ReservedCapacity=true,SpotToSpotConsolidation=false,NodeRepair=false,CapacityBuffer=true,PodDeletionCostManagement=false,FromTomorrow=true",
		"BATCH_MAX_DURATION": "10s", "BATCH_IDLE_DURATION": "1s", "PREFERENCE_POLICY": "Respect", "MIN_VALUES_POLICY": "Strict",
		"SCHEDULER_CONFIG": "podTopologySpread:\n  defaultConstraints:\n  - maxSkew: 3\n    topologyKey: kubernetes.io/hostname\n    whenUnsatisfiable: ScheduleAnyway\n",
		"CLUSTER_NAME":     "prod", "INTERRUPTION_QUEUE": "", "VM_MEMORY_OVERHEAD_PERCENT": "0.075", "LEADER_ELECTION_NAME": "karpenter-leader-election",
	}
}

// P-34: Joiner starts with what Karpenter's charts pass. What has no effect is told once, by name; the rest is silent.
func TestKarpentersChartsStartJoiner(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := program.Call(t, chart(), "--isolated-vpc", "--disable-dry-run=false", "--kubeconfig", commandlinetest.Kubeconfig(t, "http://127.0.0.1:1"))
	if code != 1 || !strings.Contains(stderr, "cannot be reached") {
		t.Fatalf("exit %d, %q; want it to come as far as the API server", code, stderr)
	}
	want := []string{
		"CPU_REQUESTS", "DISABLE_CONTROLLER_WARMUP", "KUBERNETES_MIN_VERSION",
		`has \"StaticCapacity=\"`, `has \"CapacityBuffer=true\"`, `has \"FromTomorrow=true\"`, "does not name NodeOverlay",
	}
	for _, name := range want {
		if strings.Count(stdout, name) != 1 {
			t.Errorf("%s is told %d times in:\n%s", name, strings.Count(stdout, name), stdout)
		}
	}
	if n := strings.Count(stdout, `"level":"WARN"`); n != len(want) {
		t.Errorf("%d warnings, want %d:\n%s", n, len(want), stdout)
	}
}
