package kwok

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	kwokv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenterkwok/v1alpha1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/choose"
)

// The reasons of Launch's *provider.LaunchError.
const (
	ReasonInvalidClaim       = "InvalidNodeClaim"
	ReasonNodeNameTaken      = "NodeNameTaken"
	ReasonInstanceTerminated = "InstanceTerminated"
)

// Launch creates the node of the claim's machine. With a nodeRegistrationDelay it creates a boot record, from which
// [Provider.Boot] creates the node later. Both have the claim's name and UID, which makes Launch idempotent.
//
// notAfter is only checked when the call begins. The API server does not know it, so an abandoned create may land
// later. Names then bound the machines of a pool: only one machine at a time has the name of a claim, and so of a
// slot.
func (p *Provider) Launch(ctx context.Context, claim *karpenterv1.NodeClaim,
	notAfter time.Time) (provider.Instance, error) {
	if !notAfter.IsZero() && p.now().After(notAfter) {
		return provider.Instance{}, fmt.Errorf("launching NodeClaim %s: %w", claim.Name, provider.ErrExpired)
	}
	instance, err := p.launch(ctx, claim)
	if err != nil {
		return provider.Instance{}, fmt.Errorf("launching NodeClaim %s: %w", claim.Name, err)
	}
	return instance, nil
}

func (p *Provider) launch(ctx context.Context, claim *karpenterv1.NodeClaim) (provider.Instance, error) {
	if err := ctx.Err(); err != nil {
		return provider.Instance{}, err
	}
	if err := p.throttled(ctx, callLaunch, claim.Name); err != nil {
		return provider.Instance{}, err
	}
	if claim.UID == "" || claim.Name == "" {
		return provider.Instance{}, &provider.LaunchError{ConditionReason: ReasonInvalidClaim,
			Message: "a claim without name or UID is not one that the API server stored"}
	}
	record, err := p.design(ctx, claim)
	if err != nil || record.later() {
		// The code below cannot see that an earlier call has made the machine already. A failing call would lose the
		// machine. With a delay, a joined machine has no record any more whose name is taken. Without a delay the name
		// of the node is taken.
		if node, err := p.launched(ctx, claim); node != nil || err != nil {
			return instanceOrError(node, err)
		}
	}
	if err != nil {
		return provider.Instance{}, err
	}
	node := record.Node
	err = p.start(ctx, record)
	if apierrors.IsAlreadyExists(err) { // by an earlier call for this claim, or another claim of its name
		node, err = p.launched(ctx, claim)
		if node == nil && err == nil {
			err = fmt.Errorf("the name %s was taken a moment ago and is free again; trying again will help",
				claim.Name)
		}
	}
	return instanceOrError(node, err)
}

// design chooses the claim's machine, and when its node joins.
func (p *Provider) design(ctx context.Context, claim *karpenterv1.NodeClaim) (BootRecord, error) {
	class, err := p.classOf(ctx, claim)
	if err != nil {
		return BootRecord{}, err
	}
	faults, err := p.faultsOf(class)
	if err != nil {
		return BootRecord{}, err
	}
	node, err := p.prepare(ctx, claim, faults)
	if err != nil {
		return BootRecord{}, err
	}
	machine := instanceOf(node)
	delay, never := faults.boot(offeringOf(machine), machine.ClaimUID, p.now())
	if class.Spec.NodeRegistrationDelay != nil {
		delay += class.Spec.NodeRegistrationDelay.Duration
	}
	record := BootRecord{Never: never, Node: node}
	if delay > 0 || never {
		record.Due = p.now().Add(delay)
	}
	return record, nil
}

// later reports whether the machine's node does not join at once.
func (r BootRecord) later() bool { return r.Never || !r.Due.IsZero() }

func instanceOrError(node *corev1.Node, err error) (provider.Instance, error) {
	if err != nil {
		return provider.Instance{}, err
	}
	return instanceOf(node), nil
}

// launched returns the node, or the boot record's node, that an earlier call made for this claim; nil for none.
func (p *Provider) launched(ctx context.Context, claim *karpenterv1.NodeClaim) (*corev1.Node, error) {
	record, err := p.cluster.BootRecord(ctx, claim.Name) // before the node: see find
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("getting boot record %s: %w", claim.Name, err)
	}
	node := record.Node
	joined, err := p.cluster.Node(ctx, claim.Name)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("getting node %s: %w", claim.Name, err)
	}
	if err == nil {
		node = joined
	}
	if node == nil {
		return nil, nil
	}
	if owner := node.Annotations[ClaimUIDAnnotationKey]; owner != string(claim.UID) {
		return nil, &provider.LaunchError{ConditionReason: ReasonNodeNameTaken, Message: fmt.Sprintf(
			"node %s exists and belongs to another claim (UID %q, this one is %q); the name is free once that node is gone",
			node.Name, owner, claim.UID)}
	}
	if !p.isMachine(node) {
		return nil, &provider.LaunchError{ConditionReason: ReasonInstanceTerminated,
			Message: fmt.Sprintf("the machine %s was launched and has been terminated since", node.Name)}
	}
	return node, nil
}

func (p *Provider) classOf(ctx context.Context, claim *karpenterv1.NodeClaim) (*kwokv1alpha1.KWOKNodeClass, error) {
	ref := claim.Spec.NodeClassRef
	if ref == nil || ref.Group != p.NodeClass().Group || ref.Kind != p.NodeClass().Kind {
		return nil, fmt.Errorf("%w: spec.nodeClassRef is %+v; want group %s, kind %s", provider.ErrNodeClassNotFound,
			ref, p.NodeClass().Group, p.NodeClass().Kind)
	}
	return p.nodeClass(ctx, ref.Name)
}

// prepare chooses the offering and returns the future node.
func (p *Provider) prepare(ctx context.Context, claim *karpenterv1.NodeClaim, faults Faults) (*corev1.Node, error) {
	d, err := choose.DemandOf(claim)
	if err != nil {
		return nil, &provider.LaunchError{ConditionReason: ReasonInvalidClaim, Message: err.Error()}
	}
	class := claim.Spec.NodeClassRef.Name
	c, err := p.offered(ctx, class, faults)
	if err != nil {
		return nil, err
	}
	taken, err := p.take(p.correct(claim, c), d, faults, p.shortages.of(class))
	if err != nil {
		return nil, err
	}
	return newNode(claim, d, taken, p.now()), nil
}

// take chooses the cheapest offering with capacity, like a cloud that gets a list. It notes cheaper offerings without
// capacity as short (P-31). In c, offerings known to be short are already unavailable.
func (p *Provider) take(c catalog.Catalog, d choose.Demand, faults Faults,
	known *provider.Shortages) (choose.Choice, error) {
	now := p.now()
	left, refused := faults.left(c, d.Tie, now)
	taken, err := d.Best(left)
	for _, r := range refused {
		if len(d.Problems(c, r.Type, r.Offering)) == 0 &&
			(err != nil || d.Compare(r.Type, r.Offering, taken.Type, taken.Offering) < 0) {
			known.Note(choose.Name(r.Type, r.Offering), now)
		}
	}
	if err == nil {
		known.Clear(choose.Name(taken.Type, taken.Offering))
	}
	return taken, err
}

// start creates the machine at once, or as a durable record if the node class or a fault asks for a delay. Unless the
// name was taken, there may be a new machine of that name now, even if the answer was lost.
func (p *Provider) start(ctx context.Context, record BootRecord) error {
	err := p.create(ctx, record)
	if !apierrors.IsAlreadyExists(err) {
		p.ended.forget(record.Node.Spec.ProviderID)
	}
	return err
}

func (p *Provider) create(ctx context.Context, record BootRecord) error {
	if record.later() {
		if err := p.cluster.CreateBootRecord(ctx, record); err != nil {
			return fmt.Errorf("creating boot record %s: %w", record.Node.Name, err)
		}
		return nil
	}
	if err := p.cluster.CreateNode(ctx, record.Node); err != nil {
		return fmt.Errorf("creating node %s: %w", record.Node.Name, err)
	}
	return nil
}

// Terminate ends a machine. A simulated one is gone at once, so the result is always ErrNotFound, or an error that
// asks for another call. Finalizers may still hold its Node; this is marked, so that it no longer counts.
func (p *Provider) Terminate(ctx context.Context, providerID string, _ func() bool) error {
	if err := p.throttled(ctx, callTerminate, providerID); err != nil {
		return err
	}
	if _, err := p.find(ctx, providerID); err != nil {
		return err
	}
	name := providerID[len(providerIDPrefix):]
	// The record first: if a crash left the record after the node is deleted, the machine would boot again.
	if err := p.cluster.DeleteBootRecord(ctx, name); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting boot record %s: %w", name, err)
	}
	node, err := p.cluster.Node(ctx, name)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("getting node %s: %w", name, err)
	}
	if err == nil && p.isMachine(node) {
		if err := p.end(ctx, node); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return fmt.Errorf("%w: %s is terminated", provider.ErrNotFound, providerID)
}

// end deletes the node of a machine, and marks it in case finalizers hold it. The order matters: a crash in between
// leaves a machine that still counts, so that Terminate is called again. If the node is being deleted and only the
// finalizer of Terminate's caller holds it, it goes after this answer. Then it is enough to remember it (B-12).
func (p *Provider) end(ctx context.Context, node *corev1.Node) error {
	if node.DeletionTimestamp != nil && slices.Equal(node.Finalizers, []string{karpenterv1.TerminationFinalizer}) {
		p.ended.add(node, p.now())
		return nil
	}
	if node.DeletionTimestamp == nil {
		if err := p.cluster.DeleteNode(ctx, node.Name, node.UID); err != nil {
			return fmt.Errorf("deleting node %s: %w", node.Name, err)
		}
	}
	now := p.now().UTC().Format(time.RFC3339)
	if err := p.cluster.AnnotateNode(ctx, node.Name, node.UID, TerminatedAnnotationKey, now); err != nil {
		return fmt.Errorf("marking node %s as terminated: %w", node.Name, err)
	}
	return nil
}
