package ec2test_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
)

// clusterTags are the tags without which a controller may create nothing.
func clusterTags(kind ec2types.ResourceType, more ...string) ec2types.TagSpecification {
	spec := ec2types.TagSpecification{ResourceType: kind}
	for _, t := range append([]string{"kubernetes.io/cluster/c1=owned", "eks:eks-cluster-name=c1",
		"karpenter.sh/nodepool=p"}, more...) {
		key, value, _ := strings.Cut(t, "=")
		spec.Tags = append(spec.Tags, ec2types.Tag{Key: &key, Value: &value})
	}
	return spec
}

// E-58: a request of the controller that some policy does not allow is reported once, with action, resource and tags,
// whatever its result. Requests of other users in the account are not reported.
func TestWhatNoPolicyAllowsIsTold(t *testing.T) {
	t.Parallel()
	var told []string
	s := ec2test.Start(t, ec2test.Options{Forbidden: func(text string) { told = append(told, text) }})
	s.AddNetwork("c1", "us-east-1a")
	queue, ctx := s.AddQueue("events"), t.Context()
	ours, others := client(s), ec2.NewFromConfig(s.OthersConfig())
	template := func(name string, spec ...ec2types.TagSpecification) *ec2.CreateLaunchTemplateInput {
		return &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String(name), TagSpecifications: spec,
			LaunchTemplateData: &ec2types.RequestLaunchTemplateData{ImageId: aws.String("ami-1")}}
	}
	for what, c := range map[string]struct {
		call func() error
		want string // of what is told; "" for nothing
	}{
		"a template without tags": {func() error {
			_, err := ours.CreateLaunchTemplate(ctx, template("bare"))
			return err
		}, "ec2:CreateLaunchTemplate on arn:aws:ec2:us-east-1:111122223333:launch-template, with request tags []"},
		"of another cluster": {func() error {
			_, err := others.CreateLaunchTemplate(ctx,
				template("theirs", clusterTags("launch-template", "kubernetes.io/cluster/c1=no")))
			return err
		}, ""},
		"as it has to be": {func() error {
			_, err := ours.CreateLaunchTemplate(ctx, template("good", clusterTags("launch-template", "cost=1")))
			return err
		}, ""},
		"a right that nobody has": {func() error {
			_, err := ours.DescribeLaunchTemplateVersions(ctx, &ec2.DescribeLaunchTemplateVersionsInput{
				LaunchTemplateName: aws.String("none"),
			})
			return err
		}, "ec2:DescribeLaunchTemplateVersions on *"},
		"what is not there might be the cluster's": {func() error {
			_, err := ours.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{"i-0"}})
			return err
		}, ""},
		"its queue": {func() error {
			_, err := sqs.NewFromConfig(s.Config()).ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &queue})
			return err
		}, ""},
		"sending to it": {func() error {
			_, err := sqs.NewFromConfig(s.Config()).SendMessage(ctx,
				&sqs.SendMessageInput{QueueUrl: &queue, MessageBody: aws.String("x")})
			return err
		}, "sqs:SendMessage on arn:aws:sqs:us-east-1:111122223333:events"},
		"ten parameters in a call": {func() error {
			_, err := ssm.NewFromConfig(s.Config()).GetParameters(ctx,
				&ssm.GetParametersInput{Names: []string{"/aws/service/x"}})
			return err
		}, "ssm:GetParameters"},
		"a parameter of the user's own": {func() error {
			_, err := ssm.NewFromConfig(s.Config()).GetParameter(ctx,
				&ssm.GetParameterInput{Name: aws.String("/mine")})
			return err
		}, ""},
		"a profile without tags": {func() error {
			_, err := iam.NewFromConfig(s.Config()).CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{
				InstanceProfileName: aws.String("p"),
			})
			return err
		}, "iam:CreateInstanceProfile"},
	} {
		told = nil
		first := c.call()
		_ = c.call() // told once, however it ends
		if c.want == "" && len(told) > 0 || c.want != "" && (len(told) == 0 || !strings.Contains(told[0], c.want)) ||
			len(told) > 1 && what != "a template without tags" {
			t.Errorf("%s (%v): told %q, want %q", what, first, told, c.want)
		}
		if c.want != "" && len(told) > 0 && !strings.Contains(told[0], "deploy/aws/controller-policy.json") {
			t.Errorf("%s: %q does not name the policy", what, told[0])
		}
	}
}

// E-58: after its launch an instance of the cluster may get two tags, and no others; instances of other clusters none.
func TestWhichTagsMayFollow(t *testing.T) {
	t.Parallel()
	var told []string
	a := accountOf(t, ec2test.Options{})
	in := a.fleet(1, onDemand, "m5.large")
	in.TagSpecifications = []ec2types.TagSpecification{clusterTags("instance")}
	_, err := a.client.CreateFleet(t.Context(), in)
	wantCode(t, err, "")
	id := a.Instances()[0].ID
	a.Judge(func(text string) { told = append(told, text) })
	for keys, want := range map[string]bool{"Name": true, "Name karpenter.sh/nodeclaim": true, "Name cost": false,
		"eks:eks-cluster-name": false} {
		told = nil
		var tags []ec2types.Tag
		for _, key := range strings.Fields(keys) {
			tags = append(tags, ec2types.Tag{Key: aws.String(key), Value: aws.String("c1")})
		}
		_, err := a.client.CreateTags(t.Context(), &ec2.CreateTagsInput{Resources: []string{id}, Tags: tags})
		wantCode(t, err, "")
		if (len(told) == 0) != want {
			t.Errorf("%s: %q, want it allowed: %v", keys, told, want)
		}
	}
}

// E-58: a launch asks for every resource that it uses and makes, as AWS's service authorization reference has them.
func TestWhatALaunchAsksTheRightsFor(t *testing.T) {
	t.Parallel()
	a := accountOf(t, ec2test.Options{})
	a.AddInstanceProfile("p", "nodes")
	a.AddPlacementGroup(ec2test.PlacementGroup{ID: "pg-1", Name: "near", Strategy: "cluster"})
	a.template("t2", func(d *ec2types.RequestLaunchTemplateData) {
		d.IamInstanceProfile = &ec2types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: aws.String("p")}
		d.Placement = &ec2types.LaunchTemplatePlacementRequest{GroupId: aws.String("pg-1")}
		d.BlockDeviceMappings[0].Ebs.SnapshotId = aws.String("snap-1")
	})
	in := a.fleet(1, spot, "m5.large")
	in.LaunchTemplateConfigs[0].LaunchTemplateSpecification.LaunchTemplateName = aws.String("karpenter.k8s.aws/t2")
	for i := range in.LaunchTemplateConfigs[0].Overrides {
		in.LaunchTemplateConfigs[0].Overrides[i].ImageId = &a.image.ID
	}
	in.TagSpecifications = []ec2types.TagSpecification{clusterTags("instance"), clusterTags("volume")}
	a.Forget()
	out, err := a.client.CreateFleet(t.Context(), in)
	wantCode(t, err, "")
	if len(out.Instances) != 1 {
		t.Fatalf("%+v", out.Errors)
	}
	asked := map[string]bool{}
	for _, ask := range a.Calls()[0].Asks {
		kind, _, _ := strings.Cut(ask.Resource[strings.LastIndex(ask.Resource, ":")+1:], "/")
		asked[ask.Action+" "+kind+
			map[bool]string{true: " for " + ask.Context["ec2:CreateAction"]}[ask.Action == "ec2:CreateTags"]] = true
	}
	const want = "ec2:CreateFleet fleet|ec2:CreateFleet image|ec2:CreateFleet instance|ec2:CreateFleet launch-template|" +
		"ec2:CreateFleet subnet|ec2:CreateFleet volume|ec2:CreateTags instance for CreateFleet|ec2:CreateTags instance for RunInstances|" +
		"ec2:CreateTags volume for CreateFleet|ec2:CreateTags volume for RunInstances|ec2:RunInstances image|" +
		"ec2:RunInstances instance|ec2:RunInstances launch-template|ec2:RunInstances network-interface|" +
		"ec2:RunInstances placement-group|ec2:RunInstances security-group|ec2:RunInstances snapshot|" +
		"ec2:RunInstances spot-instances-request|ec2:RunInstances subnet|ec2:RunInstances volume|iam:PassRole role"
	if got := strings.Join(slices.Sorted(maps.Keys(asked)), "|"); got != want {
		t.Errorf("asked\n%s\nwant\n%s", got, want)
	}
}
