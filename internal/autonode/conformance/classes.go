package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
)

// class judges an EC2NodeClass. The operator's own must equal, in every field, what the operator found to be as
// wanted, and have the root volume of the policy. Any other must have the root volume, images and instance profile of
// the provider.
func (l *look) class(class *awsv1.EC2NodeClass) {
	if class.DeletionTimestamp != nil {
		return
	}
	l.seen(EC2NodeClass, class.Name)
	w, ours := l.written(EC2NodeClass, class)
	if !ours || l.Memory.Others[EC2NodeClass] {
		l.strayClass(class)
		return
	}
	state, cause := l.whose(w)
	add := func(field, format string, values ...any) {
		l.add(Finding{EC2NodeClass, class.Name, state, cause, field, fmt.Sprintf(format, values...)})
	}
	switch {
	case w.Class == nil && w.Altered:
		add("spec", "find out what changes it on its way: it never was as the operator wrote it")
	case w.Class == nil:
		add("spec", "it never was as the policy wants it")
	case !equality.Semantic.DeepEqual(*w.Class, class.Spec):
		add(firstDifference(*w.Class, class.Spec), "is not as the operator wrote it")
	}
	if field, message := l.rootVolume(class); field != "" {
		add(field, "%s", message)
	}
}

// strayClass judges a node class that the operator did not write.
func (l *look) strayClass(class *awsv1.EC2NodeClass) {
	state, cause := l.stray(class)
	if l.Memory.Others[EC2NodeClass] && l.Memory.Wrapped[class.Name] {
		state, cause = NotConforming, NotOwned
	}
	add := func(field, message string) {
		l.add(Finding{EC2NodeClass, class.Name, state, cause, field, message})
	}
	if cause == Foreign {
		add("",
			"delete it, or make an OpenshiftEC2NodeClass of this name: it was made past the wrappers while nothing kept people from that")
	}
	if field, message := l.rootVolume(class); field != "" {
		add(field, message)
	}
	if l.Memory.Images != nil {
		for i, term := range class.Spec.AMISelectorTerms {
			if !l.Memory.Images[term.ID] {
				add(fmt.Sprintf("spec.amiSelectorTerms[%d]", i), "chooses images that are not the provider's")
			}
		}
	}
	if profile := class.Spec.InstanceProfile; l.Memory.Profile != "" &&
		(profile == nil || *profile != l.Memory.Profile) {
		add("spec.instanceProfile", fmt.Sprintf("is not %s, which the provider gives", l.Memory.Profile))
	}
}

// rootVolume compares the root volume of a class with the policy's. field is "" if it matches, or the policy sets
// none.
func (l *look) rootVolume(class *awsv1.EC2NodeClass) (field, message string) {
	if l.Policy == nil || l.Policy.Spec.EC2NodeClassDefaults.RootVolume == nil {
		return "", ""
	}
	var (
		want = l.Policy.Spec.EC2NodeClassDefaults.RootVolume
		root *awsv1.BlockDevice
		at   int
	)
	for i, mapping := range class.Spec.BlockDeviceMappings {
		if mapping.RootVolume != nil && *mapping.RootVolume {
			if root != nil {
				return fmt.Sprintf("spec.blockDeviceMappings[%d]", i), "is a second root volume"
			}
			root, at = mapping.EBS, i
		}
	}
	field = fmt.Sprintf("spec.blockDeviceMappings[%d].ebs", at)
	switch {
	case root == nil:
		return "spec.blockDeviceMappings", "has no root volume"
	case want.VolumeSize != nil && (root.VolumeSize == nil || root.VolumeSize.Cmp(*want.VolumeSize) != 0):
		return field + ".volumeSize", fmt.Sprintf("is %v, the policy's is %s", root.VolumeSize, want.VolumeSize)
	case want.VolumeType != nil && (root.VolumeType == nil || !strings.EqualFold(*root.VolumeType, *want.VolumeType)):
		return field + ".volumeType", fmt.Sprintf("is not %s", *want.VolumeType)
	case want.Encrypted != nil && (root.Encrypted == nil || *root.Encrypted != *want.Encrypted):
		return field + ".encrypted", fmt.Sprintf("is not %t", *want.Encrypted)
	case want.IOPS != nil && (root.IOPS == nil || *root.IOPS != *want.IOPS):
		return field + ".iops", fmt.Sprintf("is not %d", *want.IOPS)
	case want.Throughput != nil && (root.Throughput == nil || *root.Throughput != *want.Throughput):
		return field + ".throughput", fmt.Sprintf("is not %d", *want.Throughput)
	}
	return "", ""
}

// firstDifference names the first field, by name, in which two specs differ.
func firstDifference(a, b awsv1.EC2NodeClassSpec) string {
	return "spec" + differ(fields(a), fields(b))
}

func fields(spec awsv1.EC2NodeClassSpec) any {
	data, err := json.Marshal(spec)
	if err != nil {
		return nil // API types always marshal
	}
	var tree any
	if json.Unmarshal(data, &tree) != nil {
		return nil
	}
	return tree
}

func differ(a, b any) string {
	if first, second, both := twoOf[map[string]any](a, b); both {
		names := slices.Sorted(maps.Keys(first))
		names = append(names, slices.Sorted(maps.Keys(second))...)
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			if !equality.Semantic.DeepEqual(first[name], second[name]) {
				return "." + name + differ(first[name], second[name])
			}
		}
	}
	if first, second, _ := twoOf[[]any](a, b); len(first) == len(second) {
		for i := range first {
			if !equality.Semantic.DeepEqual(first[i], second[i]) {
				return fmt.Sprintf("[%d]", i) + differ(first[i], second[i])
			}
		}
	}
	return ""
}

func twoOf[T any](a, b any) (first, second T, both bool) {
	first, one := a.(T)
	second, two := b.(T)
	return first, second, one && two
}
