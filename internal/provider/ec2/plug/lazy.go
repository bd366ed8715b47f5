package plug

import (
	"context"
	"fmt"
	"time"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2"
)

// lazy is the provider before and after AWS can be reached. A process starts even without credentials or region, and
// reports that (E-59). Until it has them, it cannot know which machines exist. This is an error, never an empty list.
type lazy struct {
	ec2.Kind
	link *link
}

var _ provider.Provider = lazy{}

// real returns the provider, or an error that says what is missing.
func (l lazy) real() (*ec2.Provider, error) {
	if c := l.link.connected(); c != nil {
		return c.machines, nil
	}
	why := l.link.why()
	return nil, fmt.Errorf("AWS cannot be asked: %s: %s", why.Reason, why.Message)
}

// Catalog implements provider.Provider.
func (l lazy) Catalog(ctx context.Context, className string) (catalog.Catalog, error) {
	p, err := l.real()
	if err != nil {
		return catalog.Catalog{}, &provider.NodeClassNotReadyError{Class: className, Reason: err.Error()}
	}
	return p.Catalog(ctx, className)
}

// Launch implements provider.Provider.
func (l lazy) Launch(ctx context.Context, claim *karpenterv1.NodeClaim,
	notAfter time.Time) (provider.Instance, error) {
	p, err := l.real()
	if err != nil {
		return provider.Instance{}, err
	}
	return p.Launch(ctx, claim, notAfter)
}

// Terminate implements provider.Provider.
func (l lazy) Terminate(ctx context.Context, providerID string, inUse func() bool) error {
	p, err := l.real()
	if err != nil {
		return err
	}
	return p.Terminate(ctx, providerID, inUse)
}

// Get implements provider.Provider.
func (l lazy) Get(ctx context.Context, providerID string) (provider.Instance, error) {
	p, err := l.real()
	if err != nil {
		return provider.Instance{}, err
	}
	return p.Get(ctx, providerID)
}

// List implements provider.Provider.
func (l lazy) List(ctx context.Context) ([]provider.Instance, error) {
	p, err := l.real()
	if err != nil {
		return nil, err
	}
	return p.List(ctx)
}

// Drifted implements provider.Provider.
func (l lazy) Drifted(ctx context.Context, claim *karpenterv1.NodeClaim) (provider.Drift, error) {
	p, err := l.real()
	if err != nil {
		return provider.Drift{}, err
	}
	return p.Drifted(ctx, claim)
}

// Notices implements provider.Provider.
func (l lazy) Notices(ctx context.Context) (provider.Notices, error) {
	p, err := l.real()
	if err != nil {
		return provider.Notices{}, nil // nothing was asked yet, and the connector wakes whoever reads notices
	}
	return p.Notices(ctx)
}

// Acknowledge implements provider.Provider.
func (l lazy) Acknowledge(ctx context.Context, notice provider.Notice) error {
	p, err := l.real()
	if err != nil {
		return err
	}
	return p.Acknowledge(ctx, notice)
}

// MarkUnavailable implements provider.Provider.
func (l lazy) MarkUnavailable(offering provider.Offering) {
	if p, err := l.real(); err == nil {
		p.MarkUnavailable(offering)
	}
}
