package instancetype

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"k8s.io/apimachinery/pkg/api/resource"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/provider/kubereserved"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// Resources of EC2 machines beyond those of every node.
const (
	resourceNvidia     = "nvidia.com/gpu"
	resourceAMD        = "amd.com/gpu"
	resourceGaudi      = "habana.ai/gaudi"
	resourceNeuron     = "aws.amazon.com/neuron"
	resourceNeuronCore = "aws.amazon.com/neuroncore"
	resourceEFA        = "vpc.amazonaws.com/efa"
	resourcePodENI     = "vpc.amazonaws.com/pod-eni"

	ebsDriver = "ebs.csi.aws.com"
)

// What a node keeps for itself unless its class says otherwise (E-22).
const (
	mebibyte            = 1 << 20
	gibibyte            = 1 << 30
	kubeStorage         = gibibyte
	evictionDiskPercent = 10
	defaultRoot         = 20 * gibibyte
	armReserve          = 64 // MiB that EC2 advertises for arm64 and no node sees
)

// Class is the part of a node class that decides what its machines have.
type Class struct {
	// Kubelet is that of the class; nil for none.
	Kubelet *awsv1.KubeletConfiguration
	// Root is the size of the disk with the pods' data, in bytes; 0 for the family's default.
	Root int64
	// Volumes is the number of volumes at start, including the root volume; 0 means only that one.
	Volumes int64
	// LocalStorage combines the type's local disks into one for the pods' data (instanceStorePolicy RAID0).
	LocalStorage bool
	// Interfaces are the network interfaces of the class; nil for EC2's defaults.
	Interfaces []awsv1.NetworkInterface
	// ReservedInterfaces is the number of interfaces that pods cannot use (--reserved-enis).
	ReservedInterfaces int64
	// ReserveByPods makes the kubelet's reserved memory follow the configured number of pods, as Bottlerocket does.
	// Otherwise it follows the number of pods that EC2's defaults have addresses for, as nodeadm does.
	ReserveByPods bool
	// Prefixes gives an interface 16 addresses instead of each single one (joiner.sh/prefix-delegation).
	Prefixes bool
	// MemoryOverhead is the share of the advertised memory that a machine does not show, 0 to 1
	// (--vm-memory-overhead-percent).
	MemoryOverhead float64
}

// Node is what a node of a type and a class has.
type Node struct {
	// Capacity and Overhead are as in catalog.Type: what the machine has, and the part that pods cannot use.
	Capacity, Overhead resources.Amounts
	// Pods is how many pods the kubelet is told to run (E-20).
	Pods int64
}

// Machine returns what a node of a type has with a class. memory is the observed memory of such nodes, in bytes; 0
// when none was seen. branches is the number of branch interfaces of the type (E-26). The error names the field of the
// class that cannot be read.
func Machine(info *ec2types.InstanceTypeInfo, class Class, memory, branches int64) (Node, error) {
	pods := class.pods(info)
	if memory <= 0 {
		memory = class.guess(info)
	}
	capacity := resources.Amounts{
		resources.NameCPU: cores(info) * 1000, resources.NameMemory: memory,
		resources.NameEphemeralStorage: class.disk(info), resources.NamePods: pods,
	}
	addDevices(info, class, capacity)
	if branches > 0 {
		capacity[resourcePodENI] = branches
	}
	capacity[translate.AttachResource(ebsDriver)] = class.attachable(info)
	maps.DeleteFunc(capacity, func(_ string, amount int64) bool { return amount == 0 })
	overhead, err := class.overhead(info, capacity)
	return Node{Capacity: capacity, Overhead: overhead, Pods: pods}, err
}

// guess returns the expected memory of a machine when none was seen, in whole MiB.
func (c Class) guess(info *ec2types.InstanceTypeInfo) int64 {
	advertised := advertised(info)
	if Architecture(info) == "arm64" {
		advertised -= armReserve
	}
	return int64(float64(advertised)*(1-c.MemoryOverhead)) * mebibyte
}

// disk returns the ephemeral storage in bytes (E-19).
func (c Class) disk(info *ec2types.InstanceTypeInfo) int64 {
	if c.LocalStorage && info.InstanceStorageInfo != nil {
		const gigabyte = 1_000_000_000
		if size := value(info.InstanceStorageInfo.TotalSizeInGB); size > 0 {
			return size * gigabyte
		}
	}
	if c.Root > 0 {
		return c.Root
	}
	return defaultRoot
}

// pods returns how many pods a node runs: what the class says, or as many as its interfaces have addresses for.
// podsPerCore bounds both.
func (c Class) pods(info *ec2types.InstanceTypeInfo) int64 {
	pods := c.addressed(info)
	if c.Prefixes {
		pods = c.prefixed(info)
	}
	if c.Kubelet == nil {
		return pods
	}
	if c.Kubelet.MaxPods != nil {
		pods = int64(*c.Kubelet.MaxPods)
	}
	if perCore := value(c.Kubelet.PodsPerCore); perCore > 0 {
		pods = min(pods, int64(perCore)*cores(info))
	}
	return pods
}

// hostPods is the number of pods on every node that share its address: the CNI's and kube-proxy.
const hostPods = 2

// addressed returns how many pods get an address from the node's interfaces. Only those of the default card count, and
// the first address of each is the node's own.
func (c Class) addressed(info *ec2types.InstanceTypeInfo) int64 {
	interfaces, addresses := c.forPods(info)
	return interfaces*max(0, addresses-1) + hostPods
}

// prefixed is like addressed if each address is a prefix of 16, bounded by EKS' recommendation for small and large
// nodes.
func (c Class) prefixed(info *ec2types.InstanceTypeInfo) int64 {
	const perPrefix, smallCores, small, large = 16, 30, 110, 250
	interfaces, addresses := c.forPods(info)
	most := int64(large)
	if cores(info) < smallCores {
		most = small
	}
	return min(most, interfaces*max(0, addresses-1)*perPrefix+hostPods)
}

// forPods returns how many interfaces of the default card pods can use, and how many addresses each has.
func (c Class) forPods(info *ec2types.InstanceTypeInfo) (interfaces, addresses int64) {
	n := info.NetworkInfo
	if n == nil {
		return 0, 0
	}
	interfaces = int64(value(n.MaximumNetworkInterfaces))
	for _, card := range n.NetworkCards {
		if value(card.NetworkCardIndex) == value(n.DefaultNetworkCardIndex) {
			interfaces = int64(value(card.MaximumNetworkInterfaces))
		}
	}
	for _, i := range c.Interfaces {
		if i.NetworkCardIndex == value(n.DefaultNetworkCardIndex) && i.InterfaceType == "efa-only" {
			interfaces--
		}
	}
	return max(0, interfaces-c.ReservedInterfaces), int64(value(n.Ipv4AddressesPerInterface))
}

// reservedFor returns the number of pods that determines the kubelet's reserved memory. nodeadm knows only the type,
// not the class.
func (c Class) reservedFor(info *ec2types.InstanceTypeInfo, pods int64) int64 {
	if c.ReserveByPods {
		return pods
	}
	return Class{}.addressed(info)
}

// addDevices adds GPUs, accelerators and fabric adapters.
func addDevices(info *ec2types.InstanceTypeInfo, class Class, capacity resources.Amounts) {
	if info.GpuInfo != nil {
		for _, gpu := range info.GpuInfo.Gpus {
			switch strings.ToLower(value(gpu.Manufacturer)) {
			case "nvidia":
				capacity[resourceNvidia] += int64(value(gpu.Count))
			case "amd":
				capacity[resourceAMD] += int64(value(gpu.Count))
			case "habana":
				capacity[resourceGaudi] += int64(value(gpu.Count))
			}
		}
	}
	if info.NeuronInfo != nil {
		for _, d := range info.NeuronInfo.NeuronDevices {
			capacity[resourceNeuron] += int64(value(d.Count))
			if d.CoreInfo != nil {
				capacity[resourceNeuronCore] += int64(value(d.Count)) * int64(value(d.CoreInfo.Count))
			}
		}
	}
	switch n := info.NetworkInfo; {
	case class.Interfaces != nil:
		for _, i := range class.Interfaces {
			if i.InterfaceType == "efa-only" {
				capacity[resourceEFA]++
			}
		}
	case n != nil && n.EfaInfo != nil:
		capacity[resourceEFA] = int64(value(n.EfaInfo.MaximumEfaInterfaces))
	}
}

// overhead returns what a node keeps for the kubelet and the system, and for eviction (E-22).
func (c Class) overhead(info *ec2types.InstanceTypeInfo, capacity resources.Amounts) (resources.Amounts, error) {
	kubelet := value(c.Kubelet)
	kube := resources.Amounts{
		resources.NameCPU:              kubereserved.CPU(cores(info)),
		resources.NameMemory:           kubereserved.Memory(c.reservedFor(info, capacity[resources.NamePods])),
		resources.NameEphemeralStorage: kubeStorage,
	}
	reserved, err := amounts("kubelet.kubeReserved", kubelet.KubeReserved)
	if err != nil {
		return nil, err
	}
	maps.Copy(kube, reserved)
	system, err := amounts("kubelet.systemReserved", kubelet.SystemReserved)
	if err != nil {
		return nil, err
	}
	memory, err := threshold(kubelet.EvictionHard, "memory.available", capacity[resources.NameMemory],
		kubereserved.EvictionMemory)
	if err != nil {
		return nil, err
	}
	storage := capacity[resources.NameEphemeralStorage]
	disk, err := threshold(kubelet.EvictionHard, "nodefs.available", storage, share(storage, evictionDiskPercent))
	if err != nil {
		return nil, err
	}
	if set, err := reservedCPUs(kubelet); err != nil {
		return nil, err
	} else if set > 0 {
		kube[resources.NameCPU], system[resources.NameCPU] = 0, set*1000
	}
	sum := resources.Amounts{
		resources.NameCPU:    kube[resources.NameCPU] + system[resources.NameCPU],
		resources.NameMemory: kube[resources.NameMemory] + system[resources.NameMemory] + memory,
		resources.NameEphemeralStorage: kube[resources.NameEphemeralStorage] + system[resources.NameEphemeralStorage] +
			disk,
	}
	for name, amount := range sum {
		sum[name] = min(amount, capacity[name]) // a node that keeps everything for itself is useless, but valid
	}
	return sum, nil
}

// amounts reads what a class reserves: CPU in millicores, the others in bytes. Planning does not count process IDs.
func amounts(field string, reserved map[string]string) (resources.Amounts, error) {
	read := resources.Amounts{}
	for name, text := range reserved {
		q, err := resource.ParseQuantity(text)
		if err != nil || q.Sign() < 0 {
			return nil, fmt.Errorf("%s[%s] is %q: want a quantity such as 100m or 1Gi", field, name, text)
		}
		switch name {
		case resources.NameCPU:
			read[name] = q.MilliValue()
		case resources.NameMemory, resources.NameEphemeralStorage:
			read[name] = q.Value()
		}
	}
	return read, nil
}

// threshold reads an eviction signal: a quantity, or a share of the capacity. As a share, 100% means that nothing is
// kept free.
func threshold(signals map[string]string, signal string, capacity, byDefault int64) (int64, error) {
	text, stated := signals[signal]
	switch text {
	case "0%", "100%": // in other spellings the kubelet treats them as shares
		return 0, nil
	}
	if !stated {
		return byDefault, nil
	}
	if number, percent := strings.CutSuffix(text, "%"); percent {
		part, err := strconv.ParseFloat(number, 32)
		if err != nil || math.IsNaN(part) || part < 0 || part > 100 {
			return 0, fmt.Errorf("kubelet.evictionHard[%s] is %q: want 0%% to 100%%, or a quantity such as 100Mi",
				signal, text)
		}
		return share(capacity, part), nil
	}
	q, err := resource.ParseQuantity(text)
	if err != nil || q.Sign() <= 0 {
		return 0, fmt.Errorf("kubelet.evictionHard[%s] is %q: want 0%% to 100%%, or a quantity such as 100Mi", signal,
			text)
	}
	return q.Value(), nil
}

// share returns percent of an amount, rounded like the kubelet.
func share(amount int64, percent float64) int64 {
	// The kubelet multiplies with a float32.
	return int64(float64(amount) * float64(float32(percent)/100))
}

// reservedCPUs returns how many cores a class reserves by their numbers (reservedSystemCPUs, such as "0-1,8"), 0 for
// none. If there are any, kubeReserved and systemReserved do not count for CPU.
func reservedCPUs(kubelet awsv1.KubeletConfiguration) (int64, error) {
	raw, stated := kubelet.Unmanaged["reservedSystemCPUs"]
	if !stated {
		return 0, nil
	}
	text := ""
	if err := json.Unmarshal(raw, &text); err != nil {
		return 0, fmt.Errorf("kubelet.reservedSystemCPUs is %s: want a text such as \"0-1\"", raw)
	}
	if text == "" {
		return 0, nil
	}
	const most = 1 << 12
	numbers := map[int]bool{}
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			last = first
		}
		from, err := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err != nil || err2 != nil || from < 0 || to < from || to >= most {
			return 0, fmt.Errorf("kubelet.reservedSystemCPUs is %q: want numbers of cores such as 0-1,8, below %d",
				text, most)
		}
		for n := from; n <= to; n++ {
			numbers[n] = true
		}
	}
	return int64(len(numbers)), nil
}
