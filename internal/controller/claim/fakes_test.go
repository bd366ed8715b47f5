package claim_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/claim"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// cloud makes machines in memory. Launch is idempotent by the claim's UID, as the port demands.
type cloud struct {
	provider.Provider
	failure  error // of Launch
	unlisted error // of List
	unread   error // of Get
	machines map[string]provider.Instance
	launches int
	notAfter time.Time         // of the last launch
	labels   map[string]string // of its claim
	drifted  provider.Drift
	slow     bool // Terminate needs a second call
	ended    []string
	asked    []string // by Get
	endless  error    // of Terminate
	catalog  error    // of Catalog

	undriftable error // of Drifted
}

func (c *cloud) Name() string { return "fake" }
func (c *cloud) Owns(id string) bool {
	return strings.HasPrefix(id, "fake://")
}
func (c *cloud) NodeClass() schema.GroupKind {
	return schema.GroupKind{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass"}
}

func (c *cloud) Catalog(context.Context, string) (catalog.Catalog, error) {
	return catalog.Catalog{}, c.catalog
}

func (c *cloud) Launch(_ context.Context, claim *karpenterv1.NodeClaim,
	notAfter time.Time) (provider.Instance, error) {
	c.launches++
	c.notAfter, c.labels = notAfter, maps.Clone(claim.Labels)
	if c.failure != nil {
		return provider.Instance{}, c.failure
	}
	id := "fake://" + string(claim.UID)
	machine := provider.Instance{
		ProviderID: id, ClaimName: claim.Name, ClaimUID: string(claim.UID), Type: "m", Zone: "a", CapacityType: "spot",
		Labels:   map[string]string{corev1.LabelTopologyZone: "a", corev1.LabelInstanceTypeStable: "m"},
		Capacity: corev1.ResourceList{"cpu": resource.MustParse("2")}, Launched: controllertest.Start(),
	}
	c.machines[id] = machine
	return machine, nil
}

func (c *cloud) Drifted(context.Context, *karpenterv1.NodeClaim) (provider.Drift, error) {
	return c.drifted, c.undriftable
}

func (c *cloud) Get(_ context.Context, id string) (provider.Instance, error) {
	c.asked = append(c.asked, id)
	if id == "" {
		return provider.Instance{}, errNoID
	}
	if machine, found := c.machines[id]; found || c.unread != nil {
		return machine, c.unread
	}
	return provider.Instance{}, provider.ErrNotFound
}

func (c *cloud) List(context.Context) ([]provider.Instance, error) {
	if c.unlisted != nil {
		return nil, c.unlisted
	}
	var list []provider.Instance
	for _, id := range slices.Sorted(maps.Keys(c.machines)) {
		list = append(list, c.machines[id])
	}
	return list, nil
}

// errNoID is the answer to questions about no machine at all, which nobody should ask.
var errNoID = errors.New("want a provider ID")

func (c *cloud) Terminate(_ context.Context, id string, _ func() bool) error {
	if id == "" {
		return errNoID
	}
	if c.ended = append(c.ended, id); c.endless != nil {
		return c.endless
	}
	machine, found := c.machines[id]
	if !found {
		return provider.ErrNotFound
	}
	if c.slow && !machine.Terminating {
		machine.Terminating = true
		c.machines[id] = machine
		return nil
	}
	delete(c.machines, id)
	return provider.ErrNotFound
}

// catalogs counts how often planning was told what a class offers.
type catalogs struct {
	told  int
	about world.ClassRef
}

func (c *catalogs) SetCatalog(about world.ClassRef, _ catalog.Catalog) error {
	c.told, c.about = c.told+1, about
	return nil
}

type rig struct {
	server   client.WithWatch
	cloud    *cloud
	catalogs *catalogs
	tape     *controllertest.Tape
	clock    *controllertest.Clock
	events   *claim.PodEvents
	config   claim.Config
	step     *claim.Controller
	writes   int
}

func newRig(t *testing.T, objects ...client.Object) *rig {
	t.Helper()
	r := &rig{
		cloud: &cloud{machines: map[string]provider.Instance{}}, catalogs: &catalogs{}, tape: &controllertest.Tape{},
		clock: controllertest.NewClock(), events: claim.NewPodEvents(),
	}
	r.server = controllertest.NewServer(t, objects...).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
			opts ...client.PatchOption) error {
			r.writes++
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption) error {
			r.writes++
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}).Build()
	r.config = claim.Config{
		Client: r.server, Live: r.server, Fleet: fleet.New(r.cloud), Catalogs: r.catalogs, PodEvents: r.events,
		Timeouts: claim.Timeouts{Launch: 5 * time.Minute, Registration: 15 * time.Minute, Initialization: time.Hour},
		Events:   r.tape, Metrics: metrics.New(prometheus.NewRegistry()), Now: r.clock.Now, Log: logr.Discard(),
	}
	r.step = claim.New(r.config)
	return r
}

// older makes the process older than the claims: no process before it can have launched them.
func (r *rig) older(t *testing.T) {
	t.Helper()
	r.clock.Advance(-time.Second)
	if _, err := r.step.Reconcile(t.Context(), reconcile.Request{}); err != nil {
		t.Fatal(err)
	}
	r.clock.Advance(time.Second)
}

func (r *rig) reconcile(t *testing.T) reconcile.Result {
	t.Helper()
	result, err := r.step.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "c1"}})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// claim returns the claim as the API server has it, nil when it is gone.
func (r *rig) claim(t *testing.T) *karpenterv1.NodeClaim {
	t.Helper()
	var c karpenterv1.NodeClaim
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: "c1"}, &c); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		t.Fatal(err)
	}
	return &c
}

func (r *rig) node(t *testing.T) *corev1.Node {
	t.Helper()
	var n corev1.Node
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: "n1"}, &n); err != nil {
		t.Fatal(err)
	}
	return &n
}

func (r *rig) is(t *testing.T, kind string) metav1.ConditionStatus {
	t.Helper()
	found, _ := condition.Get(r.claim(t).Status.Conditions, kind)
	return found.Status
}

func newClaim() *karpenterv1.NodeClaim {
	return &karpenterv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: "c1", UID: "u1", CreationTimestamp: metav1.NewTime(controllertest.Start()),
			Finalizers: []string{karpenterv1.TerminationFinalizer},
			Labels:     map[string]string{karpenterv1.NodePoolLabelKey: "default", "team": "a"},
		},
		Spec: karpenterv1.NodeClaimSpec{
			NodeClassRef: &karpenterv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass",
				Name: "default"},
			Taints:        []corev1.Taint{{Key: "team", Value: "a", Effect: corev1.TaintEffectNoSchedule}},
			StartupTaints: []corev1.Taint{{Key: "boot", Effect: corev1.TaintEffectNoSchedule}},
			Resources: karpenterv1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("1")},
			},
		},
	}
}

// joined is the node of the claim's machine as its kubelet makes it.
func joined() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "n1",
			CreationTimestamp: metav1.NewTime(controllertest.Start().Add(-time.Minute))},
		Spec: corev1.NodeSpec{ProviderID: "fake://u1", Taints: []corev1.Taint{
			{Key: karpenterv1.UnregisteredTaintKey, Effect: corev1.TaintEffectNoExecute},
			{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule},
		}},
	}
}

// makeReady does what the kubelet, the node controller and the remover of the startup taint do.
func (r *rig) makeReady(t *testing.T) {
	t.Helper()
	n := r.node(t)
	n.Spec.Taints = []corev1.Taint{{Key: "team", Value: "a", Effect: corev1.TaintEffectNoSchedule}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("2")}
	r.put(t, n)
}

// put writes a node with its status.
func (r *rig) put(t *testing.T, n *corev1.Node) {
	t.Helper()
	status := n.Status
	if err := r.server.Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	n.Status = status
	if err := r.server.Status().Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
}
