package ec2_test

import (
	"bytes"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/deploy"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/calls"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/iampolicy"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launch"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launchid"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/offering"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/pace"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/rights"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/tag"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/template"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
)

var rewrite = flag.Bool("rewrite", false, "write the policies that are made from calls")

// ofUpkeep reports whether package plug uses a right, and not the provider of machines.
func ofUpkeep(r iampolicy.Right) bool {
	return slices.ContainsFunc(rights.OfUpkeep(),
		func(what string) bool { return strings.HasPrefix(r.String(), what) })
}

// names returns the names of the endpoint's world.
func names() rights.Names {
	return rights.Names{Partition: "aws", Region: "us-east-1", Account: ec2test.Account, Cluster: clusterName,
		NodeRole: "nodes", Queue: clusterName}
}

// everything returns a class that uses every feature.
func everything(name string, change func(*awsv1.EC2NodeClassSpec)) *awsv1.EC2NodeClass {
	tags := map[string]string{"karpenter.sh/discovery": clusterName}
	c := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-of-everything", Generation: 1},
		Spec: awsv1.EC2NodeClassSpec{
			AMISelectorTerms:                 []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}},
			SubnetSelectorTerms:              []awsv1.SubnetSelectorTerm{{Tags: tags}},
			SecurityGroupSelectorTerms:       []awsv1.SecurityGroupSelectorTerm{{Tags: tags}},
			CapacityReservationSelectorTerms: []awsv1.CapacityReservationSelectorTerm{{ID: "cr-1"}},
			PlacementGroupSelector:           &awsv1.PlacementGroupSelector{Name: "near"},
			BlockDeviceMappings: []awsv1.BlockDeviceMapping{
				{DeviceName: aws.String("/dev/sdf"), EBS: &awsv1.BlockDevice{
					SnapshotID: aws.String("snap-1"), VolumeType: aws.String("gp3")}}},
		}}
	change(&c.Spec)
	return c
}

// resolve resolves the selectors of a class until its instance profile can be used.
func (a *account) resolve(t *testing.T, class *awsv1.EC2NodeClass) {
	t.Helper()
	a.server.SetParameter("/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/standard/recommended/image_id",
		a.image.ID)
	clients := a.clients()
	r, err := resolve.New(resolve.Config{EC2: clients.EC2, SSM: clients.SSM, IAM: clients.IAM, Now: a.server.Now,
		Cluster: clusterName, Region: "us-east-1"})
	if err != nil {
		t.Fatal(err)
	}
	var ready string
	for _, wait := range []time.Duration{0, time.Hour, time.Minute} {
		a.server.Advance(wait)
		result := r.Resolve(t.Context(), []*awsv1.EC2NodeClass{class}, "v1.33.4")[class.Name]
		class.Status = result.Status
		for _, c := range result.Conditions {
			if c.Type == karpenterv1.ConditionTypeReady {
				ready = string(c.Status) + ": " + c.Message
			}
		}
		if class.Spec.Role != nil && wait == 0 { // somebody gives the profile another role, and that is mended
			a.server.AddInstanceProfile(class.Status.InstanceProfile, "others")
		}
	}
	if !strings.HasPrefix(ready, "True") {
		t.Fatalf("%s: ready is %s", class.Name, ready)
	}
}

func (a *account) clients() calls.Clients {
	return calls.New(calls.Config{AWS: a.server.Config(), Clock: a.clock, Pace: pace.New(timer.Real{})})
}

// fleet launches a machine of a class by a template of its own, and lets the template be collected.
func (a *account) fleet(t *testing.T, class *awsv1.EC2NodeClass, ask template.Ask) {
	t.Helper()
	ask.Class, ask.Cluster, ask.Pool, ask.Family, ask.Image = class, clusterName, "default", "AL2023", a.image.ID
	clients := a.clients()
	in, err := template.Content(ask)
	if err != nil {
		t.Fatal(err)
	}
	keeper := template.NewKeeper(t.Context(), clients.EC2, a.clock, clusterName)
	if err := keeper.Ensure(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	id := launchid.New([]string{*in.LaunchTemplateName}, 0)
	n := class.Status.Subnets[slices.IndexFunc(class.Status.Subnets,
		func(s awsv1.Subnet) bool { return s.Zone == "us-east-1a" })]
	request := launch.Request{ID: id, Count: 1, CapacityType: ask.CapacityType, Kind: ask.Reservation.Kind,
		Tags: tag.Of(class, clusterName, "default"),
		Overrides: []launch.Override{{Type: "m5.large", Zone: n.Zone, Subnet: n.ID, Image: a.image.ID,
			Template: *in.LaunchTemplateName, Reservation: ask.Reservation.ID}}}
	out, err := clients.EC2.CreateFleet(t.Context(), launch.Fleet(request))
	if err != nil {
		t.Fatal(err)
	}
	if machines, refused := launch.Read(request, out); len(machines) != 1 {
		t.Fatalf("%d machines, refused: %+v", len(machines), refused)
	}
	a.server.Advance(2 * time.Hour)
	if gone, err := keeper.Collect(t.Context(), a.server.Now(), time.Hour); err != nil ||
		!slices.Contains(gone, *in.LaunchTemplateName) {
		t.Fatalf("%v were collected, error %v", gone, err)
	}
}

// run does everything that the provider can do for a class: types and prices, discovery, launches of every kind,
// notices, ends, collection. It returns the rights of a policy that this used.
func (a *account) run(t *testing.T, class *awsv1.EC2NodeClass, policy *iampolicy.Policy) map[iampolicy.Right]bool {
	t.Helper()
	ctx, clients := t.Context(), a.clients()
	prices := offering.NewPrices(offering.PricesConfig{Clock: timer.Real{}, Region: "us-east-1", EC2: clients.EC2,
		Pricing: clients.Pricing})
	for _, refresh := range []func() error{
		func() error { return offering.NewTypes(clients.EC2, timer.Real{}).Refresh(ctx) },
		func() error { return prices.Refresh(ctx) },
	} {
		if err := refresh(); err != nil {
			t.Fatal(err)
		}
	}
	a.server.AddPlacementGroup(ec2test.PlacementGroup{ID: "pg-1", Name: "near", Strategy: "cluster"})
	a.server.AddCapacityReservation(ec2test.CapacityReservation{ID: "cr-1", Type: "m5.large", Zone: "us-east-1a",
		Total: 1})
	a.resolve(t, class)
	for _, kind := range []string{catalog.Spot, catalog.OnDemand} {
		claim := claim("for-"+kind, must(karpenterv1.CapacityTypeLabelKey, kind),
			must(corev1.LabelArchStable, "amd64"))
		machine, err := a.Launch(ctx, claim, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		a.kube.bind(claim, machine.ProviderID)
		a.Settle(t)
		if _, err := a.List(ctx); err != nil {
			t.Fatal(err)
		}
		if kind == catalog.Spot {
			a.heed(t, machine.ProviderID)
		}
		if err := a.Terminate(ctx, machine.ProviderID, nil); err != nil {
			t.Fatal(err)
		}
	}
	a.fleet(t, class,
		template.Ask{CapacityType: catalog.Reserved, Reservation: launch.Reservation{ID: "cr-1", Kind: launch.Plain}})
	a.fleet(t, class, template.Ask{CapacityType: catalog.Spot, Placement: template.Placement{GroupID: "pg-1"}})
	used := map[iampolicy.Right]bool{}
	for _, call := range a.server.Calls() {
		for _, ask := range call.Asks {
			for _, right := range policy.Decide(ask.Request()).Rights {
				used[right] = true
			}
		}
	}
	return used
}

// heed makes EC2 warn an instance, and reads the warning from the queue if there is one.
func (a *account) heed(t *testing.T, providerID string) {
	t.Helper()
	a.Interrupt(t, providerID)
	notices, err := a.Notices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range notices.List {
		if err := a.Acknowledge(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
}

// E-58: the controller's policy has no unused right; package plug has a test for the rest. The endpoint checks that
// everything is allowed.
func TestEveryRightIsUsed(t *testing.T) {
	t.Parallel()
	a := newAccount(t, whatIsSold(t), ec2test.Faults{})
	policy, err := rights.Controller(names())
	if err != nil {
		t.Fatal(err)
	}
	used := a.run(t, everything("with-role", func(s *awsv1.EC2NodeClassSpec) { s.Role = aws.String("nodes") }), policy)
	for _, r := range policy.Rights() {
		china := strings.HasSuffix(r.What, `"ec2.amazonaws.com.cn"`) // EC2's name there
		if used[r] == (ofUpkeep(r) || china) {
			t.Errorf("%s: used is %v, and it is one of package plug: %v", r, used[r], ofUpkeep(r))
		}
	}
}

// E-58: the small policy has the rights for a cluster without a queue whose class names its instance profile,
// including upkeep. It changes nothing in IAM and reads no messages. -rewrite writes it.
func TestTheSmallPolicyIsMadeFromCalls(t *testing.T) {
	t.Parallel()
	s := whatIsSold(t)
	a := newAccount(t, s, ec2test.Faults{})
	a.Provider = a.restart(t, s, "") // without a queue
	policy, err := rights.Controller(names())
	if err != nil {
		t.Fatal(err)
	}
	used := a.run(t,
		everything("with-profile", func(s *awsv1.EC2NodeClassSpec) { s.InstanceProfile = aws.String("nodes") }),
		policy)
	whole, err := deploy.AWSPolicy(deploy.AWSController)
	if err != nil {
		t.Fatal(err)
	}
	filled := map[string]string{"AWS_PARTITION": "aws", "AWS_REGION": "us-east-1", "AWS_ACCOUNT": ec2test.Account,
		"CLUSTER": clusterName, "NODE_ROLE": "nodes", "QUEUE": clusterName}
	small, err := iampolicy.Only(whole, func(r iampolicy.Right) bool {
		what, err := deploy.FillAWS([]byte(r.What), filled)
		if err != nil {
			t.Fatal(err)
		}
		without := strings.Contains(r.What, "iam:") || strings.Contains(r.What, "sqs:")
		return used[iampolicy.Right{Statement: r.Statement, What: string(what)}] || ofUpkeep(r) && !without
	})
	if err != nil {
		t.Fatal(err)
	}
	const file = "../../../deploy/aws/" + deploy.AWSSmall
	if *rewrite {
		if err := os.WriteFile(file, small, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(stored, small) {
		t.Errorf(
			"%s is not what the calls take; write it by: go test ./internal/provider/ec2 -run TestTheSmallPolicy -rewrite; error %v",
			file, err)
	}
	for _, not := range []string{"sqs:", "iam:Create", "iam:Add", "iam:Remove", "iam:Delete", "iam:Tag", "${QUEUE}"} {
		if bytes.Contains(small, []byte(not)) {
			t.Errorf("the small policy has %s", not)
		}
	}
}
