package repair_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/controller/repair"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
)

// second is another cloud, whose machines have another unhealthy condition and an unlimited drain.
type second struct{ provider.Provider }

func (second) Owns(id string) bool         { return strings.HasPrefix(id, "second://") }
func (second) NodeClass() schema.GroupKind { return schema.GroupKind{Group: "second", Kind: "Class"} }
func (second) RepairPolicies() []provider.RepairPolicy {
	return []provider.RepairPolicy{{ConditionType: "Lost", ConditionStatus: corev1.ConditionTrue,
		Toleration: time.Minute}}
}

// machine is a node with its machine's claim, and what happens to them.
type machine struct {
	node  *corev1.Node
	claim *karpenterv1.NodeClaim
}

// machineOf is a healthy machine of a pool and a cloud, "fake" or "second" or one that is not served.
func machineOf(name, pool, cloud string, changes ...func(m *machine)) machine {
	class := map[string]*karpenterv1.NodeClassReference{
		"fake": {Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"}, "second": {Group: "second",
			Kind: "Class", Name: "default"},
	}[cloud]
	if class == nil {
		class = &karpenterv1.NodeClassReference{Group: "other", Kind: "Class", Name: "default"}
	}
	m := machine{
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
			Spec: corev1.NodeSpec{ProviderID: cloud + "://" + name}},
		&karpenterv1.NodeClaim{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, UID: types.UID("claim-" + name), Finalizers: []string{karpenterv1.TerminationFinalizer},
				Labels: map[string]string{karpenterv1.NodePoolLabelKey: pool,
					karpenterv1.CapacityTypeLabelKey: "spot"},
			},
			Spec: karpenterv1.NodeClaimSpec{NodeClassRef: class},
			Status: karpenterv1.NodeClaimStatus{ProviderID: cloud + "://" + name, NodeName: name, ImageID: "image-1",
				Conditions: []karpenterv1.Condition{
					{Type: karpenterv1.ConditionTypeInitialized, Status: metav1.ConditionTrue,
						LastTransitionTime: metav1.NewTime(controllertest.Start())},
				}},
		},
	}
	for _, change := range changes {
		change(&m)
	}
	return m
}

// with is a condition that a node has since so long.
func with(kind corev1.NodeConditionType, since time.Duration) func(m *machine) {
	return func(m *machine) {
		m.node.Status.Conditions = append(m.node.Status.Conditions, corev1.NodeCondition{
			Type: kind, Status: corev1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(controllertest.Start().Add(-since)),
		})
	}
}

func uninitialized(m *machine) { m.claim.Status.Conditions = nil }
func leaving(m *machine)       { m.claim.DeletionTimestamp = &metav1.Time{Time: controllertest.Start()} }

func poolOf(name, cloud, nodes string) *karpenterv1.NodePool {
	pool := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}}
	pool.Spec.Template.Spec.NodeClassRef = machineOf("x", name, cloud).claim.Spec.NodeClassRef
	pool.Spec.Disruption.Budgets = []karpenterv1.Budget{{Nodes: intstr.Parse(nodes)}}
	return pool
}

// situation is a cluster of its own.
func situation(t *testing.T, pools []*karpenterv1.NodePool, machines ...machine) *rig {
	t.Helper()
	var objects []client.Object
	for _, pool := range pools {
		objects = append(objects, pool)
	}
	for _, m := range machines {
		objects = append(objects, m.node)
		if m.claim != nil {
			objects = append(objects, m.claim)
		}
	}
	r := &rig{server: controllertest.NewServer(t, objects...).Build(), clock: controllertest.NewClock()}
	r.live = r.server
	r.with(nil)
	return r
}

// with sets the controller up again, with what changes of its configuration, and returns its metrics.
func (r *rig) with(change func(c *repair.Config)) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	set := metrics.New(registry)
	r.sky.client = r.server
	config := repair.Config{
		Client: r.server, Live: r.live, Picture: &r.sky, Applier: &r.sky, Fleet: fleet.New(cloud{}, second{}),
		Paused: func(context.Context) (string,
			error) {
			return r.paused, nil
		},
		Events: &r.tape, Metrics: set.Claims, Decisions: set.Disruption, Ready: func() bool { return true },
		Now: r.clock.Now, Log: logr.Discard(),
	}
	if change != nil {
		change(&config)
	}
	r.step = repair.New(config)
	return registry
}

// fine are n healthy machines of a pool.
func fine(n int, pool, cloud string) (list []machine) {
	for i := range n {
		list = append(list, machineOf(pool+"-ok-"+string(rune('a'+i)), pool, cloud))
	}
	return list
}

// D-13: nothing is decided on an incomplete cache; the next try is after a second. The pause switch is not read if
// nothing would be done.
func TestNothingIsDoneBeforeThePictureIsComplete(t *testing.T) {
	t.Parallel()
	r := situation(t, nil, append(fine(4, "p", "fake"), machineOf("x", "p", "fake", with("Broken", time.Hour)))...)
	r.with(func(c *repair.Config) { c.Ready = func() bool { return false } })
	if again := r.reconcile(t).RequeueAfter; again != time.Second {
		t.Errorf("again after %s, want 1s", again)
	}
	if names, _ := r.deleted(t); len(names) != 0 {
		t.Errorf("%v deleted", names)
	}
	for name, c := range map[string]struct {
		changes []func(*machine)
		asked   int
	}{"healthy": {nil, 0}, "waiting": {[]func(*machine){with("Broken", time.Second)},
		0}, "due": {[]func(*machine){with("Broken", time.Hour)}, 1}} {
		r := situation(t, nil, append(fine(4, "p", "fake"), machineOf("x", "p", "fake", c.changes...))...)
		asked := 0
		r.with(func(config *repair.Config) {
			config.Paused = func(context.Context) (string, error) { asked++; return "", nil }
		})
		if r.reconcile(t); asked != c.asked {
			t.Errorf("%s: the pause switch was read %d times, want %d", name, asked, c.asked)
		}
	}
}

// When nodes are checked again: when the next toleration ends, but not within a second, and nodes that stay after 30
// s.
func TestWhenNodesAreLookedAtAgain(t *testing.T) {
	t.Parallel()
	blocked := machineOf("b", "q", "fake", with("Broken", time.Hour))
	for name, c := range map[string]struct {
		machines []machine
		want     time.Duration
	}{
		"all are healthy": {nil, 0},
		"one is due": {[]machine{machineOf("x", "p", "fake", with("Broken", 15*time.Second))},
			45 * time.Second},
		"one stays": {[]machine{blocked}, 30 * time.Second},
		"one stays, one is due": {[]machine{blocked, machineOf("x", "p", "fake", with("Broken", 15*time.Second))},
			30 * time.Second},
		"two are due": {[]machine{machineOf("x", "r", "fake", with("Broken", time.Hour)),
			machineOf("y", "r", "fake", with("Broken", time.Hour))}, 10 * time.Second},
		"one stays, one is sooner": {[]machine{blocked, machineOf("x", "p", "fake", with("Broken", 50*time.Second))},
			10 * time.Second},
	} {
		r := situation(t, []*karpenterv1.NodePool{poolOf("p", "fake", "100%"), poolOf("q", "fake", "0")},
			slices.Concat(fine(9, "p", "fake"), fine(4, "q", "fake"), fine(9, "r", "fake"), c.machines)...)
		if again := r.reconcile(t).RequeueAfter; again != c.want {
			t.Errorf("%s: again after %s, want %s", name, again, c.want)
		}
	}
	r := situation(t, nil,
		append(fine(4, "p", "fake"), machineOf("x", "p", "fake", with("Broken", 59*time.Second)))...)
	r.clock.Advance(700 * time.Millisecond)
	if again := r.reconcile(t).RequeueAfter; again != time.Second {
		t.Errorf("one is due in 300 ms: again after %s, want 1s", again)
	}
}

// D-13: failed reads, questions and writes are returned and repeated, also for a node that is being drained already.
func TestNoFailureOfARepairIsSwallowed(t *testing.T) {
	t.Parallel()
	for name, sick := range map[string]machine{
		"due":      machineOf("x", "p", "fake", with("Broken", time.Hour)),
		"draining": machineOf("x", "p", "fake", with("Broken", time.Hour), leaving),
	} {
		controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
			r := situation(t, []*karpenterv1.NodePool{poolOf("p", "fake", "100%")},
				append(fine(4, "p", "fake"), sick)...)
			r.with(func(c *repair.Config) {
				c.Client, c.Live = f.Wrap(r.server), f.Wrap(r.server)
				c.Paused = func(context.Context) (string, error) { return "", f.Call("paused") }
			})
			return func() error {
				_, err := r.step.Reconcile(t.Context(), reconcile.Request{})
				if names, ends := r.deleted(t); err == nil && (!slices.Equal(names, []string{"x"}) ||
					ends != "2026-01-02T03:04:35Z") {
					t.Errorf("%s: deleted %v, the drain ends at %q; want x, drained for 30 s", name, names, ends)
				}
				return err
			}
		})
	}
}

// Which nodes are repaired: those of a machine and claim of ours, by their own cloud's conditions, within budgets,
// which count initialized nodes. Our budgets do not bind nodes in another program's pool. All nodes count for whether
// repairs make sense.
func TestWhoseNodesAreRepaired(t *testing.T) {
	t.Parallel()
	unclaimed := func(m *machine) { m.claim = nil }
	otherMachine := func(m *machine) { m.node.Spec.ProviderID, m.claim.Status.ProviderID = "other://x", "other://x" }
	noMachine := func(m *machine) { m.node.Spec.ProviderID, m.claim.Status.ProviderID = "", "" }
	twice := machineOf("z", "p", "other")
	twice.node.Spec.ProviderID, twice.claim.Status.ProviderID = "other://z", "fake://x"
	broken, lost := with("Broken", time.Hour), with("Lost", time.Hour)
	pools := []*karpenterv1.NodePool{poolOf("a", "other", "0"), poolOf("p", "fake", "100%"),
		poolOf("q", "fake", "20%"), poolOf("s", "second", "100%")}
	for name, c := range map[string]struct {
		machines []machine
		want     []string
	}{
		"ours": {append(fine(4, "p", "fake"), machineOf("x", "p", "fake", broken)),
			[]string{"x"}},
		"another cloud's of ours": {append(fine(4, "s", "second"), machineOf("x", "s", "second", lost)),
			[]string{"x"}},
		"by a condition of another cloud": {append(fine(4, "p", "fake"), machineOf("x", "p", "fake", lost)), nil},
		"another program's":               {append(fine(4, "p", "fake"), machineOf("x", "p", "other", broken)), nil},
		"another program's machine": {append(fine(4, "p", "fake"), machineOf("x", "p", "fake", broken,
			otherMachine)), nil},
		"without a machine": {append(fine(4, "p", "fake"), machineOf("x", "p", "fake", broken, noMachine)),
			nil},
		"without a claim": {append(fine(4, "p", "fake"), machineOf("x", "p", "fake", broken, unclaimed)),
			nil},
		"two claims name the machine": {append(fine(4, "p", "fake"), machineOf("x", "p", "fake", broken), twice),
			[]string{"x"}},
		"in another program's pool": {append(fine(4, "a", "fake"), machineOf("x", "a", "fake", broken)),
			[]string{"x"}},
		"where others' nodes are unwell": {append(fine(4, "a", "fake"), machineOf("x", "a", "fake", broken),
			machineOf("y", "", "other", lost, unclaimed)), []string{"x"}},
		"where many others' are unwell": {append(fine(4, "a", "fake"), machineOf("w", "", "other", broken, unclaimed),
			machineOf("x", "a", "fake", broken), machineOf("y", "", "other", lost, unclaimed)), nil},
		"as many as a share of the budget": {append(fine(8, "q", "fake"), machineOf("x", "q", "fake", broken),
			machineOf("y", "q", "fake", broken)), []string{"x", "y"}},
		"not by nodes that are not ready": {slices.Concat(fine(3, "q", "fake"), []machine{machineOf("x", "q", "fake",
			broken), machineOf("y", "q", "fake", broken),
			machineOf("q-1", "q", "fake", uninitialized), machineOf("q-2", "q", "fake", uninitialized),
			machineOf("q-3", "q",
				"fake", uninitialized),
			machineOf("q-4", "q", "fake", uninitialized), machineOf("q-5", "q", "fake", uninitialized)}),
			[]string{"x"}},
	} {
		r := situation(t, pools, c.machines...)
		r.reconcile(t)
		r.reconcile(t) // a node of each pool in a round
		if names, _ := r.deleted(t); !slices.Equal(names, c.want) {
			t.Errorf("%s: deleted %v, want %v; said %q", name, names, c.want, r.tape.Said())
		}
	}
}

// A cloud that names no end for drains lets them take their time.
func TestADrainEndsOnlyWhereTheCloudSaysSo(t *testing.T) {
	t.Parallel()
	r := situation(t, nil, append(fine(4, "s", "second"), machineOf("x", "s", "second", with("Lost", time.Hour)))...)
	r.reconcile(t)
	if names, ends := r.deleted(t); !slices.Equal(names, []string{"x"}) || ends != "" {
		t.Errorf("deleted %v, the drain ends at %q; want x, with no end", names, ends)
	}
}

// D-09: the API server is asked last. A node that was recreated, or that recovered and broke again, or is gone, is not
// repaired.
func TestTheAPIServerIsAskedBeforeARepair(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(n *corev1.Node)
		claim  func(c *karpenterv1.NodeClaim)
		want   int
	}{
		"as it was":   {func(*corev1.Node) {}, nil, 1},
		"another one": {func(n *corev1.Node) { n.UID = "another" }, nil, 0},
		"broken again": {func(n *corev1.Node) {
			n.Status.Conditions[0].LastTransitionTime = metav1.NewTime(controllertest.Start())
		}, nil, 0},
		"gone by itself": {nil, nil, 0},
		"another claim":  {func(*corev1.Node) {}, func(c *karpenterv1.NodeClaim) { c.UID = "another" }, 0},
		"marked by now": {func(*corev1.Node) {}, func(c *karpenterv1.NodeClaim) {
			c.Status.Conditions = append(c.Status.Conditions,
				karpenterv1.Condition{Type: karpenterv1.ConditionTypeDisruptionReason,
					Status: metav1.ConditionTrue, Reason: "Unhealthy"})
		}, 0},
		"deleted by now": {func(*corev1.Node) {}, func(c *karpenterv1.NodeClaim) {
			c.DeletionTimestamp = &metav1.Time{Time: controllertest.Start()}
		}, 0},
	} {
		sick := machineOf("x", "p", "fake", with("Broken", time.Hour))
		r := situation(t, nil, append(fine(4, "p", "fake"), sick)...)
		claim := sick.claim.DeepCopy()
		claim.ResourceVersion = ""
		if c.claim != nil {
			c.claim(claim)
		}
		live := controllertest.NewServer(t, claim)
		if c.change != nil {
			fresh := sick.node.DeepCopy()
			fresh.ResourceVersion = ""
			c.change(fresh)
			live = controllertest.NewServer(t, fresh, claim)
		}
		r.live = live.Build()
		r.with(nil)
		r.reconcile(t)
		if names, _ := r.deleted(t); len(names) != c.want {
			t.Errorf("%s: deleted %v, want %d", name, names, c.want)
		}
	}
}

// U-10: a repair counts as a disruption by force, and by what the node had.
func TestARepairIsCounted(t *testing.T) {
	t.Parallel()
	r := situation(t, nil, append(fine(4, "p", "fake"), machineOf("x", "p", "fake", with("Broken", time.Hour)))...)
	registry := r.with(nil)
	r.reconcile(t)
	for name, labels := range map[string][]string{
		"karpenter_nodeclaims_unhealthy_disrupted_total": {"broken", "p", "spot", "image-1", "graceful"},
		"karpenter_nodeclaims_disrupted_total":           {"unhealthy", "p", "spot", "graceful"},
	} {
		if n := controllertest.Count(t, registry, name, labels...); n != 1 {
			t.Errorf("%s %v is %v, want 1", name, labels, n)
		}
	}
}

// heard remembers what events are about.
type heard struct{ about []string }

func (h *heard) Event(about client.Object, kind event.Kind, reason, _ string) {
	name := about.GetName() + "/" + string(about.GetUID())
	switch about.(type) {
	case *corev1.Node:
		name = "node " + name
	case *karpenterv1.NodeClaim:
		name = "claim " + name
	case *karpenterv1.NodePool:
		name = "pool " + name
	}
	h.about = append(h.about, reason+" "+name)
}

// U-09: why a node stays is reported on the node, its claim and, if it has one, its pool.
func TestWhoIsToldWhyANodeStays(t *testing.T) {
	t.Parallel()
	pools := []*karpenterv1.NodePool{poolOf("a", "other", "100%"), poolOf("p", "fake", "100%"),
		poolOf("q", "fake", "0")}
	protected := func(m *machine) {
		m.node.Annotations = map[string]string{karpenterv1.DoNotDisruptAnnotationKey: "true"}
	}
	for pool, want := range map[string][]string{
		"p": {"NodeRepairBlocked node x/x", "NodeRepairBlocked claim x/claim-x", "NodeRepairBlocked pool p/uid-p"},
		"a": {"NodeRepairBlocked node x/x", "NodeRepairBlocked claim x/claim-x"},
	} {
		r := situation(t, pools, append(fine(4, pool, "fake"), machineOf("x", pool, "fake", with("Broken", time.Hour),
			protected))...)
		h := &heard{}
		r.with(func(c *repair.Config) { c.Events = h })
		if r.reconcile(t); !slices.Equal(h.about, want) {
			t.Errorf("in pool %s: said %q, want %q", pool, h.about, want)
		}
	}
}
