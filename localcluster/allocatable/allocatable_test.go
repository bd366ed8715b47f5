package allocatable

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	cadvisor "github.com/google/cadvisor/info/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/scheme"
	"k8s.io/kubernetes/pkg/kubelet/eviction"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"
	"k8s.io/kubernetes/pkg/kubelet/nodestatus"
	"k8s.io/utils/cpuset"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/instancetype"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/offering"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/userdata"
)

// strict returns the kubelet's decoder, which refuses unknown fields. It is made once, since it is large.
var strict = sync.OnceValues(func() (*serializer.CodecFactory, error) {
	_, codecs, err := scheme.NewSchemeAndCodecs(serializer.EnableStrict)
	return codecs, err
})

// decode reads a configuration as the kubelet does, with its defaults. The kubelet sets default thresholds when it
// starts, if none is stated.
func decode(t *testing.T, text []byte) *config.KubeletConfiguration {
	t.Helper()
	codecs, err := strict()
	if err != nil {
		t.Fatal(err)
	}
	object, _, err := codecs.UniversalDecoder().Decode(text, nil, &config.KubeletConfiguration{})
	if err != nil {
		t.Fatalf("the kubelet refuses its configuration: %v\n%s", err, text)
	}
	read := object.(*config.KubeletConfiguration)
	if read.EvictionHard == nil {
		read.EvictionHard = eviction.DefaultEvictionHard
	}
	return read
}

// strictly fails if the kubelet does not know a field of a drop-in.
func strictly(t *testing.T, s settings) { t.Helper(); decode(t, written(t, s)) }

// reservation returns what a kubelet keeps of a node's capacity: the sum of both reservations and of the hard
// thresholds of memory and disk. The kubelet's own code reads each of them. The sum itself is a method of a container
// manager, which no test can have.
func reservation(t *testing.T, c *config.KubeletConfiguration, capacity corev1.ResourceList) corev1.ResourceList {
	t.Helper()
	kube, system := maps.Clone(c.KubeReserved), maps.Clone(c.SystemReserved)
	if cores, err := cpuset.Parse(c.ReservedSystemCPUs); err != nil {
		t.Fatal(err)
	} else if cores.Size() > 0 {
		delete(kube, "cpu")
		if system == nil {
			system = map[string]string{}
		}
		system["cpu"] = strconv.Itoa(cores.Size())
	}
	sum := corev1.ResourceList{}
	add := func(name corev1.ResourceName, q resource.Quantity) {
		all := sum[name]
		all.Add(q)
		sum[name] = all
	}
	for _, reserved := range []map[string]string{kube, system} {
		for name, text := range reserved {
			q, err := resource.ParseQuantity(text)
			if err != nil {
				t.Fatal(err)
			}
			add(corev1.ResourceName(name), q)
		}
	}
	thresholds, err := eviction.ParseThresholdConfig(nil, c.EvictionHard, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, threshold := range thresholds {
		for signal, name := range map[evictionapi.Signal]corev1.ResourceName{
			evictionapi.SignalMemoryAvailable: corev1.ResourceMemory,
			evictionapi.SignalNodeFsAvailable: corev1.ResourceEphemeralStorage,
		} {
			if threshold.Signal == signal {
				whole := capacity[name]
				add(name, *evictionapi.GetThresholdQuantity(threshold.Value, &whole))
			}
		}
	}
	return sum
}

// allocatable returns what the kubelet's code puts into the status of a node.
func allocatable(t *testing.T, c *config.KubeletConfiguration, cores int, memory, disk int64) corev1.ResourceList {
	t.Helper()
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(int64(cores), resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(memory, resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(disk, resource.BinarySI),
	}
	machine := &cadvisor.MachineInfo{NumCores: cores, MemoryCapacity: uint64(memory)}
	node := &corev1.Node{}
	set := nodestatus.MachineInfo("node", int(c.MaxPods), int(c.PodsPerCore),
		func() (*cadvisor.MachineInfo, error) { return machine, nil },
		func(bool) corev1.ResourceList { return capacity },
		func() (corev1.ResourceList, corev1.ResourceList, []string) { return nil, nil, nil },
		func() corev1.ResourceList { return reservation(t, c, capacity) },
		func(string, string, string) {}, true)
	if err := set(context.Background(), node); err != nil {
		t.Fatal(err)
	}
	return node.Status.Allocatable
}

// kubelets returns kubelet settings that a class may have.
func kubelets() map[string]*awsv1.KubeletConfiguration {
	return map[string]*awsv1.KubeletConfiguration{
		"nothing":       nil,
		"many pods":     {MaxPods: new(int32(250))},
		"few pods":      {MaxPods: new(int32(8))},
		"pods by cores": {PodsPerCore: new(int32(5))},
		"kube, some":    {KubeReserved: map[string]string{"cpu": "250m"}},
		"kube, all": {KubeReserved: map[string]string{"cpu": "0.1", "memory": "1.5Gi",
			"ephemeral-storage": "3G", "pid": "1000"}},
		"system": {SystemReserved: map[string]string{"cpu": "100m", "memory": "128974848",
			"ephemeral-storage": "1Gi"}},
		"more than there is": {SystemReserved: map[string]string{"memory": "100Ti"}},
		"thresholds, amounts": {
			EvictionHard: map[string]string{"memory.available": "750M", "nodefs.available": "1.5Gi"},
		},
		"thresholds, percent": {EvictionHard: map[string]string{"memory.available": "5%", "nodefs.available": "15%",
			"imagefs.available": "15%"}},
		"thresholds, odd": {
			EvictionHard: map[string]string{"memory.available": "3.3%", "nodefs.available": "33.333333%"},
		},
		"thresholds, off": {
			EvictionHard: map[string]string{"memory.available": "100%", "nodefs.available": "0%"},
		},
		"thresholds, all":      {EvictionHard: map[string]string{"memory.available": "100.0%"}},
		"thresholds, one only": {EvictionHard: map[string]string{"memory.available": "200Mi"}},
		"soft thresholds": {EvictionSoft: map[string]string{"memory.available": "2Gi"},
			EvictionSoftGracePeriod: map[string]string{"memory.available": "1m"}},
		"everything": {MaxPods: new(int32(110)), PodsPerCore: new(int32(20)), KubeReserved: map[string]string{
			"memory": "700Mi",
		},
			SystemReserved: map[string]string{"cpu": "0.25", "memory": "300Mi"},
			EvictionHard:   map[string]string{"memory.available": "7%", "nodefs.available": "12.5%"}},
	}
}

// planned is an instance type, the node planned for it, and the user data with which it starts.
type planned struct {
	info ec2types.InstanceTypeInfo
	node instancetype.Node
	user userdata.Node
}

// plan plans a node as the provider does: from a class, a type and the family of its images.
func plan(t *testing.T, class *awsv1.EC2NodeClass, info ec2types.InstanceTypeInfo, family string,
	settings offering.Settings) planned {
	t.Helper()
	node, err := instancetype.Machine(&info, offering.ClassOf(class, family, settings), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	user := userdata.Node{
		Cluster: userdata.Cluster{Name: "prod", Endpoint: "https://prod.example.com", CA: "Y2E=",
			CIDR: "172.20.0.0/16"},
		Kubelet: class.Spec.Kubelet, MaxPods: node.Pods, DNS: []string{"172.20.0.10"},
		Taints: []corev1.Taint{{Key: "karpenter.sh/unregistered", Effect: corev1.TaintEffectNoExecute}},
	}
	return planned{info, node, user}
}

// start returns what such a node has left for pods according to the kubelet, in the units of planning. The node has
// more bytes of memory and disk than planned.
func (p planned) start(t *testing.T, configure func(*testing.T, *ec2types.InstanceTypeInfo, userdata.Node) settings,
	more int64) map[string]int64 {
	t.Helper()
	read := decode(t, written(t, configure(t, &p.info, p.user)))
	has := allocatable(t, read, int(*p.info.VCpuInfo.DefaultVCpus), p.node.Capacity["memory"]+more,
		p.node.Capacity["ephemeral-storage"]+more)
	amounts := map[string]int64{}
	for name, q := range has {
		amounts[string(name)] = q.Value()
		if name == corev1.ResourceCPU {
			amounts[string(name)] = q.MilliValue()
		}
	}
	return amounts
}

// images returns how each family configures its kubelet, by the family's name in classes.
func images() map[string]func(*testing.T, *ec2types.InstanceTypeInfo, userdata.Node) settings {
	return map[string]func(*testing.T, *ec2types.InstanceTypeInfo, userdata.Node) settings{
		"AL2023": nodeadm, "Bottlerocket": bottlerocket,
	}
}

// E-22: a node that starts with our user data never has less left for pods than planned, by the kubelet's own code.
// And the plan gives nothing away, except thresholds that Bottlerocket drops when others are stated.
func TestANodeHasWhatWasPlanned(t *testing.T) {
	t.Parallel()
	types := ec2test.Types(t)
	names := []string{"m5.large", "t3.nano", "m6g.medium", "p4d.24xlarge", "p5.48xlarge", "trn1.32xlarge",
		"u7i-12tb.224xlarge", "c6i.metal"}
	for i, name := range slices.Sorted(maps.Keys(types)) {
		if i%60 == 0 {
			names = append(names, name)
		}
	}
	for family, configure := range images() {
		for what, kubelet := range kubelets() {
			for _, name := range names {
				class := &awsv1.EC2NodeClass{Spec: awsv1.EC2NodeClassSpec{Kubelet: kubelet}}
				for _, more := range []int64{0, 1<<30 + 12345} {
					p := plan(t, class, types[name], family, offering.Settings{MemoryOverhead: 0.075})
					compare(t, fmt.Sprintf("%s, %s, %s, %d bytes more", family, what, name, more), p,
						p.start(t, configure, more), more == 0 &&
							(family == "AL2023" || kubelet == nil || len(kubelet.EvictionHard) != 1))
				}
			}
		}
	}
}

// E-22: the same for all types, and for the other settings that decide how many pods a node runs.
func TestEveryTypeHasWhatWasPlanned(t *testing.T) {
	t.Parallel()
	fabric := []awsv1.NetworkInterface{{InterfaceType: "interface"}, {DeviceIndex: 1, InterfaceType: "efa-only"}}
	prefixes := map[string]string{offering.PrefixDelegation: "true"}
	for name, info := range ec2test.Types(t) {
		for what, c := range map[string]struct {
			class    awsv1.EC2NodeClass
			settings offering.Settings
		}{
			"usual":           {},
			"reserved enis":   {settings: offering.Settings{ReservedInterfaces: 1}},
			"fabric":          {class: awsv1.EC2NodeClass{Spec: awsv1.EC2NodeClassSpec{NetworkInterfaces: fabric}}},
			"prefixes":        {class: awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Annotations: prefixes}}},
			"cores by number": {class: awsv1.EC2NodeClass{Spec: awsv1.EC2NodeClassSpec{Kubelet: reservedCore()}}},
		} {
			for family, configure := range images() {
				if what == "cores by number" && family == "Bottlerocket" {
					continue // it has no such setting, and a class that asks for it is not ready (E-06)
				}
				p := plan(t, &c.class, info, family, c.settings)
				compare(t, fmt.Sprintf("%s, %s, %s", family, what, name), p, p.start(t, configure, 0), true)
			}
		}
	}
}

func reservedCore() *awsv1.KubeletConfiguration {
	return &awsv1.KubeletConfiguration{
		Unmanaged: map[string]json.RawMessage{"reservedSystemCPUs": json.RawMessage(`"0"`)},
	}
}

// compare checks that a node has no less than planned and, if exact, no more. Shares of memory and disk are rounded
// by the byte.
func compare(t *testing.T, what string, p planned, has map[string]int64, exact bool) {
	t.Helper()
	for _, name := range []string{"cpu", "memory", "ephemeral-storage", "pods"} {
		want := p.node.Capacity[name] - p.node.Overhead[name]
		if has[name] < want || exact && has[name] > want+1 {
			t.Errorf("%s: the node has %d of %s, planned %d", what, has[name], name, want)
		}
	}
}
