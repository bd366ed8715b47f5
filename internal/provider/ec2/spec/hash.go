// Package spec reads the spec of an EC2NodeClass. It makes no calls and does not need the SDK of AWS, so that a
// command line can foretell drift with the controllers' own functions.
package spec

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
)

// Annotations of a class and of the claims that were launched with it: a hash of everything that decides what a
// machine is like, and the version of the hash. The names are Karpenter's, the version is not. So each program writes
// its own hash over the other's, and nothing drifts.
const (
	HashKey        = awsv1.Group + "/ec2nodeclass-hash"
	HashVersionKey = awsv1.Group + "/ec2nodeclass-hash-version"
	HashVersion    = "joiner-v1"
)

// Hash returns a hash that is equal for specs that lead to equal machines (E-05). Selectors do not count: their
// resolution is compared with the machines themselves. The resolved family counts, so that naming the family of the
// alias changes nothing. The order of lists does not matter. As in Karpenter, ipPrefixCount does not count.
func Hash(class *awsv1.EC2NodeClass) (string, error) {
	spec := *class.Spec.DeepCopy()
	family := Family(&spec)
	spec.AMIFamily, spec.IPPrefixCount = &family, nil
	spec.AMISelectorTerms, spec.SubnetSelectorTerms, spec.SecurityGroupSelectorTerms = nil, nil, nil
	spec.CapacityReservationSelectorTerms, spec.PlacementGroupSelector = nil, nil
	slices.SortFunc(spec.NetworkInterfaces, func(a, b awsv1.NetworkInterface) int {
		return cmp.Or(cmp.Compare(a.NetworkCardIndex, b.NetworkCardIndex), cmp.Compare(a.DeviceIndex, b.DeviceIndex))
	})
	if err := sorted(spec.BlockDeviceMappings); err != nil {
		return "", err
	}
	text, err := json.Marshal(spec) // maps are sorted by key
	if err != nil {
		return "", fmt.Errorf("computing the drift hash of EC2NodeClass %s: %w", class.Name, err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}

// sorted sorts disks by their JSON.
func sorted(disks []awsv1.BlockDeviceMapping) error {
	texts := map[*awsv1.BlockDeviceMapping][]byte{}
	order := make([]*awsv1.BlockDeviceMapping, len(disks))
	for i := range disks {
		text, err := json.Marshal(disks[i])
		if err != nil {
			return fmt.Errorf("spec.blockDeviceMappings[%d]: %w", i, err)
		}
		order[i], texts[&disks[i]] = &disks[i], text
	}
	slices.SortFunc(order, func(a, b *awsv1.BlockDeviceMapping) int { return bytes.Compare(texts[a], texts[b]) })
	inOrder := make([]awsv1.BlockDeviceMapping, len(disks))
	for i, disk := range order {
		inOrder[i] = *disk
	}
	copy(disks, inOrder)
	return nil
}

// Drifted reports whether a claim was launched with a spec that leads to other machines. Without annotations of our
// version it reports false.
func Drifted(claim, class map[string]string) bool {
	return claim[HashVersionKey] == HashVersion && class[HashVersionKey] == HashVersion &&
		claim[HashKey] != "" && class[HashKey] != "" && claim[HashKey] != class[HashKey]
}

// DriftText says of a claim what Drifted reports. class is the name of its class.
func DriftText(class string) string {
	return "the specification of EC2NodeClass " + class + " has changed since its launch"
}
