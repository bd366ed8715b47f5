// Package fleet holds the providers of a process. It is the one place that decides who owns a pool, a claim, a node or
// a machine. Several programs may manage nodes in one cluster. They share the API, the labels and the
// finalizers, and tell their objects apart by node class. What is not ours counts as capacity, and we never write to
// it.
//
//   - A NodePool or NodeClaim is ours when a provider here serves its node class: [Fleet.Serves].
//   - A Node is ours when its machine belongs to such a provider and nothing says otherwise: [Fleet.OwnsNode].
//   - For machines there are [Fleet.Find] and [Fleet.Terminate], whose answers have three values.
//
// No other package holds a list of providers; internal/tidy checks that.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider"
)

// Fate is what is known about a machine.
type Fate int

// NotOurs: no provider here has such machines, and callers must conclude nothing. Unproved: the machine exists or may
// exist. Gone: its provider has proved that it is gone.
const (
	NotOurs Fate = iota
	Unproved
	Gone
)

// String names the fate.
func (f Fate) String() string { return [...]string{"not ours", "not proved gone", "gone"}[f] }

// Fleet is the providers of a process. It never changes and is safe for concurrent use.
type Fleet struct {
	providers []provider.Provider
}

// New returns the fleet of these providers. Each serves a node class of its own.
func New(providers ...provider.Provider) *Fleet { return &Fleet{providers: slices.Clone(providers)} }

// With returns the fleet with one more provider.
func (f *Fleet) With(p provider.Provider) *Fleet { return New(append(slices.Clone(f.providers), p)...) }

// Through returns the same fleet with each provider wrapped.
func (f *Fleet) Through(wrap func(provider.Provider) provider.Provider) *Fleet {
	wrapped := make([]provider.Provider, len(f.providers))
	for i, p := range f.providers {
		wrapped[i] = wrap(p)
	}
	return &Fleet{providers: wrapped}
}

// All goes through the providers, always in the same order.
func (f *Fleet) All() iter.Seq[provider.Provider] { return slices.Values(f.providers) }

// Served returns a text with the node classes that the providers serve.
func (f *Fleet) Served() string {
	var kinds []string
	for _, p := range f.providers {
		kinds = append(kinds, p.NodeClass().Kind+" of "+p.NodeClass().Group)
	}
	return strings.Join(kinds, ", ")
}

// For returns the provider that serves a node class, nil when none does. None serves a reference that is nil or has no
// group or kind.
func (f *Fleet) For(class *karpenterv1.NodeClassReference) provider.Provider {
	if class == nil || class.Kind == "" {
		return nil
	}
	for _, p := range f.providers {
		if p.NodeClass() == (schema.GroupKind{Group: class.Group, Kind: class.Kind}) {
			return p
		}
	}
	return nil
}

// Serves reports whether objects of this node class are ours.
func (f *Fleet) Serves(class *karpenterv1.NodeClassReference) bool { return f.For(class) != nil }

// OwnsClaim reports whether a NodeClaim is ours. Its pool does not matter: whoever serves the class launches and ends
// the machine.
func (f *Fleet) OwnsClaim(claim *karpenterv1.NodeClaim) bool {
	return f.Serves(claim.Spec.NodeClassRef)
}

// OwnsPool reports whether a NodePool is ours.
func (f *Fleet) OwnsPool(pool *karpenterv1.NodePool) bool {
	return f.Serves(pool.Spec.Template.Spec.NodeClassRef)
}

// OwnerOf returns the provider whose machines have provider IDs of this form, nil when there is none.
func (f *Fleet) OwnerOf(providerID string) provider.Provider {
	for _, p := range f.providers {
		if providerID != "" && p.Owns(providerID) {
			return p
		}
	}
	return nil
}

// OwnsNode reports whether a node is ours: its provider ID belongs to a provider here, and its claim has that
// provider's node class. A node without a claim is ours by its provider ID, unless its pool is another program's and
// it lacks the label of that node class. claim and pool are nil when there is none.
func (f *Fleet) OwnsNode(node *corev1.Node, claim *karpenterv1.NodeClaim, pool *karpenterv1.NodePool) bool {
	owner := f.OwnerOf(node.Spec.ProviderID)
	switch {
	case owner == nil:
		return false
	case claim != nil:
		serving := f.For(claim.Spec.NodeClassRef)
		return serving != nil && serving.NodeClass() == owner.NodeClass()
	}
	return node.Labels[ClassLabel(owner.NodeClass())] != "" || pool == nil || f.OwnsPool(pool)
}

// ClassLabel returns the label with which nodes name their node class of a kind, as in Karpenter.
func ClassLabel(kind schema.GroupKind) string { return kind.Group + "/" + strings.ToLower(kind.Kind) }

// Find looks for a machine. An error means that nothing is proved.
func (f *Fleet) Find(ctx context.Context, providerID string) (Fate, error) {
	return f.ask(providerID, func(p provider.Provider) error {
		_, err := p.Get(ctx, providerID)
		return err
	})
}

// Terminate ends a machine. Unproved means that the provider has accepted this and is still at it. A machine that is
// not ours is left alone.
func (f *Fleet) Terminate(ctx context.Context, providerID string, inUse func() bool) (Fate, error) {
	return f.ask(providerID, func(p provider.Provider) error { return p.Terminate(ctx, providerID, inUse) })
}

// ask asks only the machine's own provider: another one would not find the machine, which proves nothing.
func (f *Fleet) ask(providerID string, question func(provider.Provider) error) (Fate, error) {
	p := f.OwnerOf(providerID)
	if p == nil {
		return NotOurs, nil
	}
	err := question(p)
	switch {
	case err == nil:
		return Unproved, nil
	case errors.Is(err, provider.ErrNotFound):
		return Gone, nil
	}
	return Unproved, fmt.Errorf("asking %s about machine %s: %w", p.Name(), providerID, err)
}

// CanReboot reports whether machines with provider IDs of this form can be rebooted.
func (f *Fleet) CanReboot(providerID string) bool { return provider.CanReboot(f.OwnerOf(providerID)) }

// Reboot asks for a reboot of a machine. The error is a *provider.RebootError if no provider here can reboot it.
func (f *Fleet) Reboot(ctx context.Context, providerID, operation string) error {
	p := f.OwnerOf(providerID)
	if p == nil {
		return &provider.RebootError{Message: "machine " + providerID + " is of no provider here"}
	}
	rebooter, can := p.(provider.Rebooter)
	if !can {
		return &provider.RebootError{Message: "provider " + p.Name() + " cannot reboot machines"}
	}
	if err := rebooter.Reboot(ctx, providerID, operation); err != nil {
		return fmt.Errorf("asking %s to reboot machine %s: %w", p.Name(), providerID, err)
	}
	return nil
}
