package machines

import (
	"fmt"
	"strings"
)

const scheme = "aws:///"

// ProviderID returns the provider ID of an instance, in the form that AWS's cloud controller manager writes on nodes
// (E-46).
func ProviderID(zone, instanceID string) string { return scheme + zone + "/" + instanceID }

// ParseProviderID reads a provider ID. Anything that is not from EC2 is an error: such a node is somebody else's.
func ParseProviderID(providerID string) (zone, instanceID string, err error) {
	zone, instanceID, found := cut(providerID)
	if !found || !isZone(zone) {
		return "", "", malformed(providerID)
	}
	return zone, instanceID, nil
}

// instanceOf returns the instance ID in a provider ID. It accepts any zone, since the ID may be one of
// [Machines.List]: a machine is not gone because its zone has a name of an unknown form, or none.
func instanceOf(providerID string) (string, error) {
	_, instanceID, found := cut(providerID)
	if !found {
		return "", malformed(providerID)
	}
	return instanceID, nil
}

// cut returns the parts of a provider ID, and whether the last one is the ID of an instance.
func cut(providerID string) (zone, instanceID string, found bool) {
	zone, instanceID, found = strings.Cut(strings.TrimPrefix(providerID, scheme), "/")
	return zone, instanceID, found && strings.HasPrefix(providerID, scheme) && isInstance(instanceID)
}

func malformed(providerID string) error {
	return fmt.Errorf(
		"provider ID %q is not one of EC2: want %sZONE/INSTANCE-ID, such as aws:///us-east-1a/i-0123456789abcdef0",
		providerID, scheme)
}

// isZone accepts zone names of all partitions: us-east-1a, us-gov-west-1b, cn-north-1a, those of Local Zones such as
// us-west-2-lax-1a, and those of Wavelength Zones, which may end with a digit: us-east-1-wl1-bos-wlz-1. A region is no
// zone; it has at most four parts.
func isZone(s string) bool {
	parts := strings.Split(s, "-")
	for _, part := range parts {
		if part == "" ||
			strings.ContainsFunc(part, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }) {
			return false
		}
	}
	last := parts[len(parts)-1]
	if len(parts) >= 5 {
		return true
	}
	return len(parts) >= 3 && last[0] >= '0' && last[0] <= '9' && last[len(last)-1] >= 'a'
}

// isInstance accepts both lengths of EC2's ids.
func isInstance(s string) bool {
	hex, found := strings.CutPrefix(s, "i-")
	if !found || len(hex) != 8 && len(hex) != 17 {
		return false
	}
	return !strings.ContainsFunc(hex, func(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'f') })
}
