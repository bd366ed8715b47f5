package offering

import (
	"encoding/json"
	"slices"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/instancetype"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/subnet"
)

// PrefixDelegation is the annotation of a class whose nodes get prefixes of addresses for their pods when it is "true"
// (E-20).
const PrefixDelegation = "joiner.sh/prefix-delegation"

// The devices on which the data of pods lie, by family, unless a mapping says that it is the root volume.
const (
	deviceAL2023       = "/dev/xvda"
	deviceBottlerocket = "/dev/xvdb"
)

// Settings are those of the program that decide what a node has (E-59).
type Settings struct {
	ReservedInterfaces int64               // reserved-enis
	MemoryOverhead     float64             // vm-memory-overhead-percent, 0 to 1
	PodAddresses       subnet.PodAddresses // where pods have addresses from, in classes without [PrefixDelegation]
}

// ClassOf returns what of a class decides what its machines have, with images of a family. Whoever writes a launch
// template uses it too: the kubelet is told the number of pods that was planned with.
func ClassOf(class *awsv1.EC2NodeClass, family string, settings Settings) instancetype.Class {
	return instancetype.Class{
		Kubelet: class.Spec.Kubelet, Root: rootSize(class.Spec.BlockDeviceMappings, family),
		Volumes:      volumes(class.Spec.BlockDeviceMappings, family),
		LocalStorage: value(class.Spec.InstanceStorePolicy) == "RAID0", ReserveByPods: family == "Bottlerocket",
		Interfaces: class.Spec.NetworkInterfaces, ReservedInterfaces: settings.ReservedInterfaces,
		Prefixes: class.Annotations[PrefixDelegation] == "true", MemoryOverhead: settings.MemoryOverhead,
	}
}

// volumes is how many volumes a machine starts with: those of the image and those that the class adds (E-23). Which is
// the root of a custom image is not known, unless the class says so.
func volumes(mappings []awsv1.BlockDeviceMapping, family string) int64 {
	devices := map[string]bool{}
	switch family {
	case "AL2023":
		devices[deviceAL2023] = true
	case "Bottlerocket":
		devices[deviceAL2023], devices[deviceBottlerocket] = true, true
	default:
		devices[""] = !slices.ContainsFunc(mappings, func(m awsv1.BlockDeviceMapping) bool {
			return value(m.RootVolume)
		})
	}
	for _, m := range mappings {
		if m.EBS != nil && value(m.DeviceName) != "" {
			devices[value(m.DeviceName)] = true
		}
	}
	count := int64(0)
	for _, there := range devices {
		if there {
			count++
		}
	}
	return count
}

// rootSize is the size in bytes of the volume with the pods' data; 0 when the class does not say. Nothing is known of
// the devices of a custom image: its last mapping counts, as with Karpenter.
func rootSize(mappings []awsv1.BlockDeviceMapping, family string) int64 {
	is := func(m awsv1.BlockDeviceMapping) bool { return value(m.RootVolume) }
	if !slices.ContainsFunc(mappings, is) {
		switch family {
		case "AL2023":
			is = func(m awsv1.BlockDeviceMapping) bool { return value(m.DeviceName) == deviceAL2023 }
		case "Bottlerocket":
			is = func(m awsv1.BlockDeviceMapping) bool { return value(m.DeviceName) == deviceBottlerocket }
		default:
			is = func(awsv1.BlockDeviceMapping) bool { return true }
		}
	}
	size := int64(0)
	for _, m := range mappings {
		if is(m) && m.EBS != nil && m.EBS.VolumeSize != nil {
			size = m.EBS.VolumeSize.Value()
		}
	}
	return size
}

// Placement is the placement group of a class; the zero value is none (E-15).
type Placement struct {
	ID       string
	Strategy string // cluster, partition or spread
}

// MostInZone is how many machines the group may have in a zone; 0 for as many as EC2 has (E-15).
func (p Placement) MostInZone() int {
	if p.Strategy == string(ec2types.PlacementGroupStrategySpread) {
		return mostSpread
	}
	return 0
}

// mostSpread is how many machines EC2 starts for a group in a zone when it puts each on hardware of its own.
const mostSpread = 7

// Accelerators, as far as images differ by them (E-09). They go by the labels that images' requirements name, so GPUs
// are those of any maker.
const (
	GPU    = "gpu"
	Neuron = "neuron" // Inferentia and Trainium, and what else EC2 calls an accelerator
)

const (
	labelGPUs         = awsv1.Group + "/instance-gpu-count"
	labelAccelerators = awsv1.Group + "/instance-accelerator-count"
)

// accelerator says by the labels of a type what it has that needs an image of its own; "" for nothing.
func accelerator(labels map[string]string) string {
	switch {
	case labels[labelGPUs] != "":
		return GPU
	case labels[labelAccelerators] != "":
		return Neuron
	}
	return ""
}

// fits reports whether EC2 would launch a type at all as a class asks for it: into its placement group, with its
// network interfaces, its options for processors and its enclaves.
func fits(class *awsv1.EC2NodeClass, placement Placement, info *ec2types.InstanceTypeInfo) bool {
	if placement.ID != "" && (info.PlacementGroupInfo == nil ||
		!slices.Contains(info.PlacementGroupInfo.SupportedStrategies,
			ec2types.PlacementGroupStrategy(placement.Strategy))) {
		return false
	}
	if o := class.Spec.CPUOptions; o != nil && value(o.NestedVirtualization) == "enabled" &&
		(info.ProcessorInfo == nil ||
			!slices.Contains(info.ProcessorInfo.SupportedFeatures,
				ec2types.SupportedAdditionalProcessorFeatureNestedVirtualization)) {
		return false
	}
	return hasEnclaves(class, info) && hasInterfaces(class.Spec.NetworkInterfaces, info.NetworkInfo)
}

// hasEnclaves reports whether a type has Nitro enclaves, or the class does without (E-01).
func hasEnclaves(class *awsv1.EC2NodeClass, info *ec2types.InstanceTypeInfo) bool {
	wanted := class.Spec.EnclaveOptions
	return wanted == nil || !wanted.Enabled || info.NitroEnclavesSupport == ec2types.NitroEnclavesSupportSupported
}

// hasInterfaces reports whether a type has the cards that the interfaces of a class belong to, with room for them.
func hasInterfaces(interfaces []awsv1.NetworkInterface, n *ec2types.NetworkInfo) bool {
	if len(interfaces) == 0 {
		return true
	}
	if n == nil {
		return false
	}
	most, wanted, fabric := map[int32]int32{}, map[int32]int32{}, int32(0)
	for _, card := range n.NetworkCards {
		most[value(card.NetworkCardIndex)] = value(card.MaximumNetworkInterfaces)
	}
	for _, i := range interfaces {
		wanted[i.NetworkCardIndex]++
		if wanted[i.NetworkCardIndex] > most[i.NetworkCardIndex] {
			return false
		}
		if i.InterfaceType == "efa-only" {
			fabric++
		}
	}
	return fabric == 0 || n.EfaInfo != nil && value(n.EfaInfo.MaximumEfaInterfaces) >= fabric
}

// fingerprint is equal for classes whose machines are equal.
func fingerprint(class instancetype.Class) (string, error) {
	text, err := json.Marshal(class)
	return string(text), err
}
