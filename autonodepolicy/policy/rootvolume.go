package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// RootDevice is the root device of the machine images, which the policy's root volume applies to (R28).
	RootDevice = "/dev/xvda"
	// DefaultRootVolumeSize is the size if neither policy nor the operator's settings give one (R17, G7). Changing it
	// changes the hash of node classes (K5), and so replaces every node whose policy leaves the size open.
	DefaultRootVolumeSize = "75Gi"
)

// RootVolume is a complete root volume. Only IOPS and Throughput may be left to AWS.
type RootVolume struct {
	Size      resource.Quantity
	Type      string // one of the Volume constants
	Encrypted bool
	// IOPS is the number of operations per second; nil leaves it to AWS. io1 and io2 need a number.
	IOPS *int64
	// Throughput is in MiB per second, for gp3; nil leaves it to AWS.
	Throughput *int64
}

// DefaultRootVolume returns the root volume without a policy: 75Gi of gp3, encrypted (R17, G8).
func DefaultRootVolume() RootVolume {
	return RootVolume{Size: resource.MustParse(DefaultRootVolumeSize), Type: VolumeGP3, Encrypted: true}
}

// RootVolumeChange is what a policy says about the root volume. It leaves nil fields open.
type RootVolumeChange struct {
	// Size is a whole number of Gi, G, Ti or T.
	Size *resource.Quantity
	// Type is one of the Volume constants, in upper or lower case.
	Type      *string
	Encrypted *bool
	// IOPS is the number of operations per second.
	IOPS *int64
	// Throughput is in MiB per second.
	Throughput *int64
}

// With returns the volume with the policy's values in place of its own. Fields that the policy leaves open keep their
// value (G8). A nil change changes nothing.
func (v RootVolume) With(change *RootVolumeChange) RootVolume {
	if change == nil {
		return v
	}
	if change.Size != nil {
		v.Size = change.Size.DeepCopy()
	}
	if change.Type != nil {
		v.Type = strings.ToLower(*change.Type) // AWS writes gp3, HyperShift's wrappers GP3
	}
	if change.Encrypted != nil {
		v.Encrypted = *change.Encrypted
	}
	if change.IOPS != nil {
		v.IOPS = new(*change.IOPS)
	}
	if change.Throughput != nil {
		v.Throughput = new(*change.Throughput)
	}
	return v
}

// volumeSizes matches the sizes that an EC2NodeClass accepts for a volume (K6).
var volumeSizes = regexp.MustCompile(`^((?:[1-9][0-9]{0,3}|[1-4][0-9]{4}|5[0-8][0-9]{3}|59000)Gi|` +
	`(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-3][0-9]{3}|64000)G|` +
	`(?:[1-9]|[1-4][0-9]|5[0-8])Ti|(?:[1-9]|[1-5][0-9]|6[0-4])T)$`)

// largestExponent is far beyond the bytes of any disk, and so are numbers of mostBits bits.
const (
	largestExponent = 60
	mostBits        = 256
)

// enormous reports whether a size is too large to compare. Comparing writes the number out, which takes minutes for
// 1e70000000. The CRD of AutoNodePolicy refuses such exponents; another CRD may accept them. endless says that the
// number is written out already, and would take as long to print.
func enormous(size resource.Quantity) (is, endless bool) {
	c := size.DeepCopy()
	number := c.AsDec()
	endless = number.UnscaledBig().BitLen() > mostBits
	return endless || number.Scale() < -largestExponent, endless
}

// NormalSize returns a size in the spelling that an EC2NodeClass accepts: 76800Mi is 75Gi. It returns false if there
// is none: the size is not a whole number of Gi or G, or is out of range.
func NormalSize(size resource.Quantity) (resource.Quantity, bool) {
	if is, _ := enormous(size); is {
		return resource.Quantity{}, false
	}
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

// Types of EBS volumes.
const (
	VolumeStandard = "standard"
	VolumeIO1      = "io1"
	VolumeIO2      = "io2"
	VolumeGP2      = "gp2"
	VolumeGP3      = "gp3"
	VolumeSC1      = "sc1"
	VolumeST1      = "st1"
)

func volumeTypes() []string {
	return []string{VolumeStandard, VolumeIO1, VolumeIO2, VolumeGP2, VolumeGP3, VolumeSC1, VolumeST1}
}

// Check returns what is wrong with the volume (G8). field is the path of the volume: the fields of the problems begin
// with it.
func (v RootVolume) Check(field string) []Problem {
	var list []Problem
	add := func(part, format string, values ...any) {
		list = append(list, Problem{ReasonInvalidRootVolume, field + part, fmt.Sprintf(format, values...)})
	}
	if _, fits := NormalSize(v.Size); !fits {
		size := "far beyond any disk"
		if _, endless := enormous(v.Size); !endless {
			size = v.Size.String()
		}
		add(".volumeSize", "is %s: it must be a whole number of Gi (1Gi to 59000Gi), G, Ti or T", size)
	}
	if !slices.Contains(volumeTypes(), v.Type) {
		add(".volumeType", "is %q: it must be one of %s", v.Type, strings.Join(volumeTypes(), ", "))
	}
	provisioned := v.Type == VolumeIO1 || v.Type == VolumeIO2
	switch {
	case v.IOPS == nil && provisioned:
		add(".iops", "is missing: volumeType %s needs it", v.Type)
	case v.IOPS != nil && !provisioned && v.Type != VolumeGP3:
		add(".iops", "is %d, but volumeType is %s: only gp3, io1 and io2 take it", *v.IOPS, v.Type)
	case v.IOPS != nil && *v.IOPS < 1:
		add(".iops", "is %d: it must be at least 1", *v.IOPS)
	}
	switch {
	case v.Throughput != nil && v.Type != VolumeGP3:
		add(".throughput", "is %d, but volumeType is %s: only gp3 takes it", *v.Throughput, v.Type)
	case v.Throughput != nil && *v.Throughput < 1:
		add(".throughput", "is %d: it must be at least 1", *v.Throughput)
	}
	return list
}
