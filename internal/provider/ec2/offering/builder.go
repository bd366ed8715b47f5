package offering

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/instancetype"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/quota"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/subnet"
)

// Labels of offerings, beside those that all providers have (E-18).
const (
	LabelZoneID                   requirement.Key = "topology.k8s.aws/zone-id"
	LabelTenancy                  requirement.Key = "karpenter.k8s.aws/instance-tenancy"
	LabelReservationID            requirement.Key = "karpenter.k8s.aws/capacity-reservation-id"
	LabelReservationType          requirement.Key = "karpenter.k8s.aws/capacity-reservation-type"
	LabelReservationInterruptible requirement.Key = "karpenter.k8s.aws/capacity-reservation-interruptible"
	LabelPlacementGroup           requirement.Key = "karpenter.k8s.aws/placement-group-id"
	LabelPlacementPartition       requirement.Key = "karpenter.k8s.aws/placement-group-partition"
)

// mostClasses bounds how many classes' machines a builder caches. Beyond it the cache is cleared, which costs a few
// milliseconds for each class.
const mostClasses = 256

// Input is what a catalogue is built from. Nil fields mean unknown, unless stated otherwise.
type Input struct {
	Class    *awsv1.EC2NodeClass // with resolved selectors in its status; never nil
	Region   string
	Sold     *Sold // never nil
	Prices   PriceList
	Settings Settings
	// Only is the name of the type to build, for the question whether and how a class offers it; "" for all types.
	Only string
	// Placement is the group that the class selects.
	Placement Placement
	// Dedicated is true if machines of the class run on dedicated hardware: all of its pools ask for that.
	Dedicated bool
	// ImageFor returns the image for types of an architecture (amd64, arm64) and accelerator ("", [GPU], [Neuron]).
	// Types for which it returns false are not offered. Never nil.
	ImageFor func(architecture, accelerator string) (instancetype.Image, bool)
	// Branches returns how many branch interfaces a type has (E-26).
	Branches func(kind string) int64

	Memory       *instancetype.Memory
	Free         *subnet.Free
	Reservations *Reservations
	// InReservation is the number of this cluster's machines in each capacity reservation, by id.
	InReservation map[string]int64
	Quotas        *quota.Marks
	Shortages     *Shortages
	Now           time.Time
}

// Result is a catalogue, and a message about it.
type Result struct {
	Catalog catalog.Catalog
	// Short is the text of an event if no subnet has enough addresses for some types, with the consequence; ""
	// otherwise (E-12).
	Short string

	state *state // for Holds
	most  int64  // the greatest need for addresses of a type
}

// Builder builds catalogues. Its results depend only on the input. It caches what classes and calls have in common, so
// that only changes are computed again. Safe for concurrent use.
type Builder struct {
	mu    sync.Mutex
	sold  *Sold
	kinds []kind                        // of sold, by name
	nodes map[string]map[string]machine // by class and type
}

// kind is an instance type, independent of classes.
type kind struct {
	name, architecture, accelerator string
	info                            *ec2types.InstanceTypeInfo
	labels, dedicated               requirement.Set // on shared machines, and on dedicated ones
	vcpus                           int64
	zones                           []string
	onDemand, spot                  bool
}

// machine is what a node of a type has, and the inputs of that beside the class.
type machine struct {
	memory, branches int64
	node             instancetype.Node
}

// NewBuilder returns a Builder with an empty cache.
func NewBuilder() *Builder { return &Builder{nodes: map[string]map[string]machine{}} }

// Build returns what a class offers: all types that fit its images and that EC2 sells in a zone of its subnets, by
// name. Unavailable ones are included. The error names the field of the class that cannot be read.
func (b *Builder) Build(in Input) (Result, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.learn(in.Sold)
	w := newWork(in)
	kinds := b.kindsOf(in.Only)
	result := Result{Catalog: catalog.Catalog{WellKnown: wellKnown(), Types: make([]catalog.Type, 0, len(kinds))}}
	for i := range kinds {
		k := &kinds[i]
		image, ok := w.image(k)
		if !ok || !fits(in.Class, in.Placement, k.info) {
			continue
		}
		node, err := b.machine(w, k, image)
		if err != nil {
			return Result{}, fmt.Errorf("EC2NodeClass %s: spec.%w", in.Class.Name, err)
		}
		labels, offerings := k.labels, []catalog.Offering(nil)
		if in.Dedicated {
			labels, offerings = k.dedicated, w.dedicated(k, node)
		} else {
			offerings = w.offerings(k, node)
		}
		if len(offerings) > 0 {
			result.Catalog.Types = append(result.Catalog.Types, catalog.Type{
				Name: k.name, Labels: labels, Capacity: node.Capacity, Overhead: node.Overhead, Offerings: offerings,
			})
		}
	}
	read := w.state
	read.enough(w.most)
	result.Short, result.state, result.most = w.short, &read, w.most
	if err := result.Catalog.Validate(); err != nil {
		return Result{}, fmt.Errorf("EC2NodeClass %s: %w", in.Class.Name, err)
	}
	return result, nil
}

// kindsOf returns the type of a name, none if EC2 does not sell it, or all of them for "".
func (b *Builder) kindsOf(name string) []kind {
	if name == "" {
		return b.kinds
	}
	i, found := slices.BinarySearchFunc(b.kinds, name, func(k kind, name string) int {
		return strings.Compare(k.name, name)
	})
	if !found {
		return nil
	}
	return b.kinds[i : i+1]
}

// learn reads what EC2 sells, if that has changed.
func (b *Builder) learn(sold *Sold) {
	if b.sold == sold {
		return
	}
	b.sold, b.kinds, b.nodes = sold, nil, map[string]map[string]machine{}
	for _, name := range slices.Sorted(maps.Keys(sold.Types)) {
		info := sold.Types[name]
		if len(sold.Zones[name]) == 0 {
			continue
		}
		labels := instancetype.Labels(&info)
		labels[string(LabelTenancy)] = string(ec2types.TenancyDefault)
		sells := func(usage ec2types.UsageClassType) bool { return slices.Contains(info.SupportedUsageClasses, usage) }
		k := kind{
			name: name, architecture: instancetype.Architecture(&info), accelerator: accelerator(labels), info: &info,
			labels: requirement.FromLabels(labels), zones: sold.Zones[name],
			onDemand: sells(ec2types.UsageClassTypeOnDemand) || len(info.SupportedUsageClasses) == 0,
			spot:     sells(ec2types.UsageClassTypeSpot),
		}
		labels[string(LabelTenancy)] = string(ec2types.TenancyDedicated)
		k.dedicated = requirement.FromLabels(labels)
		if info.VCpuInfo != nil {
			k.vcpus = int64(value(info.VCpuInfo.DefaultVCpus))
		}
		b.kinds = append(b.kinds, k)
	}
}

// machine returns what a node of a type has with the class and the image, from the cache if nothing has changed.
func (b *Builder) machine(w *work, k *kind, image instancetype.Image) (instancetype.Node, error) {
	class, err := w.class(image.Family)
	if err != nil {
		return instancetype.Node{}, err
	}
	nodes := b.nodes[class.key]
	if nodes == nil {
		if len(b.nodes) >= mostClasses {
			clear(b.nodes)
		}
		nodes = map[string]machine{}
		b.nodes[class.key] = nodes
	}
	memory, branches := int64(0), int64(0)
	if w.in.Memory != nil {
		memory = w.in.Memory.Of(k.info, image, w.in.Sold.Types)
	}
	if w.in.Branches != nil {
		branches = w.in.Branches(k.name)
	}
	if known, found := nodes[k.name]; found && known.memory == memory && known.branches == branches {
		return known.node, nil
	}
	node, err := instancetype.Machine(k.info, class.of, memory, branches)
	if err == nil {
		nodes[k.name] = machine{memory, branches, node}
	}
	return node, err
}

// wellKnown returns the labels whose values EC2 or we decide.
func wellKnown() map[requirement.Key]bool {
	known := map[requirement.Key]bool{
		catalog.LabelInstanceType: true, catalog.LabelZone: true, catalog.LabelCapacityType: true,
		corev1.LabelOSStable: true, corev1.LabelArchStable: true, corev1.LabelTopologyRegion: true,
		corev1.LabelWindowsBuild: true, LabelZoneID: true, LabelTenancy: true,
		LabelReservationID: true, LabelReservationType: true, LabelReservationInterruptible: true,
		LabelPlacementGroup: true, LabelPlacementPartition: true,
	}
	for _, key := range instancetype.LabelKeys() {
		known[requirement.Key(key)] = true
	}
	return known
}

// work is the state of one call of Build.
type work struct {
	in      Input
	state   state
	zones   map[string]requirement.Set // labels of offerings, by zone of the class's subnets
	subnets []subnet.Subnet
	images  map[[2]string]imageChoice
	classes map[string]classOfFamily
	rooms   map[room]map[string]bool
	short   string
	least   int64 // the need that short is about
	most    int64 // the greatest need
}

type imageChoice struct {
	image instancetype.Image
	ok    bool
}

type classOfFamily struct {
	of  instancetype.Class
	key string
}

// room is the key for the question whether zones have enough addresses.
type room struct {
	need  subnet.Need
	zones string
}

func newWork(in Input) *work {
	w := &work{
		in: in, zones: map[string]requirement.Set{}, images: map[[2]string]imageChoice{},
		classes: map[string]classOfFamily{}, rooms: map[room]map[string]bool{},
	}
	for _, s := range in.Class.Status.Subnets {
		labels := map[string]string{}
		for key, v := range map[requirement.Key]string{
			corev1.LabelTopologyRegion: in.Region, LabelZoneID: s.ZoneID, LabelPlacementGroup: in.Placement.ID,
		} {
			if v != "" {
				labels[string(key)] = v
			}
		}
		if known, found := w.zones[s.Zone]; !found || !known.Holds(LabelZoneID) {
			w.zones[s.Zone] = requirement.FromLabels(labels)
		}
		w.subnets = append(w.subnets, subnet.Subnet{ID: s.ID, Zone: s.Zone})
	}
	w.look()
	return w
}

func (w *work) image(k *kind) (instancetype.Image, bool) {
	key := [2]string{k.architecture, k.accelerator}
	choice, known := w.images[key]
	if !known {
		choice.image, choice.ok = w.in.ImageFor(k.architecture, k.accelerator)
		w.images[key] = choice
	}
	return choice.image, choice.ok
}

func (w *work) class(family string) (classOfFamily, error) {
	known, found := w.classes[family]
	if found {
		return known, nil
	}
	known.of = ClassOf(w.in.Class, family, w.state.settings)
	key, err := fingerprint(known.of)
	if err != nil {
		return known, fmt.Errorf("kubelet: %w", err)
	}
	known.key = family + " " + key
	w.classes[family] = known
	return known, nil
}

// roomFor returns the zones of a type where some subnet has enough addresses for a machine (E-12).
func (w *work) roomFor(k *kind, pods int64) map[string]bool {
	addresses := w.state.settings.PodAddresses
	if addresses == subnet.Secondary && w.in.Class.Annotations[PrefixDelegation] == "true" {
		addresses = subnet.Prefixes
	}
	key := room{
		need:  subnet.NeedOf(addresses, pods, int64(value(w.in.Class.Spec.IPPrefixCount))),
		zones: strings.Join(k.zones, " "),
	}
	if known, found := w.rooms[key]; found {
		return known
	}
	w.most = max(w.most, key.need.Total())
	within := slices.DeleteFunc(slices.Clone(w.subnets),
		func(s subnet.Subnet) bool { return !slices.Contains(k.zones, s.Zone) })
	choices, short := subnet.Choose(within, w.left, key.need)
	if short != "" { // not while only launches under way have the addresses
		_, short = subnet.Choose(within, w.atRest, key.need)
	}
	if short != "" && (w.short == "" || key.need.Total() < w.least) {
		w.short, w.least = short, key.need.Total()
	}
	enough := map[string]bool{}
	for _, c := range choices {
		enough[c.Zone] = c.Enough
	}
	w.rooms[key] = enough
	return enough
}
