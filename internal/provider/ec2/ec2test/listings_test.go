package ec2test_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
)

// filters makes filters of "name=value,value".
func filters(texts ...string) []ec2types.Filter {
	var all []ec2types.Filter
	for _, text := range texts {
		name, values, _ := strings.Cut(text, "=")
		all = append(all, ec2types.Filter{Name: &name, Values: strings.Split(values, ",")})
	}
	return all
}

// E-09, E-10: images by owner, name, tag and id; deprecated ones when they are asked for.
func TestImages(t *testing.T) {
	t.Parallel()
	s := ec2test.Start(t, ec2test.Options{Unjudged: raw})
	old := s.AddImage(ec2test.Image{Name: "al2023-1", Deprecated: s.Now().Add(time.Hour)})
	s.AddImage(ec2test.Image{Name: "al2023-2", Architecture: "arm64"})
	s.AddImage(ec2test.Image{Name: "mine", Owner: ec2test.Account, Tags: map[string]string{"team": "a"},
		Deprecated: s.Now()})
	s.AddImage(ec2test.Image{Name: "theirs", Owner: "999988887777"})
	names := func(in *ec2.DescribeImagesInput) string {
		t.Helper()
		out, err := client(s).DescribeImages(t.Context(), in)
		wantCode(t, err, "")
		var all []string
		for _, i := range out.Images {
			all = append(all, *i.Name)
		}
		slices.Sort(all)
		return strings.Join(all, " ")
	}
	yes := aws.Bool(true)
	check := func(when string, in *ec2.DescribeImagesInput, want string) {
		t.Helper()
		if got := names(in); got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	check("all", &ec2.DescribeImagesInput{}, "al2023-1 al2023-2 mine theirs")
	check("by owners", &ec2.DescribeImagesInput{Owners: []string{"self", "amazon"}}, "al2023-1 al2023-2 mine")
	check("by account", &ec2.DescribeImagesInput{Owners: []string{"999988887777"}}, "theirs")
	check("by name", &ec2.DescribeImagesInput{Filters: filters("name=al2023-*")}, "al2023-1 al2023-2")
	check("by name and architecture",
		&ec2.DescribeImagesInput{Filters: filters("name=al2023-*", "architecture=arm64")}, "al2023-2")
	check("by tag", &ec2.DescribeImagesInput{Filters: filters("tag:team=a,b")}, "mine")
	check("by tag key", &ec2.DescribeImagesInput{Filters: filters("tag-key=none")}, "")
	s.Advance(time.Hour)
	check("later", &ec2.DescribeImagesInput{}, "al2023-2 mine theirs")
	check("with deprecated", &ec2.DescribeImagesInput{IncludeDeprecated: yes}, "al2023-1 al2023-2 mine theirs")
	check("by id", &ec2.DescribeImagesInput{ImageIds: []string{old.ID}}, "al2023-1")
	_, err := client(s).DescribeImages(t.Context(),
		&ec2.DescribeImagesInput{ImageIds: []string{"ami-0123456789abcdef0"}})
	wantCode(t, err, "InvalidAMIID.NotFound")
}

// E-11: groups and subnets by tags, names and ids.
func TestNetworks(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{})
	a.AddNetwork("c2", "us-east-1a")
	subnets, err := a.client.DescribeSubnets(t.Context(),
		&ec2.DescribeSubnetsInput{Filters: filters("tag:karpenter.sh/discovery=c2")})
	if err != nil || len(subnets.Subnets) != 1 || *subnets.Subnets[0].AvailableIpAddressCount != 1<<16-5 {
		t.Errorf("%+v %v", subnets, err)
	}
	_, err = a.client.DescribeSubnets(t.Context(),
		&ec2.DescribeSubnetsInput{SubnetIds: []string{"subnet-0123456789abcdef0"}})
	wantCode(t, err, "InvalidSubnetID.NotFound")
	groups, err := a.client.DescribeSecurityGroups(t.Context(),
		&ec2.DescribeSecurityGroupsInput{Filters: filters("group-name=*-c1")})
	if err != nil || len(groups.SecurityGroups) != 1 || *groups.SecurityGroups[0].GroupId != a.group.ID {
		t.Errorf("%+v %v", groups, err)
	}
	_, err = a.client.DescribeSecurityGroups(t.Context(), &ec2.DescribeSecurityGroupsInput{GroupIds: []string{"sg-1"}})
	wantCode(t, err, "InvalidGroup.NotFound")
}

// E-30, E-56: the life of a launch template; its content comes back as it was sent.
func TestLaunchTemplates(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{MaxTemplates: 3})
	data := &ec2types.RequestLaunchTemplateData{
		ImageId: &a.image.ID, UserData: aws.String("aGk="),
		NetworkInterfaces: []ec2types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{{
			DeviceIndex: aws.Int32(0), Groups: []string{a.group.ID}, InterfaceType: aws.String("efa"),
			Ipv4PrefixCount: aws.Int32(2),
		}},
		MetadataOptions: &ec2types.LaunchTemplateInstanceMetadataOptionsRequest{
			HttpTokens: ec2types.LaunchTemplateHttpTokensStateRequired, HttpPutResponseHopLimit: aws.Int32(1),
		},
	}
	in := &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String("karpenter.k8s.aws/2"), LaunchTemplateData: data,
		TagSpecifications: []ec2types.TagSpecification{{
			ResourceType: ec2types.ResourceTypeLaunchTemplate, Tags: []ec2types.Tag{{Key: aws.String("of"),
				Value: aws.String("c1")}},
		}},
	}
	made, err := a.client.CreateLaunchTemplate(t.Context(), in)
	wantCode(t, err, "")
	_, err = a.client.CreateLaunchTemplate(t.Context(), in)
	wantCode(t, err, "InvalidLaunchTemplateName.AlreadyExistsException")
	a.template("3", func(*ec2types.RequestLaunchTemplateData) {})
	in.LaunchTemplateName = aws.String("karpenter.k8s.aws/4")
	_, err = a.client.CreateLaunchTemplate(t.Context(), in)
	wantCode(t, err, "MaxTemplateLimitExceeded")
	list, err := a.client.DescribeLaunchTemplates(t.Context(),
		&ec2.DescribeLaunchTemplatesInput{Filters: filters("tag:of=c1")})
	if err != nil || len(list.LaunchTemplates) != 1 ||
		*list.LaunchTemplates[0].LaunchTemplateId != *made.LaunchTemplate.LaunchTemplateId {
		t.Errorf("%+v %v", list, err)
	}
	versions, err := a.client.DescribeLaunchTemplateVersions(t.Context(), &ec2.DescribeLaunchTemplateVersionsInput{
		LaunchTemplateName: aws.String("karpenter.k8s.aws/2"), Versions: []string{"$Latest"},
	})
	if err != nil || len(versions.LaunchTemplateVersions) != 1 {
		t.Fatalf("%+v %v", versions, err)
	}
	got := versions.LaunchTemplateVersions[0].LaunchTemplateData
	if *got.UserData != "aGk=" || *got.NetworkInterfaces[0].Ipv4PrefixCount != 2 ||
		got.NetworkInterfaces[0].Groups[0] != a.group.ID ||
		got.MetadataOptions.HttpTokens != "required" || *got.NetworkInterfaces[0].InterfaceType != "efa" {
		t.Errorf("the template says %+v", got)
	}
	name := &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: aws.String("karpenter.k8s.aws/2")}
	_, err = a.client.DeleteLaunchTemplate(t.Context(), name)
	wantCode(t, err, "")
	_, err = a.client.DeleteLaunchTemplate(t.Context(), name)
	wantCode(t, err, "InvalidLaunchTemplateName.NotFoundException")
	if got := strings.Join(a.LaunchTemplates(), " "); got != "karpenter.k8s.aws/3 karpenter.k8s.aws/t1" {
		t.Errorf("left: %s", got)
	}
}

// E-55: instances by tags and states, also with pages of one; a page size does not go with ids.
func TestInstancesAreListed(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{})
	for n := range 4 {
		in := a.fleet(1, onDemand, "c5.large")
		in.TagSpecifications[0].Tags = append(in.TagSpecifications[0].Tags, ec2types.Tag{
			Key: aws.String("karpenter.sh/nodepool"), Value: aws.String(fmt.Sprint("p", n%2)),
		})
		a.launch(in)
	}
	all := a.Instances()
	_, err := a.client.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{all[0].ID}})
	wantCode(t, err, "")
	list := func(texts ...string) []string {
		t.Helper()
		var ids []string
		in := &ec2.DescribeInstancesInput{Filters: filters(texts...)}
		for p := ec2.NewDescribeInstancesPaginator(a.client, in); p.HasMorePages(); {
			out, err := p.NextPage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range out.Reservations {
				ids = append(ids, *r.Instances[0].InstanceId)
			}
		}
		slices.Sort(ids)
		return ids
	}
	want := func(numbers ...int) []string {
		var ids []string
		for _, n := range numbers {
			ids = append(ids, all[n].ID)
		}
		slices.Sort(ids)
		return ids
	}
	for _, size := range []int{0, 1} {
		a.SetPageSize(size)
		for text, want := range map[string][]string{
			"tag-key=karpenter.sh/nodepool tag:karpenter.sh/nodepool=p0": want(0, 2),
			"instance-state-name=pending,running":                        want(1, 2, 3),
			"instance-state-name=shutting-down":                          want(0),
			"instance-type=m5.*":                                         nil,
			"tag:joiner.sh/launch=l1":                                    want(0, 1, 2, 3),
		} {
			if got := list(strings.Fields(text)...); !slices.Equal(got, want) {
				t.Errorf("%s on pages of %d: %v, want %v", text, size, got, want)
			}
		}
	}
	_, err = a.client.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{InstanceIds: want(1),
		MaxResults: aws.Int32(10)})
	wantCode(t, err, "InvalidParameterCombination")
	_, err = a.client.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{NextToken: aws.String("made up")})
	wantCode(t, err, "InvalidNextToken")
}

// E-64: some other servers have fewer fields of an instance; these can be left out here, too.
func TestInstancesCanSayLess(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{})
	a.launch(a.fleet(1, spot, "c5.large"))
	said := func() [4]bool {
		t.Helper()
		out, err := a.client.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{})
		wantCode(t, err, "")
		i := out.Reservations[0].Instances[0]
		if i.InstanceLifecycle != ec2types.InstanceLifecycleTypeSpot {
			t.Errorf("the lifecycle is %q", i.InstanceLifecycle)
		}
		groups := len(i.SecurityGroups) + len(i.NetworkInterfaces[0].Groups)
		return [4]bool{i.SpotInstanceRequestId != nil, i.Placement.AvailabilityZoneId != nil, i.ClientToken != nil,
			groups > 0}
	}
	if got := said(); got != [4]bool{true, true, true, true} {
		t.Errorf("said: %v, want all", got)
	}
	if err := a.SetFaults(ec2test.Faults{Omit: []string{"spot-request", "zone-id", "token", "groups"}}); err != nil {
		t.Fatal(err)
	}
	if got := said(); got != [4]bool{} {
		t.Errorf("said: %v, want nothing", got)
	}
}

// E-57: tags have bounds, and a call with an invalid one changes nothing.
func TestTagsHaveBounds(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{})
	id := a.launch(a.fleet(1, onDemand, "c5.large")).Instances[0].InstanceIds[0]
	tag := func(resources []string, keys ...string) error {
		in := &ec2.CreateTagsInput{Resources: resources}
		for _, key := range keys {
			in.Tags = append(in.Tags, ec2types.Tag{Key: aws.String(key), Value: aws.String("v")})
		}
		_, err := a.client.CreateTags(t.Context(), in)
		return err
	}
	var many []string
	for n := range 50 {
		many = append(many, fmt.Sprint("k", n))
	}
	wantCode(t, tag([]string{id}, many...), "TagLimitExceeded")
	wantCode(t, tag([]string{id}, "aws:x"), "InvalidParameterValue")
	wantCode(t, tag([]string{id}, "x", "x"), "InvalidParameterValue")
	wantCode(t, tag([]string{id, "i-0123456789abcdef0"}, "x"), "InvalidInstanceID.NotFound")
	if n := len(a.Instances()[0].Tags); n != 1 {
		t.Errorf("%d tags after refused calls, want 1", n)
	}
	wantCode(t, tag([]string{id}, many[:49]...), "")
	if n := len(a.Instances()[0].Tags); n != 50 {
		t.Errorf("%d tags, want 50", n)
	}
}

// E-24: spot prices by product, type and zone, and all of them in few calls.
func TestSpotPrices(t *testing.T) {
	t.Parallel()
	s := ec2test.Start(t, ec2test.Options{Unjudged: raw})
	s.SetSpotPrice("c5.large", "us-east-1a", 0.0123)
	out, err := client(s).DescribeSpotPriceHistory(t.Context(), &ec2.DescribeSpotPriceHistoryInput{
		InstanceTypes: []ec2types.InstanceType{"c5.large"}, ProductDescriptions: []string{"Linux/UNIX"},
		AvailabilityZone: aws.String("us-east-1a"), StartTime: aws.Time(s.Now()),
	})
	if err != nil || len(out.SpotPriceHistory) != 1 || *out.SpotPriceHistory[0].SpotPrice != "0.012300" {
		t.Errorf("%+v %v", out, err)
	}
	s.Forget()
	for p := ec2.NewDescribeSpotPriceHistoryPaginator(client(s), &ec2.DescribeSpotPriceHistoryInput{
		ProductDescriptions: []string{"Linux/UNIX", "Linux/UNIX (Amazon VPC)"},
	}); p.HasMorePages(); {
		if _, err := p.NextPage(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.Counts()["ec2:DescribeSpotPriceHistory"]; n < 2 || n > 8 {
		t.Errorf("%d calls for all prices", n)
	}
}

// E-78: a listing of nothing is an empty list for the SDK, and an answer without content is none.
func TestAnEmptyListingIsNotAnEmptyAnswer(t *testing.T) {
	t.Parallel()
	s := ec2test.Start(t, ec2test.Options{Unjudged: raw})
	lists := func() [5]bool {
		t.Helper()
		subnets, err := client(s).DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{})
		wantCode(t, err, "")
		groups, err := client(s).DescribeSecurityGroups(t.Context(), &ec2.DescribeSecurityGroupsInput{})
		wantCode(t, err, "")
		images, err := client(s).DescribeImages(t.Context(), &ec2.DescribeImagesInput{})
		wantCode(t, err, "")
		reserved, err := client(s).DescribeCapacityReservations(t.Context(), &ec2.DescribeCapacityReservationsInput{})
		wantCode(t, err, "")
		placements, err := client(s).DescribePlacementGroups(t.Context(), &ec2.DescribePlacementGroupsInput{})
		wantCode(t, err, "")
		return [5]bool{subnets.Subnets != nil, groups.SecurityGroups != nil, images.Images != nil,
			reserved.CapacityReservations != nil, placements.PlacementGroups != nil}
	}
	if got := lists(); got != [5]bool{true, true, true, true, true} {
		t.Errorf("listings of nothing: %v, want a list from each", got)
	}
	if err := s.SetFaults(ec2test.Faults{
		Garbled: []ec2test.Garble{{Action: "ec2:*", Share: 1, How: "empty"}},
	}); err != nil {
		t.Fatal(err)
	}
	if got := lists(); got != [5]bool{} {
		t.Errorf("answers without content: %v, want no list", got)
	}
}
