package template_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"k8s.io/apimachinery/pkg/api/resource"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launch"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launchid"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/refusal"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/tag"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/template"
)

// site is an account with everything that instances need, and a class for it.
type site struct {
	*account
	subnets  []ec2test.Subnet
	image    ec2test.Image
	group    ec2test.SecurityGroup
	launches int
}

func newSite(t *testing.T, f ec2test.Faults) *site {
	t.Helper()
	s := &site{account: newAccount(t, f)}
	s.subnets, s.group = s.AddNetwork("c1", "us-east-1a", "us-east-1b")
	s.image = s.AddImage(ec2test.Image{})
	s.AddRole("node")
	s.AddInstanceProfile("profile-1", "node")
	s.AddPlacementGroup(ec2test.PlacementGroup{ID: "pg-1", Name: "near", Strategy: "partition", Partitions: 3})
	return s
}

// ask returns a plain launch at the site, with a change.
func (s *site) ask(changes ...func(*template.Ask)) template.Ask {
	return ask(append([]func(*template.Ask){func(a *template.Ask) {
		a.Image = s.image.ID
		a.Class.Status.SecurityGroups = []awsv1.SecurityGroup{{ID: s.group.ID}}
	}}, changes...)...)
}

// launch makes a template and launches machines of a type with it, in all zones.
func (s *site) launch(a template.Ask, count int, kind string) ([]launch.Instance, []launch.Refused) {
	s.t.Helper()
	in := content(s.t, a)
	if err := s.keeper().Ensure(s.t.Context(), in); err != nil {
		s.t.Fatal(err)
	}
	s.launches++
	id := launchid.New([]string{fmt.Sprint("uid-", s.launches)}, 0)
	tags := tag.Of(a.Class, a.Cluster, a.Pool)
	maps.Copy(tags, launchid.Tags(id, []string{"claim-1"}))
	r := launch.Request{ID: id, Count: count, CapacityType: a.CapacityType, Kind: a.Reservation.Kind, Tags: tags}
	for i, n := range s.subnets {
		r.Overrides = append(r.Overrides, launch.Override{Type: kind, Zone: n.Zone, Subnet: n.ID, Image: a.Image,
			Template: *in.LaunchTemplateName, Reservation: a.Reservation.ID, Price: 0})
		r.Overrides[i].Price++
	}
	out, err := s.client.CreateFleet(s.t.Context(), launch.Fleet(r))
	if err != nil {
		s.t.Fatal(err)
	}
	return launch.Read(r, out)
}

// described returns EC2's description of an instance.
func (s *site) described(id string) ec2types.Instance {
	s.t.Helper()
	out, err := s.client.DescribeInstances(s.t.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	if err != nil {
		s.t.Fatal(err)
	}
	return out.Reservations[0].Instances[0]
}

// E-28, E-31, E-36, E-57: an instance matches its template, and everything has its tags.
func TestAnInstanceIsWhatItsTemplateSays(t *testing.T) {
	t.Parallel()
	s := newSite(t, ec2test.Faults{})
	instances, refused := s.launch(s.ask(func(a *template.Ask) { a.CapacityType = catalog.Spot }), 2, "m5.large")
	if len(instances) != 2 || len(refused) != 0 {
		t.Fatalf("%v %v", instances, refused)
	}
	tags := map[string]string{"team": "a", "cost": "1", "of": "b", "kubernetes.io/cluster/c1": "owned",
		"eks:eks-cluster-name": "c1", "karpenter.sh/nodepool": "general", "karpenter.k8s.aws/ec2nodeclass": "plain"}
	launched := maps.Clone(tags)
	for at, i := range s.Instances() {
		launched["joiner.sh/launch"], launched["karpenter.sh/nodeclaim"] = i.Token, "claim-1"
		if !maps.Equal(i.Tags, launched) || !maps.Equal(i.VolumeTags, launched) || i.Token == "" {
			t.Errorf("token %q, tags %v, of volumes %v, want %v", i.Token, i.Tags, i.VolumeTags, launched)
		}
		data, err := base64.StdEncoding.DecodeString(i.UserData())
		if err != nil || string(data) != "#!/bin/sh" {
			t.Errorf("user data %q, %v", data, err)
		}
		shown := s.described(i.ID)
		if len(shown.BlockDeviceMappings) != 1 || *shown.BlockDeviceMappings[0].DeviceName != "/dev/xvda" ||
			!strings.HasSuffix(*shown.IamInstanceProfile.Arn, "/profile-1") ||
			*shown.SecurityGroups[0].GroupId != s.group.ID {
			t.Errorf("%+v", shown)
		}
		got := instances[slices.IndexFunc(instances, func(g launch.Instance) bool { return g.ID == i.ID })]
		if got.Type != i.Type || got.Zone != i.Zone || got.Subnet != i.Subnet || got.CapacityType != catalog.Spot ||
			got.Image != i.Image || got.Template != i.Template {
			t.Errorf("machine %d: %+v, want %+v", at, got, i)
		}
	}
	for _, call := range s.Calls() {
		for _, a := range call.Asks {
			if len(a.RequestTags) > 0 && a.RequestTags["eks:eks-cluster-name"] != "c1" {
				t.Errorf("%s of %s has tags %v, which Karpenter's policy does not allow", a.Action, a.Resource,
					a.RequestTags)
			}
			made := call.Action == "CreateLaunchTemplate" || strings.Contains(a.Resource, ":network-interface/") ||
				strings.Contains(a.Resource, ":spot-instances-request/")
			if made && !maps.Equal(a.RequestTags, tags) {
				t.Errorf("%s has tags %v, want %v", a.Resource, a.RequestTags, tags)
			}
		}
	}
}

// E-31: with a root volume that a policy sets the instance has exactly that one, beside what the class adds.
func TestTheRootVolumeIsOne(t *testing.T) {
	t.Parallel()
	s := newSite(t, ec2test.Faults{})
	disk := func(name string, gib int64, root *bool) awsv1.BlockDeviceMapping {
		return awsv1.BlockDeviceMapping{DeviceName: aws.String(name), RootVolume: root, EBS: &awsv1.BlockDevice{
			VolumeSize: resource.NewQuantity(gib<<30, resource.BinarySI), VolumeType: aws.String("gp3"),
			Encrypted: aws.Bool(true)}}
	}
	instances, refused := s.launch(s.ask(func(a *template.Ask) {
		a.Family = "Custom"
		a.Class.Spec.BlockDeviceMappings = []awsv1.BlockDeviceMapping{disk("/dev/xvda", 75, aws.Bool(true)),
			disk("/dev/xvdb", 10, nil)}
	}), 1, "m5.large")
	if len(instances) != 1 {
		t.Fatal(refused)
	}
	var names []string
	for _, m := range s.described(instances[0].ID).BlockDeviceMappings {
		names = append(names, *m.DeviceName)
	}
	if strings.Join(names, " ") != "/dev/xvda /dev/xvdb" {
		t.Errorf("disks: %s", names)
	}
	out, err := s.others.DescribeLaunchTemplateVersions(t.Context(), &ec2.DescribeLaunchTemplateVersionsInput{
		LaunchTemplateName: aws.String(instances[0].Template), Versions: []string{"1"}})
	if err != nil || *out.LaunchTemplateVersions[0].LaunchTemplateData.BlockDeviceMappings[0].Ebs.VolumeSize != 75 {
		t.Errorf("%+v, %v", out, err)
	}
}

// E-13, E-14, E-31: a reservation is used by launches for it, and by no others if the class selects reservations.
func TestReservationsAreUsedOnPurpose(t *testing.T) {
	t.Parallel()
	s := newSite(t, ec2test.Faults{})
	open := s.AddCapacityReservation(ec2test.CapacityReservation{Type: "m5.large", Zone: "us-east-1a", Match: "open",
		Total: 9})
	meant := s.AddCapacityReservation(ec2test.CapacityReservation{Type: "m5.large", Zone: "us-east-1a", Total: 1})
	block := s.AddCapacityReservation(ec2test.CapacityReservation{Type: "p5.48xlarge", Zone: "us-east-1b", Total: 1,
		Kind: "capacity-block"})
	choosy := func(a *template.Ask) {
		a.Class.Spec.CapacityReservationSelectorTerms = []awsv1.CapacityReservationSelectorTerm{{ID: meant.ID}}
	}
	in := func(id string, kind launch.Kind) func(*template.Ask) {
		return func(a *template.Ask) {
			a.CapacityType, a.Reservation = catalog.Reserved, launch.Reservation{ID: id, Kind: kind}
		}
	}
	for name, c := range map[string]struct {
		changes []func(*template.Ask)
		kind    string
		want    string // the reservation
	}{
		"for one": {[]func(*template.Ask){choosy, in(meant.ID, launch.Plain)}, "m5.large",
			meant.ID},
		"a block":                    {[]func(*template.Ask){in(block.ID, launch.Block)}, "p5.48xlarge", block.ID},
		"on-demand, as EC2 does":     {nil, "m5.large", open.ID},
		"on-demand of a choosy user": {[]func(*template.Ask){choosy}, "m5.large", ""},
	} {
		a := s.ask(c.changes...)
		instances, refused := s.launch(a, 1, c.kind)
		if len(instances) != 1 {
			t.Errorf("%s: %+v", name, refused)
			continue
		}
		got := aws.ToString(s.described(instances[0].ID).CapacityReservationId)
		if got != c.want || instances[0].CapacityType != a.CapacityType ||
			instances[0].Reservation != a.Reservation.ID {
			t.Errorf("%s: reservation %q, want %q; read %+v", name, got, c.want, instances[0])
		}
	}
	_, refused := s.launch(s.ask(in(meant.ID, launch.Plain)), 1, "m5.large")
	if len(refused) != 2 || refused[0].Class != refusal.Reservation || refused[0].Pools[0].Reservation != meant.ID {
		t.Errorf("a reservation that is used up: %+v", refused)
	}
}

// E-31: EC2 accepts every possible template, with the intended meaning.
func TestEC2TakesEveryTemplate(t *testing.T) {
	t.Parallel()
	s := newSite(t, ec2test.Faults{})
	s.AddCluster(ec2test.Cluster{Name: "c2"})
	k := s.keeper()
	for what, change := range shapes() {
		in := content(t, s.ask(change))
		if err := k.Ensure(t.Context(), in); err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if what == "cluster" {
			continue
		}
		out, err := s.others.DescribeLaunchTemplateVersions(t.Context(), &ec2.DescribeLaunchTemplateVersionsInput{
			LaunchTemplateName: in.LaunchTemplateName})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := text(t, out.LaunchTemplateVersions[0].LaunchTemplateData),
			text(t, in.LaunchTemplateData); got != want {
			t.Errorf("%s: EC2 has\n%s\nwant\n%s", what, got, want)
		}
	}
}

// E-41, E-42: an endpoint's refusals are classified correctly.
func TestRefusalsOfAFleet(t *testing.T) {
	t.Parallel()
	s := newSite(t, ec2test.Faults{
		Pools: []ec2test.Pool{{Type: "m5.large", Zone: "us-east-1a", CapacityType: "*", Free: 1},
			{Type: "c5.large", Zone: "*", CapacityType: "*"}},
	})
	told := func(list []launch.Refused) string {
		var words []string
		for _, r := range list {
			words = append(words, fmt.Sprint(r.Class, r.For))
			for _, p := range r.Pools {
				words = append(words, p.Type+"/"+p.Zone)
			}
		}
		return strings.Join(words, " ")
	}
	instances, refused := s.launch(s.ask(), 3, "m5.large")
	if len(instances) != 3 || told(refused) != "capacity0s m5.large/us-east-1a" {
		t.Errorf("%d instances and %s", len(instances), told(refused))
	}
	instances, refused = s.launch(s.ask(), 3, "c5.large")
	if len(instances) != 0 || told(refused) != "capacity0s c5.large/us-east-1a capacity0s c5.large/us-east-1b" {
		t.Errorf("%d instances and %s", len(instances), told(refused))
	}
	if err := s.SetFaults(ec2test.Faults{FleetErrors: []ec2test.FleetError{
		{Code: "UnfulfillableCapacity", Share: 1, Times: 1, Instead: true}}}); err != nil {
		t.Fatal(err)
	}
	instances, refused = s.launch(s.ask(func(a *template.Ask) { a.Pool = "third" }), 1, "m5.large")
	if len(instances) != 0 || told(refused) != "capacity1m0s m5.large/us-east-1a m5.large/us-east-1b" {
		t.Errorf("%d instances and %s", len(instances), told(refused))
	}
}
