package resolve_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
)

// hanging is an EC2 that never answers with subnets.
type hanging struct{ *ec2.Client }

func (hanging) DescribeSubnets(ctx context.Context, _ *ec2.DescribeSubnetsInput, _ ...func(*ec2.Options)) (
	*ec2.DescribeSubnetsOutput, error,
) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (hanging) DescribeSecurityGroups(context.Context, *ec2.DescribeSecurityGroupsInput, ...func(*ec2.Options)) (
	*ec2.DescribeSecurityGroupsOutput, error,
) {
	return &ec2.DescribeSecurityGroupsOutput{SecurityGroups: []ec2types.SecurityGroup{{GroupId: new("sg-1")}}}, nil
}

func (hanging) DescribeImages(context.Context, *ec2.DescribeImagesInput, ...func(*ec2.Options)) (
	*ec2.DescribeImagesOutput, error,
) {
	return &ec2.DescribeImagesOutput{Images: []ec2types.Image{
		{ImageId: new("ami-1"), State: "available", Architecture: "arm64"},
	}}, nil
}

// E-03: a hanging call is given up, and the others are made. Without IAM a class has to name its profile.
func TestACallThatHangsIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, err := resolve.New(resolve.Config{
			EC2: hanging{}, SSM: &ssm.Client{}, Now: time.Now, Cluster: "c1", Region: "us-east-1",
		})
		if err != nil {
			t.Fatal(err)
		}
		w := &world{t: t, resolver: r, version: kubernetes}
		for i := range 20 {
			w.class(fmt.Sprint(i), func(s *awsv1.EC2NodeClassSpec) {
				s.SubnetSelectorTerms = []awsv1.SubnetSelectorTerm{{Tags: map[string]string{"n": fmt.Sprint(i)}}}
				s.SecurityGroupSelectorTerms = []awsv1.SecurityGroupSelectorTerm{{ID: "sg-1"}}
				terms(awsv1.AMISelectorTerm{ID: "ami-1"})(s)
			})
		}
		edit(w.classes[0], func(s *awsv1.EC2NodeClassSpec) { s.Role, s.InstanceProfile = nil, new("p") })
		began := time.Now()
		w.resolve()
		if took := time.Since(began); took > time.Minute {
			t.Errorf("it took %s", took)
		}
		for _, class := range w.classes {
			w.expect(class, resolve.SubnetsReady, "Unknown", resolve.NotResolved, "ec2:DescribeSubnets: no answer")
			w.expect(class, resolve.SecurityGroupsReady, "True", resolve.SecurityGroupsReady)
			w.expect(class, resolve.AMIsReady, "True", resolve.AMIsReady)
		}
		w.expect(w.classes[0], resolve.InstanceProfileReady, "True", resolve.InstanceProfileReady)
		w.expect(w.classes[1], resolve.InstanceProfileReady, "False", resolve.IAMNotReachable, "spec.instanceProfile")
	})
}

// E-59: missing parts of a configuration, and too short an interval, are named.
func TestConfigurationsAreChecked(t *testing.T) {
	t.Parallel()
	good := resolve.Config{
		EC2: &ec2.Client{}, SSM: &ssm.Client{}, IAM: &iam.Client{}, Now: time.Now, Cluster: "c", Region: "r",
	}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*resolve.Config){
		"EC2, SSM and Now": func(c *resolve.Config) { c.SSM = nil },
		`region ""`:        func(c *resolve.Config) { c.Region = "" },
		"subnet-refresh-interval is 30s: give at least 1m0s": func(c *resolve.Config) {
			c.SubnetRefresh = 30 * time.Second
		},
		"ami-refresh-interval is -1s": func(c *resolve.Config) { c.AMIRefresh = -time.Second },
	} {
		config := good
		change(&config)
		if _, err := resolve.New(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
