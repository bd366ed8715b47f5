// Package calls creates the clients for AWS. They keep to a pace that EC2 accepts, retry calls where that is harmless,
// and make every call countable (E-60). The meaning of calls does not matter here.
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

// Clients are the provider's clients for AWS. Safe for concurrent use.
type Clients struct {
	EC2     *ec2.Client
	SSM     *ssm.Client
	IAM     *iam.Client
	EKS     *eks.Client
	SQS     *sqs.Client
	Pricing *pricing.Client
}

// Config configures the clients.
type Config struct {
	// AWS has region, credentials and endpoints. Its retryer is not used.
	AWS aws.Config
	// PricingRegion is the region of the pricing API, which only some regions have (E-25).
	PricingRegion string
	Clock         timer.Clock
	// Pace limits the calls to EC2. The other services have limits of their own, and we stay far below them.
	Pace *pace.Limiter
	// Observe is called for every attempt that was answered or given up; may be nil.
	Observe func(Attempt)
}

// Attempt is one request and its result.
type Attempt struct {
	Service, Action string
	Took            time.Duration
	Refused         refusal.Refusal // the zero value on success
}

// attempts is how often a repeatable call is tried: AWS says to expect a failure now and then.
const attempts = 3

// firstPause is the pause between the first two attempts; each further one is twice as long. It has nothing to do with
// Pace.
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
			// after the one that fills in client tokens: a retry has the same token
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

// WholeBodies returns a transport that sends copies of request bodies, so that the SDK no longer holds them. smithy-go
// 1.28 needs this. As soon as an answer begins, the SDK closes the request's body, and from then on its WriteTo
// returns io.EOF as an error. net/http may still be checking whether the body has ended. It takes the error for a
// failed request and cuts the answer off. An endpoint on the same machine answers fast enough for that, about one time
// in thirty on a busy machine.
func WholeBodies(of aws.HTTPClient) aws.HTTPClient { return wholeBodies{of} }

type wholeBodies struct{ aws.HTTPClient }

// Do implements aws.HTTPClient.
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

// caller is the part of a client that waits, retries and counts.
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

// machines returns how many instances a call launches.
func machines(parameters any) int {
	fleet, is := parameters.(*ec2.CreateFleetInput)
	if !is || fleet.TargetCapacitySpecification == nil ||
		fleet.TargetCapacitySpecification.TotalTargetCapacity == nil {
		return 0
	}
	return int(*fleet.TargetCapacitySpecification.TotalTargetCapacity)
}

// repeatable reports whether a call may be retried automatically: it changes nothing, or nothing more the second time.
// Calls that create something are repeated by callers who know their purpose.
func repeatable(action string) bool {
	switch action {
	case "TerminateInstances", "CreateTags", "DeleteMessage", "DeleteMessageBatch":
		return true
	}
	return pace.IsRead(action)
}

// wait waits for d. It returns false when the context ends first.
func (c *caller) wait(ctx context.Context, d time.Duration) bool {
	over := make(chan struct{})
	stop := c.Clock.AfterFunc(d, func() { close(over) })
	defer stop()
	return timer.Await(ctx, c.Clock, over) == nil
}
