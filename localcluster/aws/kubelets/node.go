package kubelets

import (
	"cmp"
	"maps"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/localcluster/aws/boot"
	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
)

const (
	// lost is the share of EC2's advertised memory that firmware and kernel keep, in percent.
	lost = 6
	mib  = 1 << 20
	gib  = 1 << 30
)

// machine describes an instance.
type machine struct {
	kind   types.InstanceTypeInfo
	image  types.Image
	disk   int64 // of the volume for pods, in GiB
	region string
}

// newNode returns the Node, as its kubelet registers it and the cloud controller manager labels it.
func newNode(i types.Instance, c boot.Config, m machine) *corev1.Node {
	name := hostname(i, m.region)
	architecture := architectureOf(m)
	zone := aws.ToString(i.Placement.AvailabilityZone)
	labels := maps.Clone(c.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, map[string]string{
		corev1.LabelHostname: name, corev1.LabelArchStable: architecture, corev1.LabelOSStable: "linux",
		corev1.LabelInstanceTypeStable: string(i.InstanceType), corev1.LabelTopologyZone: zone,
		corev1.LabelTopologyRegion: m.region,
	})
	if id := aws.ToString(i.Placement.AvailabilityZoneId); id != "" {
		labels["topology.k8s.aws/zone-id"] = id
	}
	capacity := capacityOf(c, m)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: labels, Annotations: map[string]string{
				cluster.FakeNodeAnnotation: cluster.FakeNodeValue,
			},
		},
		Spec: corev1.NodeSpec{ProviderID: "aws:///" + zone + "/" + aws.ToString(i.InstanceId), Taints: c.Taints},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: allocatableOf(capacity, c),
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: aws.ToString(i.PrivateIpAddress)},
				{Type: corev1.NodeHostName, Address: name}, {Type: corev1.NodeInternalDNS, Address: name},
			},
			NodeInfo: corev1.NodeSystemInfo{Architecture: architecture, OperatingSystem: "linux",
				OSImage: aws.ToString(m.image.Name)},
		},
	}
}

// hostname returns the private name that EC2 gives. For a server that gives none it builds one from the address.
func hostname(i types.Instance, region string) string {
	if name := aws.ToString(i.PrivateDnsName); name != "" {
		return name
	}
	domain := region + ".compute.internal"
	if region == "us-east-1" {
		domain = "ec2.internal"
	}
	return "ip-" + strings.ReplaceAll(aws.ToString(i.PrivateIpAddress), ".", "-") + "." + domain
}

func architectureOf(m machine) string {
	if m.image.Architecture == types.ArchitectureValuesArm64 {
		return "arm64"
	}
	return "amd64"
}

// capacityOf returns the capacity of the machine.
func capacityOf(c boot.Config, m machine) corev1.ResourceList {
	cores, memory := coresOf(m.kind), int64(0)
	if m.kind.MemoryInfo != nil {
		memory = aws.ToInt64(m.kind.MemoryInfo.SizeInMiB) * mib / 100 * (100 - lost)
	}
	disk := m.disk * gib
	if own := m.kind.InstanceStorageInfo; c.Disks && own != nil {
		disk = aws.ToInt64(own.TotalSizeInGB) * 1e9
	}
	list := corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(cores, resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(memory, resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(disk, resource.BinarySI),
		corev1.ResourcePods:             *resource.NewQuantity(podsOf(c, m.kind), resource.DecimalSI),
	}
	for name, count := range devicesOf(m.kind) {
		list[name] = *resource.NewQuantity(count, resource.DecimalSI)
	}
	return list
}

func coresOf(kind types.InstanceTypeInfo) int64 {
	if kind.VCpuInfo == nil {
		return 0
	}
	return int64(aws.ToInt32(kind.VCpuInfo.DefaultVCpus))
}

// podsOf returns how many pods the kubelet accepts. Without a setting, nodeadm counts the addresses that the machine
// can have.
func podsOf(c boot.Config, kind types.InstanceTypeInfo) int64 {
	network := kind.NetworkInfo
	if c.MaxPods > 0 || network == nil {
		return int64(cmp.Or(c.MaxPods, 110)) // 110 is the kubelet's default
	}
	return int64(aws.ToInt32(network.MaximumNetworkInterfaces))*int64(aws.ToInt32(network.Ipv4AddressesPerInterface)-
		1) + 2
}

// devicesOf returns the GPUs that device plugins would report.
func devicesOf(kind types.InstanceTypeInfo) map[corev1.ResourceName]int64 {
	counts := map[corev1.ResourceName]int64{}
	if kind.GpuInfo == nil {
		return counts
	}
	for _, gpu := range kind.GpuInfo.Gpus {
		switch strings.ToLower(aws.ToString(gpu.Manufacturer)) {
		case "nvidia":
			counts["nvidia.com/gpu"] += int64(aws.ToInt32(gpu.Count))
		case "amd":
			counts["amd.com/gpu"] += int64(aws.ToInt32(gpu.Count))
		}
	}
	return counts
}

// allocatableOf returns what the kubelet leaves for pods: the capacity without reservations and eviction thresholds.
func allocatableOf(capacity corev1.ResourceList, c boot.Config) corev1.ResourceList {
	left := capacity.DeepCopy()
	take := func(name corev1.ResourceName, amount resource.Quantity) {
		if q, has := left[name]; has {
			q.Sub(amount)
			if q.Sign() < 0 {
				q = resource.Quantity{}
			}
			left[name] = q
		}
	}
	reserved := c.KubeReserved
	if reserved == nil {
		reserved = reservedBySize(capacity)
	}
	for _, amounts := range []map[string]string{reserved, c.SystemReserved} {
		for name, text := range amounts {
			if amount, err := resource.ParseQuantity(text); err == nil {
				take(corev1.ResourceName(name), amount)
			}
		}
	}
	thresholds := map[string]string{"memory.available": "100Mi", "nodefs.available": "10%"}
	if c.EvictionHard != nil {
		thresholds = c.EvictionHard
	}
	for signal, name := range map[string]corev1.ResourceName{
		"memory.available": corev1.ResourceMemory, "nodefs.available": corev1.ResourceEphemeralStorage,
	} {
		take(name, threshold(thresholds[signal], capacity[name]))
	}
	return left
}

// threshold parses an amount or a percentage of a whole.
func threshold(text string, whole resource.Quantity) resource.Quantity {
	if percent, is := strings.CutSuffix(text, "%"); is {
		if share, err := resource.ParseQuantity(percent); err == nil {
			return *resource.NewQuantity(int64(float64(whole.Value())*share.AsApproximateFloat64()/100),
				resource.BinarySI)
		}
	}
	amount, err := resource.ParseQuantity(cmp.Or(text, "0"))
	if err != nil {
		return resource.Quantity{}
	}
	return amount
}

// reservedBySize returns what nodeadm and Bottlerocket reserve for the kubelet by default: memory by pods, and of the
// first core 6 %, the second 1 %, the next two 0.5 %, all others 0.25 %.
func reservedBySize(capacity corev1.ResourceList) map[string]string {
	cores, shares := capacity.Cpu().Value(), []int64{600, 100, 50, 50} // in hundredths of a percent
	sum := int64(0)
	for core := range cores {
		if core < int64(len(shares)) {
			sum += shares[core]
		} else {
			sum += 25
		}
	}
	return map[string]string{
		"cpu":               resource.NewMilliQuantity(sum/10, resource.DecimalSI).String(),
		"memory":            resource.NewQuantity((255+11*capacity.Pods().Value())*mib, resource.BinarySI).String(),
		"ephemeral-storage": "1Gi",
	}
}

// bottlerocketData is the device on which Bottlerocket keeps pods and images; its root volume holds the system.
const bottlerocketData = "/dev/xvdb"

// diskSize returns the size of the volume for pods and images, in GiB.
func diskSize(i types.Instance, image types.Image, volumes []types.Volume) int64 {
	device := aws.ToString(i.RootDeviceName)
	if isBottlerocket(image) {
		device = bottlerocketData
	}
	largest := int64(0) // for a server that does not say which volume is on which device
	for _, v := range volumes {
		size := int64(aws.ToInt32(v.Size))
		for _, at := range v.Attachments {
			if aws.ToString(at.Device) == device && aws.ToString(at.InstanceId) == aws.ToString(i.InstanceId) {
				return size
			}
		}
		largest = max(largest, size)
	}
	return largest
}
