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
	zone, instanceID, found := strings.Cut(strings.TrimPrefix(providerID, scheme), "/")
	if !found || !strings.HasPrefix(providerID, scheme) || !isZone(zone) || !isInstance(instanceID) {
		return "", "",
			fmt.Errorf(
				"provider ID %q is not one of EC2: want %sZONE/INSTANCE-ID, such as aws:///us-east-1a/i-0123456789abcdef0",
				providerID, scheme)
	}
	return zone, instanceID, nil
}

// isZone accepts zone names of all partitions, including local and carrier zones: us-east-1a, us-gov-west-1b,
// cn-north-1a, us-west-2-lax-1a.
func isZone(s string) bool {
	if len(s) < 2 || s[len(s)-1] < 'a' || s[len(s)-1] > 'z' {
		return false
	}
	parts := strings.Split(s, "-")
	for _, part := range parts {
		if part == "" ||
			strings.ContainsFunc(part, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }) {
			return false
		}
	}
	digit := parts[len(parts)-1][0]
	return len(parts) >= 3 && digit >= '0' && digit <= '9'
}

// isInstance accepts both lengths of EC2's ids.
func isInstance(s string) bool {
	hex, found := strings.CutPrefix(s, "i-")
	if !found || len(hex) != 8 && len(hex) != 17 {
		return false
	}
	return !strings.ContainsFunc(hex, func(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'f') })
}
