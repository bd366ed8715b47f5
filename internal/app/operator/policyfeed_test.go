package operator

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
)

func newFeed(t *testing.T, list func(next func() error) error,
	objects ...client.Object) (*policyFeed, client.Client, chan bool) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := hypershiftv1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&hypershiftv1beta1.AutoNodePolicy{}, "metadata.name", func(o client.Object) []string {
			return []string{o.GetName()}
		}).
		WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, l client.ObjectList,
			options ...client.ListOption) error {
			return list(func() error { return c.List(ctx, l, options...) })
		}}).Build()
	changes := make(chan bool, 100)
	return &policyFeed{
		client: operator.ManagementClientOf(server, "hcp-a"), board: operator.NewBoard(),
		metrics: operator.NewMetrics(prometheus.NewRegistry()),
		changed: func(_ context.Context, forWrappers bool) { changes <- forWrappers }, now: time.Now,
		log: logr.Discard(),
	}, server, changes
}

func autoNodePolicy(name string) *hypershiftv1beta1.AutoNodePolicy {
	return &hypershiftv1beta1.AutoNodePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "hcp-a", Name: name, UID: "u",
		Generation: 1}}
}

// R19, R20, R40: changes and the deletion of the policy are seen without reading again, those of others are not.
func TestTheFeedFollowsThePolicy(t *testing.T) {
	t.Parallel()
	reads := 0
	feed, server, changes := newFeed(t, func(next func() error) error { reads++; return next() },
		autoNodePolicy("default"))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- feed.Start(ctx) }()
	if !<-changes || feed.board.Reading().Policy == nil {
		t.Fatal("the policy was not read")
	}
	elsewhere := autoNodePolicy("default")
	elsewhere.Namespace = "hcp-b"
	for _, stranger := range []*hypershiftv1beta1.AutoNodePolicy{autoNodePolicy("other"), elsewhere} {
		if before := feed.board.Reading().Policy; !feed.follow(ctx,
			watch.Event{Type: watch.Added, Object: stranger}) || feed.board.Reading().Policy != before {
			t.Errorf("the policy %s/%s is taken for the one that counts", stranger.Namespace, stranger.Name)
		}
	}
	var changed hypershiftv1beta1.AutoNodePolicy
	// the watch may begin after the first change
	for times := int64(2); feed.board.Reading().Policy.Generation == 1; times++ {
		if err := server.Get(ctx, client.ObjectKeyFromObject(autoNodePolicy("default")), &changed); err != nil {
			t.Fatal(err)
		}
		changed.Generation = times
		if err := server.Update(ctx, &changed); err != nil {
			t.Fatal(err)
		}
		select {
		case <-changes:
		case <-time.After(50 * time.Millisecond):
		}
	}
	if err := server.Delete(ctx, &changed); err != nil {
		t.Fatal(err)
	}
	for feed.board.Reading().Policy != nil {
		<-changes
	}
	if stop(); <-done != nil || feed.board.Reading().State != operator.StateRead || reads != 1 {
		t.Errorf("state %s after %d reads, want one", feed.board.Reading().State, reads)
	}
}

// R45, G15: a refusal is asked about again soon, and tells nobody to look at the wrappers anew while nothing changes.
func TestTheFeedAsksAgainAfterARefusal(t *testing.T) {
	t.Parallel()
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "autonodepolicies"}, "", errors.New("no rule"))
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	feed, _, changes := newFeed(t, func(func() error) error { return refused })
	feed.now = func() time.Time { return now }
	for _, step := range []struct {
		after time.Duration
		want  operator.ReadState
		wakes bool
	}{{0, operator.StateDenied, true}, {operator.ConfirmAfter / 2, operator.StateDenied, false},
		{operator.ConfirmAfter / 2, operator.StatePermissive, true}} {
		now = now.Add(step.after)
		if wait := feed.feed().round(t.Context()); wait <= 0 || wait > operator.ConfirmAfter/10 {
			t.Errorf("it asks again after %s", wait)
		}
		if wakes := <-changes; feed.board.Reading().State != step.want || wakes != step.wakes {
			t.Errorf("state %s, wakes %t, want %s and %t", feed.board.Reading().State, wakes, step.want, step.wakes)
		}
	}
}
