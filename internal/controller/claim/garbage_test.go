package claim_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
)

// sky is a second cloud with its own node class. late has machines that its list does not show yet.
type sky struct {
	*cloud
	late   map[string]bool
	listed error            // the answer to List
	broken map[string]error // the answers to Get
}

func (*sky) Name() string        { return "sky" }
func (*sky) Owns(id string) bool { return strings.HasPrefix(id, "sky://") }
func (*sky) NodeClass() schema.GroupKind {
	return schema.GroupKind{Group: "sky.example.com", Kind: "SkyNodeClass"}
}

func (s *sky) List(ctx context.Context) ([]provider.Instance, error) {
	list, err := s.cloud.List(ctx)
	return list, errors.Join(err, s.listed)
}

func (s *sky) Get(ctx context.Context, id string) (provider.Instance, error) {
	if s.broken[id] != nil || s.late[id] {
		return provider.Instance{}, s.broken[id]
	}
	return s.cloud.Get(ctx, id)
}

// running is a claim whose launch was written down; its machine is of that ID.
func running(name, id string) *karpenterv1.NodeClaim {
	c := newClaim()
	c.Name, c.UID, c.Status.ProviderID = name, types.UID("uid-of-"+name), id
	condition.Set(&c.Status.Conditions, 0, condition.True(karpenterv1.ConditionTypeLaunched, "Launched", ""),
		controllertest.Start())
	return c
}

// collect compares instances and claims once, after the time has passed in which lists may lag behind.
func (r *rig) collect(t *testing.T, clouds ...provider.Provider) error {
	t.Helper()
	r.config.Fleet = fleet.New(clouds...)
	result, err := claim.NewCollector(r.config).Reconcile(t.Context(), reconcile.Request{})
	if err == nil && result.RequeueAfter != 10*time.Second {
		t.Errorf("compares again after %s, want 10s", result.RequeueAfter)
	}
	return err
}

// P-32: an instance is ended if no claim is its own, by UID or by provider ID. A claim of the same name with another
// UID is another claim. An instance without a UID is kept for any claim of its name.
func TestWhichInstancesAreEnded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		instance provider.Instance
		age      time.Duration
		ended    bool
	}{
		"of a claim that is gone": {provider.Instance{ClaimName: "gone", ClaimUID: "gone"}, time.Hour, true},
		"of nobody":               {provider.Instance{}, time.Hour, true},
		"of a claim before":       {provider.Instance{ClaimName: "c1", ClaimUID: "before"}, time.Hour, true},
		"of a name that is gone":  {provider.Instance{ClaimName: "gone"}, time.Hour, true},
		"ended already":           {provider.Instance{ClaimName: "gone", Terminating: true}, time.Hour, false},
		"known by its UID":        {provider.Instance{ClaimUID: "uid-of-c1"}, time.Hour, false},
		"known by its ID":         {provider.Instance{ProviderID: "fake://own"}, time.Hour, false},
		"perhaps of a claim":      {provider.Instance{ClaimName: "c1"}, time.Hour, false},
		"of a claim that is gone, 29s": {provider.Instance{ClaimName: "gone", ClaimUID: "gone"}, 30*time.Second - 1,
			false},
		"of a claim that is gone, 30s": {provider.Instance{ClaimName: "gone", ClaimUID: "gone"}, 30 * time.Second,
			true},
	} {
		fresh := newClaim()
		fresh.Name, fresh.UID = "fresh", "fresh" // and has no instance yet
		r := newRig(t, running("c1", "fake://own"), fresh)
		lists := 0
		r.config.Live = interceptor.NewClient(r.server, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
				options ...client.GetOption) error {
				if key.Name == "" {
					return errors.New("resource name may not be empty")
				}
				return c.Get(ctx, key, o, options...)
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList,
				options ...client.ListOption) error {
				lists++
				return c.List(ctx, list, options...)
			},
		})
		own := provider.Instance{ProviderID: "fake://own", ClaimUID: "uid-of-c1", Launched: r.clock.Now()}
		if c.instance.Launched = r.clock.Now(); c.instance.ProviderID == "" {
			c.instance.ProviderID = "fake://z"
		}
		r.cloud.machines = map[string]provider.Instance{own.ProviderID: own, c.instance.ProviderID: c.instance}
		r.clock.Advance(c.age)
		if err := r.collect(t, r.cloud); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, runs := r.cloud.machines[c.instance.ProviderID]; runs == c.ended {
			t.Errorf("%s: runs %t, ended %v; want it ended: %t", name, runs, r.cloud.ended, c.ended)
		}
		if c.instance.Terminating && len(r.cloud.ended) > 0 {
			t.Errorf("%s: asked again to end %v", name, r.cloud.ended)
		}
		if (lists > 0) != c.ended {
			t.Errorf("%s: %d live lists of all nodes: they cost much, and are for orphans", name, lists)
		}
	}
}

// P-40: an orphan instance with a registered node is ended by its node's finalizer, after a drain. If somebody has
// taken the finalizer off, the node gets it back first. A node that was never ours does not delay that, nor does
// another machine's node.
func TestTheNodeOfAnOrphanIsDrainedFirst(t *testing.T) {
	t.Parallel()
	registered := map[string]string{karpenterv1.NodeRegisteredLabelKey: "true"}
	for name, c := range map[string]struct {
		change     func(*corev1.Node)
		ended, del bool
	}{
		"ours": {func(*corev1.Node) {}, false, true},
		"is draining": {func(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{Time: controllertest.Start()} },
			false, false},
		"lost our finalizer": {func(n *corev1.Node) { n.Finalizers, n.Labels = nil, registered }, false, true},
		"let go, and held by another": {func(n *corev1.Node) {
			n.Finalizers, n.Labels = []string{"example.com/other"}, registered
			n.DeletionTimestamp = &metav1.Time{Time: controllertest.Start()}
		}, true, false},
		"no finalizer":  {func(n *corev1.Node) { n.Finalizers = nil }, true, false},
		"not adopted":   {func(n *corev1.Node) { n.Finalizers = []string{"example.com/other"} }, true, false},
		"of another ID": {func(n *corev1.Node) { n.Spec.ProviderID = "fake://another" }, true, false},
	} {
		n := joined()
		n.Finalizers = []string{karpenterv1.TerminationFinalizer}
		c.change(n)
		r := newRig(t, n)
		r.cloud.machines["fake://u1"] = provider.Instance{ProviderID: "fake://u1", ClaimName: "gone"}
		var deleted []string
		r.config.Client = interceptor.NewClient(r.server, interceptor.Funcs{
			List: func(ctx context.Context, w client.WithWatch, list client.ObjectList,
				options ...client.ListOption) error {
				if _, nodes := list.(*corev1.NodeList); nodes {
					return nil // the watch is late: the cache has no node yet
				}
				return w.List(ctx, list, options...)
			},
			Delete: func(_ context.Context, _ client.WithWatch, o client.Object,
				options ...client.DeleteOption) error {
				var asked client.DeleteOptions
				now := r.node(t)
				if asked.ApplyOptions(options); asked.Preconditions == nil || asked.Preconditions.UID == nil ||
					*asked.Preconditions.UID != "n1" || asked.Preconditions.ResourceVersion == nil ||
					*asked.Preconditions.ResourceVersion != now.ResourceVersion {
					t.Errorf("%s: preconditions %+v, want the UID and the version of the node as it is", name,
						asked.Preconditions)
				}
				deleted = append(deleted, o.GetName())
				return nil
			},
		})
		if err := r.collect(t, r.cloud); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if ended := len(r.cloud.machines) == 0; ended != c.ended || (len(deleted) == 1) != c.del {
			t.Errorf("%s: ended %t, nodes deleted %v; want it ended: %t, the node deleted: %t", name, ended, deleted,
				c.ended, c.del)
		}
		if c.del && !slices.Contains(r.node(t).Finalizers, karpenterv1.TerminationFinalizer) {
			t.Errorf("%s: the node is deleted without our finalizer", name)
		}
	}
	controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
		n := joined()
		n.Finalizers = []string{karpenterv1.TerminationFinalizer}
		r := newRig(t, n)
		r.cloud.machines["fake://u1"] = provider.Instance{ProviderID: "fake://u1", ClaimName: "gone"}
		r.fail(f)
		collector := claim.NewCollector(r.config)
		return func() error {
			_, err := collector.Reconcile(t.Context(), reconcile.Request{})
			return err
		}
	})
}

// P-32: a launched claim goes when its own cloud has proved its instance gone: not while the list shows it, and not
// only because the list lacks it. One cloud's answer suffices, and no other claim is delayed.
func TestWhichClaimsGoWithTheirInstance(t *testing.T) {
	t.Parallel()
	inSky := func(c *karpenterv1.NodeClaim) {
		c.Spec.NodeClassRef = &karpenterv1.NodeClassReference{Group: "sky.example.com", Kind: "SkyNodeClass",
			Name: "default"}
	}
	for name, c := range map[string]struct {
		change func(*karpenterv1.NodeClaim)
		age    time.Duration
		gone   bool
	}{
		"vanished":      {func(*karpenterv1.NodeClaim) {}, time.Hour, true},
		"vanished, 29s": {func(*karpenterv1.NodeClaim) {}, 30*time.Second - 1, false},
		"vanished, 30s": {func(*karpenterv1.NodeClaim) {}, 30 * time.Second, true},
		"listed":        {func(c *karpenterv1.NodeClaim) { c.Status.ProviderID = "fake://runs" }, time.Hour, false},
		"not launched":  {func(c *karpenterv1.NodeClaim) { c.Status.Conditions = nil }, time.Hour, false},
		"another cloud's": {func(c *karpenterv1.NodeClaim) { inSky(c); c.Status.ProviderID = "sky://runs" }, time.Hour,
			false},
		"not listed yet": {func(c *karpenterv1.NodeClaim) { inSky(c); c.Status.ProviderID = "sky://late" }, time.Hour,
			false},
		"gone from there": {func(c *karpenterv1.NodeClaim) { inSky(c); c.Status.ProviderID = "sky://gone" }, time.Hour,
			true},
		"another program's": {func(c *karpenterv1.NodeClaim) { c.Spec.NodeClassRef.Kind = "EC2NodeClass" }, time.Hour,
			false},
	} {
		first, last := running("a", "fake://runs"), running("z", "sky://gone")
		inSky(last)
		one := running("c1", "fake://gone")
		c.change(one)
		r := newRig(t, first, one, last)
		above := &sky{cloud: &cloud{machines: map[string]provider.Instance{"sky://runs": {ProviderID: "sky://runs",
			ClaimUID: "uid-of-c1"}}},
			late: map[string]bool{"sky://late": true}}
		r.cloud.machines["fake://runs"] = provider.Instance{ProviderID: "fake://runs", ClaimUID: "uid-of-a"}
		r.clock.Advance(c.age)
		if err := r.collect(t, r.cloud, above); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if gone := r.claim(t).DeletionTimestamp != nil; gone != c.gone {
			t.Errorf("%s: gone %t, want %t", name, gone, c.gone)
		}
		if said := strings.Join(r.tape.Said(), "\n"); c.gone != strings.Contains(said,
			"c1 InstanceGone: NodeClaim is removed: instance") {
			t.Errorf("%s: events %q", name, said)
		}
		var z karpenterv1.NodeClaim
		if err := r.server.Get(t.Context(), types.NamespacedName{Name: "z"}, &z); err != nil {
			t.Fatal(err)
		}
		if c.age >= 30*time.Second && z.DeletionTimestamp == nil {
			t.Errorf("%s: the claim after it was not looked at", name)
		}
		if slices.Contains(r.cloud.asked, "fake://runs") {
			t.Errorf("%s: asked about an instance that is listed", name)
		}
	}
}

// P-32: a claim whose node is Ready stays, whatever the cloud says of its instance: a kubelet works there. A cluster
// name that is mistyped, or a tag that somebody strips, makes the cloud say that every instance is gone.
func TestAClaimWithAReadyNodeStays(t *testing.T) {
	t.Parallel()
	for status, gone := range map[corev1.ConditionStatus]bool{"True": false, "False": true, "Unknown": true} {
		r := newRig(t, newClaim())
		r.reconcile(t)
		r.create(t, joined())
		r.reconcile(t)
		r.makeReady(t)
		n := r.node(t)
		n.Status.Conditions[0].Status = status
		r.put(t, n)
		clear(r.cloud.machines)
		r.clock.Advance(time.Minute)
		if err := r.collect(t, r.cloud); err != nil {
			t.Errorf("Ready=%s: %v", status, err)
		}
		if got := r.claim(t).DeletionTimestamp != nil; got != gone {
			t.Errorf("Ready=%s: gone %t, want %t", status, got, gone)
		}
		if asked := len(r.cloud.asked) > 0; asked != gone {
			t.Errorf("Ready=%s: the cloud was asked %t, want %t", status, asked, gone)
		}
	}
}

// P-32: one cloud's failure is returned and delays no other cloud, neither its instances nor its claims.
func TestACloudThatFailsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*sky){
		"list": func(s *sky) { s.listed = controllertest.ErrRefused },
		"get":  func(s *sky) { s.broken = map[string]error{"sky://gone": controllertest.ErrRefused} },
	} {
		lost, other := running("c1", "fake://gone"), running("b", "sky://gone")
		other.Spec.NodeClassRef = &karpenterv1.NodeClassReference{Group: "sky.example.com", Kind: "SkyNodeClass",
			Name: "default"}
		after := running("c", "sky://gone-too")
		after.Spec.NodeClassRef = other.Spec.NodeClassRef
		r := newRig(t, other, after, lost)
		above := &sky{cloud: &cloud{machines: map[string]provider.Instance{}}}
		change(above)
		r.clock.Advance(time.Hour)
		if err := r.collect(t, above, r.cloud); !errors.Is(err, controllertest.ErrRefused) {
			t.Errorf("%s: error %v", name, err)
		}
		if r.claim(t).DeletionTimestamp == nil {
			t.Errorf("%s: the claim of the other cloud is still there", name)
		}
		var b karpenterv1.NodeClaim
		if err := r.server.Get(t.Context(), types.NamespacedName{Name: "b"}, &b); err != nil ||
			b.DeletionTimestamp != nil {
			t.Errorf("%s: the claim of the cloud that failed is deleted, error %v", name, err)
		}
		if err := r.server.Get(t.Context(), types.NamespacedName{Name: "c"}, &b); err != nil ||
			(b.DeletionTimestamp != nil) != (name == "get") {
			t.Errorf("%s: the claim after it is deleted: %t, error %v", name, b.DeletionTimestamp != nil, err)
		}
	}
}

// P-32: a claim that is going already is not asked about.
func TestAClaimThatGoesIsNotCollectedAgain(t *testing.T) {
	t.Parallel()
	one := running("c1", "fake://gone")
	one.DeletionTimestamp = &metav1.Time{Time: controllertest.Start()}
	r := newRig(t, one)
	r.clock.Advance(time.Hour)
	if err := r.collect(t, r.cloud); err != nil || len(r.tape.Said()) != 0 {
		t.Errorf("error %v, events %v", err, r.tape.Said())
	}
}

// dropNode deletes the node, whoever holds it.
func (r *rig) dropNode(t *testing.T) {
	t.Helper()
	n := r.node(t)
	n.Finalizers = nil
	if err := errors.Join(r.server.Update(t.Context(), n), r.server.Delete(t.Context(), n)); err != nil {
		t.Fatal(err)
	}
}

// P-32: a registered claim whose node is gone goes at once when its instance is proved gone. A claim with a node
// stays, and so does one that never had a node: the comparison handles those.
func TestAClaimGoesAtOnceWithNodeAndInstance(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		registered, node bool
		gone             bool
	}{
		"node and instance gone": {true, false, true}, "node is there": {true, true, false},
		"never registered": {false,
			false, false},
	} {
		r := newRig(t, newClaim())
		r.reconcile(t)
		if c.registered {
			r.create(t, joined())
			r.reconcile(t)
		}
		if c.registered && !c.node {
			r.dropNode(t)
		}
		clear(r.cloud.machines)
		r.reconcile(t)
		if gone := r.claim(t).DeletionTimestamp != nil; gone != c.gone {
			t.Errorf("%s: gone %t, want %t", name, gone, c.gone)
		}
		told := slices.ContainsFunc(r.tape.Said(), func(s string) bool {
			return strings.Contains(s,
				"instance fake://u1 is gone")
		})
		if told != c.gone {
			t.Errorf("%s: events %v", name, r.tape.Said())
		}
	}
	controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
		r := newRig(t, newClaim())
		r.reconcile(t)
		r.create(t, joined())
		r.reconcile(t)
		r.dropNode(t)
		clear(r.cloud.machines)
		r.fail(f)
		return r.play(t, func() {})
	}, "get v1.NodePool")
}

// A vanished claim is removed for that reason alone, even if it has also expired. If its node is gone but its instance
// runs, it is handled as before, including its age.
func TestWhatHasVanishedIsNotJudgedFurther(t *testing.T) {
	t.Parallel()
	for _, vanished := range []bool{true, false} {
		c := newClaim()
		c.Spec.ExpireAfter = karpenterv1.NillableDuration{Duration: new(time.Hour)}
		r := newRig(t, c)
		r.reconcile(t)
		r.create(t, joined())
		r.reconcile(t)
		r.dropNode(t)
		if vanished {
			clear(r.cloud.machines)
			r.clock.Advance(time.Hour)
		}
		result := r.reconcile(t)
		said := strings.Join(r.tape.Said(), "\n")
		if strings.Contains(said, "Expired") || strings.Contains(said, "InstanceGone") != vanished {
			t.Errorf("vanished %t: events %q", vanished, said)
		}
		if (result.RequeueAfter == 0) != vanished {
			t.Errorf("vanished %t: asks again after %s", vanished, result.RequeueAfter)
		}
	}
}

// E-55: a process that begins to lead compares every ten seconds for three minutes, then every two.
func TestANewLeaderComparesOften(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	collector := claim.NewCollector(r.config)
	began, comparisons := r.clock.Now(), 0
	for r.clock.Now().Sub(began) < 10*time.Minute {
		result, err := collector.Reconcile(t.Context(), reconcile.Request{})
		if err != nil {
			t.Fatal(err)
		}
		comparisons++
		want := 2 * time.Minute
		if r.clock.Now().Sub(began) < 3*time.Minute {
			want = 10 * time.Second
		}
		if result.RequeueAfter != want {
			t.Fatalf("%s after the start the next comparison is %s later, want %s", r.clock.Now().Sub(began),
				result.RequeueAfter, want)
		}
		r.clock.Advance(result.RequeueAfter)
	}
	if comparisons != 18+4 {
		t.Errorf("%d comparisons in ten minutes, want 18 in the first three and 4 after that", comparisons)
	}
}
