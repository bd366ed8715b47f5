package ec2

import (
	"context"
	"fmt"
	"time"

	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go/middleware"

	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
)

// SignedFor is how long EC2 accepts a request after it was signed. A request that is delayed longer launches no
// machine (AWS's documentation of Signature Version 4; unverified).
const SignedFor = 5 * time.Minute

// inTime prevents that a call is sent after a deadline: it may have waited for templates, the API server and its turn.
// EC2 does not know the deadline, so a request already on its way may still land. The zero time means no deadline.
func inTime(clock timer.Clock, notAfter time.Time) func(*awsec2.Options) {
	late := middleware.FinalizeMiddlewareFunc("JoinerInTime", func(ctx context.Context, in middleware.FinalizeInput,
		next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
		if now := clock.Now(); !notAfter.IsZero() && now.After(notAfter) {
			return middleware.FinalizeOutput{}, middleware.Metadata{},
				fmt.Errorf("%w: it is %s too late to ask EC2", provider.ErrExpired,
					now.Sub(notAfter))
		}
		return next.HandleFinalize(ctx, in)
	})
	return func(o *awsec2.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Finalize.Add(late, middleware.Before)
		})
	}
}
