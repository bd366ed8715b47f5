package resolve_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
)

// E-02, E-11: the status of a class has what it resolves to, and its conditions in the order of work.
func TestAClassIsResolved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.AddSubnet(ec2test.Subnet{ID: "subnet-small", Zone: "us-east-1c", CIDR: "10.9.0.0/24"})
	w.AddCapacityReservation(ec2test.CapacityReservation{ID: "cr-1", Type: "m5.large", Zone: "us-east-1a", Total: 2})
	class := w.class("a", func(s *awsv1.EC2NodeClassSpec) {
		s.SubnetSelectorTerms = append([]awsv1.SubnetSelectorTerm{{ID: "subnet-small"}, {ID: "subnet-none"}},
			s.SubnetSelectorTerms...)
		s.CapacityReservationSelectorTerms = []awsv1.CapacityReservationSelectorTerm{{ID: "cr-1"}}
	})
	w.SetPageSize(1)
	w.ready()
	want :=
		"SubnetsReady SecurityGroupsReady AMIsReady InstanceProfileReady CapacityReservationsReady ValidationSucceeded Ready"
	if got := kinds(class); got != want {
		t.Errorf("conditions %s, want %s", got, want)
	}
	var zones []string
	for _, s := range class.Status.Subnets {
		zones = append(zones, s.Zone+" "+s.ZoneID)
	}
	slices.Sort(zones[:2]) // they have equally many
	if got := strings.Join(zones, ", "); got != "us-east-1a use1-az1, us-east-1b use1-az2, us-east-1c use1-az3" {
		t.Errorf("subnets in %s: want those with most free addresses first", got)
	}
	w.expect(class, resolve.SubnetsReady, "True", resolve.SubnetsReady,
		"no subnets for spec.subnetSelectorTerms[1] (id subnet-none)")
	if g := class.Status.SecurityGroups; len(g) != 1 || g[0].Name != "eks-cluster-sg-c1" {
		t.Errorf("groups %v", g)
	}
	result := w.results["a"]
	if len(result.Subnets) != 3 || result.Subnets[2].Free != 251 || !result.SubnetsAsked.Equal(w.Now()) {
		t.Errorf("%+v, asked at %s", result.Subnets, result.SubnetsAsked)
	}
	if result.After != time.Minute {
		t.Errorf("again after %s", result.After)
	}
}

// E-08, E-11, E-61: equal queries of 20 classes are sent once; a minute at rest costs three calls.
func TestEqualClassesCostAsMuchAsOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 20 {
		w.class(fmt.Sprint("same", i), func(s *awsv1.EC2NodeClassSpec) {
			s.Role, s.InstanceProfile = nil, new("p")
			if i%2 == 1 {
				s.SubnetSelectorTerms = append(s.SubnetSelectorTerms,
					awsv1.SubnetSelectorTerm{ID: fmt.Sprint("subnet-", i)})
			}
		})
	}
	w.AddInstanceProfile("p", "nodes")
	w.resolve()
	first := w.Counts()
	for action, want := range map[string]int{
		"ec2:DescribeSubnets": 2, "ec2:DescribeSecurityGroups": 1, "ec2:DescribeImages": 1, "ssm:GetParameter": 5,
		"iam:GetInstanceProfile": 1,
	} {
		if first[action] != want {
			t.Errorf("%d calls of %s for 20 classes, want %d", first[action], action, want)
		}
	}
	w.Forget()
	for range 10 {
		w.resolve() // within the minute
	}
	if got := w.Counts(); len(got) > 0 {
		t.Errorf("asked again at once: %v", got)
	}
	total := 0
	for range 60 {
		w.Advance(time.Minute)
		w.resolve()
	}
	for _, n := range w.Counts() {
		total += n
	}
	if total > 60*5 {
		t.Errorf("an hour at rest takes %d calls: %v", total, w.Counts())
	}
}

// E-03: a failed call is not repeated at once, however often the class is resolved.
func TestFailuresAreNotRepeatedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.class("a", nil)
	w.faults(throttled("ec2:DescribeSubnets"))
	for range 10 {
		w.resolve()
	}
	if n := w.Counts()["ec2:DescribeSubnets"]; n != 1 {
		t.Errorf("%d calls, want 1", n)
	}
	w.Advance(30 * time.Second)
	w.resolve()
	if n := w.Counts()["ec2:DescribeSubnets"]; n != 2 {
		t.Errorf("%d calls half a minute later, want 2", n)
	}
}

// E-68: a class that finds nothing reports what it searched for, and how much there is without the tags.
func TestWhatIsNotFoundIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	class := w.class("a", func(s *awsv1.EC2NodeClassSpec) {
		s.SubnetSelectorTerms = []awsv1.SubnetSelectorTerm{{Tags: map[string]string{"env": "prod", "Name": "*"}},
			{ID: "subnet-0"}}
		s.SecurityGroupSelectorTerms = []awsv1.SecurityGroupSelectorTerm{{Name: "node"}}
	})
	w.resolve()
	w.expect(class, resolve.SubnetsReady, "False", resolve.SubnetsNotFound, "[0] (tags Name=*, env=prod)",
		"[1] (id subnet-0)", "the account has 2 in us-east-1")
	w.expect(class, resolve.SecurityGroupsReady, "False", resolve.SecurityGroupsNotFound, "[0] (name node)",
		"the account has 1")
	w.expect(class, ready, "False", resolve.SubnetsNotFound, "SubnetsReady: ", "SecurityGroupsReady: ")
	w.expect(class, karpenterv1.ConditionTypeValidationSucceeded, "Unknown", resolve.NotResolved)
	empty := &world{Server: ec2test.Start(t, ec2test.Options{}), t: t, version: kubernetes}
	empty.AddCluster(ec2test.Cluster{Name: "c1"})
	empty.restart()
	lost := empty.class("b", nil)
	empty.resolve()
	empty.expect(lost, resolve.SubnetsReady, "False", resolve.SubnetsNotFound, "the account has none in us-east-1")
}

// E-11: subnets and groups of two VPCs are found by comparing; a new process in trouble does not forget it.
func TestVPCsAreCompared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tags := map[string]string{"karpenter.sh/discovery": "c1"}
	w.AddSecurityGroup(ec2test.SecurityGroup{ID: "sg-other", VPC: "vpc-other", Tags: tags})
	class := w.class("a", nil)
	w.resolve()
	const kind = karpenterv1.ConditionTypeValidationSucceeded
	w.expect(class, kind, "False", resolve.VPCMismatch, "vpc-other (sg-other)", ec2test.VPC)
	w.expect(class, ready, "False", resolve.VPCMismatch)
	w.faults(throttled("ec2:DescribeSubnets"))
	w.restart()
	w.Advance(time.Minute)
	w.resolve()
	w.expect(class, kind, "False", resolve.VPCMismatch, "vpc-other (sg-other)")
}
