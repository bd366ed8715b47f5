package instancetype_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/instancetype"
)

const (
	mi = 1 << 20
	gi = 1 << 30
)

// E-20: how many pods a node runs, by its interfaces or by the class's setting.
func TestHowManyPodsANodeRuns(t *testing.T) {
	t.Parallel()
	types := ec2test.Types(t)
	most := func(maxPods, perCore int32) *awsv1.KubeletConfiguration {
		k := &awsv1.KubeletConfiguration{}
		if maxPods >= 0 {
			k.MaxPods = &maxPods
		}
		if perCore >= 0 {
			k.PodsPerCore = &perCore
		}
		return k
	}
	fabric := []awsv1.NetworkInterface{
		{NetworkCardIndex: 0, DeviceIndex: 0, InterfaceType: "interface"},
		{NetworkCardIndex: 0, DeviceIndex: 1, InterfaceType: "efa-only"},
		{NetworkCardIndex: 1, DeviceIndex: 0, InterfaceType: "efa-only"},
	}
	for name, c := range map[string]struct {
		// m5.large: 2 cores, 3 interfaces of 10 addresses; m5.8xlarge: 32 cores, 8 of 30; p4d: 15 of 50 on card 0
		kind  string
		class instancetype.Class
		want  int64
	}{
		"by interfaces":                    {"m5.large", instancetype.Class{}, 3*9 + 2},
		"one interface is reserved":        {"m5.large", instancetype.Class{ReservedInterfaces: 1}, 2*9 + 2},
		"all and more are reserved":        {"m5.large", instancetype.Class{ReservedInterfaces: 9}, 2},
		"the default card alone counts":    {"p4d.24xlarge", instancetype.Class{}, 15*49 + 2},
		"a fabric interface takes a place": {"p4d.24xlarge", instancetype.Class{Interfaces: fabric}, 14*49 + 2},
		"maxPods":                          {"m5.large", instancetype.Class{Kubelet: most(110, -1)}, 110},
		"no pods at all":                   {"m5.large", instancetype.Class{Kubelet: most(0, -1)}, 0},
		"podsPerCore is an upper bound":    {"m5.large", instancetype.Class{Kubelet: most(-1, 5)}, 10},
		"podsPerCore allows more":          {"m5.large", instancetype.Class{Kubelet: most(20, 50)}, 20},
		"podsPerCore 0 is none":            {"m5.large", instancetype.Class{Kubelet: most(-1, 0)}, 29},
		"prefixes, small":                  {"m5.large", instancetype.Class{Prefixes: true}, 110},
		"prefixes, large":                  {"m5.8xlarge", instancetype.Class{Prefixes: true}, 250},
		"prefixes, few interfaces":         {"t3.nano", instancetype.Class{Prefixes: true}, 2*1*16 + 2},
		"maxPods wins over prefixes": {"m5.large", instancetype.Class{Prefixes: true, Kubelet: most(60, -1)},
			60},
	} {
		info := types[c.kind]
		node, err := instancetype.Machine(&info, c.class, 0, 0)
		if err != nil || node.Pods != c.want || node.Capacity["pods"] != c.want {
			t.Errorf("%s: %d pods, capacity %d (%v), want %d", name, node.Pods, node.Capacity["pods"], err, c.want)
		}
	}
}

// E-22: a node's own share of its resources. The kubelet's share depends on its interfaces, even if the class sets
// maxPods.
func TestWhatANodeKeepsForItself(t *testing.T) {
	t.Parallel()
	info := ec2test.Types(t)["m5.large"] // 2 cores, 8 GiB, 29 pods
	const tenth = 2*gi + 32              // of 20 GiB, with the rounding of the kubelet
	usual := map[string]int64{"cpu": 70, "memory": (255 + 11*29 + 100) * mi, "ephemeral-storage": gi + tenth}
	for name, c := range map[string]struct {
		kubelet awsv1.KubeletConfiguration
		want    map[string]int64 // what differs
	}{
		"usual":   {},
		"maxPods": {kubelet: awsv1.KubeletConfiguration{MaxPods: new(int32(110))}},
		"kubeReserved replaces": {kubelet: awsv1.KubeletConfiguration{
			KubeReserved: map[string]string{"cpu": "200m", "memory": "1Gi", "pid": "100"},
		},
			want: map[string]int64{"cpu": 200, "memory": (1024 + 100) * mi}},
		"systemReserved is added": {kubelet: awsv1.KubeletConfiguration{
			SystemReserved: map[string]string{"cpu": "1", "memory": "100Mi", "ephemeral-storage": "1Gi"},
		},
			want: map[string]int64{"cpu": 1070, "memory": (255 + 11*29 + 100 + 100) * mi, "ephemeral-storage": 2*gi +
				tenth}},
		"evictionHard, amounts": {kubelet: awsv1.KubeletConfiguration{
			EvictionHard: map[string]string{"memory.available": "500Mi", "nodefs.available": "4Gi"},
		},
			want: map[string]int64{"memory": (255 + 11*29 + 500) * mi, "ephemeral-storage": 5 * gi}},
		"evictionHard, shares": {kubelet: awsv1.KubeletConfiguration{
			EvictionHard: map[string]string{"memory.available": "50%", "nodefs.available": "25%"},
		},
			want: map[string]int64{"memory": (255+11*29)*mi + 4*gi, "ephemeral-storage": 6 * gi}},
		"100% is off": {kubelet: awsv1.KubeletConfiguration{
			EvictionHard: map[string]string{"memory.available": "100%", "nodefs.available": "100%"},
		},
			want: map[string]int64{"memory": (255 + 11*29) * mi, "ephemeral-storage": gi}},
		"evictionSoft changes nothing": {
			kubelet: awsv1.KubeletConfiguration{EvictionSoft: map[string]string{"memory.available": "3Gi"}},
		},
		"0% is off": {kubelet: awsv1.KubeletConfiguration{EvictionHard: map[string]string{"memory.available": "0%"}},
			want: map[string]int64{"memory": (255 + 11*29) * mi}},
		"100.0% is all": {kubelet: awsv1.KubeletConfiguration{
			EvictionHard: map[string]string{"nodefs.available": "100.0%"},
		},
			want: map[string]int64{"ephemeral-storage": 20 * gi}},
		"cores by their numbers": {
			kubelet: awsv1.KubeletConfiguration{SystemReserved: map[string]string{"cpu": "500m"},
				Unmanaged: map[string]json.RawMessage{"reservedSystemCPUs": json.RawMessage(`"1"`)}},
			want: map[string]int64{"cpu": 1000}},
		"more cores than there are": {kubelet: awsv1.KubeletConfiguration{
			Unmanaged: map[string]json.RawMessage{"reservedSystemCPUs": json.RawMessage(`"0-2,2, 8"`)},
		},
			want: map[string]int64{"cpu": 2000}},
		"no cores": {
			kubelet: awsv1.KubeletConfiguration{
				Unmanaged: map[string]json.RawMessage{"reservedSystemCPUs": json.RawMessage(`""`)},
			},
		},
		"more than there is": {kubelet: awsv1.KubeletConfiguration{SystemReserved: map[string]string{"memory": "1Ti"}},
			want: map[string]int64{"memory": 8 * gi}},
	} {
		want := maps.Clone(usual)
		maps.Copy(want, c.want)
		node, err := instancetype.Machine(&info, instancetype.Class{Kubelet: &c.kubelet}, 0, 0)
		if err != nil || !maps.Equal(node.Overhead, want) {
			t.Errorf("%s: %v (%v), want %v", name, node.Overhead, err, want)
		}
	}
}

// E-22: the kubelet's memory depends on the number of pods that the node's image assumes.
func TestMemoryIsKeptForAsManyPodsAsTheImageCounts(t *testing.T) {
	t.Parallel()
	info := ec2test.Types(t)["m5.large"]
	for name, c := range map[string]struct {
		class instancetype.Class
		pods  int64
	}{
		"nodeadm knows the type only": {
			instancetype.Class{ReservedInterfaces: 1, Kubelet: &awsv1.KubeletConfiguration{MaxPods: new(int32(110))}},
			29,
		},
		"and no fabric interfaces": {
			instancetype.Class{Interfaces: []awsv1.NetworkInterface{{InterfaceType: "efa-only"}}}, 29,
		},
		"Bottlerocket knows max-pods": {
			instancetype.Class{ReserveByPods: true, Kubelet: &awsv1.KubeletConfiguration{MaxPods: new(int32(110))}},
			110,
		},
		"which are fewer for podsPerCore": {
			instancetype.Class{ReserveByPods: true, Kubelet: &awsv1.KubeletConfiguration{PodsPerCore: new(int32(5))}},
			10,
		},
		"and for interfaces that are others'": {instancetype.Class{ReserveByPods: true, ReservedInterfaces: 1}, 20},
	} {
		node, err := instancetype.Machine(&info, c.class, 0, 0)
		if want := (255 + 11*c.pods + 100) * mi; err != nil || node.Overhead["memory"] != want {
			t.Errorf("%s: %d bytes (%v), want %d", name, node.Overhead["memory"], err, want)
		}
	}
}

// E-19: where pods' data go, and what else a machine has.
func TestWhatAMachineHas(t *testing.T) {
	t.Parallel()
	types := ec2test.Types(t)
	const gb = 1_000_000_000
	for name, c := range map[string]struct {
		kind, resource   string
		class            instancetype.Class
		memory, branches int64
		want             int64
	}{
		"the family's disk": {kind: "m5.large", resource: "ephemeral-storage", want: 20 * gi},
		"the class's disk": {kind: "m5.large", resource: "ephemeral-storage",
			class: instancetype.Class{Root: 100 * gi}, want: 100 * gi},
		"its own disks": {kind: "m5d.large", resource: "ephemeral-storage",
			class: instancetype.Class{Root: 100 * gi, LocalStorage: true}, want: 75 * gb},
		"its own disks, not asked for": {kind: "m5d.large", resource: "ephemeral-storage", want: 20 * gi},
		"asked for, and there are none": {kind: "m5.large", resource: "ephemeral-storage",
			class: instancetype.Class{LocalStorage: true}, want: 20 * gi},
		"memory, guessed": {kind: "m5.large", resource: "memory",
			class: instancetype.Class{MemoryOverhead: 0.1}, want: 7372 * mi},
		"memory, guessed, arm64": {kind: "m6g.large", resource: "memory", want: (8192 - 64) * mi},
		"memory, seen": {kind: "m5.large", resource: "memory",
			class: instancetype.Class{MemoryOverhead: 0.1}, memory: 7900 * mi, want: 7900 * mi},
		"branch interfaces": {kind: "m5.large", resource: "vpc.amazonaws.com/pod-eni", branches: 9,
			want: 9},
		"no branch interfaces": {kind: "m5.large", resource: "vpc.amazonaws.com/pod-eni"},
		"fabric adapters that a class lists": {kind: "p4d.24xlarge", resource: "vpc.amazonaws.com/efa",
			class: instancetype.Class{Interfaces: []awsv1.NetworkInterface{{InterfaceType: "efa-only"}}}, want: 1},
		"a class that lists none": {kind: "p4d.24xlarge", resource: "vpc.amazonaws.com/efa",
			class: instancetype.Class{Interfaces: []awsv1.NetworkInterface{{InterfaceType: "interface"}}}},
		"fabric adapters of the type": {kind: "p4d.24xlarge", resource: "vpc.amazonaws.com/efa", want: 4},
	} {
		info := types[c.kind]
		node, err := instancetype.Machine(&info, c.class, c.memory, c.branches)
		if err != nil || node.Capacity[c.resource] != c.want {
			t.Errorf("%s: %d (%v), want %d", name, node.Capacity[c.resource], err, c.want)
		}
		if _, listed := node.Capacity[c.resource]; listed != (c.want > 0) {
			t.Errorf("%s: listed %t", name, listed)
		}
	}
}

// E-23: how many volumes pods can have attached. A dedicated limit is for volumes alone; a shared one is for
// interfaces as well.
func TestHowManyVolumesPodsCanHave(t *testing.T) {
	t.Parallel()
	types := ec2test.Types(t)
	const resource = "attachable-volumes-csi-ebs.csi.aws.com"
	two := []awsv1.NetworkInterface{{}, {InterfaceType: "efa-only"}}
	for name, c := range map[string]struct {
		kind  string
		class instancetype.Class
		want  int64
	}{
		"dedicated":                        {"m7i.large", instancetype.Class{}, 32 - 1},
		"dedicated, volumes of the class":  {"m7i.large", instancetype.Class{Volumes: 3}, 32 - 3},
		"shared: EC2 counts one interface": {"m5.large", instancetype.Class{}, 27 - 1 - 1},
		"shared: EC2 counts the disks":     {"m7gd.large", instancetype.Class{}, 26 - 1 - 1},
		"shared, interfaces of the class":  {"m5.large", instancetype.Class{Interfaces: two}, 27 - 1 - 2},
		"shared, with a fabric":            {"trn1.32xlarge", instancetype.Class{}, 28 - 1 - 8},
		"the fabric is not used": {"trn1.32xlarge", instancetype.Class{Interfaces: two[:1]},
			28 - 1 - 1},
		"no more interfaces than there are": {
			"m5.large", instancetype.Class{Interfaces: append(two, two...)}, 27 - 1 - 2,
		},
		"few":                    {"d3.8xlarge", instancetype.Class{}, 1},
		"one is promised always": {"d3.8xlarge", instancetype.Class{Volumes: 9}, 1},
		"interfaces of Xen are none that volumes lack": {"t2.micro", instancetype.Class{}, 40 - 1},
		"nothing is known of what EC2 does not say":    {"", instancetype.Class{}, 0},
	} {
		info := types[c.kind]
		node, err := instancetype.Machine(&info, c.class, 0, 0)
		if got, stated := node.Capacity[resource]; err != nil || got != c.want || stated != (c.want > 0) {
			t.Errorf("%s: %d (%v), want %d", name, got, err, c.want)
		}
	}
}

// E-22: the error for an invalid value names field, value and what is allowed.
func TestMalformedKubeletsAreNamed(t *testing.T) {
	t.Parallel()
	info := ec2test.Types(t)["m5.large"]
	for want, kubelet := range map[string]awsv1.KubeletConfiguration{
		`kubelet.kubeReserved[memory] is "lots": want a quantity`: {
			KubeReserved: map[string]string{"memory": "lots"},
		},
		`kubelet.systemReserved[cpu] is "-1": want a quantity`: {
			SystemReserved: map[string]string{"cpu": "-1"},
		},
		`kubelet.evictionHard[memory.available] is "120%": want 0% to 100%`: {
			EvictionHard: map[string]string{"memory.available": "120%"},
		},
		`kubelet.evictionHard[nodefs.available] is "x%": want 0% to 100%`: {
			EvictionHard: map[string]string{"nodefs.available": "x%"},
		},
		`kubelet.evictionHard[nodefs.available] is "-5Gi": want 0% to 100%, or a`: {
			EvictionHard: map[string]string{"nodefs.available": "-5Gi"},
		},
		`kubelet.evictionHard[memory.available] is "0": want 0% to 100%`: {
			EvictionHard: map[string]string{"memory.available": "0"},
		},
		`kubelet.evictionHard[memory.available] is "NaN%": want 0% to 100%`: {
			EvictionHard: map[string]string{"memory.available": "NaN%"},
		},
		`kubelet.reservedSystemCPUs is 2: want a text`: {
			Unmanaged: map[string]json.RawMessage{"reservedSystemCPUs": json.RawMessage("2")},
		},
		`kubelet.reservedSystemCPUs is "3-1": want numbers`: {
			Unmanaged: map[string]json.RawMessage{"reservedSystemCPUs": json.RawMessage(`"3-1"`)},
		},
		`kubelet.reservedSystemCPUs is "0-99999": want numbers`: {
			Unmanaged: map[string]json.RawMessage{"reservedSystemCPUs": json.RawMessage(`"0-99999"`)},
		},
	} {
		_, err := instancetype.Machine(&info, instancetype.Class{Kubelet: &kubelet}, 0, 0)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// E-18: labels of types with unusual names, and of answers with missing parts.
func TestLabelsByName(t *testing.T) {
	t.Parallel()
	types := ec2test.Types(t)
	for kind, want := range map[string][4]string{ // category, generation, family, flex
		"m5.large": {"m", "5", "m5", "false"}, "m7i-flex.large": {"m", "7", "m7i-flex", "true"},
		"u7i-12tb.224xlarge": {"u", "7", "u7i-12tb", "false"},
		"u-12tb1.112xlarge":  {"u", "1", "u-12tb1", "false"}, "p4de.24xlarge": {"p", "4", "p4de", "false"},
		"vt1.3xlarge": {"vt", "1", "vt1", "false"},
	} {
		info := ec2types.InstanceTypeInfo{InstanceType: ec2types.InstanceType(kind)} // all the rest is missing
		labels := instancetype.Labels(&info)
		got := [4]string{}
		for i, key := range []string{"category", "generation", "family", "capability-flex"} {
			got[i] = labels["karpenter.k8s.aws/instance-"+key]
		}
		if got != want {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
	known := map[string]bool{"kubernetes.io/arch": true, "kubernetes.io/os": true,
		"node.kubernetes.io/instance-type": true}
	for _, key := range instancetype.LabelKeys() {
		known[key] = true
	}
	for name, info := range types {
		for key := range instancetype.Labels(&info) {
			if !known[key] {
				t.Errorf("%s has label %s, which LabelKeys lacks", name, key)
			}
		}
	}
}
