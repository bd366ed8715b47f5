package ec2

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"reflect"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/instancetype"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/offering"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/template"
)

// This file receives what others have found out: what classes select, and what nodes have.

// Resolved stores the results of the selectors of all classes: the free addresses of their subnets, what their
// reservations have left, and their placement groups. results are by the name of the class.
func (p *Provider) Resolved(classes []*awsv1.EC2NodeClass, results map[string]resolve.Result) {
	var addresses, places count
	groups, zones := map[types.UID]offering.Placement{}, map[string]string{}
	for _, class := range classes {
		r := results[class.Name]
		for _, s := range r.Subnets {
			zones[s.Zone] = s.ZoneID
			addresses.add(r.SubnetsAsked, s.ID, s.Free)
		}
		for _, each := range r.Reservations {
			places.add(r.ReservationsAsked, each.ID, each.Available)
		}
		if r.Placement != nil {
			groups[class.UID] = offering.Placement{ID: r.Placement.ID, Strategy: r.Placement.Strategy}
		}
	}
	if len(addresses.left) > 0 {
		p.free.Seen(addresses.asked, addresses.left)
	}
	if len(places.left) > 0 {
		p.reservations.Seen(places.asked, places.left)
	}
	p.mu.Lock()
	p.placements, p.zoneIDs = groups, zones
	p.mu.Unlock()
	p.changed()
}

// count sums up several answers, each with a part of the counts.
type count struct {
	asked time.Time // the time of the first: later changes are counted separately
	left  map[string]int64
}

func (c *count) add(asked time.Time, id string, left int64) {
	if c.left == nil {
		c.left = map[string]int64{}
	}
	if c.asked.IsZero() || asked.Before(c.asked) {
		c.asked = asked
	}
	if known, counted := c.left[id]; !counted || left < known {
		c.left[id] = left
	}
}

// Keeper keeps the provider's launch templates.
func (p *Provider) Keeper() *template.Keeper { return p.keeper }

// placement returns the placement group of a class. The error means that it is not known yet.
func (p *Provider) placement(class *awsv1.EC2NodeClass) (offering.Placement, error) {
	if class.Spec.PlacementGroupSelector == nil {
		return offering.Placement{}, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	group, known := p.placements[class.UID]
	if !known {
		return group, &provider.NodeClassNotReadyError{
			Class: class.Name, Reason: "its placement group is not known yet",
		}
	}
	return group, nil
}

// SawNode stores the memory of a registered node (E-21), and reports whether planning should now expect another
// amount. family is that of the node's image.
func (p *Provider) SawNode(node *corev1.Node, claim *karpenterv1.NodeClaim, family string) bool {
	memory := node.Status.Capacity.Memory().Value()
	kind := node.Labels[corev1.LabelInstanceTypeStable]
	if memory <= 0 || kind == "" || claim.Status.ImageID == "" {
		return false
	}
	changed := p.memory.Saw(kind, instancetype.Image{Family: family, ID: claim.Status.ImageID}, memory)
	if changed {
		p.changed()
	}
	return changed
}

// Settled notes that a machine takes no more addresses: its node is initialized.
func (p *Provider) Settled(providerID string) { p.free.Settled(providerID, p.config.Clock.Now()) }

// inReservation counts the machines of this cluster in each capacity reservation, by the last listing.
func (p *Provider) inReservation() map[string]int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	ours := map[string]int64{}
	for _, m := range p.lastSeen {
		if m.Reservation != "" && !m.Ending {
			ours[m.Reservation]++
		}
	}
	return ours
}

// inGroup counts the machines of this cluster in a placement group, by zone: those of the last listing, and those
// launched since.
func (p *Provider) inGroup(id string) map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	ours := map[string]int{}
	for _, m := range p.lastSeen {
		if m.PlacementGroup == id && !m.Ending && !m.Gone {
			ours[m.Zone]++
		}
	}
	for providerID, pool := range p.spread {
		if _, listed := p.lastSeen[providerID]; !listed && pool.PlacementGroup == id {
			ours[pool.Zone]++
		}
	}
	return ours
}

// changed makes the next calls look at once whether catalogues are still right.
func (p *Provider) changed() { p.epoch.Add(1) }

// kept is a cached catalogue, with the orders that were made from it.
type kept struct {
	version string // of the class
	epoch   int64
	sold    *offering.Sold
	prices  offering.PriceList
	until   time.Time
	result  offering.Result
	orders  *orders
}

// keptFor is how long a catalogue and its orders are used without a look, while no change is reported. Changes by time
// alone, such as the end of a shortage, are seen that much later. A round of launches needs the same catalogue for
// every claim. After that the catalogue stays as long as nothing has changed of what it was built from.
const keptFor = time.Second

// catalogOf returns what the class offers now.
func (p *Provider) catalogOf(ctx context.Context, class *awsv1.EC2NodeClass) (catalog.Catalog, error) {
	k, err := p.keptOf(ctx, class)
	return k.result.Catalog, err
}

func (p *Provider) keptOf(ctx context.Context, class *awsv1.EC2NodeClass) (kept, error) {
	if err := ctx.Err(); err != nil {
		return kept{}, err
	}
	p.making.Lock() // one caller builds it for all; no calls are made meanwhile
	defer p.making.Unlock()
	now := p.config.Clock.Now()
	as := kept{
		version: fmt.Sprintf("%s/%d/%s", class.UID, class.Generation, class.ResourceVersion), epoch: p.epoch.Load(),
		sold: p.config.Types.Known(), prices: p.config.Prices.Known(), until: now.Add(keptFor), orders: &orders{},
	}
	last, known := p.made[class.Name]
	same := known && class.ResourceVersion != "" && last.version == as.version && last.sold == as.sold &&
		last.prices == as.prices
	if same && last.epoch == as.epoch && !now.After(last.until) {
		return last, nil
	}
	in, err := p.input(class, as.sold, as.prices, now, "")
	if err != nil {
		return kept{}, err
	}
	if same && last.result.Holds(in) {
		as.result = last.result
	} else if as.result, err = p.build(in); err != nil {
		return kept{}, err
	} else if known && equal(last.result.Catalog, as.result.Catalog) {
		as.result.Catalog = last.result.Catalog
	}
	if as.result.Short != "" {
		p.config.Told(Event{Class: class.Name, Reason: EventAddresses, Message: as.result.Short})
	}
	p.made[class.Name] = as
	return as, nil
}

// equal reports whether two catalogues have the same content. A catalogue without a change stays the very same value,
// so that those who get it, such as the store of planning under its lock, see that without comparing it.
func equal(a, b catalog.Catalog) bool {
	return maps.Equal(a.WellKnown, b.WellKnown) && reflect.DeepEqual(a.Types, b.Types)
}

// orders caches the order of equal claims for one catalogue: a round has hundreds of them.
type orders struct {
	mu   sync.Mutex
	made map[[32]byte]*making
}

// making is an order that the first of its claims builds; the others wait.
type making struct {
	once  sync.Once
	order *order
	err   error
}

// of returns the order for claims like this one, and calls make if there is none yet.
func (o *orders) of(claim *karpenterv1.NodeClaim, make func() (*order, error)) (*order, error) {
	text, err := json.Marshal(struct {
		Labels map[string]string
		Spec   karpenterv1.NodeClaimSpec
	}{claim.Labels, claim.Spec})
	if err != nil {
		return make()
	}
	key := sha256.Sum256(text)
	o.mu.Lock()
	if o.made == nil {
		o.made = map[[32]byte]*making{}
	}
	m := o.made[key]
	if m == nil {
		m = &making{}
		o.made[key] = m
	}
	o.mu.Unlock()
	m.once.Do(func() { m.order, m.err = make() })
	return m.order, m.err
}

// TagsOf returns the tags of a machine by the last listing, with those written since. found is false for an unknown
// machine.
func (p *Provider) TagsOf(providerID string) (tags map[string]string, found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m, listed := p.lastSeen[providerID]
	_, brought := p.brought[providerID]
	tags = map[string]string{}
	maps.Copy(tags, m.Tags)
	maps.Copy(tags, p.tagged[providerID])
	return tags, listed || brought
}

// ReservationOf returns the capacity reservation of a machine by the last listing, "" for none, and when it was
// launched; false if it was not listed or is ending.
func (p *Provider) ReservationOf(providerID string) (reservation string, launched time.Time, listed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m, listed := p.lastSeen[providerID]
	return m.Reservation, m.Launched, listed && !m.Ending
}

// Profiles returns the names of the instance profiles that machines of the last listing have.
func (p *Provider) Profiles() map[string]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	names := map[string]bool{}
	for _, m := range p.lastSeen {
		if m.Profile != "" {
			names[path.Base(m.Profile)] = true
		}
	}
	return names
}

// ReservationLabels returns the labels of machines in capacity reservations, which no others have.
func ReservationLabels() []string {
	return []string{string(offering.LabelReservationID), string(offering.LabelReservationType),
		string(offering.LabelReservationInterruptible)}
}

// Tagged stores tags that were written on a machine. They count until a listing has them: one requested before does
// not.
func (p *Provider) Tagged(providerID string, tags map[string]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tagged[providerID] == nil {
		p.tagged[providerID] = map[string]string{}
	}
	maps.Copy(p.tagged[providerID], tags)
}
