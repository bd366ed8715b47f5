package ec2

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/choose"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launcher"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launchid"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/machines"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/offering"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/tag"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
)

// List returns the machines of this cluster. A machine too young to know its claim comes with the next list.
func (p *Provider) List(ctx context.Context) ([]provider.Instance, error) {
	listing := p.listings.Add(1)
	shown, err := p.machines.List(ctx)
	if err != nil {
		return nil, err
	}
	claims, err := p.config.Cluster.Claims(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing NodeClaims: %w", err)
	}
	owners, err := p.launcher.Whose(ctx, tracesOf(shown))
	if err != nil {
		return nil, err
	}
	byUID := map[string]*karpenterv1.NodeClaim{}
	served := map[string]bool{} // by name: whether the claim has a machine
	for _, claim := range claims {
		byUID[string(claim.UID)] = claim
		served[claim.Name] = claim.Status.ProviderID != ""
	}
	var list []provider.Instance
	seen := map[string]machines.Machine{}
	for _, m := range shown {
		id := m.ProviderID()
		seen[id] = m
		if uid := owners.Claims[id]; uid != "" || owners.Orphans[id] || m.Ending {
			i := p.instance(ctx, m, uid, byUID[uid])
			if owners.Orphans[id] && served[i.ClaimName] {
				// a second machine for that claim: with the name it would live as long as the claim (E-38)
				i.ClaimName = ""
			}
			if mark, handedOut := owners.Marks[id]; handedOut {
				i.Fence = provider.Fence{Annotation: launchid.DealerKey, Value: mark}
			}
			list = append(list, i)
		}
	}
	p.saw(listing, seen)
	slices.SortFunc(list, func(a, b provider.Instance) int { return strings.Compare(a.ProviderID, b.ProviderID) })
	return list, nil
}

// saw keeps a listing, for questions about drift, and forgets machines of launches that are long gone. Listings have
// numbers: one that was requested before the last stored one is out of date and ignored.
func (p *Provider) saw(listing int64, seen map[string]machines.Machine) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if listing < p.lastListing {
		return
	}
	p.lastSeen, p.lastListing = seen, listing
	long := p.config.Clock.Now().Add(-time.Hour)
	maps.DeleteFunc(p.brought, func(id string, i provider.Instance) bool {
		_, listed := seen[id]
		return !listed && i.Launched.Before(long)
	})
	maps.DeleteFunc(p.spread, func(id string, _ offering.Pool) bool {
		_, listed := seen[id]
		_, brought := p.brought[id]
		return listed || !brought
	})
	maps.DeleteFunc(p.tagged, func(id string, tags map[string]string) bool {
		m, listed := seen[id]
		_, brought := p.brought[id]
		maps.DeleteFunc(tags, func(key, value string) bool { return m.Tags[key] == value })
		return len(tags) == 0 || !listed && !brought
	})
}

// tracesOf returns the machines as recovery needs them.
func tracesOf(list []machines.Machine) []launchid.Instance {
	traces := make([]launchid.Instance, len(list))
	for i, m := range list {
		traces[i] = launchid.Instance{
			ProviderID: m.ProviderID(), Launch: launchid.ID(m.Tags[launchid.Key]),
			ClaimName: m.Tags[launchid.ClaimKey], Launched: m.Launched, Ending: m.Ending || m.Gone,
		}
	}
	return traces
}

// Get returns one machine. An instance that runs is never [provider.ErrNotFound], even if it has another cluster's tag
// (see checkOurs).
func (p *Provider) Get(ctx context.Context, providerID string) (provider.Instance, error) {
	before, _ := p.recall(providerID)
	m, err := p.machines.Get(ctx, providerID, before.Launched)
	var ended *machines.EndedError
	if errors.As(err, &ended) {
		p.ended(ctx, providerID, ended)
	}
	if errors.Is(err, provider.ErrNotFound) {
		p.forget(providerID)
	}
	if err == nil {
		err = p.checkOurs(m, providerID)
	}
	if err != nil {
		return provider.Instance{}, err
	}
	claims, err := p.config.Cluster.Claims(ctx)
	if err != nil {
		return provider.Instance{}, fmt.Errorf("listing NodeClaims: %w", err)
	}
	uid := before.ClaimUID
	var owner *karpenterv1.NodeClaim
	for _, claim := range claims {
		if claim.Status.ProviderID == providerID || uid != "" && string(claim.UID) == uid {
			uid, owner = string(claim.UID), claim
		}
	}
	return p.instance(ctx, m, uid, owner), nil
}

// checkOurs returns an error if a machine is in another zone than its provider ID says, or has the tag of another
// cluster. Neither proves that it is gone: somebody has mistyped the cluster's name or changed the tag, or a claim of
// another cluster was restored here. So nothing is concluded, and the machine is not ended, until that is corrected. A
// machine that has lost the tag is that of the claim or the node that names it.
func (p *Provider) checkOurs(m machines.Machine, providerID string) error {
	if m.ProviderID() != providerID {
		return fmt.Errorf("instance %s is in zone %q, and the provider ID is %q: want %q", m.InstanceID, m.Zone,
			providerID, m.ProviderID())
	}
	if name := m.Tags[tag.ClusterName]; name != "" && name != p.config.Name {
		return fmt.Errorf("instance %s runs with the tag %s=%s, and --cluster-name is %q: correct the one that is wrong",
			m.InstanceID, tag.ClusterName, name, p.config.Name)
	}
	return nil
}

// Terminate ends a machine.
func (p *Provider) Terminate(ctx context.Context, providerID string, inUse func() bool) error {
	before, _ := p.recall(providerID)
	err := p.machines.End(ctx, providerID, before.Launched, inUse)
	p.countEnd(providerID, err)
	if errors.Is(err, provider.ErrNotFound) {
		p.forget(providerID)
	}
	return err
}

// leaving returns the machines of claims that are being deleted: they will be ended sooner or later (E-61).
func (p *Provider) leaving(ctx context.Context) []string {
	claims, err := p.config.Cluster.Claims(ctx)
	if err != nil {
		return nil // then End waits for none of them
	}
	var ids []string
	for _, claim := range claims {
		if claim.DeletionTimestamp != nil && claim.Status.ProviderID != "" {
			ids = append(ids, claim.Status.ProviderID)
		}
	}
	return ids
}

// instance returns what is known of a machine. claim is its claim, nil if it no longer has one or nobody has read it
// yet.
func (p *Provider) instance(ctx context.Context, m machines.Machine, uid string,
	claim *karpenterv1.NodeClaim) provider.Instance {
	i, known := p.recall(m.ProviderID())
	if !known || i.Labels == nil { // it was not returned yet: the caller may have given up
		i = p.compose(ctx, m, claim)
	}
	i.ProviderID, i.ImageID, i.Launched, i.Terminating = m.ProviderID(), m.Image, m.Launched, m.Ending
	i.ClaimUID = uid
	if claim != nil {
		i.ClaimName = claim.Name
	} else if i.ClaimName == "" {
		i.ClaimName = m.Tags[launchid.ClaimKey]
	}
	return i
}

// compose builds the instance of a machine that this process has not launched.
func (p *Provider) compose(ctx context.Context, m machines.Machine, claim *karpenterv1.NodeClaim) provider.Instance {
	i := provider.Instance{
		Type: m.Type, Zone: m.Zone, CapacityType: m.CapacityType, Price: p.priceOf(m.Type, m.Zone, m.CapacityType),
		Labels: map[string]string{},
	}
	if claim != nil {
		maps.Copy(i.Labels, claim.Labels)
	}
	i.Labels[string(catalog.LabelInstanceType)], i.Labels[string(catalog.LabelZone)] = m.Type, m.Zone
	i.Labels[string(catalog.LabelCapacityType)] = m.CapacityType
	class, err := p.config.Cluster.NodeClass(ctx, m.Tags[tag.Class])
	if err != nil {
		return i // the class is gone; its machines are what they are
	}
	offered, err := p.catalogOf(ctx, class)
	if err != nil {
		return i
	}
	if t, found := typeIn(offered, m.Type); found {
		i.Capacity, i.Allocatable = choose.Demand{}.Resources(t)
		copySingle(i.Labels, t.Labels)
		for _, o := range t.Offerings {
			if o.Zone == m.Zone && o.CapacityType == m.CapacityType && isOf(m.Reservation)(o) {
				copySingle(i.Labels, o.Labels)
				i.Price = o.Price
			}
		}
	}
	if m.Tenancy != "" { // the class may offer another tenancy by now
		i.Labels[string(offering.LabelTenancy)] = m.Tenancy
	}
	return i
}

// copySingle adds the labels with exactly one possible value.
func copySingle(labels map[string]string, set requirement.Set) {
	for r := range set.All() {
		if value, single := r.Single(); single && !r.AllowsAbsent() {
			labels[string(r.Key())] = value
		}
	}
}

// ports implements the launcher's ports.
type ports struct{ *Provider }

var _ launcher.Ports[*order] = ports{}

// Claims implements launcher.Ports.
func (p ports) Claims(ctx context.Context) ([]launchid.Claim, error) {
	claims, err := p.config.Cluster.Claims(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]launchid.Claim, len(claims))
	for i, claim := range claims {
		list[i] = traceOf(claim)
	}
	return list, nil
}

func traceOf(claim *karpenterv1.NodeClaim) launchid.Claim {
	return launchid.Claim{
		UID: string(claim.UID), Name: claim.Name, Launch: launchid.ID(claim.Annotations[launchid.Key]),
		Dealer:     claim.Annotations[launchid.DealerKey],
		ProviderID: claim.Status.ProviderID, Deleting: claim.DeletionTimestamp != nil,
	}
}

// Intend implements launcher.Ports.
func (p ports) Intend(ctx context.Context, claim launchid.Claim, launch launchid.ID, mark string) error {
	p.mu.Lock()
	asking := p.asking[claim.UID]
	p.mu.Unlock()
	if asking == nil {
		return errors.New("nobody asks for its machine any more")
	}
	return p.config.Cluster.Intend(ctx, bearing(asking, claim), launch, mark)
}

// bearing returns a claim with the launch and the mark that the launcher knows: the read object may lack what this
// process has written since.
func bearing(read *karpenterv1.NodeClaim, claim launchid.Claim) *karpenterv1.NodeClaim {
	known := *read
	for key, value := range map[string]string{launchid.Key: string(claim.Launch), launchid.DealerKey: claim.Dealer} {
		if value != read.Annotations[key] && value != "" {
			known.Annotations = maps.Clone(known.Annotations)
			if known.Annotations == nil {
				known.Annotations = map[string]string{}
			}
			known.Annotations[key] = value
		}
	}
	return &known
}

// Mark implements launcher.Ports.
func (p ports) Mark(ctx context.Context, mark string,
	which func([]launchid.Claim) []launchid.Claim) ([]launchid.Claim, error) {
	live, err := p.config.Cluster.LiveClaims(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading NodeClaims: %w", err)
	}
	claims, byUID := make([]launchid.Claim, len(live)), map[string]int{}
	for i, claim := range live {
		claims[i] = traceOf(claim)
		byUID[claims[i].UID] = i
	}
	chosen := which(slices.Clone(claims))
	failures, gone := make([]error, len(chosen)), make([]bool, len(live))
	timer.Each(p.config.Clock, markers, len(chosen), func(n int) {
		i := byUID[chosen[n].UID]
		switch marked, err := p.config.Cluster.Mark(ctx, live[i], mark); {
		case apierrors.IsNotFound(err):
			gone[i] = true
		case err != nil:
			failures[n] = fmt.Errorf("marking NodeClaim %s: %w", chosen[n].Name, err)
		default:
			claims[i] = traceOf(marked)
		}
	})
	var left []launchid.Claim
	for i, claim := range claims {
		if !gone[i] {
			left = append(left, claim)
		}
	}
	return left, errors.Join(failures...)
}

// markers is how many claims are marked concurrently.
const markers = 16

// Of implements launcher.Ports.
func (p ports) Of(ctx context.Context, launches []launchid.ID) ([]launchid.Instance, error) {
	list, err := p.machines.OfLaunches(ctx, launches)
	return tracesOf(list), err
}
