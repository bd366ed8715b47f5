package main

import (
	"cmp"
	"io"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/joiner-autoscaler/joiner/cmd/internal/commandline/commandlinetest"
	"github.com/joiner-autoscaler/joiner/internal/settings"
)

// chart is the environment that Karpenter's own charts make: the one for KWOK nodes, with a gate that it leaves empty,
// and the one for AWS.
func chart() map[string]string {
	return map[string]string{
		"KUBERNETES_MIN_VERSION": "1.19.0-0", "KARPENTER_SERVICE": "karpenter", "LOG_LEVEL": "info",
		"METRICS_PORT": "0", "HEALTH_PROBE_PORT": "0",
		"SYSTEM_NAMESPACE": "kube-system", "MEMORY_LIMIT": "1073741824", "CPU_REQUESTS": "1000",
		"DISABLE_CONTROLLER_WARMUP": "true",
		"FEATURE_GATES": "StaticCapacity=,ReservedCapacity=true,SpotToSpotConsolidation=false," +
			"NodeRepair=false,CapacityBuffer=true,PodDeletionCostManagement=false,FromTomorrow=true",
		"BATCH_MAX_DURATION": "10s", "BATCH_IDLE_DURATION": "1s", "PREFERENCE_POLICY": "Respect",
		"MIN_VALUES_POLICY": "Strict",
		"SCHEDULER_CONFIG": "podTopologySpread:\n  defaultConstraints:\n  - maxSkew: 3\n" +
			"    topologyKey: kubernetes.io/hostname\n    whenUnsatisfiable: ScheduleAnyway\n",
		"CLUSTER_NAME": "prod", "INTERRUPTION_QUEUE": "", "VM_MEMORY_OVERHEAD_PERCENT": "0.075",
		"LEADER_ELECTION_NAME": "karpenter-leader-election",
	}
}

// P-34: Joiner starts with what Karpenter's charts pass. What has no effect is told once, by name; the rest is silent.
func TestKarpentersChartsStartJoiner(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := program.Call(t, chart(), "--isolated-vpc", "--disable-dry-run=false", "--kubeconfig",
		commandlinetest.Kubeconfig(t, "http://127.0.0.1:1"))
	if code != 1 || !strings.Contains(stderr, "cannot be reached") {
		t.Fatalf("exit %d, %q; want it to come as far as the API server", code, stderr)
	}
	want := []string{
		"CPU_REQUESTS", "DISABLE_CONTROLLER_WARMUP", "KUBERNETES_MIN_VERSION",
		`has \"StaticCapacity=\"`, `has \"FromTomorrow=true\"`, "does not name NodeOverlay",
		"does not name TerminateFirstDrift",
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

// K-01: each of Karpenter's settings is a flag of ours; where it means the same, with its default. Karpenter's own
// option sets are held to the table by the module bench.
func TestK01_EachSettingOfTheTableIsAFlag(t *testing.T) {
	t.Parallel()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, group := range newProgram(io.Discard).Groups {
		flags.AddFlagSet(group.Flags)
	}
	kinds := map[settings.Kind][]string{
		settings.Text: {"string"}, settings.Number: {"int", "int64", "float32"}, settings.Switch: {"bool"},
		settings.Duration: {"duration"}, settings.Decimal: {"float64"},
	}
	for _, s := range settings.Table() {
		flag := flags.Lookup(s.Name)
		if flag == nil {
			t.Errorf("there is no --%s", s.Name)
			continue
		}
		want := strings.TrimPrefix(cmp.Or(s.Ours, s.Default), "-")
		if s.Default == "-1" {
			want = s.Default
		}
		kind := strings.Contains(" "+strings.Join(kinds[s.Kind], " ")+" ", " "+flag.Value.Type()+" ")
		if s.Effect != settings.Ignored && (flag.DefValue != want || !kind) {
			t.Errorf("--%s is a %s with %q; want a %s with %q", s.Name, flag.Value.Type(), flag.DefValue, s.Kind, want)
		}
	}
}

// K-01, K-02: flags may have one dash, as Go's own do. An unknown flag is refused, and the nearest one is suggested;
// or it is reported and ignored, together with its value.
func TestK02_UnknownFlags(t *testing.T) {
	t.Parallel()
	nowhere := []string{"--kubeconfig", commandlinetest.Kubeconfig(t, "http://127.0.0.1:1"), "-metrics-port=0",
		"-health-probe-port", "0"}
	for name, test := range map[string]struct {
		environment map[string]string
		args        []string
		code        int
		says        string
	}{
		"mistyped":  {nil, []string{"--batch-idle-duratoin=1s"}, 2, "do you mean batch-idle-duration?"},
		"another's": {nil, []string{"--vnet-subnet-id=x"}, 2, "unknown flag: --vnet-subnet-id"},
		"warned of": {nil, []string{"--unknown-flags=warn", "--vnet-subnet-id", "x", "-network-plugin=azure"}, 1,
			"--vnet-subnet-id is no flag"},
		"by variable": {map[string]string{"UNKNOWN_FLAGS": "warn"},
			[]string{"--vnet-subnet-id=x", "--enable-profiling"}, 1, "--vnet-subnet-id is no flag"},
		"wrong word": {nil, []string{"--unknown-flags=ignore"}, 2,
			`--unknown-flags is "ignore": want refuse or warn`},
		"wrong value": {map[string]string{"UNKNOWN_FLAGS": "warn"}, []string{"--batch-idle-duration=1"}, 2,
			"--batch-idle-duration"},
	} {
		code, stdout, stderr := program.Call(t, test.environment, append(test.args, nowhere...)...)
		if code != test.code || !strings.Contains(stdout+stderr, test.says) {
			t.Errorf("%s: exit %d, want %d with %q:\n%s\n%s", name, code, test.code, test.says, stdout, stderr)
		}
	}
}

// K-03: a variable of Karpenter's that cannot be read gets its default, and an ERROR says so. With --strict-settings
// it is refused, as a flag always is. A variable of ours is refused in any case. A batch whose idle time is longer
// than its maximum is cut.
func TestK03_VariablesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	nowhere := []string{"--kubeconfig", commandlinetest.Kubeconfig(t, "http://127.0.0.1:1"), "--metrics-port=0",
		"--health-probe-port=0"}
	for name, test := range map[string]struct {
		environment map[string]string
		code        int
		says        string
	}{
		"Karpenter's": {map[string]string{"BATCH_IDLE_DURATION": "1", "KUBE_CLIENT_QPS": "many"}, 1,
			`"message":"a variable cannot be read, so its setting has the default"`},
		"strict": {map[string]string{"BATCH_IDLE_DURATION": "1", "STRICT_SETTINGS": "true"}, 2,
			`BATCH_IDLE_DURATION="1"`},
		"ours": {map[string]string{"LAUNCH_TIMEOUT": "soon"}, 2, `LAUNCH_TIMEOUT="soon"`},
		"a limit in megabytes": {map[string]string{"MEMORY_LIMIT": "512"}, 1,
			"--memory-limit is 512 bytes, less than this program can run in: it has no effect"},
		"a pair": {map[string]string{"BATCH_IDLE_DURATION": "1m"}, 1, "a batch ends after 10s"},
		"of no provider": {map[string]string{"PROVIDERS": "kwok", "CLUSTER_NAME": "prod"}, 1,
			"CLUSTER_NAME) is given and has no effect: it belongs to the provider ec2"},
	} {
		code, stdout, stderr := program.Call(t, test.environment, nowhere...)
		if code != test.code || !strings.Contains(stdout+stderr, test.says) {
			t.Errorf("%s: exit %d, want %d with %q:\n%s\n%s", name, code, test.code, test.says, stdout, stderr)
		}
	}
}
