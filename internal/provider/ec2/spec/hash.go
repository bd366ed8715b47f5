// Package spec reads of an EC2NodeClass what it says by itself: nothing here asks a cloud, or needs its SDK, so that a
// command line can foretell drift by the functions that the controllers have.
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

// Annotations of a class, and of the claims that were launched by it: a hash of what decides what a machine is, and
// how that was computed. The names are Karpenter's, the version is not: each program annotates anew what the other
// left, and nothing drifts.
const (
	HashKey        = awsv1.Group + "/ec2nodeclass-hash"
	HashVersionKey = awsv1.Group + "/ec2nodeclass-hash-version"
	HashVersion    = "joiner-v1"
)

// Hash is equal for specs that make equal machines (E-05). Selectors do not count: what they stand for is compared
// with the machines themselves. The family counts as it is resolved, so that naming the one of the alias changes
// nothing, and lists count whatever their order. ipPrefixCount does not count, as with Karpenter.
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
	text, err := json.Marshal(spec) // maps in the order of their keys
	if err != nil {
		return "", fmt.Errorf("computing the drift hash of EC2NodeClass %s: %w", class.Name, err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}

// sorted puts disks in the order of what they say.
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

// Drifted reports whether a claim was launched by a spec that makes other machines. Who was annotated by another
// program, or not at all, has not drifted.
func Drifted(claim, class map[string]string) bool {
	return claim[HashVersionKey] == HashVersion && class[HashVersionKey] == HashVersion &&
		claim[HashKey] != "" && class[HashKey] != "" && claim[HashKey] != class[HashKey]
}
