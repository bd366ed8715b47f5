package offering

import (
	"encoding/json"
	"slices"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/instancetype"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/subnet"
)

// PrefixDelegation is the annotation of a class that gives its nodes prefixes of addresses for their pods if it is
// "true" (E-20).
const PrefixDelegation = "joiner.sh/prefix-delegation"

// The devices with the data of pods, by family, unless a mapping says that it is the root volume.
const (
	deviceAL2023       = "/dev/xvda"
	deviceBottlerocket = "/dev/xvdb"
)

// Settings are the program's settings that decide what a node has (E-59).
type Settings struct {
	ReservedInterfaces int64               // reserved-enis
	MemoryOverhead     float64             // vm-memory-overhead-percent, 0 to 1
	PodAddresses       subnet.PodAddresses // where pods get addresses from, in classes without [PrefixDelegation]
}

// ClassOf returns the part of a class that decides what its machines have, with images of a family. Launch templates
// use it too, so that the kubelet gets the number of pods that planning uses.
func ClassOf(class *awsv1.EC2NodeClass, family string, settings Settings) instancetype.Class {
	return instancetype.Class{
		Kubelet: class.Spec.Kubelet, Root: rootSize(class.Spec.BlockDeviceMappings, family),
		Volumes:      volumes(class.Spec.BlockDeviceMappings, family),
		LocalStorage: value(class.Spec.InstanceStorePolicy) == "RAID0", ReserveByPods: family == "Bottlerocket",
		Interfaces: class.Spec.NetworkInterfaces, ReservedInterfaces: settings.ReservedInterfaces,
		Prefixes: class.Annotations[PrefixDelegation] == "true", MemoryOverhead: settings.MemoryOverhead,
	}
}

// volumes returns how many volumes a machine starts with: those of the image and those that the class adds (E-23). The
// root of a custom image is unknown, unless the class names it.
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

// rootSize returns the size in bytes of the volume with the pods' data; 0 when the class does not say. The devices of
// a custom image are unknown: its last mapping counts, as in Karpenter.
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

// MostInZone returns how many machines the group may have in a zone; 0 for no limit (E-15).
func (p Placement) MostInZone() int {
	if p.Strategy == string(ec2types.PlacementGroupStrategySpread) {
		return mostSpread
	}
	return 0
}

// mostSpread is EC2's limit of machines in a zone for a group that puts each on separate hardware.
const mostSpread = 7

// Accelerators that need different images (E-09). They follow the labels in images' requirements, so GPU means one of
// any maker.
const (
	GPU    = "gpu"
	Neuron = "neuron" // Inferentia and Trainium, and what else EC2 calls an accelerator
)

const (
	labelGPUs         = awsv1.Group + "/instance-gpu-count"
	labelAccelerators = awsv1.Group + "/instance-accelerator-count"
)

// accelerator returns the accelerator of a type, by its labels, that needs an image of its own; "" for none.
func accelerator(labels map[string]string) string {
	switch {
	case labels[labelGPUs] != "":
		return GPU
	case labels[labelAccelerators] != "":
		return Neuron
	}
	return ""
}

// fits reports whether EC2 can launch a type with a class's placement group, network interfaces, processor options and
// enclaves.
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

// hasEnclaves reports whether a type has Nitro enclaves, or the class does not need them (E-01).
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

// fingerprint returns a text that is equal for classes with equal machines.
func fingerprint(class instancetype.Class) (string, error) {
	text, err := json.Marshal(class)
	return string(text), err
}
