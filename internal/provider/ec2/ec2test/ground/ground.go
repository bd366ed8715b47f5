// Package ground creates what tests of the provider need in an AWS account, through AWS's own API, and removes it
// again (E-64). So the tests run on any server that speaks AWS's protocols, such as package ec2test.
//
// Everything has the name of the test's cluster in it, so several tests can share an account.
package ground

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

const (
	// EndpointEnv is the variable with the URL of the server for the tests. Without it they start one of their own.
	EndpointEnv = "JOINER_EC2_ENDPOINT"
	// clusterTag is on every instance of a cluster, with the cluster's name.
	clusterTag = "eks:eks-cluster-name"
	// imageGiB is the size of the image's root volume.
	imageGiB = 20
	// ending is how long instances may take to end.
	ending = 3 * time.Minute
	// poll is how often to check that.
	poll = 200 * time.Millisecond
)

// FromEnv returns the configuration for the server of EndpointEnv, with AWS_REGION (us-east-1 without it),
// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN. Missing keys are made up: most servers other than
// AWS accept any. The last result is false if EndpointEnv is not set.
func FromEnv() (config aws.Config, url string, is bool) {
	if url, is = os.LookupEnv(EndpointEnv); !is || url == "" {
		return aws.Config{}, "", false
	}
	or := func(variable, otherwise string) string {
		if value := os.Getenv(variable); value != "" {
			return value
		}
		return otherwise
	}
	return aws.Config{
		Region: or("AWS_REGION", "us-east-1"), BaseEndpoint: aws.String(url),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{
				AccessKeyID: or("AWS_ACCESS_KEY_ID", "joiner"), SecretAccessKey: or("AWS_SECRET_ACCESS_KEY", "joiner"),
				SessionToken: os.Getenv("AWS_SESSION_TOKEN"), Source: "ground",
			}, nil
		}),
	}, url, true
}

// Subnet is one of the subnets, each in a zone of its own.
type Subnet struct{ ID, Zone, ZoneID string }

// Ground is a test's resources in an account.
type Ground struct {
	Cluster string // its name; the tag karpenter.sh/discovery of subnets and group has it
	VPC     string
	Subnets []Subnet
	Group   string // id
	Image   string // id, of x86_64
	Profile string // name of the instance profile, and of its role
	Queue   string // URL

	registered bool // the image is ours

	ec2 *ec2.Client
	iam *iam.Client
	sqs *sqs.Client
}

// Make creates everything. After an error it removes what it has created.
func Make(ctx context.Context, config aws.Config, cluster string) (*Ground, error) {
	g := &Ground{Cluster: cluster, ec2: ec2.NewFromConfig(config), iam: iam.NewFromConfig(config),
		sqs: sqs.NewFromConfig(config)}
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"a VPC", g.makeVPC},
		{"subnets", func(ctx context.Context) error { return g.makeSubnets(ctx, config.Region) }},
		{"a security group", g.makeGroup}, {"an image", g.makeImage},
		{"a role with an instance profile", g.makeProfile}, {"a queue", g.makeQueue},
	} {
		if err := step.do(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("ground: making %s for cluster %s: %w", step.what, cluster, err),
				g.Remove(ctx))
		}
	}
	return g, nil
}

func (g *Ground) tags(kind types.ResourceType) []types.TagSpecification {
	return []types.TagSpecification{{ResourceType: kind, Tags: []types.Tag{
		{Key: aws.String("karpenter.sh/discovery"), Value: &g.Cluster}, {Key: aws.String("Name"), Value: &g.Cluster},
	}}}
}

func (g *Ground) makeVPC(ctx context.Context) error {
	out, err := g.ec2.CreateVpc(ctx, &ec2.CreateVpcInput{CidrBlock: aws.String("10.200.0.0/16"),
		TagSpecifications: g.tags(types.ResourceTypeVpc)})
	if err != nil {
		return err
	}
	g.VPC = aws.ToString(out.Vpc.VpcId)
	return nil
}

func (g *Ground) makeSubnets(ctx context.Context, region string) error {
	for i, letter := range []string{"a", "b", "c"} {
		out, err := g.ec2.CreateSubnet(ctx, &ec2.CreateSubnetInput{
			VpcId: &g.VPC, CidrBlock: aws.String(fmt.Sprintf("10.200.%d.0/20", 16*i)),
			AvailabilityZone: aws.String(region + letter), TagSpecifications: g.tags(types.ResourceTypeSubnet),
		})
		if err != nil {
			return err
		}
		s := out.Subnet
		g.Subnets = append(g.Subnets, Subnet{aws.ToString(s.SubnetId), aws.ToString(s.AvailabilityZone),
			aws.ToString(s.AvailabilityZoneId)})
	}
	return nil
}

func (g *Ground) makeGroup(ctx context.Context) error {
	out, err := g.ec2.CreateSecurityGroup(ctx, &ec2.CreateSecurityGroupInput{
		GroupName: &g.Cluster, Description: aws.String("a test of Joiner"), VpcId: &g.VPC,
		TagSpecifications: g.tags(types.ResourceTypeSecurityGroup),
	})
	if err != nil {
		return err
	}
	g.Group = aws.ToString(out.GroupId)
	return nil
}

// makeImage registers an image with a name like Amazon's for EKS. If the server refuses that (AWS wants a snapshot) or
// forgets its details, one of the server's images is used: nothing is really started from it.
func (g *Ground) makeImage(ctx context.Context) error {
	out, err := g.ec2.RegisterImage(ctx, &ec2.RegisterImageInput{
		Name:           aws.String("amazon-eks-node-al2023-x86_64-standard-" + g.Cluster),
		Architecture:   types.ArchitectureValuesX8664,
		RootDeviceName: aws.String("/dev/xvda"), VirtualizationType: aws.String("hvm"),
		BlockDeviceMappings: []types.BlockDeviceMapping{{
			DeviceName: aws.String("/dev/xvda"), Ebs: &types.EbsBlockDevice{VolumeSize: aws.Int32(imageGiB),
				VolumeType: types.VolumeTypeGp3},
		}},
	})
	if err == nil {
		g.Image, g.registered = aws.ToString(out.ImageId), true
		is, err := g.ec2.DescribeImages(ctx, &ec2.DescribeImagesInput{ImageIds: []string{g.Image}})
		if err == nil && len(is.Images) == 1 && is.Images[0].Architecture == types.ArchitectureValuesX8664 {
			return nil
		}
		if err := g.removeImage(ctx); err != nil {
			return err
		}
	}
	return g.borrowImage(ctx)
}

// borrowImage takes the image with the first name among those that the server has for x86_64.
func (g *Ground) borrowImage(ctx context.Context) error {
	out, err := g.ec2.DescribeImages(ctx, &ec2.DescribeImagesInput{Filters: []types.Filter{
		{Name: aws.String("architecture"), Values: []string{"x86_64"}},
		{Name: aws.String("root-device-type"), Values: []string{"ebs"}},
		{Name: aws.String("virtualization-type"), Values: []string{"hvm"}},
		{Name: aws.String("state"), Values: []string{"available"}},
	}})
	if err != nil {
		return err
	}
	images := slices.DeleteFunc(out.Images, func(i types.Image) bool { return i.Platform != "" }) // windows
	if len(images) == 0 {
		return errors.New("the server takes no image and has none for x86_64")
	}
	slices.SortFunc(images, func(a, b types.Image) int {
		return cmp.Or(strings.Compare(aws.ToString(a.Name), aws.ToString(b.Name)),
			strings.Compare(aws.ToString(a.ImageId), aws.ToString(b.ImageId)))
	})
	g.Image = aws.ToString(images[0].ImageId)
	return nil
}

func (g *Ground) removeImage(ctx context.Context) error {
	if !g.registered {
		return nil
	}
	g.registered = false
	_, err := g.ec2.DeregisterImage(ctx, &ec2.DeregisterImageInput{ImageId: &g.Image})
	return err
}

func (g *Ground) makeProfile(ctx context.Context) error {
	const trust = `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"Service": ` +
		`"ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}]}`
	name := "joiner-test-" + g.Cluster
	if _, err := g.iam.CreateRole(ctx,
		&iam.CreateRoleInput{RoleName: &name, AssumeRolePolicyDocument: aws.String(trust)}); err != nil {
		return err
	}
	g.Profile = name
	if _, err := g.iam.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{
		InstanceProfileName: &name,
	}); err != nil {
		return err
	}
	_, err := g.iam.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: &name,
		RoleName: &name})
	return err
}

func (g *Ground) makeQueue(ctx context.Context) error {
	out, err := g.sqs.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &g.Cluster})
	if err != nil {
		return err
	}
	g.Queue = aws.ToString(out.QueueUrl)
	return nil
}

// Send puts a message into the queue.
func (g *Ground) Send(ctx context.Context, body string) error {
	_, err := g.sqs.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &g.Queue, MessageBody: &body})
	return err
}

// Instances returns the cluster's instances in one of these states, all when there are none.
func (g *Ground) Instances(ctx context.Context, states ...types.InstanceStateName) ([]types.Instance, error) {
	var all []types.Instance
	pages := ec2.NewDescribeInstancesPaginator(g.ec2, &ec2.DescribeInstancesInput{Filters: []types.Filter{
		{Name: aws.String("tag:" + clusterTag), Values: []string{g.Cluster}},
	}})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, r := range page.Reservations {
			for _, i := range r.Instances {
				if len(states) == 0 || i.State != nil && slices.Contains(states, i.State.Name) {
					all = append(all, i)
				}
			}
		}
	}
	return all, nil
}

// Settle waits until no instance of the cluster is starting or ending.
func (g *Ground) Settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ending)
	defer cancel()
	for {
		moving, err := g.Instances(ctx, types.InstanceStateNamePending, types.InstanceStateNameShuttingDown)
		if err != nil {
			return err
		}
		if len(moving) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d instances of %s still start or end after %s", len(moving), g.Cluster, ending)
		case <-time.After(poll):
		}
	}
}

// Remove removes everything that Make created, and the instances and launch templates that a test has left. The error
// names what cannot be removed; the rest is removed anyway.
func (g *Ground) Remove(ctx context.Context) error {
	failed := []error{g.removeInstances(ctx), g.removeTemplates(ctx), g.removeProfile(ctx), g.removeImage(ctx)}
	if g.Queue != "" {
		_, err := g.sqs.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: &g.Queue})
		failed = append(failed, err)
	}
	if g.Group != "" {
		_, err := g.ec2.DeleteSecurityGroup(ctx, &ec2.DeleteSecurityGroupInput{GroupId: &g.Group})
		failed = append(failed, err)
	}
	for _, s := range g.Subnets {
		_, err := g.ec2.DeleteSubnet(ctx, &ec2.DeleteSubnetInput{SubnetId: &s.ID})
		failed = append(failed, err)
	}
	if g.VPC != "" {
		_, err := g.ec2.DeleteVpc(ctx, &ec2.DeleteVpcInput{VpcId: &g.VPC})
		failed = append(failed, err)
	}
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("ground: removing what cluster %s had: %w", g.Cluster, err)
	}
	return nil
}

func (g *Ground) removeInstances(ctx context.Context) error {
	left, err := g.Instances(ctx, types.InstanceStateNamePending, types.InstanceStateNameRunning)
	if err != nil || len(left) == 0 {
		return err
	}
	var ids []string
	for _, i := range left {
		ids = append(ids, aws.ToString(i.InstanceId))
	}
	if _, err := g.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: ids}); err != nil {
		return err
	}
	return g.Settle(ctx)
}

// removeTemplates deletes the launch templates of the cluster. It checks their tags again: a server may ignore the
// filter.
func (g *Ground) removeTemplates(ctx context.Context) error {
	var failed []error
	pages := ec2.NewDescribeLaunchTemplatesPaginator(g.ec2, &ec2.DescribeLaunchTemplatesInput{Filters: []types.Filter{
		{Name: aws.String("tag:" + clusterTag), Values: []string{g.Cluster}},
	}})
	var ours []*string
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, t := range page.LaunchTemplates {
			if slices.ContainsFunc(t.Tags, func(tag types.Tag) bool {
				return aws.ToString(tag.Key) == clusterTag && aws.ToString(tag.Value) == g.Cluster
			}) {
				ours = append(ours, t.LaunchTemplateId)
			}
		}
	}
	for _, id := range ours {
		_, err := g.ec2.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: id})
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

func (g *Ground) removeProfile(ctx context.Context) error {
	if g.Profile == "" {
		return nil
	}
	_, out := g.iam.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{
		InstanceProfileName: &g.Profile, RoleName: &g.Profile,
	})
	_, profile := g.iam.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: &g.Profile})
	_, role := g.iam.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: &g.Profile})
	return errors.Join(out, profile, role)
}
