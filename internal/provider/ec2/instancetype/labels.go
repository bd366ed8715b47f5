package instancetype

import (
	"math"
	"strconv"
	"strings"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
)

// prefix begins the labels of EC2 instance types.
const prefix = "karpenter.k8s.aws/instance-"

// The labels of instance types, without prefix.
const (
	labelCategory     = "category"
	labelFamily       = "family"
	labelGeneration   = "generation"
	labelSize         = "size"
	labelCPU          = "cpu"
	labelCPUMaker     = "cpu-manufacturer"
	labelCPUClock     = "cpu-sustained-clock-speed-mhz"
	labelMemory       = "memory"
	labelHypervisor   = "hypervisor"
	labelEncryption   = "encryption-in-transit-supported"
	labelEBSBandwidth = "ebs-bandwidth"
	labelNetwork      = "network-bandwidth"
	labelNVMe         = "local-nvme"
	labelFlex         = "capability-flex"
	labelGPUName      = "gpu-name"
	labelGPUMaker     = "gpu-manufacturer"
	labelGPUCount     = "gpu-count"
	labelGPUMemory    = "gpu-memory"
	labelAccelName    = "accelerator-name"
	labelAccelMaker   = "accelerator-manufacturer"
	labelAccelCount   = "accelerator-count"
)

// LabelKeys returns the labels that a type may have, beside the architecture and the operating system.
func LabelKeys() []string {
	keys := []string{labelCategory, labelFamily, labelGeneration, labelSize, labelCPU, labelCPUMaker, labelCPUClock,
		labelMemory, labelHypervisor,
		labelEncryption, labelEBSBandwidth, labelNetwork, labelNVMe, labelFlex, labelGPUName, labelGPUMaker,
		labelGPUCount, labelGPUMemory, labelAccelName, labelAccelMaker, labelAccelCount}
	for i, key := range keys {
		keys[i] = prefix + key
	}
	return keys
}

// Labels returns the labels of a type (E-18): memory in MiB, clock in MHz, bandwidths in Mbit/s, local disks in GB,
// names in lower case with dashes. Without a statement of EC2 there is no label, except for the clock, which is then
// 0.
func Labels(info *ec2types.InstanceTypeInfo) map[string]string {
	name := string(info.InstanceType)
	labels := map[string]string{
		corev1.LabelInstanceTypeStable: name, corev1.LabelOSStable: string(corev1.Linux),
		corev1.LabelArchStable: Architecture(info),
	}
	set := func(key, value string) { labels[prefix+key] = value }
	number := func(key string, n int64) { set(key, strconv.FormatInt(n, 10)) }
	family, size, _ := strings.Cut(name, ".")
	category, generation := split(family)
	for key, value := range map[string]string{labelFamily: family, labelSize: size, labelCategory: category,
		labelGeneration: generation} {
		if value != "" {
			set(key, value)
		}
	}
	set(labelFlex, strconv.FormatBool(strings.HasSuffix(family, "-flex")))
	number(labelCPU, cores(info))
	number(labelMemory, advertised(info))
	set(labelHypervisor, string(info.Hypervisor))
	number(labelCPUClock, 0)
	if p := info.ProcessorInfo; p != nil {
		number(labelCPUClock, int64(math.Round(value(p.SustainedClockSpeedInGhz)*1000)))
		if maker := value(p.Manufacturer); maker != "" {
			set(labelCPUMaker, dashed(maker))
		}
	}
	if n := info.NetworkInfo; n != nil {
		set(labelEncryption, strconv.FormatBool(value(n.EncryptionInTransitSupported)))
		if rate := bandwidth(n); rate > 0 {
			number(labelNetwork, rate)
		}
	}
	if e := info.EbsInfo; e != nil && e.EbsOptimizedSupport == ec2types.EbsOptimizedSupportDefault &&
		e.EbsOptimizedInfo != nil {
		number(labelEBSBandwidth, int64(value(e.EbsOptimizedInfo.MaximumBandwidthInMbps)))
	}
	if s := info.InstanceStorageInfo; s != nil && s.NvmeSupport != "" &&
		s.NvmeSupport != ec2types.EphemeralNvmeSupportUnsupported {
		number(labelNVMe, value(s.TotalSizeInGB))
	}
	deviceLabels(info, set)
	return labels
}

// deviceLabels sets the labels of GPUs and other accelerators. A type has one kind of each.
func deviceLabels(info *ec2types.InstanceTypeInfo, set func(key, value string)) {
	if g := info.GpuInfo; g != nil && len(g.Gpus) == 1 {
		gpu := g.Gpus[0]
		set(labelGPUName, dashed(value(gpu.Name)))
		set(labelGPUMaker, dashed(value(gpu.Manufacturer)))
		set(labelGPUCount, strconv.Itoa(int(value(gpu.Count))))
		if gpu.MemoryInfo != nil {
			set(labelGPUMemory, strconv.Itoa(int(value(gpu.MemoryInfo.SizeInMiB))))
		}
	}
	switch {
	case info.InferenceAcceleratorInfo != nil && len(info.InferenceAcceleratorInfo.Accelerators) == 1:
		a := info.InferenceAcceleratorInfo.Accelerators[0]
		set(labelAccelName, dashed(value(a.Name)))
		set(labelAccelMaker, dashed(value(a.Manufacturer)))
		set(labelAccelCount, strconv.Itoa(int(value(a.Count))))
	case info.NeuronInfo != nil && len(info.NeuronInfo.NeuronDevices) == 1:
		d := info.NeuronInfo.NeuronDevices[0]
		set(labelAccelName, dashed(value(d.Name)))
		set(labelAccelMaker, "aws")
		set(labelAccelCount, strconv.Itoa(int(value(d.Count))))
	}
}

// Architecture returns "arm64" or "amd64".
func Architecture(info *ec2types.InstanceTypeInfo) string {
	if info.ProcessorInfo != nil {
		for _, a := range info.ProcessorInfo.SupportedArchitectures {
			if a == ec2types.ArchitectureTypeArm64 {
				return "arm64"
			}
		}
	}
	return "amd64"
}

// split returns the leading letters of a family's name, and the number after them: ("g", "4") for g4dn. High-memory
// families have their size in between: ("u", "1") for u-6tb1.
func split(family string) (category, generation string) {
	category, rest := leading(family, func(r byte) bool { return r >= 'a' && r <= 'z' })
	if size, found := strings.CutPrefix(rest, "-"); found {
		_, size = leading(size, isDigit)
		if rest, found = strings.CutPrefix(size, "tb"); !found {
			return category, ""
		}
	}
	generation, _ = leading(rest, isDigit)
	return category, generation
}

func leading(text string, is func(byte) bool) (head, rest string) {
	i := 0
	for i < len(text) && is(text[i]) {
		i++
	}
	return text[:i], text[i:]
}

func isDigit(r byte) bool { return r >= '0' && r <= '9' }

// bandwidth returns the sustained bandwidth of all cards together, in Mbit/s; 0 when EC2 does not say.
func bandwidth(n *ec2types.NetworkInfo) int64 {
	sum := 0.0
	for _, card := range n.NetworkCards {
		sum += value(card.BaselineBandwidthInGbps)
	}
	return int64(math.Round(sum * 1000))
}

// dashed returns a name in the form of label values.
func dashed(name string) string { return strings.ReplaceAll(strings.ToLower(name), " ", "-") }

func cores(info *ec2types.InstanceTypeInfo) int64 {
	if info.VCpuInfo == nil {
		return 0
	}
	return int64(value(info.VCpuInfo.DefaultVCpus))
}

// advertised returns the memory that EC2 states, in MiB.
func advertised(info *ec2types.InstanceTypeInfo) int64 {
	if info.MemoryInfo == nil {
		return 0
	}
	return value(info.MemoryInfo.SizeInMiB)
}

// value returns what a pointer of an answer points to, or the zero value.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
