package operator

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/watch"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
)

const (
	// policyReadWithin bounds one request for the policy.
	policyReadWithin = 10 * time.Second
	// policyRereadAfter is how long the policy is watched before it is read again. A watch lives on when the right to read
	// is taken away: this is the longest time for which that goes unnoticed (G15).
	policyRereadAfter = time.Minute
	// policyRetryAfter is the pause after a failure. It is short so that a policy counts soon after it can be read again.
	policyRetryAfter = 2 * time.Second
	// policyPause keeps a management cluster that ends watches at once from being asked all the time.
	policyPause = 200 * time.Millisecond
)

// policyFeed reads and watches the one policy that counts, and hangs up what is known of it (R40). It is no informer: that
// would not tell when its picture is old because reading is refused, and the controllers would wait for its first list.
type policyFeed struct {
	client   operator.ManagementClient
	board    *operator.Board
	keepLast bool
	changed  func(ctx context.Context, forWrappers bool)
	metrics  operator.Metrics
	now      func() time.Time
	log      logr.Logger
}

// Start implements manager.Runnable: it follows the policy until ctx ends.
func (f *policyFeed) Start(ctx context.Context) error {
	for ctx.Err() == nil {
		wait := time.NewTimer(f.round(ctx))
		select {
		case <-ctx.Done():
		case <-wait.C:
		}
		wait.Stop()
	}
	return nil
}

// round reads the policy once, watches it for a while, and says how long to pause before the next round.
func (f *policyFeed) round(ctx context.Context) time.Duration {
	bounded, cancel := context.WithTimeout(ctx, policyReadWithin)
	policy, version, err := f.client.Policy(bounded)
	cancel()
	if ctx.Err() != nil {
		return 0
	}
	f.take(ctx, operator.Answer{Policy: policy, Err: err})
	if err != nil {
		return policyRetryAfter
	}
	watching, cancel := context.WithTimeout(ctx, policyRereadAfter+policyReadWithin)
	defer cancel()
	events, err := f.client.Watch(watching, version, int64(policyRereadAfter/time.Second))
	if err != nil {
		f.log.V(1).Info("the policy cannot be watched, it is read instead", "reason", err.Error())
		return policyRetryAfter
	}
	defer events.Stop()
	for {
		select {
		case <-watching.Done():
			return policyPause
		case event, open := <-events.ResultChan():
			if !open || !f.follow(ctx, event) {
				return policyPause
			}
		}
	}
}

// follow takes what a watch tells, and reports whether there is more to expect of it.
func (f *policyFeed) follow(ctx context.Context, event watch.Event) bool {
	policy, isPolicy := event.Object.(*hypershiftv1beta1.AutoNodePolicy)
	switch {
	case event.Type == watch.Bookmark:
	case !isPolicy: // an error: the next round finds out what is wrong
		return false
	case policy.Name != operator.PolicyName || policy.Namespace != f.client.Namespace():
	case event.Type == watch.Deleted:
		f.take(ctx, operator.Answer{})
	default:
		f.take(ctx, operator.Answer{Policy: policy})
	}
	return true
}

// take hangs up what an answer changes and wakes whom that concerns.
func (f *policyFeed) take(ctx context.Context, answer operator.Answer) {
	before := f.board.Latest()
	after := before.Next(answer, f.now(), f.keepLast)
	f.board.Set(after)
	f.metrics.CountRead(answer)
	if before.State != after.State {
		f.metrics.ShowState(after.State)
		f.tell(after)
	}
	f.changed(ctx, !before.SameForWrappers(after))
}

// tell logs a new state once.
func (f *policyFeed) tell(reading operator.Reading) {
	log := f.log.WithValues("state", reading.State, "namespace", f.client.Namespace())
	switch reading.State {
	case operator.StatePermissive:
		log.Error(reading.Cause, "the policy has been unreadable for a while: no policy is enforced until it can be read")
	case operator.StateDenied, operator.StateUnavailable:
		log.Error(reading.Cause, "the policy cannot be read: what was applied last stays")
	default:
		log.Info("the policy is known", "exists", reading.Policy != nil)
	}
}
