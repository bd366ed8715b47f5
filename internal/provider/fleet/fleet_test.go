package fleet_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
)

// cloud serves one kind of node class, and answers every question with the same error.
type cloud struct {
	provider.Provider
	kind   string
	answer error
	asked  *[]string
}

func (c cloud) Name() string { return strings.ToLower(c.kind) }
func (c cloud) NodeClass() schema.GroupKind {
	return schema.GroupKind{Group: "example.com", Kind: c.kind}
}
func (c cloud) Owns(id string) bool { return strings.HasPrefix(id, c.Name()+"://") }
func (c cloud) Terminate(_ context.Context, id string, _ func() bool) error {
	*c.asked = append(*c.asked, c.Name()+" "+id)
	return c.answer
}
func (c cloud) Get(ctx context.Context, id string) (provider.Instance, error) {
	return provider.Instance{}, c.Terminate(ctx, id, nil)
}

func class(group, kind string) *karpenterv1.NodeClassReference {
	return &karpenterv1.NodeClassReference{Group: group, Kind: kind, Name: "default"}
}

// an object's owner follows from its node class alone.
func TestTheNodeClassSaysWhosePoolsAndClaimsAre(t *testing.T) {
	t.Parallel()
	f := fleet.New(cloud{kind: "A"}, cloud{kind: "B"})
	for _, test := range []struct {
		ref  *karpenterv1.NodeClassReference
		want string
	}{
		{class("example.com", "A"), "a"}, {class("example.com", "B"), "b"}, {class("example.com", "C"), ""},
		{class("other.com", "A"), ""}, {class("", "A"), ""}, {class("example.com", ""), ""}, {nil, ""},
	} {
		got := ""
		if p := f.For(test.ref); p != nil {
			got = p.Name()
		}
		claim, pool := &karpenterv1.NodeClaim{}, &karpenterv1.NodePool{}
		claim.Spec.NodeClassRef, pool.Spec.Template.Spec.NodeClassRef = test.ref, test.ref
		if ours := test.want != ""; got != test.want || f.Serves(test.ref) != ours || f.OwnsClaim(claim) != ours ||
			f.OwnsPool(pool) != ours {
			t.Errorf("%+v: served by %q, claim ours %t, pool ours %t; want %q", test.ref, got, f.OwnsClaim(claim),
				f.OwnsPool(pool), test.want)
		}
	}
	if served := f.Served(); served != "A of example.com, B of example.com" {
		t.Errorf("Served() = %q", served)
	}
	if n := len(slices.Collect(f.Through(func(p provider.Provider) provider.Provider { return p }).All())); n != 2 {
		t.Errorf("%d providers, want 2", n)
	}
}

// a node is ours by its machine; its claim, or without one its pool, may say otherwise.
func TestANodeIsOursByItsMachineAndItsClaim(t *testing.T) {
	t.Parallel()
	f := fleet.New(cloud{kind: "A"}, cloud{kind: "B"})
	for _, test := range []struct {
		id, claim, pool string // kinds of node classes; "" for none
		label           string // the kind that the node names
		want            bool
	}{
		{"a://1", "A", "", "", true}, {"a://1", "", "", "", true}, {"a://1", "", "A", "", true},
		{"a://1", "A", "C", "", true},
		{"a://1", "B", "", "", false}, {"a://1", "C", "A", "", false}, {"a://1", "", "C", "", false},
		{"c://1", "A", "", "", false}, {"c://1", "", "", "", false}, {"", "A", "", "", false}, {"", "", "", "", false},
		// A hand-made claim may have our node class in another program's pool. After the claim is gone, its node shows
		// that.
		{"a://1", "", "C", "A", true}, {"a://1", "", "C", "B", false}, {"a://1", "C", "", "A", false},
		{"c://1", "", "", "A", false},
	} {
		node := &corev1.Node{Spec: corev1.NodeSpec{ProviderID: test.id}}
		if test.label != "" {
			node.Labels = map[string]string{
				fleet.ClassLabel(schema.GroupKind{Group: "example.com", Kind: test.label}): "default",
			}
		}
		var claim *karpenterv1.NodeClaim
		if test.claim != "" {
			claim = &karpenterv1.NodeClaim{
				Spec: karpenterv1.NodeClaimSpec{NodeClassRef: class("example.com", test.claim)},
			}
		}
		var pool *karpenterv1.NodePool
		if test.pool != "" {
			pool = &karpenterv1.NodePool{}
			pool.Spec.Template.Spec.NodeClassRef = class("example.com", test.pool)
		}
		if got := f.OwnsNode(node, claim, pool); got != test.want {
			t.Errorf("machine %q, claim %q, pool %q, label %q: ours is %t, want %t", test.id, test.claim, test.pool,
				test.label, got, test.want)
		}
	}
}

// only the provider that made a machine is asked, and only its answer counts.
func TestOnlyTheOwnerProvesThatAMachineIsGone(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		id     string
		answer error
		want   fleet.Fate
		asked  string
		fails  bool
	}{
		{"a://1", nil, fleet.Unproved, "a a://1", false},
		{"b://1", provider.ErrNotFound, fleet.Gone, "b b://1", false},
		{"b://1", errors.New("timeout"), fleet.Unproved, "b b://1", true},
		{"other://1", provider.ErrNotFound, fleet.NotOurs, "", false},
		{"", provider.ErrNotFound, fleet.NotOurs, "", false},
	} {
		var asked []string
		f := fleet.New(cloud{kind: "A", answer: test.answer, asked: &asked},
			cloud{kind: "B", answer: test.answer, asked: &asked})
		terminate := func(ctx context.Context, id string) (fleet.Fate, error) { return f.Terminate(ctx, id, nil) }
		for name, question := range map[string]func(context.Context, string) (fleet.Fate, error){
			"Find": f.Find, "Terminate": terminate,
		} {
			asked = nil
			fate, err := question(t.Context(), test.id)
			if fate != test.want || (err != nil) != test.fails || strings.Join(asked, ",") != test.asked {
				t.Errorf("%s(%q) with answer %v: %s, error %v, asked %q; want %s, asked %q", name, test.id,
					test.answer, fate, err, asked, test.want, test.asked)
			}
		}
	}
}
