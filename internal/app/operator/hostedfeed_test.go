package operator

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
)

func hostedControlPlane(name, infraID string) *unstructured.Unstructured {
	plane := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"infraID": infraID}}}
	plane.SetGroupVersionKind(schema.GroupVersionKind{Group: "hypershift.openshift.io", Version: "v1beta1",
		Kind: "HostedControlPlane"})
	plane.SetNamespace("hcp-a")
	plane.SetName(name)
	return plane
}

// management is a management cluster with these objects, whose lists may fail.
func management(fail func() error, objects ...client.Object) operator.ManagementClient {
	scheme := runtime.NewScheme()
	kind := hostedControlPlane("", "").GroupVersionKind()
	scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), &unstructured.UnstructuredList{})
	server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch,
			l client.ObjectList, options ...client.ListOption) error {
			if err := fail(); err != nil {
				return err
			}
			return c.List(ctx, l, options...)
		}}).Build()
	return operator.ManagementClientOf(server, "hcp-a")
}

func fine() error { return nil }

// what a watch tells counts as a list does: changes, a second one, and that it goes.
func TestA32_TheFeedFollowsTheHostedControlPlane(t *testing.T) {
	t.Parallel()
	changes := 0
	var failure error
	feed := &hostedFeed{client: management(func() error { return failure }, hostedControlPlane("one", "infra-1")),
		board:   operator.NewBoard(),
		changed: func(context.Context) { changes++ }, log: logr.Discard()}
	ctx, cancel := context.WithCancel(t.Context())
	bounded, stop := context.WithTimeout(ctx, time.Second) // of the watch, which says nothing
	feed.feed().round(bounded)
	stop()
	says := func(what, infraID, reason string, n int) {
		t.Helper()
		if got := feed.board.Hosted(); got.Infra.InfraID != infraID || got.Reason != reason || changes != n {
			t.Errorf("%s: %+v, told %d times, want %d", what, got, changes, n)
		}
	}
	says("read", "infra-1", "", 1)
	for _, c := range []struct {
		what            string
		event           watch.Event
		goes            bool
		infraID, reason string
		changes         int
	}{
		{"changed", watch.Event{Type: watch.Modified, Object: hostedControlPlane("one", "infra-2")}, true, "infra-2",
			"", 2},
		{"the same again", watch.Event{Type: watch.Modified, Object: hostedControlPlane("one", "infra-2")}, true,
			"infra-2", "", 2},
		{"bookmark", watch.Event{Type: watch.Bookmark, Object: hostedControlPlane("", "")}, true, "infra-2", "", 2},
		{"a second", watch.Event{Type: watch.Added, Object: hostedControlPlane("two", "infra-3")}, true, "infra-2",
			hypershiftv1beta1.ReasonHostedAmbiguous, 3},
		{"the first gone", watch.Event{Type: watch.Deleted, Object: hostedControlPlane("one", "infra-2")}, true,
			"infra-3", "", 4},
		{"both gone", watch.Event{Type: watch.Deleted, Object: hostedControlPlane("two", "infra-3")}, true,
			"infra-3", hypershiftv1beta1.ReasonHostedMissing, 5},
		{"an error", watch.Event{Type: watch.Error, Object: &metav1.Status{}}, false, "infra-3",
			hypershiftv1beta1.ReasonHostedMissing, 5},
	} {
		if goes := feed.follow(ctx, c.event); goes != c.goes {
			t.Errorf("%s: there is more to expect: %t", c.what, goes)
		}
		says(c.what, c.infraID, c.reason, c.changes)
	}
	failure = errors.New("away")
	if again := feed.feed().round(ctx); again != retryAfter {
		t.Errorf("after a failure again after %s", again)
	}
	says("not to be read", "infra-3", hypershiftv1beta1.ReasonHostedUnreadable, 6)
	cancel()
	if again := feed.feed().round(ctx); again != 0 {
		t.Errorf("at the end again after %s", again)
	}
}

// two HostedControlPlanes, or flags that contradict the one, keep the operator from starting. None, or one that
// cannot be read, does not.
func TestA32_WhatKeepsTheOperatorFromStarting(t *testing.T) {
	t.Parallel()
	one, two := hostedControlPlane("one", "infra"), hostedControlPlane("two", "infra")
	other := operator.HostedGiven{}
	other.Infra.InfraID = "another"
	for what, c := range map[string]struct {
		management operator.ManagementClient
		given      operator.HostedGiven
		want       string // "" starts
	}{
		"one": {management(fine, one), operator.HostedGiven{}, ""}, "none": {management(fine), other, ""},
		"unreadable": {management(func() error { return errors.New("away") }), other, ""},
		"two":        {management(fine, one, two), operator.HostedGiven{}, "one and two"},
		"differs":    {management(fine, one), other, `--infra-id is "another"`},
	} {
		board := operator.NewBoard()
		err := firstHosted(t.Context(), c.management, c.given, board)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) ||
			!board.Hosted().Asked {
			t.Errorf("%s: error %v, want one with %q", what, err, c.want)
		}
	}
}

type counted struct{ steps int }

func (c *counted) Reconcile(context.Context, reconcile.Request) (reconcile.Result, error) {
	c.steps++
	return reconcile.Result{}, nil
}

// every controller but that of the policy's status takes no step while it is paused, and takes it later.
func TestA32_WhoIsPaused(t *testing.T) {
	t.Parallel()
	board, inner := operator.NewBoard(), &counted{}
	p := pausing{inner, board, time.Now}
	plane := hostedControlPlane("one", "infra")
	for _, until := range []string{"true", ""} {
		plane.Object["spec"].(map[string]any)["pausedUntil"] = until
		board.SetHosted(operator.HostedReading{}.Next([]unstructured.Unstructured{*plane}, nil,
			operator.HostedGiven{}))
		result, err := p.Reconcile(t.Context(), reconcile.Request{})
		if paused := until != ""; err != nil || (result.RequeueAfter == pausedAgainAfter) != paused ||
			(inner.steps == 0) != paused {
			t.Errorf("paused until %q: %v after %d steps, error %v", until, result, inner.steps, err)
		}
	}
}
