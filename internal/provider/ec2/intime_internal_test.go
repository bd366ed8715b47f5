package ec2

import (
	"errors"
	"testing"
	"time"

	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
)

// L-14: a call is not sent after its time, however long it waited before.
func TestACallIsSentInTimeOrNotAtAll(t *testing.T) {
	t.Parallel()
	server := ec2test.Start(t, ec2test.Options{})
	client := awsec2.NewFromConfig(server.Config())
	clock := timer.NewFake(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC))
	for name, c := range map[string]struct {
		notAfter time.Time
		sent     bool
	}{
		"late":    {clock.Now().Add(-time.Nanosecond), false},
		"in time": {clock.Now(), true},
		"ever":    {time.Time{}, true},
	} {
		before := server.Counts()["ec2:DescribeInstances"]
		_, err := client.DescribeInstances(t.Context(), &awsec2.DescribeInstancesInput{}, func(o *awsec2.Options) {
			inTime(clock, c.notAfter)(o)
		})
		if sent := server.Counts()["ec2:DescribeInstances"] > before; sent != c.sent ||
			errors.Is(err, provider.ErrExpired) == c.sent {
			t.Errorf("%s: sent %t, error %v; want sent %t", name, sent, err, c.sent)
		}
	}
}
