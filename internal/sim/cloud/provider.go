package cloud

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	kwokv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenterkwok/v1alpha1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/kwok"
)

// Transport takes a call to the cloud and returns what the caller sees. do executes the call.
type Transport func(ctx context.Context, verb, subject string, do func() error) error

// Provider is the cloud for one replica: each call goes through a transport.
type Provider struct {
	cloud *Cloud
	send  Transport
}

var _ provider.Rebooter = (*Provider)(nil)

// NewProvider returns a provider.Provider over the cloud.
func (c *Cloud) NewProvider(send Transport) *Provider { return &Provider{cloud: c, send: send} }

// Name implements provider.Provider.
func (p *Provider) Name() string { return "sim" }

// NodeClass implements provider.Provider. It uses KWOKNodeClass, since the scheme has that already.
func (p *Provider) NodeClass() schema.GroupKind {
	return schema.GroupKind{Group: kwokv1alpha1.Group, Kind: "KWOKNodeClass"}
}

// Owns implements provider.Provider.
func (p *Provider) Owns(providerID string) bool { return strings.HasPrefix(providerID, idPrefix) }

// Catalog implements provider.Provider.
func (p *Provider) Catalog(ctx context.Context, class string) (catalog.Catalog, error) {
	var offered catalog.Catalog
	err := p.send(ctx, "catalog", class, func() (err error) { offered, err = p.cloud.Catalog(ctx, class); return err })
	if err != nil {
		return catalog.Catalog{}, err
	}
	return offered, nil
}

// Launch implements provider.Provider.
func (p *Provider) Launch(ctx context.Context, claim *karpenterv1.NodeClaim,
	notAfter time.Time) (provider.Instance, error) {
	if err := ctx.Err(); err != nil {
		return provider.Instance{}, err
	}
	landing := context.WithoutCancel(ctx) // a call on its way lands, whatever happens to its caller
	var instance provider.Instance
	asked := claim.DeepCopy()
	err := p.send(ctx, "launch", claim.Name,
		func() (err error) { instance, err = p.cloud.Launch(landing, asked, notAfter); return err })
	if err != nil {
		return provider.Instance{}, err
	}
	return instance, nil
}

// Terminate implements provider.Provider.
func (p *Provider) Terminate(ctx context.Context, id string, _ func() bool) error {
	return p.send(ctx, "terminate", id, func() error { return p.cloud.Terminate(ctx, id) })
}

// Get implements provider.Provider.
func (p *Provider) Get(ctx context.Context, id string) (provider.Instance, error) {
	var instance provider.Instance
	err := p.send(ctx, "get machine", id, func() (err error) { instance, err = p.cloud.Get(ctx, id); return err })
	if err != nil {
		return provider.Instance{}, err
	}
	return instance, nil
}

// List implements provider.Provider.
func (p *Provider) List(ctx context.Context) ([]provider.Instance, error) {
	var list []provider.Instance
	err := p.send(ctx, "list machines", "", func() (err error) { list, err = p.cloud.List(ctx); return err })
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Drifted implements provider.Provider: machines of this cloud never differ from their class.
func (p *Provider) Drifted(ctx context.Context, _ *karpenterv1.NodeClaim) (provider.Drift, error) {
	return provider.Drift{}, ctx.Err()
}

// RepairPolicies implements provider.Provider.
func (p *Provider) RepairPolicies() []provider.RepairPolicy {
	const kubelet = 10 * time.Minute
	return []provider.RepairPolicy{
		{ConditionType: corev1.NodeReady, ConditionStatus: corev1.ConditionFalse, Toleration: kubelet},
		{ConditionType: corev1.NodeReady, ConditionStatus: corev1.ConditionUnknown, Toleration: kubelet},
		{ConditionType: kwok.RebootCondition, ConditionStatus: corev1.ConditionTrue, Toleration: time.Minute,
			TerminationGracePeriod: new(time.Minute), Reboot: true},
		{ConditionType: kwok.UnhealthyCondition, ConditionStatus: corev1.ConditionTrue, Toleration: time.Minute,
			TerminationGracePeriod: new(time.Minute)},
	}
}

// Reboot implements provider.Rebooter.
func (p *Provider) Reboot(ctx context.Context, id, operation string) error {
	return p.send(ctx, "reboot", id, func() error { return p.cloud.Reboot(ctx, id, operation) })
}

// Notices implements provider.Provider.
func (p *Provider) Notices(ctx context.Context) (provider.Notices, error) {
	var notices provider.Notices
	err := p.send(ctx, "notices", "", func() (err error) { notices, err = p.cloud.Notices(ctx); return err })
	if err != nil {
		return provider.Notices{}, err
	}
	return notices, nil
}

// Acknowledge implements provider.Provider.
func (p *Provider) Acknowledge(ctx context.Context, notice provider.Notice) error {
	return p.send(ctx, "acknowledge", notice.ID, func() error { return p.cloud.Acknowledge(ctx, notice) })
}

// MarkUnavailable implements provider.Provider.
func (p *Provider) MarkUnavailable(o provider.Offering) { p.cloud.MarkUnavailable(o) }
