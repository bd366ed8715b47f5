package node_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/controller/node"
)

// ours owns what is of the kind KWOKNodeClass, and machines with IDs of kwok.
type ours struct{ *cloud }

func (ours) serves(ref *karpenterv1.NodeClassReference) bool {
	return ref != nil && ref.Kind == "KWOKNodeClass"
}
func (o ours) OwnsPool(pool *karpenterv1.NodePool) bool {
	return o.serves(pool.Spec.Template.Spec.NodeClassRef)
}
func (o ours) OwnsClaim(claim *karpenterv1.NodeClaim) bool { return o.serves(claim.Spec.NodeClassRef) }
func (o ours) OwnsNode(node *corev1.Node, claim *karpenterv1.NodeClaim, pool *karpenterv1.NodePool) bool {
	switch {
	case len(node.Spec.ProviderID) < 4 || node.Spec.ProviderID[:4] != "kwok":
		return false
	case claim != nil:
		return o.OwnsClaim(claim)
	}
	return pool == nil || o.OwnsPool(pool)
}

func classOf(kind string) *karpenterv1.NodeClassReference {
	return &karpenterv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: kind, Name: "default"}
}

// a deleted node is ended only if it is ours. Formerly an unready one lost its finalizer, since no provider
// found its machine, and a ready one was tainted and drained.
func TestNodesOfOthersAreNotEnded(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		id          string
		class       string // of the claim; "" for no claim
		unseen      bool   // the cache does not show the claim
		pool        string // class of the pool; "" for no pool
		ours, ready bool
	}{
		"ours":                         {id: "kwok://n1", class: "KWOKNodeClass", ours: true},
		"ours, without a claim":        {id: "kwok://n1", ours: true},
		"ours, in a pool of another":   {id: "kwok://n1", class: "KWOKNodeClass", pool: "OtherNodeClass", ours: true},
		"another cloud's":              {id: "other://n1", class: "OtherNodeClass"},
		"another cloud's, ready":       {id: "other://n1", class: "OtherNodeClass", ready: true},
		"another cloud's, no claim":    {id: "other://n1"},
		"no machine":                   {},
		"another program's":            {id: "kwok://n1", class: "OtherNodeClass"},
		"another program's, not shown": {id: "kwok://n1", class: "OtherNodeClass", unseen: true},
		"ours, not shown":              {id: "kwok://n1", class: "KWOKNodeClass", unseen: true, ours: true},
		"of another's pool":            {id: "kwok://n1", pool: "OtherNodeClass"},
		"of a pool of ours":            {id: "kwok://n1", pool: "KWOKNodeClass", ours: true},
		"our claim, another's machine": {id: "other://n1", class: "KWOKNodeClass"},
		"our claim's machine, deleting": {id: "kwok://n1", class: "KWOKNodeClass", pool: "KWOKNodeClass", ours: true,
			ready: true},
	} {
		n, claim := dying()
		n.Spec.ProviderID, n.Labels = test.id, map[string]string{karpenterv1.NodePoolLabelKey: "p"}
		if !test.ready {
			n.Status.Conditions = nil
		}
		objects := []client.Object{n}
		if test.class != "" {
			claim.Spec.NodeClassRef, claim.Status.ProviderID = classOf(test.class), test.id
			if test.unseen {
				claim.Status.ProviderID = ""
			}
			n.OwnerReferences = []metav1.OwnerReference{
				{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: claim.Name, UID: claim.UID},
			}
			objects = append(objects, claim)
		}
		if test.pool != "" {
			pool := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
			pool.Spec.Template.Spec.NodeClassRef = classOf(test.pool)
			objects = append(objects, pool)
		}
		r := newRig(t, objects...)
		r.cloud.left = -1 // the machine is not found
		r.fleet(ours{r.cloud})
		r.reconcile(t)
		r.clock.Advance(5 * time.Second)
		r.reconcile(t)
		var fresh corev1.Node
		err := r.server.Get(t.Context(), types.NamespacedName{Name: "n1"}, &fresh)
		if gone := client.IgnoreNotFound(err) == nil && err != nil; gone != test.ours {
			t.Errorf("%s: let go is %t, want %t", name, gone, test.ours)
		}
		if err == nil && (len(fresh.Spec.Taints) != 0 || len(fresh.Labels) != 1) {
			t.Errorf("%s: taints %v, labels %v; want it left alone", name, fresh.Spec.Taints, fresh.Labels)
		}
	}
}

// strict makes the controller ask f, and an API server that refuses a request without a name, as the real one does.
// It returns the names of the NodeClaims that were asked for.
func (r *rig) strict(f node.Fleet) (asked *[]string) {
	asked = new([]string)
	server := interceptor.NewClient(r.server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			options ...client.GetOption) error {
			if key.Name == "" {
				return errors.New("resource name may not be empty")
			}
			if _, is := o.(*karpenterv1.NodeClaim); is {
				*asked = append(*asked, key.Name)
			}
			return c.Get(ctx, key, o, options...)
		},
	})
	r.step = node.New(node.Config{
		Client: server, Live: server, Fleet: f, Events: r.tape, Metrics: metrics.New(prometheus.NewRegistry()),
		Now: r.clock.Now, Log: logr.Discard(),
	})
	return asked
}

// what decides whose a node is: the NodeClaim that names the machine, preferably ours; else the one that owns
// the node, if it is still the same; else the pool that the node names.
func TestWhatSaysWhoseANodeIs(t *testing.T) {
	t.Parallel()
	ownedBy := func(kind, name string, uid types.UID) metav1.OwnerReference {
		return metav1.OwnerReference{Kind: kind, Name: name, UID: uid}
	}
	claim := func(name, class, id string) *karpenterv1.NodeClaim {
		_, c := dying()
		c.Name, c.UID, c.Spec.NodeClassRef, c.Status.ProviderID = name, types.UID(name), classOf(class), id
		return c
	}
	const id, mine, other = "kwok://n1", "KWOKNodeClass", "OtherNodeClass"
	for name, test := range map[string]struct {
		claims []*karpenterv1.NodeClaim
		owners []metav1.OwnerReference
		asked  []string // of the API server
		ours   bool
	}{
		"nothing":                       {ours: true},
		"another's NodeClaim, no owner": {claims: []*karpenterv1.NodeClaim{claim("a", other, id)}},
		"two of others": {claims: []*karpenterv1.NodeClaim{claim("a", other, id), claim("b", other,
			id)}},
		"ours, and another's": {claims: []*karpenterv1.NodeClaim{claim("a", mine, id), claim("b", other, id)},
			ours: true},
		"another's, and ours": {claims: []*karpenterv1.NodeClaim{claim("a", other, id), claim("b", mine, id)},
			ours: true},
		"an owner that came again": {claims: []*karpenterv1.NodeClaim{claim("a", other, "")},
			owners: []metav1.OwnerReference{ownedBy("NodeClaim", "a", "old")}, asked: []string{"a"}, ours: true},
		"a machine, and another's": {claims: []*karpenterv1.NodeClaim{claim("a", other, "")},
			owners: []metav1.OwnerReference{ownedBy("Machine", "m", "m"), ownedBy("NodeClaim", "a",
				"a")}, asked: []string{"a"}},
		"a machine of the same name alone": {claims: []*karpenterv1.NodeClaim{claim("a", other, "")},
			owners: []metav1.OwnerReference{ownedBy("Machine", "a", "m")}, ours: true},
	} {
		n, _ := dying()
		taint(n)
		n.OwnerReferences = test.owners
		objects := []client.Object{n}
		for _, c := range test.claims {
			objects = append(objects, c)
		}
		r := newRig(t, objects...)
		asked := r.strict(ours{r.cloud})
		r.clock.Advance(5 * time.Second)
		r.reconcile(t)
		if gone := r.gone(t); gone != test.ours {
			t.Errorf("%s: let go is %t, want %t", name, gone, test.ours)
		}
		if !slices.Equal(*asked, test.asked) {
			t.Errorf("%s: asked for the NodeClaims %v, want %v", name, *asked, test.asked)
		}
	}
}

// A node that Joiner has let go, and that somebody else's finalizer keeps, is theirs; so are its pods and its
// NodeClaim.
func TestANodeThatOthersKeepIsLeftAlone(t *testing.T) {
	t.Parallel()
	n, claim := dying()
	n.Finalizers, claim.DeletionTimestamp = []string{"example.com/kept"}, nil
	r := newRig(t, n, claim, pod("a"))
	r.reconcile(t)
	var fresh corev1.Node
	var left karpenterv1.NodeClaim
	for name, o := range map[string]client.Object{"n1": &fresh, "c1": &left} {
		if err := r.server.Get(t.Context(), types.NamespacedName{Name: name}, o); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.evicted) != 0 || len(fresh.Spec.Taints) != 0 || left.DeletionTimestamp != nil {
		t.Errorf("evicted %v, taints %v, NodeClaim deleted %v; want nothing done", r.evicted, fresh.Spec.Taints,
			left.DeletionTimestamp)
	}
}
