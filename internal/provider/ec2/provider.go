// Package ec2 is the provider for machines of Amazon EC2 (P-52). It combines the packages below it, which document
// their decisions.
//
//   - [Provider.Catalog] returns what a node class can have now: package offering.
//   - [Provider.Launch] chooses pools and templates (packages launch, template). Package launcher ensures that the
//     result is one machine, whatever is lost on the way.
//   - [Provider.List], [Provider.Get] and [Provider.Terminate] ask package machines.
//
// Calls go to EC2 at a pace that it accepts (package calls). Nothing here runs by itself.
package ec2

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/batch"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/calls"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/instancetype"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launcher"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launchid"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/machines"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/offering"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/quota"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/subnet"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/template"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/userdata"
)

// Cluster is the provider's access to the Kubernetes cluster.
type Cluster interface {
	// NodeClass returns an EC2NodeClass with its status. For one that does not exist, the error is
	// apierrors.IsNotFound.
	NodeClass(ctx context.Context, name string) (*awsv1.EC2NodeClass, error)
	// NodePool returns a NodePool, from the cache. For one that does not exist, the error is apierrors.IsNotFound.
	NodePool(ctx context.Context, name string) (*karpenterv1.NodePool, error)
	// Claims returns every NodeClaim of EC2NodeClasses, from the cache. The provider does not change them.
	Claims(ctx context.Context) ([]*karpenterv1.NodeClaim, error)
	// LiveClaims returns the claims from the API server, at least as new as the moment of the call.
	LiveClaims(ctx context.Context) ([]*karpenterv1.NodeClaim, error)
	// Intend writes annotations [launchid.Key] and [launchid.DealerKey] on a claim, before EC2 is asked for its
	// machine (E-36). It fails if one of the two annotations has changed since claim was read, or if the claim has got
	// a machine.
	Intend(ctx context.Context, claim *karpenterv1.NodeClaim, launch launchid.ID, mark string) error
	// Mark writes annotation [launchid.DealerKey] on a claim, and returns the new claim (E-38). It fails if one of the
	// two annotations has changed since claim was read. For a claim that is gone, the error is apierrors.IsNotFound.
	Mark(ctx context.Context, claim *karpenterv1.NodeClaim, mark string) (*karpenterv1.NodeClaim, error)
}

// Facts are what new nodes need to know of their Kubernetes cluster (E-16).
type Facts struct {
	Join userdata.Cluster // how nodes find their API server
	DNS  []string         // addresses of the cluster's DNS servers; none when unknown
	// PodAddresses is where the cluster's network takes pod addresses from (E-12).
	PodAddresses subnet.PodAddresses
}

// Event is a message to users about a class or a claim, once for each cause.
type Event struct {
	Class, Claim    string // the name of one of them
	Reason, Message string
}

// Config configures a Provider.
type Config struct {
	Cluster Cluster
	Clients calls.Clients
	Clock   timer.Clock
	// Process is a name of the process that no other process ever has.
	Process string
	// Name and Region are the cluster's.
	Name, Region string
	// Facts returns the current facts of the Kubernetes cluster.
	Facts    func() Facts
	Settings offering.Settings
	// Prices are the prices of types, Types is what EC2 offers. The owner of the provider refreshes both.
	Prices *offering.Prices
	Types  *offering.Types
	// Correct returns the catalogue for a claim, with the corrections of users (NodeOverlay). Nil means unchanged.
	Correct func(claim *karpenterv1.NodeClaim, c catalog.Catalog) catalog.Catalog
	// Queue is the URL of an interruption queue that Notices reads itself; "" for none.
	Queue string
	// Meter counts events; nil for none.
	Meter Meter
	// Branches returns how many branch interfaces a type can have (E-26). Nil means none.
	Branches func(kind string) int64
	// Told receives events for users; may be nil.
	Told func(Event)
	// Rendered receives the size of the user data for machines of a class, before anything is launched; may be nil.
	Rendered func(class *awsv1.EC2NodeClass, bytes int)
}

// Provider launches and ends instances. A restart loses its memory, which costs calls and no machine. Safe for
// concurrent use.
type Provider struct {
	Kind
	config   Config
	machines *machines.Machines
	launcher *launcher.Launcher[*order]
	keeper   *template.Keeper
	builder  *offering.Builder
	// deletions gathers handled messages: receipts, by the queue's URL.
	deletions *batch.Gatherer[string, struct{}]

	memory       *instancetype.Memory
	free         *subnet.Free
	reservations offering.Reservations
	quotas       quota.Marks
	shortages    offering.Shortages
	told         told

	mu       sync.Mutex
	asking   map[string]*karpenterv1.NodeClaim // by UID: claims that are being launched
	brought  map[string]provider.Instance      // by provider ID: machines that this process launched
	lastSeen map[string]machines.Machine       // by provider ID: of the last listing
	tagged   map[string]map[string]string      // by provider ID: written tags that are not listed yet
	// spread has machines launched into a placement group and not listed yet: by provider ID, the pool of the group in
	// the zone.
	spread map[string]offering.Pool
	// inside is the reservation into which this process launched a machine, by provider ID.
	inside map[string]string
	// held counts the launches under way that ask for a reservation, by its id, if others are alike.
	held map[string]int64
	// lastListing is the number of the listing in lastSeen; listings counts the requested ones.
	lastListing int64
	listings    atomic.Int64

	ends       map[string]time.Time             // by provider ID: when the end of a machine was reported
	failing    map[types.UID]failing            // by UID of the class
	refused    map[types.UID]refusedFor         // by UID of the class: those that may not launch
	placements map[types.UID]offering.Placement // by UID of the class: the groups that classes select
	zoneIDs    map[string]string                // by zone: those of the classes' subnets
	dedicated  map[types.UID]bool               // by UID of the class: those whose machines are dedicated
	drained    map[string]bool                  // by ID of the notice: drained for the end of a block
	making     sync.Mutex                       // of made
	made       map[string]kept                  // by name of the class: cached catalogues
	epoch      atomic.Int64                     // counts what changes catalogues
}

var _ provider.Provider = (*Provider)(nil)

// New returns a provider. Shared calls use ctx, which ends with the process. The error names what the configuration
// lacks.
func New(ctx context.Context, c Config) (*Provider, error) {
	switch {
	case c.Cluster == nil || c.Clients.EC2 == nil || c.Clock == nil || c.Types == nil || c.Prices == nil ||
		c.Facts == nil:
		return nil, errors.New("ec2 provider: no cluster, clients, clock, types, prices or facts")
	case c.Name == "":
		return nil, errors.New("ec2 provider: the cluster has no name: set --cluster-name")
	case c.Region == "":
		return nil, errors.New("ec2 provider: no region: set AWS_REGION")
	}
	if c.Branches == nil {
		c.Branches = func(string) int64 { return 0 }
	}
	if c.Meter == nil {
		c.Meter = noMeter{}
	}
	if c.Told == nil {
		c.Told = func(Event) {}
	}
	if c.Rendered == nil {
		c.Rendered = func(*awsv1.EC2NodeClass, int) {}
	}
	p := &Provider{
		config: c, keeper: template.NewKeeper(ctx, c.Clients.EC2, c.Clock, c.Name), builder: offering.NewBuilder(),
		memory: instancetype.NewMemory(), free: subnet.NewFree(),
		asking: map[string]*karpenterv1.NodeClaim{}, brought: map[string]provider.Instance{},
		lastSeen: map[string]machines.Machine{},
		tagged:   map[string]map[string]string{}, spread: map[string]offering.Pool{},
		inside: map[string]string{}, held: map[string]int64{}, ends: map[string]time.Time{},
		failing: map[types.UID]failing{},
		refused: map[types.UID]refusedFor{}, placements: map[types.UID]offering.Placement{}, made: map[string]kept{},
		drained: map[string]bool{}, zoneIDs: map[string]string{}, dedicated: map[types.UID]bool{},
	}
	p.machines = machines.New(ctx, machines.Config{EC2: c.Clients.EC2, Clock: c.Clock, Cluster: c.Name,
		Leaving:   func() []string { return p.leaving(ctx) },
		Described: p.gathered(CallDescribe), Terminated: p.gathered(CallTerminate)})
	p.launcher = launcher.New[*order](ctx, c.Process, ports{p}, c.Clock, p.gathered(CallFleet))
	p.deletions = batch.New(ctx, batch.Config[string, struct{}]{
		Clock: c.Clock, Window: batch.Deletions(), Compare: strings.Compare, Call: p.deleteMessages,
	})
	return p, nil
}

// Kind has the methods of provider.Provider that need no call. They work before AWS can be reached.
type Kind struct{}

// Name returns "ec2".
func (Kind) Name() string { return "ec2" }

// NodeClass is EC2NodeClass.
func (Kind) NodeClass() schema.GroupKind {
	return schema.GroupKind{Group: awsv1.Group, Kind: "EC2NodeClass"}
}

// Owns reports whether a provider ID has the form of EC2's.
func (Kind) Owns(providerID string) bool {
	_, _, err := machines.ParseProviderID(providerID)
	return err == nil
}

// RepairPolicies are Karpenter's for AWS, without reboots (E-48).
func (Kind) RepairPolicies() []provider.RepairPolicy {
	var policies []provider.RepairPolicy
	add := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, after time.Duration) {
		policies = append(policies, provider.RepairPolicy{ConditionType: kind, ConditionStatus: status,
			Toleration: after})
	}
	add(corev1.NodeReady, corev1.ConditionFalse, 30*time.Minute)
	add(corev1.NodeReady, corev1.ConditionUnknown, 30*time.Minute)
	add("AcceleratedHardwareReady", corev1.ConditionFalse, 10*time.Minute)
	for _, kind := range []corev1.NodeConditionType{"StorageReady", "NetworkingReady", "KernelReady",
		"ContainerRuntimeReady"} {
		add(kind, corev1.ConditionFalse, 30*time.Minute)
	}
	return policies
}

// Catalog returns what the class offers now.
func (p *Provider) Catalog(ctx context.Context, className string) (catalog.Catalog, error) {
	class, err := p.class(ctx, className)
	if err != nil {
		return catalog.Catalog{}, err
	}
	return p.catalogOf(ctx, class)
}

// class returns a node class that is ready.
func (p *Provider) class(ctx context.Context, name string) (*awsv1.EC2NodeClass, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	class, err := p.config.Cluster.NodeClass(ctx, name)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%w: EC2NodeClass %q", provider.ErrNodeClassNotFound, name)
	}
	if err != nil {
		return nil, fmt.Errorf("getting EC2NodeClass %s: %w", name, err)
	}
	if class.DeletionTimestamp != nil {
		return nil, &provider.NodeClassNotReadyError{Class: name, Reason: "it is being deleted"}
	}
	var ready karpenterv1.Condition
	for _, c := range class.Status.Conditions {
		if c.Type == karpenterv1.ConditionTypeReady {
			ready = c
		}
	}
	switch {
	case ready.Type == "":
		return nil, &provider.NodeClassNotReadyError{Class: name, Reason: "it has no condition Ready yet"}
	case ready.ObservedGeneration != class.Generation:
		return nil, &provider.NodeClassNotReadyError{
			Class: name, Reason: "its spec has changed and was not looked at yet",
		}
	case ready.Status != "True":
		return nil, &provider.NodeClassNotReadyError{Class: name, Reason: ready.Reason + ": " + ready.Message}
	}
	if text := p.mayNot(class); text != "" {
		return nil, &provider.NodeClassNotReadyError{Class: name, Reason: text}
	}
	return class, nil
}

// build builds the catalogue of a class for an input, or the part of it that the input asks for.
func (p *Provider) build(in offering.Input) (offering.Result, error) {
	result, err := p.builder.Build(in)
	if err != nil {
		return offering.Result{}, &provider.NodeClassNotReadyError{Class: in.Class.Name, Reason: err.Error()}
	}
	return result, nil
}

// input returns what the catalogue of a class is built from, or the part of it that one type is, if only is not "".
// For that part the machines in reservations are not counted: this takes a look at each machine, and whether the type
// is offered does not depend on it.
func (p *Provider) input(
	class *awsv1.EC2NodeClass, sold *offering.Sold, prices offering.PriceList, now time.Time, only string,
) (offering.Input, error) {
	if sold.At.IsZero() {
		return offering.Input{}, &provider.NodeClassNotReadyError{Class: class.Name,
			Reason: "what EC2 sells in this region is not known yet"}
	}
	group, err := p.placement(class)
	if err != nil {
		return offering.Input{}, err
	}
	var within map[string]int64
	if only == "" && len(class.Status.CapacityReservations) > 0 {
		within = p.inReservation()
	}
	family := resolve.Family(&class.Spec)
	return offering.Input{
		Class: class, Region: p.config.Region, Sold: sold, Prices: prices, Settings: p.settings(), Only: only,
		Placement: group, Dedicated: p.isDedicated(class),
		ImageFor: func(architecture, accelerator string) (instancetype.Image, bool) {
			image, found := imageFor(class, architecture, accelerator)
			return instancetype.Image{Family: family, ID: image.ID}, found
		},
		Branches: p.config.Branches,
		Memory:   p.memory, Free: p.free, Reservations: &p.reservations, InReservation: within,
		Quotas: &p.quotas, Shortages: &p.shortages, Now: now,
	}, nil
}

// settings returns those of the configuration, with what is known of the cluster's network now.
func (p *Provider) settings() offering.Settings {
	s := p.config.Settings
	s.PodAddresses = max(s.PodAddresses, p.config.Facts().PodAddresses)
	return s
}

// imageFor names accelerators as package resolve does. By the labels in images' requirements, GPUs of all makers are
// alike.
func imageFor(class *awsv1.EC2NodeClass, architecture, accelerator string) (awsv1.AMI, bool) {
	switch accelerator {
	case offering.GPU:
		accelerator = resolve.Nvidia
	case offering.Neuron:
		accelerator = resolve.Neuron
	}
	return resolve.ImageFor(class.Status.AMIs, architecture, accelerator)
}

// MarkUnavailable takes an offering out of the catalogue for a while.
func (p *Provider) MarkUnavailable(o provider.Offering) {
	p.shortages.Note(offering.Pool{Type: o.Type, Zone: o.Zone, CapacityType: o.CapacityType}, p.config.Clock.Now())
	p.changed()
}

// remember keeps a launched machine until it is gone.
func (p *Provider) remember(i provider.Instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.brought[i.ProviderID] = i
}

// recall returns what this process knows of a machine.
func (p *Provider) recall(providerID string) (provider.Instance, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i, known := p.brought[providerID]
	return own(i), known
}

// own returns a copy, as callers may change maps of the instance.
func own(i provider.Instance) provider.Instance {
	i.Labels, i.Capacity, i.Allocatable = maps.Clone(i.Labels), i.Capacity.DeepCopy(), i.Allocatable.DeepCopy()
	return i
}

func (p *Provider) forget(providerID string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.brought, providerID)
	delete(p.lastSeen, providerID)
	delete(p.tagged, providerID)
	delete(p.spread, providerID)
	delete(p.inside, providerID)
}

// priceOf returns the price of an offering, resources.Unpriced when unknown.
func (p *Provider) priceOf(kind, zone, capacityType string) resources.Money {
	prices := p.config.Prices.Known()
	price, known := prices.OnDemand(kind)
	switch capacityType {
	case karpenterv1.CapacityTypeReserved:
		return 0
	case karpenterv1.CapacityTypeSpot:
		price, known = prices.Spot(kind, zone)
	}
	if !known {
		return resources.Unpriced
	}
	return price
}

// typeIn returns a type of a catalogue.
func typeIn(c catalog.Catalog, name string) (catalog.Type, bool) {
	i := slices.IndexFunc(c.Types, func(t catalog.Type) bool { return t.Name == name })
	if i < 0 {
		return catalog.Type{}, false
	}
	return c.Types[i], true
}
