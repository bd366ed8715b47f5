// Package calls makes the clients for AWS: at the pace that EC2 takes, with the repetitions that do no harm, and so
// that every call can be counted (E-60). What calls mean is no matter here.
package calls

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/smithy-go/middleware"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/pace"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/refusal"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
)

// Clients are what the provider calls AWS with. Safe for concurrent use.
type Clients struct {
	EC2     *ec2.Client
	SSM     *ssm.Client
	IAM     *iam.Client
	EKS     *eks.Client
	SQS     *sqs.Client
	Pricing *pricing.Client
}

// Config is what clients are made from.
type Config struct {
	// AWS has region, credentials and endpoints. Its retryer is not used.
	AWS aws.Config
	// PricingRegion is where prices are asked for, which is not everywhere (E-25).
	PricingRegion string
	Clock         timer.Clock
	// Pace holds the calls of EC2 back; the other services have allowances of their own, which nobody here comes near.
	Pace *pace.Limiter
	// Observe is told of every attempt that was answered, or that was given up; nil for nobody.
	Observe func(Attempt)
}

// Attempt is one request, and what became of it.
type Attempt struct {
	Service, Action string
	Took            time.Duration
	Refused         refusal.Refusal // the zero value when it was done
}

// attempts is how often a call is made that may be repeated: AWS asks to count on a failure now and then.
const attempts = 3

// firstPause is between the first two attempts, by no means the pace: each further one is twice as long.
const firstPause = 100 * time.Millisecond

// New returns the clients.
func New(c Config) Clients {
	base := c.AWS.Copy()
	base.Retryer = func() aws.Retryer { return aws.NopRetryer{} }
	if base.HTTPClient == nil {
		base.HTTPClient = http.DefaultClient
	}
	base.HTTPClient = WholeBodies(base.HTTPClient)
	base.APIOptions = append(append([]func(*middleware.Stack) error(nil), base.APIOptions...),
		func(stack *middleware.Stack) error {
			// after the one that fills in client tokens: a repetition has the same
			return stack.Initialize.Add(&caller{Config: c}, middleware.After)
		})
	prices := base.Copy()
	if c.PricingRegion != "" {
		prices.Region = c.PricingRegion
	}
	return Clients{
		EC2: ec2.NewFromConfig(base), SSM: ssm.NewFromConfig(base), IAM: iam.NewFromConfig(base),
		EKS: eks.NewFromConfig(base), SQS: sqs.NewFromConfig(base), Pricing: pricing.NewFromConfig(prices),
	}
}

// WholeBodies returns a transport that sends requests whose bodies the SDK does not hold any more. With smithy-go 1.28
// it has to be: as soon as an answer begins, the SDK closes the request's body, and from then on its WriteTo returns
// io.EOF as an error. net/http may still be looking whether the body has ended; it takes that for a failed request and
// cuts the answer off. An endpoint on the same machine answers fast enough for that, about one time in thirty on a
// busy one.
func WholeBodies(of aws.HTTPClient) aws.HTTPClient { return wholeBodies{of} }

type wholeBodies struct{ aws.HTTPClient }

// Do is what the SDK calls.
func (w wholeBodies) Do(r *http.Request) (*http.Response, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return w.HTTPClient.Do(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	sent := r.Clone(r.Context())
	sent.Body = io.NopCloser(bytes.NewReader(body))
	return w.HTTPClient.Do(sent)
}

// caller is the part of a client that waits, repeats and counts.
type caller struct{ Config }

// ID implements middleware.InitializeMiddleware.
func (c *caller) ID() string { return "JoinerCaller" }

// HandleInitialize implements middleware.InitializeMiddleware.
func (c *caller) HandleInitialize(ctx context.Context, in middleware.InitializeInput,
	next middleware.InitializeHandler) (
	out middleware.InitializeOutput, metadata middleware.Metadata, err error,
) {
	service, action := middleware.GetServiceID(ctx), middleware.GetOperationName(ctx)
	pause := firstPause
	for attempt := 1; ; attempt++ {
		var grant pace.Grant
		if service == ec2.ServiceID && c.Pace != nil {
			if grant, err = c.Pace.Wait(ctx, pace.For(action, machines(in.Parameters))); err != nil {
				return out, metadata, err
			}
		}
		began := c.Clock.Now()
		out, metadata, err = next.HandleInitialize(ctx, in)
		refused := refusal.Of(err)
		if c.Observe != nil {
			c.Observe(Attempt{Service: service, Action: action, Took: c.Clock.Now().Sub(began), Refused: refused})
		}
		if refused.Class == refusal.Throttle {
			grant.Throttled()
		}
		if attempt == attempts || !repeatable(action) ||
			refused.Class != refusal.Throttle && refused.Class != refusal.Server {
			return out, metadata, err
		}
		if !c.wait(ctx, pause) {
			return out, metadata, err
		}
		pause *= 2
	}
}

// machines is how many instances a call launches.
func machines(parameters any) int {
	fleet, is := parameters.(*ec2.CreateFleetInput)
	if !is || fleet.TargetCapacitySpecification == nil ||
		fleet.TargetCapacitySpecification.TotalTargetCapacity == nil {
		return 0
	}
	return int(*fleet.TargetCapacitySpecification.TotalTargetCapacity)
}

// repeatable reports whether a call may be made again without anybody's doing: it changes nothing, or nothing more the
// second time. Those that make something are repeated by who knows what they are for.
func repeatable(action string) bool {
	switch action {
	case "TerminateInstances", "CreateTags", "DeleteMessage", "DeleteMessageBatch":
		return true
	}
	return pace.IsRead(action)
}

// wait returns false when the context ends first.
func (c *caller) wait(ctx context.Context, d time.Duration) bool {
	over := make(chan struct{})
	stop := c.Clock.AfterFunc(d, func() { close(over) })
	defer stop()
	return timer.Await(ctx, c.Clock, over) == nil
}
