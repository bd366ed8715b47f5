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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/interruption"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// cloud has notices until they are acknowledged.
type cloud struct {
	provider.Provider
	notices provider.Notices
	failure error // of Acknowledge
	marked  []provider.Offering
}

func (c *cloud) Name() string { return "fake" }
func (c *cloud) NodeClass() schema.GroupKind {
	return schema.GroupKind{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass"}
}
func (c *cloud) Notices(context.Context) (provider.Notices, error) { return c.notices, nil }
func (c *cloud) Acknowledge(_ context.Context, n provider.Notice) error {
	if c.failure != nil {
		return c.failure
	}
	c.notices.List = slices.DeleteFunc(slices.Clone(c.notices.List), func(each provider.Notice) bool {
		return each.ID == n.ID
	})
	return nil
}
func (c *cloud) MarkUnavailable(o provider.Offering) { c.marked = append(c.marked, o) }
func (c *cloud) Catalog(context.Context, string) (catalog.Catalog, error) {
	return catalog.Catalog{}, nil
}

// SetCatalog counts as having told planning.
func (c *cloud) SetCatalog(class world.ClassRef, _ catalog.Catalog) error {
	if class.Name != "default" {
		return errors.New("another class")
	}
	return nil
}

type rig struct {
	cloud    *cloud
	server   client.WithWatch
	tape     controllertest.Tape
	registry *prometheus.Registry
	step     *interruption.Controller
}

func newRig(t *testing.T, notices ...provider.Notice) *rig {
	t.Helper()
	claim := &karpenterv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "c1", UID: "u1", Finalizers: []string{karpenterv1.TerminationFinalizer},
			Labels: map[string]string{
				"node.kubernetes.io/instance-type": "m", "topology.kubernetes.io/zone": "a",
				"karpenter.sh/capacity-type": "spot", karpenterv1.NodePoolLabelKey: "pool",
			}},
		Spec: karpenterv1.NodeClaimSpec{NodeClassRef: &karpenterv1.NodeClassReference{Group: "karpenter.kwok.sh",
			Kind: "KWOKNodeClass", Name: "default"}},
		Status: karpenterv1.NodeClaimStatus{ProviderID: "fake://1", NodeName: "n1"},
	}
	r := &rig{cloud: &cloud{notices: provider.Notices{List: notices}},
		server: controllertest.NewServer(t, claim).Build(), registry: prometheus.NewRegistry()}
	set := metrics.New(r.registry)
	r.step = interruption.New(interruption.Config{
		Client: r.server, Fleet: fleet.New(r.cloud), Catalogs: r.cloud, Events: &r.tape, Claims: set.Claims,
		Metrics: set.Interruptions, Now: controllertest.Start, Log: logr.Discard(),
	})
	return r
}

func (r *rig) claim(t *testing.T) *karpenterv1.NodeClaim {
	t.Helper()
	var claim karpenterv1.NodeClaim
	if err := r.server.Get(t.Context(), client.ObjectKey{Name: "c1"}, &claim); err != nil {
		t.Fatal(err)
	}
	return &claim
}

func interrupted() provider.Notice {
	return provider.Notice{ID: "1", Kind: provider.SpotInterrupted, ProviderID: "fake://1",
		Gone: controllertest.Start().Add(2 * time.Minute)}
}

// P-43: the claim is deleted at once, its drain ends before the machine does, the offering is marked, users are told.
func TestAnInterruptedMachineIsDrainedAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, interrupted())
	for range 2 { // a further look finds nothing to do
		if result, err := r.step.Reconcile(t.Context(), reconcile.Request{}); err != nil || result.RequeueAfter != 0 {
			t.Fatalf("result %+v, error %v", result, err)
		}
	}
	claim := r.claim(t)
	if claim.DeletionTimestamp == nil ||
		claim.Annotations[karpenterv1.NodeClaimTerminationTimestampAnnotationKey] != "2026-01-02T03:06:05Z" {
		t.Errorf("deleted %v, annotations %v: want it deleted, and drained before the machine goes",
			claim.DeletionTimestamp, claim.Annotations)
	}
	if want := (provider.Offering{Type: "m", Zone: "a", CapacityType: "spot"}); len(r.cloud.marked) != 1 ||
		r.cloud.marked[0] != want {
		t.Errorf("marked %v, want %v once", r.cloud.marked, want)
	}
	said := strings.Join(r.tape.Said(), "\n")
	for _, want := range []string{"c1 SpotInterrupted: ", "n1 SpotInterrupted: ", "c1 TerminatingOnInterruption: ",
		"gone at 2026-01-02T03:06:05Z"} {
		if !strings.Contains(said, want) {
			t.Errorf("said\n%s\nwant %q", said, want)
		}
	}
	for _, name := range []string{"karpenter_interruption_received_messages_total",
		"karpenter_interruption_deleted_messages_total", "karpenter_nodeclaims_disrupted_total"} {
		if got := r.counted(t, name); got != 1 {
			t.Errorf("%s is %v, want 1", name, got)
		}
	}
}

// counted sums a counter over its labels.
func (r *rig) counted(t *testing.T, name string) (sum float64) {
	t.Helper()
	families, err := r.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			for _, metric := range family.GetMetric() {
				sum += metric.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// the process ends after the deletion; the next one finishes, and says nothing twice.
func TestANoticeIsHandledAgainWhenItWasNotAcknowledged(t *testing.T) {
	t.Parallel()
	r := newRig(t, interrupted())
	r.cloud.failure = errors.New("connection reset")
	if _, err := r.step.Reconcile(t.Context(), reconcile.Request{}); err == nil {
		t.Fatal("want the failure returned, so that the step is repeated")
	}
	before := len(r.tape.Said())
	r.cloud.failure = nil
	if _, err := r.step.Reconcile(t.Context(), reconcile.Request{}); err != nil || len(r.cloud.notices.List) != 0 {
		t.Fatalf("error %v, notices %v: want it acknowledged", err, r.cloud.notices.List)
	}
	if after := len(r.tape.Said()); after != before {
		t.Errorf("%d events the second time, want none", after-before)
	}
}

func TestARecommendationIsOnlyTold(t *testing.T) {
	t.Parallel()
	r := newRig(t, provider.Notice{ID: "1", Kind: provider.RebalanceRecommended, ProviderID: "fake://1"})
	r.cloud.notices.Again = 7 * time.Second
	if result, err := r.step.Reconcile(t.Context(), reconcile.Request{}); err != nil ||
		result.RequeueAfter != 7*time.Second {
		t.Fatalf("result %+v, error %v: want to be called when the provider says", result, err)
	}
	if claim := r.claim(t); claim.DeletionTimestamp != nil || len(r.cloud.marked) != 0 ||
		len(r.cloud.notices.List) != 0 {
		t.Errorf("deleted %v, marked %v, notices %v: want nothing done but the notice acknowledged",
			claim.DeletionTimestamp, r.cloud.marked, r.cloud.notices.List)
	}
	if said := r.tape.Said(); len(said) != 2 || !strings.HasPrefix(said[0], "c1 SpotRebalanceRecommendation: ") {
		t.Errorf("said %q", said)
	}
}

// The launch's answer may still be on its way: the notice waits for the claim.
func TestANoticeOfAnUnknownMachineWaits(t *testing.T) {
	t.Parallel()
	r := newRig(t, provider.Notice{ID: "2", Kind: provider.InstanceStopping, ProviderID: "fake://2"})
	if result, err := r.step.Reconcile(t.Context(), reconcile.Request{}); err != nil || result.RequeueAfter <= 0 ||
		len(r.cloud.notices.List) != 1 {
		t.Fatalf("result %+v, error %v, notices %v: want it kept and looked at again", result, err,
			r.cloud.notices.List)
	}
	if r.claim(t).DeletionTimestamp != nil {
		t.Error("another machine's claim was deleted")
	}
}

// U-09: kubectl describe shows the events of a Node by a UID, which for kubelet's events is the name.
func TestKubectlDescribeShowsTheEventOfANode(t *testing.T) {
	t.Parallel()
	r := newRig(t, interrupted())
	h := r.among(&planning{}, r.cloud)
	if _, err := r.step.Reconcile(t.Context(), reconcile.Request{}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(h.nodes, []string{"n1 n1"}) {
		t.Errorf("events about Nodes %q, want one about n1 with its name as its UID", h.nodes)
	}
}
