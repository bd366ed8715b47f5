package machines_test

import (
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/machines"
)

// E-46: provider IDs of all partitions are accepted; anything that EC2 would not issue belongs to others.
func TestProviderIDs(t *testing.T) {
	t.Parallel()
	const id = "i-0123456789abcdef0"
	for _, zone := range []string{"us-east-1a", "us-gov-west-1b", "cn-north-1a", "us-west-2-lax-1a",
		"us-east-1-wl1-bos-wlz-1", "us-east-1-wl1-nyc-wlz1", "us-gov-west-1-wl1-atl-wlz-1",
		"us-gov-east-1-den-2b", "us-isob-east-1a", "ap-southeast-4c"} {
		gotZone, gotID, err := machines.ParseProviderID(machines.ProviderID(zone, id))
		if err != nil || gotZone != zone || gotID != id {
			t.Errorf("%s: read as %q and %q, error %v", zone, gotZone, gotID, err)
		}
	}
	if _, _, err := machines.ParseProviderID("aws:///us-east-1a/i-01234567"); err != nil {
		t.Errorf("a short id: %v", err)
	}
	for _, bad := range []string{
		"", id, "aws:///us-east-1a/", "aws:///" + id, "aws:////" + id, "aws://us-east-1a/" + id,
		"kwok:///us-east-1a/" + id,
		"aws:///us-east-1/" + id, "aws:///us-gov-west-1/" + id, "aws:///us-east-1-wl1-bos-wlz-/" + id,
		"aws:///US-EAST-1a/" + id, "aws:///us-east-1a/i-0123456789ABCDEF0",
		"aws:///us-east-1a/i-012345678",
		"aws:///us-east-1a/" + id + "/x", "aws:///us-east-1a/fargate-ip-10-0-0-1", "aws:///a/" + id,
		" aws:///us-east-1a/" + id,
	} {
		_, _, err := machines.ParseProviderID(bad)
		if err == nil || !strings.Contains(err.Error(), "aws:///ZONE/INSTANCE-ID") {
			t.Errorf("%q: error %v, want one that says what is allowed", bad, err)
		}
	}
}
