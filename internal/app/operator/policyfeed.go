package operator

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/watch"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
)

// policyFeed follows the one policy that counts, and puts its state on the board (R40).
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
	f.feed().run(ctx)
	return nil
}

func (f *policyFeed) feed() feed {
	return feed{what: "the policy", read: f.read, watch: f.client.Watch, follow: f.follow, log: f.log}
}

func (f *policyFeed) read(ctx context.Context) (version string, err error) {
	bounded, cancel := context.WithTimeout(ctx, readWithin)
	policy, version, err := f.client.Policy(bounded)
	cancel()
	if ctx.Err() == nil {
		f.take(ctx, operator.Answer{Policy: policy, Err: err})
	}
	return version, err
}

// follow takes in an event of a watch, and reports whether more events are worth waiting for.
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

// take puts a changed answer on the board and wakes the controllers concerned.
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
		log.Error(reading.Cause,
			"the policy has been unreadable for a while: no policy is enforced until it can be read")
	case operator.StateDenied, operator.StateUnavailable:
		log.Error(reading.Cause, "the policy cannot be read: what was applied last stays")
	default:
		log.Info("the policy is known", "exists", reading.Policy != nil)
	}
}
