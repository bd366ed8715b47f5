package ec2test_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/smithy-go"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/refusal"
)

// E-78, E-64: for any garbled answer the SDK returns an error of the server's class or an answer. An empty answer is
// no error to the SDK: the caller has to check whether there is a fleet.
func TestGarbledAnswers(t *testing.T) {
	t.Parallel()
	a := newAccount(t, ec2test.Faults{})
	for how, fails := range map[string]bool{"cut": true, "html": true, "types": false, "huge": true, "empty": false} {
		if err := a.SetFaults(ec2test.Faults{Garbled: []ec2test.Garble{{Action: "ec2:CreateFleet", Share: 1, Times: 1,
			How: how}}}); err != nil {
			t.Fatal(err)
		}
		before := len(a.Instances())
		out, err := a.client.CreateFleet(t.Context(), a.fleet(1, onDemand, "c5.large"))
		if (err != nil) != fails || err != nil && refusal.Of(err).Class != refusal.Server {
			t.Errorf("%s: %v is of class %q", how, err, refusal.Of(err).Class)
		}
		if n := len(a.Instances()); n != before+1 {
			t.Fatalf("%s: %d instances, want %d: the effect has happened", how, n, before+1)
		}
		if err == nil && len(out.Instances) > 0 && out.Instances[0].InstanceIds[0] == a.Instances()[before].ID {
			t.Errorf("%s: the answer is whole: %+v", how, out.Instances)
		}
		if _, err := a.client.CreateFleet(t.Context(), a.fleet(1, onDemand, "c5.large")); err != nil {
			t.Errorf("%s: the answer after it: %v", how, err)
		}
	}
	a.SetParameter("/p", "1")
	garble := ec2test.Faults{Garbled: []ec2test.Garble{{Action: "*", Share: 1, How: "types"}}}
	if err := a.SetFaults(garble); err != nil {
		t.Fatal(err)
	}
	_, err := a.client.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{})
	_, err2 := ssm.NewFromConfig(single(a.Server)).GetParameter(t.Context(),
		&ssm.GetParameterInput{Name: aws.String("/p")})
	for _, err := range []error{err, err2} {
		var broken *smithy.DeserializationError
		if !errors.As(err, &broken) {
			t.Errorf("numbers that are none: %v", err)
		}
	}
}

// E-63: the endpoint also stands alone, on the clock of the machine and with keys of its user's.
func TestTheEndpointStandsAlone(t *testing.T) {
	t.Parallel()
	listener := httptest.NewUnstartedServer(nil)
	url := "http://" + listener.Listener.Addr().String()
	s, err := ec2test.New(ec2test.Options{Region: "eu-west-1", URL: url, Now: time.Now,
		Keys: map[string]string{"mine": "secret"}})
	if err != nil {
		t.Fatal(err)
	}
	listener.Config.Handler = s
	listener.Start()
	t.Cleanup(listener.Close)
	config := s.Config()
	config.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "mine", SecretAccessKey: "secret"}, nil
	})
	s.AddNetwork("c1", "eu-west-1a")
	out, err := ec2.NewFromConfig(config).DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{})
	if err != nil || len(out.Subnets) != 1 || *out.Subnets[0].AvailabilityZoneId != "euw1-az1" {
		t.Errorf("%+v %v", out, err)
	}
	if _, err := ec2test.New(ec2test.Options{Region: "mars-1"}); err == nil {
		t.Error("a region without a data file was taken")
	}
}

// E-63: with a clock of its user's, a request sees what has happened until then.
func TestTheWorldGoesByAClock(t *testing.T) {
	t.Parallel()
	var seconds atomic.Int64
	a := accountOf(t, ec2test.Options{Now: func() time.Time { return time.Unix(1_800_000_000+seconds.Load(), 0) }})
	a.launch(a.fleet(1, onDemand, "c5.large"))
	for _, want := range []ec2types.InstanceStateName{ec2types.InstanceStateNamePending,
		ec2types.InstanceStateNameRunning} {
		out, err := a.client.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{})
		if err != nil || out.Reservations[0].Instances[0].State.Name != want {
			t.Errorf("%v, want %s", err, want)
		}
		seconds.Store(60)
	}
}
