package interruption_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/interruption"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
)

// failing is a cloud whose calls fail as those of the API server do.
type failing struct {
	*cloud
	failures *controllertest.Failures
}

func (f failing) Notices(ctx context.Context) (provider.Notices, error) {
	if err := f.failures.Call("notices"); err != nil {
		return provider.Notices{}, err
	}
	return f.cloud.Notices(ctx)
}

func (f failing) Acknowledge(ctx context.Context, n provider.Notice) error {
	if err := f.failures.Call("acknowledge"); err != nil {
		return err
	}
	return f.cloud.Acknowledge(ctx, n)
}

// P-43: a notice that was not fully handled comes back: the failure is returned and the notice is not acknowledged.
func TestNoFailureAboutANoticeIsSwallowed(t *testing.T) {
	t.Parallel()
	controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
		r := newRig(t, interrupted())
		set := metrics.New(prometheus.NewRegistry())
		r.step = interruption.New(interruption.Config{
			Client: f.Wrap(r.server), Fleet: fleet.New(failing{r.cloud, f}), Catalogs: r.cloud, Events: &r.tape,
			Claims: set.Claims, Metrics: set.Interruptions, Now: controllertest.Start, Log: logr.Discard(),
		})
		return func() error {
			result, err := r.step.Reconcile(t.Context(), reconcile.Request{})
			if err != nil && result.RequeueAfter != 0 {
				t.Errorf("again after %s: the failure says when, the machine is known", result.RequeueAfter)
			}
			if err != nil && len(r.cloud.notices.List) == 0 {
				t.Error("the notice was acknowledged although something failed")
			}
			return err
		}
	})
}

// U-09, U-10: notices are reported and counted in words that users and dashboards know. A notice that does not end the
// machine is no warning, and deletes nothing.
func TestEachNoticeIsToldAndCounted(t *testing.T) {
	t.Parallel()
	for kind, want := range map[provider.NoticeKind]struct{ text, message string }{
		provider.SpotInterrupted: {"the cloud takes the spot machine back", "spot_interrupted"},
		provider.CapacityReservationInterrupted: {"the cloud takes the machine's capacity reservation back",
			"capacity_reservation_interrupted"},
		provider.CapacityBlockExpiring: {"the capacity block that the machine runs in ends soon",
			"capacity_block_expiring"},
		provider.RebalanceRecommended: {"the cloud says that the spot machine may be taken back soon",
			"rebalance_recommendation"},
		provider.InstanceStopping:    {"the machine is being stopped", "instance_stopped"},
		provider.InstanceTerminating: {"the machine is being terminated", "instance_terminated"},
		provider.InstanceUnhealthy: {"the cloud says that the machine is unhealthy",
			"instance_unhealthy"},
	} {
		r := newRig(t, provider.Notice{ID: "1", Kind: kind, ProviderID: "fake://1"})
		if _, err := r.step.Reconcile(t.Context(), reconcile.Request{}); err != nil {
			t.Fatal(err)
		}
		if said := r.tape.Said(); len(said) < 2 || said[0] != "c1 "+string(kind)+": "+want.text ||
			said[1] != "n1 "+string(kind)+": "+want.text {
			t.Errorf("%s: said %q, want %q on claim and node", kind, said, want.text)
		}
		if n := controllertest.Count(t, r.registry, "karpenter_interruption_received_messages_total",
			want.message); n != 1 {
			t.Errorf("%s: counted %v times as %s, want once", kind, n, want.message)
		}
	}
}

// A notice whose machine has no claim yet may be early: it is looked at again in 5 s.
func TestAnUnknownMachineIsLookedForAgainSoon(t *testing.T) {
	t.Parallel()
	r := newRig(t, provider.Notice{ID: "2", Kind: provider.InstanceStopping, ProviderID: "fake://2"})
	result, err := r.step.Reconcile(t.Context(), reconcile.Request{})
	if err != nil || result.RequeueAfter != 5*time.Second {
		t.Errorf("again after %s (%v), want 5s", result.RequeueAfter, err)
	}
	if r = newRig(t, interrupted()); r.again(t) != 0 {
		t.Error("a notice about which all was done is not looked at again")
	}
	r = newRig(t, interrupted())
	r.cloud.failure = errors.New("connection reset")
	if result, err := r.step.Reconcile(t.Context(), reconcile.Request{}); err == nil || result.RequeueAfter != 0 {
		t.Errorf("again after %s (%v): the failure says when, the machine is known", result.RequeueAfter, err)
	}
}

func (r *rig) again(t *testing.T) time.Duration {
	t.Helper()
	result, err := r.step.Reconcile(t.Context(), reconcile.Request{})
	if err != nil {
		t.Fatal(err)
	}
	return result.RequeueAfter
}

// clouds are two: the first cannot be asked.
type clouds struct {
	*cloud
	broken bool
}

func (c clouds) NodeClass() schema.GroupKind {
	if c.broken {
		return schema.GroupKind{Group: "broken", Kind: "Class"}
	}
	return c.cloud.NodeClass()
}

func (c clouds) Notices(ctx context.Context) (provider.Notices, error) {
	if c.broken {
		return provider.Notices{List: []provider.Notice{{Kind: provider.InstanceStopping, ProviderID: "fake://1"}}},
			errors.New("throttled")
	}
	return c.cloud.Notices(ctx)
}

// A cloud that fails does not keep another one's notices from being handled, and what came with its failure is
// ignored.
func TestACloudThatFailsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	r := newRig(t, interrupted())
	set := metrics.New(prometheus.NewRegistry())
	r.step = interruption.New(interruption.Config{
		Client: r.server, Fleet: fleet.New(clouds{&cloud{}, true}, clouds{r.cloud, false}), Catalogs: r.cloud,
		Events: &r.tape,
		Claims: set.Claims, Metrics: set.Interruptions, Now: controllertest.Start, Log: logr.Discard(),
	})
	result, err := r.step.Reconcile(t.Context(), reconcile.Request{})
	if err == nil || !strings.Contains(err.Error(), "throttled") || result.RequeueAfter != 0 {
		t.Errorf("again after %s, error %v, want the failure of the first cloud", result.RequeueAfter, err)
	}
	if len(r.cloud.notices.List) != 0 || r.claim(t).DeletionTimestamp == nil {
		t.Error("the notice of the second cloud was not acted upon")
	}
	if said := r.tape.Said(); slices.ContainsFunc(said,
		func(s string) bool { return strings.Contains(s, "being stopped") }) {
		t.Errorf("said %q: the first cloud said nothing that counts", said)
	}
}
