package repair_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/apply"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/repair"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/provider"
)

type cloud struct{ provider.Provider }

func (cloud) Owns(id string) bool { return strings.HasPrefix(id, "fake://") }

func (cloud) NodeClass() schema.GroupKind {
	return schema.GroupKind{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass"}
}
func (cloud) RepairPolicies() []provider.RepairPolicy {
	return []provider.RepairPolicy{{ConditionType: "Broken", ConditionStatus: corev1.ConditionTrue,
		Toleration: time.Minute, TerminationGracePeriod: new(30 * time.Second)}}
}

type rig struct {
	server client.WithWatch
	live   client.Reader
	clock  *controllertest.Clock
	tape   controllertest.Tape
	paused string
	sky    sky
	step   *repair.Controller
}

// sky is the snapshot, empty by default, and the applier: it marks claims, and records what it should launch.
type sky struct {
	client   client.Client
	picture  *cluster.Snapshot
	launched []plan.Launch
	fails    error
	refuses  bool // marks nothing
}

func (s *sky) Snapshot() *cluster.Snapshot {
	if s.picture == nil {
		return cluster.New(cluster.Snapshot{})
	}
	return s.picture
}

func (s *sky) Apply(ctx context.Context, p plan.Plan) (out apply.Outcome, err error) {
	for _, remove := range p.Removes {
		if s.refuses || s.fails != nil {
			return out, s.fails
		}
		var claim karpenterv1.NodeClaim
		if err := s.client.Get(ctx, client.ObjectKey{Name: remove.Claim}, &claim); err != nil {
			return out, err
		}
		condition.Set(&claim.Status.Conditions, 0, condition.True(karpenterv1.ConditionTypeDisruptionReason,
			string(remove.Reason), remove.Why),
			controllertest.Start())
		if err := s.client.Status().Update(ctx, &claim); err != nil {
			return out, err
		}
		out.Marked = append(out.Marked, remove.Claim)
	}
	s.launched = append(s.launched, p.Launches...)
	return out, nil
}

// newRig is a pool of five nodes, of which the first is broken.
func newRig(t *testing.T) *rig {
	t.Helper()
	class := &karpenterv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"}
	pool := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "pool"}}
	pool.Spec.Template.Spec.NodeClassRef = class
	objects := []client.Object{pool}
	for _, name := range []string{"n0", "n1", "n2", "n3", "n4"} {
		claim := &karpenterv1.NodeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("claim-" + name), Finalizers: []string{
				karpenterv1.TerminationFinalizer,
			}, Labels: map[string]string{karpenterv1.NodePoolLabelKey: "pool"}},
			Spec: karpenterv1.NodeClaimSpec{NodeClassRef: class},
			Status: karpenterv1.NodeClaimStatus{ProviderID: "fake://" + name, NodeName: name,
				Conditions: []karpenterv1.Condition{
					{Type: karpenterv1.ConditionTypeInitialized, Status: metav1.ConditionTrue,
						LastTransitionTime: metav1.NewTime(controllertest.Start())},
				}},
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
			Spec: corev1.NodeSpec{ProviderID: "fake://" + name}}
		if name == "n0" {
			node.Status.Conditions = []corev1.NodeCondition{
				{Type: "Broken", Status: corev1.ConditionTrue,
					LastTransitionTime: metav1.NewTime(controllertest.Start())},
			}
		}
		objects = append(objects, claim, node)
	}
	r := &rig{server: controllertest.NewServer(t, objects...).Build(), clock: controllertest.NewClock()}
	r.live = r.server
	r.build()
	return r
}

func (r *rig) build() { r.with(nil) }

func (r *rig) reconcile(t *testing.T) reconcile.Result {
	t.Helper()
	result, err := r.step.Reconcile(t.Context(), reconcile.Request{})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func (r *rig) deleted(t *testing.T) (names []string, ends string) {
	t.Helper()
	var claims karpenterv1.NodeClaimList
	if err := r.server.List(t.Context(), &claims); err != nil {
		t.Fatal(err)
	}
	for _, claim := range claims.Items {
		if claim.DeletionTimestamp != nil {
			names = append(names, claim.Name)
			ends = claim.Annotations[karpenterv1.NodeClaimTerminationTimestampAnnotationKey]
		}
	}
	return names, ends
}

// D-13: after the toleration, not before, the claim is deleted; its drain ends as the policy says, and users are told.
func TestABrokenNodeIsReplacedAfterItsToleration(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if result := r.reconcile(t); result.RequeueAfter != time.Minute {
		t.Errorf("called again after %s, want when the toleration ends", result.RequeueAfter)
	}
	if names, _ := r.deleted(t); len(names) != 0 {
		t.Fatalf("%v deleted too early", names)
	}
	r.clock.Advance(time.Minute)
	r.reconcile(t)
	if names, ends := r.deleted(t); len(names) != 1 || names[0] != "n0" || ends != "2026-01-02T03:05:35Z" {
		t.Errorf("deleted %v, drain ends at %q; want n0, drained for 30 s", names, ends)
	}
	if said := strings.Join(r.tape.Said(), "\n"); strings.Count(said,
		"n0 DisruptionTerminating: The node is removed: Unhealthy, Broken=True since 2026-01-02T03:04:05Z") != 2 {
		t.Errorf("said %q, want claim and node to say why", said)
	}
}

// What prevents a repair is reported on node, claim and pool, and checked again.
func TestWhyNothingIsDoneIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.paused = "voluntary disruption is paused"
	r.clock.Advance(time.Hour)
	if result := r.reconcile(t); result.RequeueAfter <= 0 {
		t.Error("want to be called again")
	}
	if names, _ := r.deleted(t); len(names) != 0 {
		t.Fatalf("%v deleted", names)
	}
	said := strings.Join(r.tape.Said(), "\n")
	if strings.Count(said, "n0 NodeRepairBlocked: ") != 2 || !strings.Contains(said,
		"pool NodeRepairBlocked: The unhealthy node n0 stays (Broken=True): voluntary disruption is paused") {
		t.Errorf("said %q", said)
	}
}

// D-09: the cache is late: the API server says that the node has recovered.
func TestARecoveredNodeStays(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.live = newRig(t).server
	healthy := &corev1.Node{}
	if err := r.live.Get(t.Context(), client.ObjectKey{Name: "n0"}, healthy); err != nil {
		t.Fatal(err)
	}
	healthy.Status.Conditions = nil
	if err := r.live.(client.Client).Status().Update(t.Context(), healthy); err != nil {
		t.Fatal(err)
	}
	r.build()
	r.clock.Advance(time.Hour)
	r.reconcile(t)
	if names, _ := r.deleted(t); len(names) != 0 {
		t.Errorf("%v deleted although it has recovered", names)
	}
}
