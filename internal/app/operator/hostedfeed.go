package operator

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/app/serve"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/kube"
)

// pausedAgainAfter is the time after which a paused step is tried again.
const pausedAgainAfter = 2 * time.Second

// pausing pauses all writes while the HostedControlPlane says so.
type pausing struct {
	reconcile.Reconciler
	board *operator.Board
	now   func() time.Time
}

// Reconcile requeues the request while paused: no request is lost.
func (p pausing) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if !p.board.BeginStep(p.now()) {
		return reconcile.Result{RequeueAfter: pausedAgainAfter}, nil
	}
	defer p.board.EndStep()
	return p.Reconciler.Reconcile(ctx, request)
}

// firstHosted asks for the HostedControlPlane before anything begins. It fails only for what the operator's own user
// has to fix: several HostedControlPlanes, or flags that contradict it.
func firstHosted(ctx context.Context, management operator.ManagementClient, given operator.HostedGiven,
	board *operator.Board) error {
	ctx, cancel := context.WithTimeout(ctx, serve.ReachWithin)
	defer cancel()
	planes, _, err := management.HostedControlPlanes(ctx)
	reading := operator.HostedReading{}.Next(planes, err, given)
	board.SetHosted(reading)
	if reading.Reason == hypershiftv1beta1.ReasonHostedAmbiguous ||
		reading.Reason == hypershiftv1beta1.ReasonHostedDiffers {
		return errors.New("--infra-from=HostedControlPlane: " + reading.Message)
	}
	return nil
}

// hostedFeed follows the HostedControlPlane of the namespace and puts its state on the board.
type hostedFeed struct {
	client  operator.ManagementClient
	board   *operator.Board
	given   operator.HostedGiven
	changed func(context.Context)
	log     logr.Logger

	planes map[types.NamespacedName]unstructured.Unstructured
}

// Start implements manager.Runnable: it follows until ctx ends.
func (f *hostedFeed) Start(ctx context.Context) error {
	f.feed().run(ctx)
	return nil
}

func (f *hostedFeed) feed() feed {
	return feed{what: "the HostedControlPlane", read: f.read, watch: f.client.WatchHosted, follow: f.follow,
		log: f.log}
}

func (f *hostedFeed) read(ctx context.Context) (version string, err error) {
	bounded, cancel := context.WithTimeout(ctx, readWithin)
	planes, version, err := f.client.HostedControlPlanes(bounded)
	cancel()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		f.take(ctx, nil, err)
		return "", err
	}
	f.planes = map[types.NamespacedName]unstructured.Unstructured{}
	for _, plane := range planes {
		f.planes[types.NamespacedName{Namespace: plane.GetNamespace(), Name: plane.GetName()}] = plane
	}
	f.take(ctx, planes, nil)
	return version, nil
}

// follow takes in an event of a watch, and reports whether more events are worth waiting for.
func (f *hostedFeed) follow(ctx context.Context, event watch.Event) bool {
	plane, is := event.Object.(*unstructured.Unstructured)
	switch {
	case event.Type == watch.Bookmark:
		return true
	case event.Type == watch.Error || !is: // the next round finds out what is wrong
		return false
	}
	name := types.NamespacedName{Namespace: plane.GetNamespace(), Name: plane.GetName()}
	if event.Type == watch.Deleted {
		delete(f.planes, name)
	} else {
		f.planes[name] = *plane
	}
	f.take(ctx, slices.Collect(maps.Values(f.planes)), nil)
	return true
}

// take puts a changed answer on the board and wakes the controllers concerned.
func (f *hostedFeed) take(ctx context.Context, planes []unstructured.Unstructured, err error) {
	after := f.board.Hosted().Next(planes, err, f.given)
	if !f.board.SetHosted(after) {
		return
	}
	f.log.Info("the HostedControlPlane says something new", "known", after.Known, "reason", after.Reason,
		"message", after.Message, "pausedUntil", after.PausedUntil, "deleting", after.Deleting)
	f.changed(ctx)
}

// hostedChanged wakes the controllers that depend on the HostedControlPlane.
func (d operatorDeps) hostedChanged(ctx context.Context) {
	d.bells.Ring(DefaultClass, kube.Singleton(), 0)
	d.bells.Ring(Dismantling, kube.Singleton(), 0)
	d.policyChanged(ctx, true)
}
