// Package cloud is the simulated cloud: machines that take time to start and to end, markets that run out, lists that
// lag behind, machines that never join or vanish. It fulfils the contract of package provider: its tests run the suite
// in internal/provider/providertest. The kwok provider, which fulfils it too, decides which offering a claim gets.
//
// It is one object for the whole simulation. Faults on the way to it are the simulation's part. Start with [New].
package cloud

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	kwokv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenterkwok/v1alpha1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/kwok"
)

// idPrefix begins the provider IDs of the cloud's machines.
const idPrefix = "sim:///"

// rememberOut is how long the catalogue shows a market as unavailable after a launch found it so.
const rememberOut = 3 * time.Minute

// Config configures a Cloud. All fields are required, except Fate, Launched and Ended.
type Config struct {
	Offers *Offers
	Now    func() time.Time
	// Class returns a node class; an error for apierrors.IsNotFound if there is none.
	Class func(name string) (*kwokv1alpha1.KWOKNodeClass, error)
	// Fate decides the behaviour of a new machine; nil means that everything happens at once.
	Fate func() Fate
	// Launched is called for each new machine. Ended is called when the end of a machine begins; it is gone at GoneAt.
	Launched, Ended func(*Machine)
	// Rebooted is called for a machine that begins to reboot.
	Rebooted func(*Machine)
}

// Fate is the behaviour of a machine.
type Fate struct {
	Boot      time.Duration // until its node joins
	NeverJoin bool
	End       time.Duration // from the first Terminate until it is gone
	ListLag   time.Duration // the delay until List shows that it is there, and that it is gone
}

// Machine is an instance in the cloud.
type Machine struct {
	provider.Instance
	Fate
	Node   *corev1.Node     // as it joins
	GoneAt time.Time        // zero while nobody has ended it
	Notice *provider.Notice // of interruption; nil for none, or once it is acknowledged
	// Boots counts its reboots; rebooted has the operations that asked for them.
	Boots    int
	Fault    string // what a reboot does to its fault, if a story states it
	rebooted map[string]bool
	// Launch is the launch that brought it, for clouds where a call may bring several machines (package ec2cloud).
	// Then ClaimUID and ClaimName are the simulation's guess of its claim.
	Launch string
}

// Cloud is the cloud. It is not safe for concurrent use.
type Cloud struct {
	config   Config
	machines []*Machine // all that ever were, by number
	byClaim  map[string]*Machine
	reserved []Reservation
	// inventories has what was on sale with reservations, by description.
	inventories map[string]kwok.Inventory
	spot        map[string]float64 // factors on spot prices by zone, where they have changed
	out         Market             // what has run out
	known       [4]time.Time
	marked      [4]time.Time // until when a market is unavailable because machines of it were taken away
}

// New returns a cloud without machines.
func New(config Config) *Cloud {
	if config.Fate == nil {
		config.Fate = func() Fate { return Fate{} }
	}
	if config.Launched == nil {
		config.Launched = func(*Machine) {}
	}
	if config.Ended == nil {
		config.Ended = func(*Machine) {}
	}
	if config.Rebooted == nil {
		config.Rebooted = func(*Machine) {}
	}
	return &Cloud{config: config, byClaim: map[string]*Machine{}, inventories: map[string]kwok.Inventory{},
		spot: map[string]float64{}}
}

// RunOut sets the markets that have no capacity.
func (c *Cloud) RunOut(markets Market) { c.out = markets }

// SpotPrices multiplies the first spot prices of a zone with a factor, from now on.
func (c *Cloud) SpotPrices(zone string, factor float64) { c.spot[zone] = factor }

// SpotPrice returns the spot price of a type in a zone, in dollars per hour; 0 for an unknown type.
func (c *Cloud) SpotPrice(kind, zone string) float64 {
	for _, each := range kinds() {
		if factor, changed := c.spot[zone]; each.name == kind && changed {
			return each.spotPrice * factor
		} else if each.name == kind {
			return each.spotPrice
		}
	}
	return 0
}

// Out returns the markets that have no capacity.
func (c *Cloud) Out() Market { return c.out }

// Exists reports whether a machine is still there: running or ending.
func (c *Cloud) Exists(m *Machine) bool { return m.GoneAt.IsZero() || c.config.Now().Before(m.GoneAt) }

// Machines returns the existing machines, by number. They must not be changed.
func (c *Cloud) Machines() []*Machine {
	var there []*Machine
	for _, m := range c.machines {
		if c.Exists(m) {
			there = append(there, m)
		}
	}
	return there
}

// Vanish ends a machine that nobody asked to end: an interruption.
func (c *Cloud) Vanish(m *Machine) {
	if m.GoneAt.IsZero() {
		m.GoneAt = c.config.Now()
		c.config.Ended(m)
	}
}

// Interrupt gives notice that a machine will be taken away at gone. The caller has to take it away then.
func (c *Cloud) Interrupt(m *Machine, gone time.Time) {
	if m.GoneAt.IsZero() {
		m.Notice = &provider.Notice{ID: m.ProviderID, Kind: provider.SpotInterrupted, ProviderID: m.ProviderID,
			Gone: gone}
	}
}

// choose returns the provider that chooses offerings outside of the sold-out markets.
func (c *Cloud) choose(out Market, taken *scratch) (*kwok.Provider, error) {
	sold, err := c.inventory(out)
	if err != nil {
		return nil, err
	}
	return kwok.New(kwok.Config{Cluster: taken, Inventory: sold, Now: c.config.Now})
}

// Catalog is provider.Provider's Catalog.
func (c *Cloud) Catalog(ctx context.Context, class string) (catalog.Catalog, error) {
	chooser, err := c.choose(c.during(c.known)|c.during(c.marked), &scratch{cloud: c})
	if err != nil {
		return catalog.Catalog{}, err
	}
	return chooser.Catalog(ctx, class)
}

// during returns the markets whose time is not over yet.
func (c *Cloud) during(until [4]time.Time) Market {
	markets := Market(0)
	for i, each := range until {
		if c.config.Now().Before(each) {
			markets |= 1 << i
		}
	}
	return markets
}

// Launch is provider.Provider's Launch, at the moment when the call lands.
func (c *Cloud) Launch(ctx context.Context, claim *karpenterv1.NodeClaim,
	notAfter time.Time) (provider.Instance, error) {
	if !notAfter.IsZero() && c.config.Now().After(notAfter) {
		return provider.Instance{}, fmt.Errorf("launching NodeClaim %s: %w", claim.Name, provider.ErrExpired)
	}
	if m := c.byClaim[string(claim.UID)]; m != nil && ctx.Err() == nil {
		if !m.GoneAt.IsZero() {
			return provider.Instance{}, &provider.LaunchError{ConditionReason: kwok.ReasonInstanceTerminated,
				Message: "machine " + m.ProviderID + " of this claim was ended"}
		}
		return answer(m), nil
	}
	taken := &scratch{cloud: c}
	chooser, err := c.choose(c.out|c.during(c.marked), taken)
	if err != nil {
		return provider.Instance{}, err
	}
	instance, err := chooser.Launch(ctx, claim, notAfter)
	if err != nil {
		for i := range c.known {
			if c.out&(1<<i) != 0 {
				c.known[i] = c.config.Now().Add(rememberOut)
			}
		}
		return provider.Instance{}, err
	}
	m := &Machine{Instance: instance, Fate: c.config.Fate(), Node: taken.node}
	id := len(c.machines) + 1
	m.ProviderID = fmt.Sprintf("%s%s/i-%04d", idPrefix, instance.Zone, id)
	m.Node.Name = fmt.Sprintf("node-%04d", id)
	m.Node.Spec.ProviderID = m.ProviderID
	m.Node.Annotations = nil
	m.Node.Labels[corev1.LabelHostname] = m.Node.Name
	m.Instance.Labels[corev1.LabelHostname] = m.Node.Name
	c.machines = append(c.machines, m)
	c.byClaim[string(claim.UID)] = m
	c.config.Launched(m)
	return answer(m), nil
}

// answer returns a copy of a machine for the caller.
func answer(m *Machine) provider.Instance {
	instance := m.Instance
	instance.Labels = make(map[string]string, len(m.Instance.Labels))
	for key, value := range m.Instance.Labels {
		instance.Labels[key] = value
	}
	instance.Capacity, instance.Allocatable = instance.Capacity.DeepCopy(), instance.Allocatable.DeepCopy()
	instance.Terminating = !m.GoneAt.IsZero()
	return instance
}

func (c *Cloud) find(id string) *Machine {
	for _, m := range c.machines {
		if m.ProviderID == id && c.Exists(m) {
			return m
		}
	}
	return nil
}

// Terminate is provider.Provider's Terminate.
func (c *Cloud) Terminate(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m := c.find(id)
	if m == nil {
		return fmt.Errorf("%w: %s", provider.ErrNotFound, id)
	}
	if m.GoneAt.IsZero() {
		m.GoneAt = c.config.Now().Add(m.End)
		c.config.Ended(m)
	}
	if !c.Exists(m) {
		return fmt.Errorf("%w: %s", provider.ErrNotFound, id)
	}
	return nil
}

// Reboot is provider.Rebooter's Reboot.
func (c *Cloud) Reboot(ctx context.Context, id, operation string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m := c.find(id)
	switch {
	case m == nil:
		return fmt.Errorf("%w: %s", provider.ErrNotFound, id)
	case !m.GoneAt.IsZero():
		return &provider.RebootError{Message: "machine " + id + " is ending"}
	case m.rebooted[operation]:
		return nil
	case m.rebooted == nil:
		m.rebooted = map[string]bool{}
	}
	m.rebooted[operation] = true
	m.Boots++
	c.config.Rebooted(m)
	return nil
}

// Get is provider.Provider's Get.
func (c *Cloud) Get(ctx context.Context, id string) (provider.Instance, error) {
	if err := ctx.Err(); err != nil {
		return provider.Instance{}, err
	}
	if m := c.find(id); m != nil {
		return answer(m), nil
	}
	return provider.Instance{}, fmt.Errorf("%w: %s", provider.ErrNotFound, id)
}

// List is provider.Provider's List, with the lag of each machine's fate.
func (c *Cloud) List(ctx context.Context) ([]provider.Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	now := c.config.Now()
	var list []provider.Instance
	for _, m := range c.machines {
		seen := !now.Before(m.Instance.Launched.Add(m.ListLag))
		gone := !m.GoneAt.IsZero() && !now.Before(m.GoneAt.Add(m.ListLag))
		if seen && !gone {
			list = append(list, answer(m))
		}
	}
	slices.SortFunc(list, func(a, b provider.Instance) int { return strings.Compare(a.ProviderID, b.ProviderID) })
	return list, nil
}

// Notices is provider.Provider's Notices.
func (c *Cloud) Notices(ctx context.Context) (provider.Notices, error) {
	if err := ctx.Err(); err != nil {
		return provider.Notices{}, err
	}
	var notices provider.Notices
	for _, m := range c.machines {
		if m.Notice != nil && c.Exists(m) {
			notices.List = append(notices.List, *m.Notice)
		}
	}
	slices.SortFunc(notices.List, func(a, b provider.Notice) int { return strings.Compare(a.ID, b.ID) })
	return notices, nil
}

// Acknowledge is provider.Provider's Acknowledge.
func (c *Cloud) Acknowledge(ctx context.Context, notice provider.Notice) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if m := c.find(notice.ProviderID); m != nil && m.Notice != nil && m.Notice.ID == notice.ID {
		m.Notice = nil
	}
	return nil
}

// MarkUnavailable is provider.Provider's MarkUnavailable; the whole market of the offering is marked.
func (c *Cloud) MarkUnavailable(o provider.Offering) {
	for i, name := range marketNames() {
		if name == [2]string{o.Zone, o.CapacityType} {
			c.marked[i] = c.config.Now().Add(rememberOut)
		}
	}
}

// scratch is a temporary cluster in which the kwok provider creates the node of one launch.
type scratch struct {
	cloud *Cloud
	node  *corev1.Node
}

func notFound(name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, name)
}

// NodeClass implements kwok.Cluster.
func (s *scratch) NodeClass(_ context.Context, name string) (*kwokv1alpha1.KWOKNodeClass, error) {
	class, err := s.cloud.config.Class(name)
	if err != nil {
		return nil, err
	}
	class = class.DeepCopy()
	class.Spec.NodeRegistrationDelay = nil // fate decides
	return class, nil
}

// NodeClasses implements kwok.Cluster.
func (s *scratch) NodeClasses(context.Context) ([]*kwokv1alpha1.KWOKNodeClass, error) {
	return nil, nil
}

// CreateNode implements kwok.Cluster.
func (s *scratch) CreateNode(_ context.Context, node *corev1.Node) error {
	s.node = node.DeepCopy()
	return nil
}

// Node implements kwok.Cluster.
func (s *scratch) Node(_ context.Context, name string) (*corev1.Node, error) {
	return nil, notFound(name)
}

// Nodes implements kwok.Cluster.
func (s *scratch) Nodes(context.Context) ([]*corev1.Node, error) { return nil, nil }

// AnnotateNode implements kwok.Cluster.
func (s *scratch) AnnotateNode(_ context.Context, name string, _ types.UID, _, _ string) error {
	return notFound(name)
}

// BootNode implements kwok.Cluster.
func (s *scratch) BootNode(_ context.Context, name string, _ types.UID, _ string, _ corev1.NodeCondition) error {
	return notFound(name)
}

// DeleteNode implements kwok.Cluster.
func (s *scratch) DeleteNode(_ context.Context, name string, _ types.UID) error {
	return notFound(name)
}

// CreateBootRecord implements kwok.Cluster.
func (s *scratch) CreateBootRecord(_ context.Context, record kwok.BootRecord) error {
	return notFound(record.Node.Name)
}

// BootRecord implements kwok.Cluster.
func (s *scratch) BootRecord(_ context.Context, name string) (kwok.BootRecord, error) {
	return kwok.BootRecord{}, notFound(name)
}

// BootRecords implements kwok.Cluster.
func (s *scratch) BootRecords(context.Context) ([]kwok.BootRecord, error) { return nil, nil }

// DeleteBootRecord implements kwok.Cluster.
func (s *scratch) DeleteBootRecord(_ context.Context, name string) error { return notFound(name) }
