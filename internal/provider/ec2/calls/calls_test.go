package calls_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/calls"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/pace"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/refusal"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
)

// at is a clock on which waiting takes no time: delayed calls happen at once.
type at struct{ timer.Real }

func (at) AfterFunc(_ time.Duration, f func()) func() {
	go f()
	return func() {}
}

type seen struct {
	mu   sync.Mutex
	list []calls.Attempt
}

func (s *seen) note(a calls.Attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, a)
}

func (s *seen) count(action string) (n int, last refusal.Class) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.list {
		if a.Action == action {
			n, last = n+1, a.Refused.Class
		}
	}
	return n, last
}

func endpoint(t *testing.T, faults ec2test.Faults) (calls.Clients, *pace.Limiter, *seen) {
	t.Helper()
	server, attempts := ec2test.Start(t, ec2test.Options{Faults: faults}), &seen{}
	limiter := pace.New(timer.Real{})
	return calls.New(calls.Config{AWS: server.Config(), Clock: at{}, Pace: limiter, Observe: attempts.note}), limiter,
		attempts
}

// E-60: read-only calls are tried three times when AWS has trouble; a launch once, since its caller knows best what to
// do.
func TestWhatIsRepeated(t *testing.T) {
	t.Parallel()
	trouble := ec2test.Faults{Throttle: map[string]ec2test.Bucket{"ec2:*": {Rate: 0, Burst: 0}}}
	clients, _, attempts := endpoint(t, trouble)
	ctx := t.Context()
	for action, test := range map[string]struct {
		call func(context.Context) error
		want int
	}{
		"DescribeSubnets": {func(ctx context.Context) error {
			_, err := clients.EC2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{})
			return err
		}, 3},
		"TerminateInstances": {func(ctx context.Context) error {
			_, err := clients.EC2.TerminateInstances(ctx,
				&ec2.TerminateInstancesInput{InstanceIds: []string{"i-0123456789abcdef0"}})
			return err
		}, 3},
		"CreateFleet": {func(ctx context.Context) error {
			_, err := clients.EC2.CreateFleet(ctx, fleet(7))
			return err
		}, 1},
		"CreateLaunchTemplate": {func(ctx context.Context) error {
			_, err := clients.EC2.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{
				LaunchTemplateName: aws.String("x"), LaunchTemplateData: &ec2types.RequestLaunchTemplateData{}})
			return err
		}, 1},
	} {
		if err := test.call(ctx); refusal.Of(err).Class != refusal.Throttle {
			t.Errorf("%s: error %v, want one of class throttle", action, err)
		}
		if n, last := attempts.count(action); n != test.want || last != refusal.Throttle {
			t.Errorf("%s was tried %d times, the last refused as %q; want %d times", action, n, last, test.want)
		}
	}
}

// A refusal that a repetition cannot fix is returned at once, and so is the first answer.
func TestWhatIsNotRepeated(t *testing.T) {
	t.Parallel()
	clients, limiter, attempts := endpoint(t, ec2test.Faults{})
	if _, err := clients.EC2.DescribeSubnets(t.Context(),
		&ec2.DescribeSubnetsInput{SubnetIds: []string{"subnet-0000000000000dead"}}); err == nil {
		t.Error("an unknown subnet was found")
	}
	if n, _ := attempts.count("DescribeSubnets"); n != 1 {
		t.Errorf("an unknown subnet was asked for %d times, want once", n)
	}
	if _, err := clients.EC2.DescribeSecurityGroups(t.Context(), &ec2.DescribeSecurityGroupsInput{}); err != nil {
		t.Error(err)
	}
	if n, last := attempts.count("DescribeSecurityGroups"); n != 1 || last != "" {
		t.Errorf("an answer was asked for %d times and refused as %q", n, last)
	}
	if rate, _ := limiter.Rate(pace.Reads); rate != 20 {
		t.Errorf("reads may go at %v a second after calls that were not throttled, want 20", rate)
	}
}

// E-60: a refusal for coming too fast slows down all further calls of its kind, and only those.
func TestThrottlingSlowsDown(t *testing.T) {
	t.Parallel()
	clients, limiter,
		_ := endpoint(t, ec2test.Faults{Throttle: map[string]ec2test.Bucket{"ec2:CreateFleet": {Rate: 0, Burst: 0}}})
	_, err := clients.EC2.CreateFleet(t.Context(), fleet(7))
	if refusal.Of(err).Class != refusal.Throttle {
		t.Fatalf("error %v, want one of class throttle", err)
	}
	for bucket, want := range map[pace.Bucket]float64{pace.Reads: 20, pace.Changes: 2.5, pace.Instances: 1} {
		if rate, _ := limiter.Rate(bucket); rate != want {
			t.Errorf("bucket %d goes at %v a second, want %v", bucket, rate, want)
		}
	}
}

// A call whose caller has given up while AWS has trouble is not tried again.
func TestGivingUp(t *testing.T) {
	t.Parallel()
	clients, _, attempts := endpoint(t,
		ec2test.Faults{LostBefore: []ec2test.Loss{{Action: "ec2:DescribeSubnets", Share: 1}}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := clients.EC2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{}); err == nil {
		t.Error("a call with an ended context was answered")
	}
	if n, _ := attempts.count("DescribeSubnets"); n > 1 {
		t.Errorf("a call with an ended context was tried %d times", n)
	}
}

func fleet(machines int32) *ec2.CreateFleetInput {
	return &ec2.CreateFleetInput{
		Type: ec2types.FleetTypeInstant,
		LaunchTemplateConfigs: []ec2types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &ec2types.FleetLaunchTemplateSpecificationRequest{
				LaunchTemplateName: aws.String("x"), Version: aws.String("$Latest"),
			},
		}},
		TargetCapacitySpecification: &ec2types.TargetCapacitySpecificationRequest{
			TotalTargetCapacity:       aws.Int32(machines),
			DefaultTargetCapacityType: ec2types.DefaultTargetCapacityTypeSpot,
		},
	}
}
