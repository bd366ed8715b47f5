package ec2

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/choose"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/batch"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launch"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launcher"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launchid"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/offering"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/subnet"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/tag"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/template"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/userdata"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// The reasons of Launch's *provider.LaunchError, beside codes of AWS.
const (
	ReasonInvalidClaim = "InvalidNodeClaim"
	ReasonTemplate     = "LaunchTemplateInvalid"
	ReasonUnauthorized = "Unauthorized"
)

// order is what a claim asks of EC2, the same for claims that share a call. It is immutable.
type order struct {
	class     *awsv1.EC2NodeClass
	request   launch.Request // without id and count
	templates map[string]*awsec2.CreateLaunchTemplateInput
	asked     string                 // by the claim, for messages
	needs     map[string]subnet.Need // by type
	placement offering.Placement     // zero for none
}

// pool returns the capacity pool of EC2 for one of the order's overrides.
func (o *order) pool(override launch.Override, capacityType string) offering.Pool {
	return offering.Pool{
		Type: override.Type, Zone: override.Zone, CapacityType: capacityType,
		Reservation: override.Reservation, PlacementGroup: o.placement.ID,
	}
}

// Launch launches the claim's machine. EC2 does not know the deadline: a call sent before notAfter and delayed on its
// way may land later. Its machines are then collected.
func (p *Provider) Launch(ctx context.Context, claim *karpenterv1.NodeClaim,
	notAfter time.Time) (provider.Instance, error) {
	instance, err := p.launch(ctx, claim, notAfter)
	if err != nil {
		return provider.Instance{}, fmt.Errorf("launching NodeClaim %s: %w", claim.Name, err)
	}
	return instance, nil
}

func (p *Provider) launch(ctx context.Context, claim *karpenterv1.NodeClaim,
	notAfter time.Time) (provider.Instance, error) {
	if err := ctx.Err(); err != nil {
		return provider.Instance{}, err
	}
	if !notAfter.IsZero() && p.config.Clock.Now().After(notAfter) {
		return provider.Instance{}, provider.ErrExpired
	}
	if claim.UID == "" || claim.Name == "" {
		return provider.Instance{}, &provider.LaunchError{ConditionReason: ReasonInvalidClaim,
			Message: "a claim without name or UID is not one that the API server stored"}
	}
	ref := claim.Spec.NodeClassRef
	if ref == nil || ref.Group != p.NodeClass().Group || ref.Kind != p.NodeClass().Kind {
		return provider.Instance{}, fmt.Errorf("%w: spec.nodeClassRef is %+v; want group %s, kind %s",
			provider.ErrNodeClassNotFound, ref, p.NodeClass().Group, p.NodeClass().Kind)
	}
	d, err := choose.DemandOf(claim)
	if err != nil {
		return provider.Instance{}, &provider.LaunchError{ConditionReason: ReasonInvalidClaim, Message: err.Error()}
	}
	class, err := p.class(ctx, ref.Name)
	if err != nil {
		return provider.Instance{}, err
	}
	moment, err := p.keptOf(ctx, class)
	if err == nil {
		err = p.unasked(class, claim, d.Requirements)
	}
	if err != nil {
		return provider.Instance{}, err
	}
	offered, ranked := moment.result.Catalog, false
	if p.config.Correct != nil {
		asSold := offered
		offered = p.config.Correct(claim, asSold)
		ranked = !slices.EqualFunc(asSold.Types, offered.Types, samePrices)
	}
	make := func() (*order, error) { return p.orderOf(ctx, claim, class, d, offered, ranked) }
	var o *order
	if same(offered, moment.result.Catalog) {
		o, err = moment.orders.of(claim, make)
	} else {
		o, err = make()
	}
	if err != nil {
		// if the claim has its machine, missing capacity does not matter
		if known := p.launcher.Known(traceOf(claim)); known.ProviderID != "" {
			i, err := p.Get(ctx, known.ProviderID)
			i.Fence = fenceOf(known.Mark)
			return i, err
		}
		return provider.Instance{}, err
	}
	o, done := p.asks(claim, o)
	defer done()
	key, err := o.key()
	if err != nil {
		return provider.Instance{}, err
	}
	with := translate.CompanyOf(claim)
	machine, err := p.launcher.Do(ctx, launcher.Order[*order]{Claim: traceOf(claim), Key: key, Request: o,
		NotAfter: notAfter, With: batch.Company{Group: with.Group, Size: with.Size, Name: string(claim.UID)}})
	if err != nil {
		return provider.Instance{}, err
	}
	i, err := p.launched(ctx, machine.ProviderID, claim, d, offered)
	i.Fence = fenceOf(machine.Mark)
	return i, err
}

// fenceOf returns the fence of a machine that was handed out with a mark, "" if no other claim can get it.
func fenceOf(mark string) provider.Fence {
	if mark == "" {
		return provider.Fence{}
	}
	return provider.Fence{Annotation: launchid.DealerKey, Value: mark}
}

// asks notes a claim while its launch is requested, and returns what to ask for.
func (p *Provider) asks(claim *karpenterv1.NodeClaim, o *order) (spread *order, done func()) {
	spread, release := p.spreadAlike(o)
	p.mu.Lock()
	defer p.mu.Unlock()
	uid := string(claim.UID)
	p.asking[uid] = claim
	return spread, func() {
		release()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.asking, uid)
	}
}

// launched returns the instance that a launch has brought for the claim.
func (p *Provider) launched(ctx context.Context, id string, claim *karpenterv1.NodeClaim, d choose.Demand,
	offered catalog.Catalog) (
	provider.Instance, error,
) {
	i, known := p.recall(id)
	reservation := p.reservedIn(id)
	if !known { // found by its tags
		found, err := p.machines.Get(ctx, id, time.Time{})
		if err != nil {
			return provider.Instance{}, err
		}
		reservation = found.Reservation
		i = provider.Instance{ProviderID: id, ImageID: found.Image, Type: found.Type, Zone: found.Zone,
			CapacityType: found.CapacityType, Launched: found.Launched,
			Price: p.priceOf(found.Type, found.Zone, found.CapacityType)}
	}
	if i.ClaimUID == string(claim.UID) && i.Labels != nil {
		return i, nil // as it was returned before
	}
	i.ClaimName, i.ClaimUID = claim.Name, string(claim.UID)
	i.Labels = maps.Clone(claim.Labels)
	taken, found := d.Of(offered, provider.Offering{Type: i.Type, Zone: i.Zone, CapacityType: i.CapacityType},
		isOf(reservation))
	if !found {
		return provider.Instance{}, fmt.Errorf("machine %s is %s/%s/%s, which the claim did not ask for", id, i.Type,
			i.Zone, i.CapacityType)
	}
	i.Labels, i.Price = taken.NodeLabels(claim), taken.Offering.Price
	i.Capacity, i.Allocatable = d.Resources(taken.Type)
	p.remember(own(i))
	return i, nil
}

// orderOf returns what to ask of EC2 for a claim. ranked means that its prices differ from EC2's.
func (p *Provider) orderOf(ctx context.Context, claim *karpenterv1.NodeClaim, class *awsv1.EC2NodeClass,
	d choose.Demand, offered catalog.Catalog, ranked bool) (
	*order, error,
) {
	choices, err := d.All(offered)
	if err != nil {
		return nil, err
	}
	sold := p.config.Types.Known()
	byName := map[string]choose.Choice{}
	var offers []launch.Offer
	for _, c := range choices {
		info := sold.Types[c.Type.Name]
		byName[c.Type.Name] = c
		offers = append(offers, launch.Offer{
			Type: c.Type.Name, Zone: c.Offering.Zone, CapacityType: c.Offering.CapacityType, Price: c.Offering.Price,
			Available: c.Offering.Available, Exotic: launch.Exotic(&info), Reservation: p.reservationOf(c.Offering),
		})
	}
	minima := minimaOf(claim, byName)
	chosen := launch.Choose(offers, minima)
	o := &order{class: class, asked: d.String(), templates: map[string]*awsec2.CreateLaunchTemplateInput{},
		needs: map[string]subnet.Need{}}
	o.request = launch.Request{
		CapacityType: chosen.CapacityType, Kind: chosen.Kind, Minima: minima, Ranked: ranked,
		Tags:    tag.Of(class, p.config.Name, claim.Labels[karpenterv1.NodePoolLabelKey]),
		Context: aws.ToString(class.Spec.Context),
	}
	group, err := p.placement(class)
	if err != nil {
		return nil, err
	}
	o.placement = group
	o.request.Tags[tagGroups] = hashOf(groupsOf(class))
	labels, err := p.userDataLabels(context.WithoutCancel(ctx), claim) // other claims may wait for the order
	if err != nil {
		return nil, err
	}
	w := writer{provider: p, claim: claim, labels: labels, demand: d, order: o,
		zones: map[subnet.Need][]subnet.Choice{}, templates: map[layout]string{}}
	for _, each := range chosen.Offers {
		override, err := w.override(each, byName[each.Type])
		if err != nil {
			return nil, &provider.LaunchError{ConditionReason: ReasonTemplate, Message: err.Error()}
		}
		o.request.Overrides = append(o.request.Overrides, override)
	}
	if !alike(o.request.Overrides) {
		o.cut()
	}
	return o, nil
}

// cut reduces an order to what its fleet has (E-28): only for these pools addresses are held, templates made and
// refusals noted.
func (o *order) cut() {
	o.request.Overrides = o.request.Pools()
	needed := map[string]*awsec2.CreateLaunchTemplateInput{}
	for _, each := range o.request.Overrides {
		needed[each.Template] = o.templates[each.Template]
	}
	o.templates = needed
}

// same reports whether both catalogues are the very same: overlays make another one.
func same(a, b catalog.Catalog) bool {
	return len(a.Types) == len(b.Types) && (len(a.Types) == 0 || &a.Types[0] == &b.Types[0])
}

// samePrices reports whether a type costs the same in two catalogues. If not, EC2 has to follow our order.
func samePrices(a, b catalog.Type) bool {
	return a.Name == b.Name &&
		slices.EqualFunc(a.Offerings, b.Offerings, func(a, b catalog.Offering) bool { return a.Price == b.Price })
}

func (p *Provider) reservationOf(o catalog.Offering) launch.Reservation {
	id, _ := o.Labels.Get(offering.LabelReservationID).Single()
	kind, _ := o.Labels.Get(offering.LabelReservationType).Single()
	if id == "" {
		return launch.Reservation{}
	}
	left, _ := p.reservations.Left(id)
	return launch.Reservation{ID: id, Kind: cmp.Or(launch.Kind(kind), launch.Plain), Left: int(left)}
}

// minimaOf returns the claim's minValues for the labels of types.
func minimaOf(claim *karpenterv1.NodeClaim, byName map[string]choose.Choice) []launch.Least {
	var list []launch.Least
	for _, r := range claim.Spec.Requirements {
		if r.MinValues == nil {
			continue
		}
		list = append(list, launch.Least{Least: *r.MinValues, Value: func(kind string) string {
			if r.Key == string(catalog.LabelInstanceType) {
				return kind
			}
			value, _ := byName[kind].Type.Labels.Get(requirement.Key(r.Key)).Single()
			return value
		}})
	}
	return list
}

// override returns how a type is launched in a zone: with its subnet, image and template.
func (w *writer) override(each launch.Offer, c choose.Choice) (launch.Override, error) {
	class, pods := w.order.class, c.Type.Capacity[resources.NamePods]
	need := subnet.NeedOf(w.provider.addressesOf(class), pods, int64(aws.ToInt32(class.Spec.IPPrefixCount)))
	w.order.needs[each.Type] = need
	zones, known := w.zones[need]
	if !known {
		zones, _ = subnet.Choose(subnetsOf(class), w.provider.left, need)
		w.zones[need] = zones
	}
	at := slices.IndexFunc(zones, func(s subnet.Choice) bool { return s.Zone == each.Zone })
	if at < 0 {
		return launch.Override{}, fmt.Errorf("status.subnets of EC2NodeClass %s has none in zone %s", class.Name,
			each.Zone)
	}
	image, found := resolve.ImageForLabels(class.Status.AMIs, single(c))
	if !found {
		return launch.Override{}, fmt.Errorf("status.amis of EC2NodeClass %s has no image for type %s", class.Name,
			each.Type)
	}
	by := layout{image: image.ID, pods: pods, reservation: each.Reservation}
	by.tenancy, _ = c.Type.Labels.Get(offering.LabelTenancy).Single()
	if w.demand.Requests[resourceEFA] > 0 {
		by.cards = int32(c.Type.Capacity[resourceEFA])
	}
	name, known := w.templates[by]
	if !known {
		content, err := w.content(by, each.CapacityType)
		if err != nil {
			return launch.Override{}, err
		}
		name = *content.LaunchTemplateName
		w.templates[by], w.order.templates[name] = name, content
	}
	return launch.Override{Type: each.Type, Zone: each.Zone, Subnet: zones[at].ID, Image: image.ID, Template: name,
		Reservation: each.Reservation.ID, Price: each.Price}, nil
}

const resourceEFA = "vpc.amazonaws.com/efa"

// writer builds an order. It caches what types have in common: a claim may allow hundreds of types.
type writer struct {
	provider  *Provider
	claim     *karpenterv1.NodeClaim
	labels    map[string]string // of the claim, for user data
	demand    choose.Demand
	order     *order
	zones     map[subnet.Need][]subnet.Choice
	templates map[layout]string // their names
}

// layout is what all machines of a template share, for one claim.
type layout struct {
	image       string
	pods        int64
	cards       int32
	reservation launch.Reservation
	tenancy     string
}

func (w *writer) content(by layout, capacityType string) (*awsec2.CreateLaunchTemplateInput, error) {
	p, class := w.provider, w.order.class
	family := resolve.Family(&class.Spec)
	data, err := w.userData(family, capacityType, by.pods)
	if size, known := userdata.SizeOf(data, err); known {
		p.config.Rendered(class, size)
	}
	if err != nil {
		return nil, err
	}
	return template.Content(template.Ask{
		Class: class, Cluster: p.config.Name, Pool: w.claim.Labels[karpenterv1.NodePoolLabelKey], Family: family,
		Image: by.image, UserData: data,
		CapacityType: capacityType, Reservation: by.reservation, FabricCards: by.cards,
		Placement: template.Placement{GroupID: w.order.placement.ID, Tenancy: by.tenancy},
	})
}

// addressesOf returns where the pods of a class get their addresses from.
func (p *Provider) addressesOf(class *awsv1.EC2NodeClass) subnet.PodAddresses {
	addresses := p.settings().PodAddresses
	if addresses == subnet.Secondary && class.Annotations[offering.PrefixDelegation] == "true" {
		return subnet.Prefixes
	}
	return addresses
}

func single(c choose.Choice) map[string]string {
	labels := map[string]string{}
	copySingle(labels, c.Type.Labels)
	return labels
}

func subnetsOf(class *awsv1.EC2NodeClass) []subnet.Subnet {
	var list []subnet.Subnet
	for _, s := range class.Status.Subnets {
		list = append(list, subnet.Subnet{ID: s.ID, Zone: s.Zone, ZoneID: s.ZoneID})
	}
	return list
}

// left returns the free addresses of a subnet. One that nobody counts has enough.
func (p *Provider) left(id string) int64 {
	if left, known := p.free.Left(id); known {
		return left
	}
	return 1 << 32
}

// key returns a text that is equal for orders that may share a call.
func (o *order) key() (string, error) {
	type override struct{ Type, Zone, Subnet, Image, Template, Reservation string }
	shared := struct {
		Class, CapacityType, Kind, Context string
		Ranked                             bool
		Tags                               map[string]string
		Overrides                          []override
	}{string(o.class.UID), o.request.CapacityType, string(o.request.Kind), o.request.Context, o.request.Ranked,
		o.request.Tags, nil}
	for _, r := range o.request.Overrides {
		shared.Overrides = append(shared.Overrides, override{r.Type, r.Zone, r.Subnet, r.Image, r.Template,
			r.Reservation})
	}
	text, err := json.Marshal(shared) // maps in the order of their keys
	if err != nil {
		return "", errors.Join(errors.New("writing down what is asked of EC2"), err)
	}
	return string(text), nil
}
