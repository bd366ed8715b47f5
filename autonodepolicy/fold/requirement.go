package fold

import (
	"errors"
	"slices"
	"strings"
)

// Requirement is one entry of a list of requirements, with the fields of policies, NodePools and NodeClaims. Only [Of]
// checks it.
type Requirement struct {
	// Key is the label, by any of its names; see [Canonical].
	Key string
	// Operator says how the label is compared with the values.
	Operator Operator
	// Values are what the label is compared with, in any order.
	Values []string
	// MinValues is how many different values the instance types of a launch must offer at least; nil means no minimum.
	MinValues *int
}

// Clone returns a copy that shares nothing with the entry.
func (r Requirement) Clone() Requirement {
	r.Values = slices.Clone(r.Values)
	if r.MinValues != nil {
		r.MinValues = new(*r.MinValues)
	}
	return r
}

// MinCount demands that the instance types of a launch offer at least Count different values of a label.
type MinCount struct {
	Key   Key
	Count int
}

// Of folds a list of entries into one set for each label, as Karpenter does (K1). It intersects entries for one label,
// by any of its names. For each label with minValues it returns the largest, ordered by key. Contradictory entries are
// no error: they leave nothing for the label (see [Set.EmptyKeys]). An entry that cannot be parsed leaves nothing for
// its label too, and the error names it.
func Of(list []Requirement) (Set, []MinCount, error) {
	parsed := make([]Allowed, 0, len(list))
	counts := map[Key]int{}
	var errs []error
	for _, entry := range list {
		key := Canonical(entry.Key)
		allowed, err := New(key, entry.Operator, entry.Values...)
		if err != nil {
			errs = append(errs, err)
			allowed = Nothing(key)
		}
		parsed = append(parsed, allowed)
		if entry.MinValues != nil {
			counts[key] = max(counts[key], *entry.MinValues)
		}
	}
	var minimums []MinCount
	for key, count := range counts {
		minimums = append(minimums, MinCount{Key: key, Count: count})
	}
	slices.SortFunc(minimums, func(a, b MinCount) int { return strings.Compare(string(a.Key), string(b.Key)) })
	return NewSet(parsed...), minimums, errors.Join(errs...)
}

// Current names of the labels whose other names [Canonical] replaces.
const (
	arch         = "kubernetes.io/arch"
	os           = "kubernetes.io/os"
	instanceType = "node.kubernetes.io/instance-type"
	zone         = "topology.kubernetes.io/zone"
	region       = "topology.kubernetes.io/region"
)

// Canonical returns the current name of a label, which may be given by an alias (K1). CSI drivers have their own names
// for the zone. Providers do not know them, and so cannot promise them for a future node.
func Canonical(label string) Key {
	switch label {
	case "beta.kubernetes.io/arch":
		return arch
	case "beta.kubernetes.io/os":
		return os
	case "beta.kubernetes.io/instance-type":
		return instanceType
	case "failure-domain.beta.kubernetes.io/zone",
		"topology.ebs.csi.aws.com/zone", "topology.gke.io/zone", "topology.disk.csi.azure.com/zone",
		"topology.cinder.csi.openstack.org/zone":
		return zone
	case "failure-domain.beta.kubernetes.io/region":
		return region
	}
	return Key(label)
}

// ReadByKarpenter reports whether Karpenter for AWS reads a label as what [Canonical] returns. To Karpenter the zone
// names of other clouds' CSI drivers are labels of their own: an entry by such a name leaves the zone open.
func ReadByKarpenter(label string) bool {
	switch label {
	case "topology.gke.io/zone", "topology.disk.csi.azure.com/zone", "topology.cinder.csi.openstack.org/zone":
		return false
	}
	return true
}

// Names returns every name that [Canonical] takes for the label, the current name first.
func Names(key Key) []string {
	switch key = Canonical(string(key)); key {
	case arch:
		return []string{arch, "beta.kubernetes.io/arch"}
	case os:
		return []string{os, "beta.kubernetes.io/os"}
	case instanceType:
		return []string{instanceType, "beta.kubernetes.io/instance-type"}
	case zone:
		return []string{
			zone, "failure-domain.beta.kubernetes.io/zone", "topology.ebs.csi.aws.com/zone", "topology.gke.io/zone",
			"topology.disk.csi.azure.com/zone", "topology.cinder.csi.openstack.org/zone",
		}
	case region:
		return []string{region, "failure-domain.beta.kubernetes.io/region"}
	}
	return []string{string(key)}
}
