package kwok

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	kwokv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenterkwok/v1alpha1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/provider"
)

// noticeEvery is how often notices are asked for while faults may bring new ones.
const noticeEvery = 5 * time.Second

// faultsOf returns the faults of a node class with those of all. Faults that cannot be read make the class not ready: a
// trial of something else than what was meant would be worth nothing.
func (p *Provider) faultsOf(class *kwokv1alpha1.KWOKNodeClass) (Faults, error) {
	text := class.Annotations[FaultsAnnotationKey]
	if text == "" {
		return p.faults, nil
	}
	own, err := ParseFaults([]byte(text))
	if err == nil {
		err = own.check(p.inventory.catalog)
	}
	if err != nil {
		return Faults{}, &provider.NodeClassNotReadyError{Class: class.Name, Reason: fmt.Sprintf("annotation %s: %v", FaultsAnnotationKey, err)}
	}
	return p.faults.and(own), nil
}

// throttled returns an error when a call is refused because of its rate. Clouds count calls for an account, so what one
// node class says of throttling is true of all.
func (p *Provider) throttled(ctx context.Context, call, subject string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	classes, err := p.cluster.NodeClasses(ctx)
	if err != nil {
		return fmt.Errorf("listing KWOKNodeClasses: %w", err)
	}
	rules := p.faults
	for _, class := range classes {
		if own, err := ParseFaults([]byte(class.Annotations[FaultsAnnotationKey])); err == nil { // else the class is not ready, and says why
			rules = rules.and(own)
		}
	}
	if rules.throttled(call, subject, p.now()) {
		return fmt.Errorf("%s: %w", call, provider.ErrThrottled)
	}
	return nil
}

// Drifted says what the faults of the claim's node class say: a simulated machine is always what its class asks for. The
// machine is as old as the claim.
func (p *Provider) Drifted(ctx context.Context, claim *karpenterv1.NodeClaim) (string, error) {
	class, err := p.classOf(ctx, claim)
	var notReady *provider.NodeClassNotReadyError
	if errors.Is(err, provider.ErrNodeClassNotFound) || errors.As(err, &notReady) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	faults, err := p.faultsOf(class)
	if err != nil {
		return "", nil // the class is not ready, and says why
	}
	return faults.drifted(provider.Instance{
		ClaimUID: string(claim.UID), Type: claim.Labels[string(catalog.LabelInstanceType)], Zone: claim.Labels[string(catalog.LabelZone)],
		CapacityType: claim.Labels[karpenterv1.CapacityTypeLabelKey], Launched: claim.CreationTimestamp.Time,
	}, p.now()), nil
}

// Notices returns the interruptions that faults have brought, or somebody by hand with [InterruptedAnnotationKey], of
// machines that have joined. Each stands until its machine is gone.
func (p *Provider) Notices(ctx context.Context) (provider.Notices, error) {
	if err := ctx.Err(); err != nil {
		return provider.Notices{}, err
	}
	classes, err := p.cluster.NodeClasses(ctx)
	if err != nil {
		return provider.Notices{}, fmt.Errorf("listing KWOKNodeClasses: %w", err)
	}
	var notices provider.Notices
	rules := map[string]Faults{} // by class
	for _, class := range classes {
		faults, err := p.faultsOf(class)
		if err != nil {
			continue // it is not ready, and says why
		}
		rules[class.Name] = faults
		if len(faults.interruptions) > 0 {
			notices.Again = noticeEvery
		}
	}
	nodes, err := p.cluster.Nodes(ctx)
	if err != nil {
		return provider.Notices{}, fmt.Errorf("listing nodes: %w", err)
	}
	for _, node := range nodes {
		if !isMachine(node) {
			continue
		}
		if value, found := node.Annotations[InterruptedAnnotationKey]; found {
			gone, _ := time.Parse(time.RFC3339, value) // zero, not known, for any other value
			notices.List = append(notices.List, provider.Notice{ID: node.Spec.ProviderID, Kind: provider.SpotInterrupted, ProviderID: node.Spec.ProviderID, Gone: gone})
		} else if notice, found := rules[node.Annotations[ClassAnnotationKey]].interrupted(instanceOf(node), p.now()); found {
			notices.List = append(notices.List, notice)
		}
	}
	slices.SortFunc(notices.List, func(a, b provider.Notice) int { return strings.Compare(a.ID, b.ID) })
	return notices, nil
}

// Acknowledge does nothing: a notice stands until its machine is gone.
func (p *Provider) Acknowledge(ctx context.Context, _ provider.Notice) error { return ctx.Err() }

// MarkUnavailable takes an offering out of the catalogue for a while.
func (p *Provider) MarkUnavailable(offering provider.Offering) { p.shortages.Note(offering, p.now()) }
