package merge

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
)

const (
	// RootDevice is the root device of the machine images: what the policy's root volume is for (R28).
	RootDevice = "/dev/xvda"
	// DefaultRootVolumeSize is the size where neither policy nor the operator's settings give one (R17, G7). Changing it
	// replaces every node whose policy leaves the size open, since it changes the hash of its node class (K5).
	DefaultRootVolumeSize = "75Gi"
)

// RootVolume is a root volume with nothing left open but what AWS decides by the type.
type RootVolume struct {
	Size      resource.Quantity
	Type      string // one of the karpenteraws VolumeType constants
	Encrypted bool
	// IOPS is the number of operations per second; nil leaves it to AWS, which it does not for io1 and io2.
	IOPS *int64
	// Throughput is in MiB per second, for gp3; nil leaves it to AWS.
	Throughput *int64
}

// DefaultRootVolume returns what holds without a policy: 75Gi of gp3, encrypted (R17, G8).
func DefaultRootVolume() RootVolume {
	return RootVolume{Size: resource.MustParse(DefaultRootVolumeSize), Type: awsv1.VolumeTypeGP3, Encrypted: true}
}

// With returns the volume with what a policy says in place of its own; what the policy leaves open stays (G8). A nil
// policy changes nothing.
func (v RootVolume) With(policy *hypershiftv1beta1.RootVolume) RootVolume {
	if policy == nil {
		return v
	}
	if policy.VolumeSize != nil {
		v.Size = *policy.VolumeSize
	}
	if policy.VolumeType != nil {
		v.Type = strings.ToLower(*policy.VolumeType) // AWS writes gp3, HyperShift's wrappers GP3
	}
	if policy.Encrypted != nil {
		v.Encrypted = *policy.Encrypted
	}
	if policy.IOPS != nil {
		v.IOPS = policy.IOPS
	}
	if policy.Throughput != nil {
		v.Throughput = policy.Throughput
	}
	return v
}

// mapping returns the volume as the block device mapping of an EC2NodeClass. It is marked as the volume with the kubelet's
// data, or the ephemeral storage of a node would be taken from whichever mapping is last. size is what normalSize says.
func (v RootVolume) mapping(size resource.Quantity) awsv1.BlockDeviceMapping {
	return awsv1.BlockDeviceMapping{
		DeviceName: new(RootDevice),
		RootVolume: new(true),
		EBS: &awsv1.BlockDevice{
			VolumeSize: &size, VolumeType: new(v.Type), Encrypted: new(v.Encrypted), IOPS: copied(v.IOPS), Throughput: copied(v.Throughput),
		},
	}
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}

// volumeSizes is what an EC2NodeClass accepts as the size of a volume (K6).
var volumeSizes = regexp.MustCompile(`^((?:[1-9][0-9]{0,3}|[1-4][0-9]{4}|5[0-8][0-9]{3}|59000)Gi|(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-3][0-9]{3}|64000)G|(?:[1-9]|[1-4][0-9]|5[0-8])Ti|(?:[1-9]|[1-5][0-9]|6[0-4])T)$`)

// normalSize spells a size the way an EC2NodeClass accepts it: 76800Mi is 75Gi. The second result is false when there is no
// such spelling: the size is no whole number of Gi or G, or out of range.
func normalSize(size resource.Quantity) (resource.Quantity, bool) {
	bytes := size.Value()
	if size.CmpInt64(bytes) != 0 { // a fraction of a byte, or too large for a number of bytes
		return resource.Quantity{}, false
	}
	format := resource.BinarySI
	if bytes%(1<<30) != 0 {
		format = resource.DecimalSI
	}
	normal := *resource.NewQuantity(bytes, format)
	return normal, volumeSizes.MatchString(normal.String())
}

// volumeTypes are the types of EBS volumes.
func volumeTypes() []string {
	return []string{awsv1.VolumeTypeStandard, awsv1.VolumeTypeIO1, awsv1.VolumeTypeIO2, awsv1.VolumeTypeGP2, awsv1.VolumeTypeGP3,
		awsv1.VolumeTypeSC1, awsv1.VolumeTypeST1}
}

// check returns what is wrong with the volume (G8). field is where it comes from.
func (v RootVolume) check(field string) []Problem {
	var list []Problem
	add := func(part, format string, values ...any) {
		list = append(list, Problem{hypershiftv1beta1.ReasonInvalidRootVolume, field + part, fmt.Sprintf(format, values...)})
	}
	if _, fits := normalSize(v.Size); !fits {
		add(".volumeSize", "is %s: it must be a whole number of Gi (1Gi to 59000Gi), G, Ti or T", v.Size.String())
	}
	if !slices.Contains(volumeTypes(), v.Type) {
		add(".volumeType", "is %q: it must be one of %s", v.Type, strings.Join(volumeTypes(), ", "))
	}
	provisioned := v.Type == awsv1.VolumeTypeIO1 || v.Type == awsv1.VolumeTypeIO2
	switch {
	case v.IOPS == nil && provisioned:
		add(".iops", "is missing: volumeType %s needs it", v.Type)
	case v.IOPS != nil && !provisioned && v.Type != awsv1.VolumeTypeGP3:
		add(".iops", "is %d, but volumeType is %s: only gp3, io1 and io2 take it", *v.IOPS, v.Type)
	case v.IOPS != nil && *v.IOPS < 1:
		add(".iops", "is %d: it must be at least 1", *v.IOPS)
	}
	switch {
	case v.Throughput != nil && v.Type != awsv1.VolumeTypeGP3:
		add(".throughput", "is %d, but volumeType is %s: only gp3 takes it", *v.Throughput, v.Type)
	case v.Throughput != nil && *v.Throughput < 1:
		add(".throughput", "is %d: it must be at least 1", *v.Throughput)
	}
	return list
}

func checkRootVolume(field string, policy *hypershiftv1beta1.RootVolume) []Problem {
	return DefaultRootVolume().With(policy).check(field)
}
