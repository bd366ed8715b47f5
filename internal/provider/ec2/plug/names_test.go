package plug

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"

	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/machines"
)

// E-47: instances of the cluster get EC2's names for them, in one call; others, and ending ones, get none.
func TestInstancesHaveNames(t *testing.T) {
	t.Parallel()
	r := newRegion(t, nil, aClass("default"))
	c := r.connectNow()
	r.look()
	r.look()
	var ids []string
	for _, name := range []string{"n0", "n1", "n2"} {
		claim := aClaim(name)
		if err := r.kube.Create(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		i, err := c.machines.Launch(t.Context(), claim, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, i.ProviderID)
	}
	if err := c.machines.Terminate(t.Context(), ids[2], nil); err != nil {
		t.Fatal(err)
	}
	names := NewNames(t.Context(), clusterName, "")
	names.load = func(context.Context) (aws.Config, error) { return r.server.Config(), nil }
	r.server.Forget()
	got, err := names.Of(t.Context(), append(slices.Clone(ids), "aws:///us-east-1a/i-00000000000000000", "kwok://n0"))
	if err != nil || r.server.Counts()["ec2:DescribeInstances"] != 1 {
		t.Errorf("%d calls, error %v; want one", r.server.Counts()["ec2:DescribeInstances"], err)
	}
	want := map[string]string{}
	out, err := c.clients.EC2.DescribeInstances(t.Context(), &awsec2.DescribeInstancesInput{})
	if err != nil {
		t.Fatal(err)
	}
	for _, reservation := range out.Reservations {
		for _, i := range reservation.Instances {
			if id := machines.ProviderID(*i.Placement.AvailabilityZone, *i.InstanceId); slices.Contains(ids[:2], id) {
				want[id] = *i.PrivateDnsName
			}
		}
	}
	if len(want) != 2 || !maps.Equal(got, want) {
		t.Errorf("names %v, want %v", got, want)
	}
	others := NewNames(t.Context(), "other", "")
	others.load = names.load
	if got, err := others.Of(t.Context(), ids); err != nil || len(got) != 0 {
		t.Errorf("another cluster has the names %v, error %v", got, err)
	}
}

// aClaim is a claim of the class default.
func aClaim(name string) *karpenterv1.NodeClaim {
	c := &karpenterv1.NodeClaim{}
	c.Name, c.UID = name, types.UID("uid-of-"+name)
	c.Labels = map[string]string{karpenterv1.NodePoolLabelKey: "default"}
	c.Spec.NodeClassRef = &karpenterv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass",
		Name: "default"}
	return c
}

// the region is the one that is given, where one is.
func TestNamesAreAskedForInTheRegionOfTheCluster(t *testing.T) {
	t.Setenv("AWS_REGION", "us-east-1")
	for given, want := range map[string]string{"": "us-east-1", "eu-west-9": "eu-west-9"} {
		if found, err := NewNames(t.Context(), clusterName, given).load(t.Context()); err != nil ||
			found.Region != want {
			t.Errorf("given %q: %q, error %v", given, found.Region, err)
		}
	}
}
