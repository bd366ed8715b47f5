// Package ec2cloud is the cloud of simulated worlds whose machines are EC2's (E-38): an account of the endpoint that
// stands for AWS in tests (ec2test), without sockets, and the shipped provider in front of it, with the SDK's clients.
// Faults on the way to it are the simulation's part; [Weather] has the faults of EC2 itself.
//
// Start with [NewGround], which is shared by all worlds of a process, and [Ground.Open], which makes a world's
// account.
package ec2cloud

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/choose"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/calls"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/claimstest"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launchid"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/machines"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/offering"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/pace"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/tag"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/userdata"
	"github.com/joiner-autoscaler/joiner/internal/sim/cloud"
)

const (
	clusterName = "c1"
	region      = "us-east-1"
	// shutTime is how long the endpoint takes to terminate a machine.
	shutTime = 30 * time.Second
)

// types returns the types on sale. They resemble the five types of the simulated cloud: two to eight cores, with
// little memory and with much.
func types() []string {
	return []string{"c5.large", "m5.large", "m5.xlarge", "c5.2xlarge", "m5.2xlarge"}
}

// Zone returns the EC2 zone for a zone of the simulated cloud, zone-a or zone-b.
func Zone(name string) string { return strings.Replace(name, "zone-", region, 1) }

// Ground is what accounts share; it never changes.
type Ground struct {
	endpoint  *ec2test.Server
	types     *offering.Types
	prices    *offering.Prices
	resources map[string]resources // by type
}

type resources struct{ capacity, allocatable corev1.ResourceList }

// NewGround makes a Ground. That takes a moment: the endpoint reads everything that AWS sells.
func NewGround() (*Ground, error) {
	all, err := ec2test.New(ec2test.Options{})
	if err != nil {
		return nil, err
	}
	g := &Ground{resources: map[string]resources{}}
	if g.endpoint, err = all.Another(ec2test.Options{}, types()...); err != nil {
		return nil, err
	}
	account, err := g.Open(Config{Now: g.endpoint.Now})
	if err != nil {
		return nil, err
	}
	clock := timer.NewFake(g.endpoint.Now())
	clients := account.clients(clock, direct)
	g.types = offering.NewTypes(clients.EC2, clock)
	g.prices = offering.NewPrices(offering.PricesConfig{Clock: clock, Region: region, EC2: clients.EC2,
		Pricing: clients.Pricing})
	if err := errors.Join(g.types.Refresh(context.Background()), g.prices.Refresh(context.Background())); err != nil {
		return nil, err
	}
	p, err := account.NewProvider(Process{Name: "ground", Clock: clock, Cluster: alone{&claimstest.Store{}, account},
		Send: direct})
	if err != nil {
		return nil, err
	}
	offered, err := p.Catalog(context.Background(), account.Class().Name)
	if err != nil {
		return nil, err
	}
	for _, kind := range offered.Types {
		capacity, allocatable := choose.Demand{}.Resources(kind)
		g.resources[kind.Name] = resources{capacity, allocatable}
	}
	if len(g.resources) != len(types()) {
		return nil, fmt.Errorf("%d types are offered, want %q", len(g.resources), types())
	}
	return g, nil
}

// alone is a cluster with the account's node class and without claims.
type alone struct {
	*claimstest.Store
	account *Account
}

func (c alone) NodeClass(context.Context, string) (*awsv1.EC2NodeClass, error) {
	return c.account.Class(), nil
}

// Config configures an account. All fields except Now may be nil.
type Config struct {
	Now func() time.Time
	// Fate decides the behaviour of a new machine. Only the time of its joining is used here.
	Fate func() cloud.Fate
	// Launched is called for each new machine. Ended is called when the end of a machine begins; it is gone at GoneAt.
	Launched, Ended func(*cloud.Machine)
	// Unknown is called for every request that the endpoint does not understand.
	Unknown func(string)
	// Warns says that there is a queue of interruption warnings. Without it nobody polls, which saves time.
	Warns bool
	// Reserves says that there may be capacity reservations: the node class chooses them.
	Reserves bool
	// Seed is the seed of the endpoint's randomness.
	Seed uint64
}

// Account is the EC2 account of a world. It is not safe for concurrent use.
type Account struct {
	ground   *Ground
	config   Config
	endpoint *ec2test.Server
	faults   ec2test.Faults
	weather  Weather
	out      cloud.Market
	queue    string
	class    *awsv1.EC2NodeClass
	reserved []reserved                // what has not ended
	images   int                       // that were published
	newest   string                    // of these, by ID
	machines []*cloud.Machine          // all that ever were, by number
	byID     map[string]*cloud.Machine // by instance id
}

// Open makes an account with a network, an image and a node class, and no machines.
func (g *Ground) Open(c Config) (*Account, error) {
	if c.Fate == nil {
		c.Fate = func() cloud.Fate { return cloud.Fate{} }
	}
	if c.Launched == nil {
		c.Launched = func(*cloud.Machine) {}
	}
	if c.Ended == nil {
		c.Ended = func(*cloud.Machine) {}
	}
	a := &Account{ground: g, config: c, byID: map[string]*cloud.Machine{}}
	var err error
	a.endpoint, err = g.endpoint.Another(ec2test.Options{Now: c.Now, URL: "http://ec2.invalid", Unknown: c.Unknown})
	if err != nil {
		return nil, err
	}
	a.endpoint.AddRole("nodes")
	a.endpoint.AddInstanceProfile("nodes", "nodes")
	subnets, group := a.endpoint.AddNetwork(clusterName, Zone("zone-a"), Zone("zone-b"))
	image := a.NewImage()
	if c.Warns {
		a.queue = a.endpoint.AddQueue(clusterName)
	}
	a.class = &awsv1.EC2NodeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "default", Generation: 1},
		Spec:       selecting(c.Reserves),
		Status: awsv1.EC2NodeClassStatus{
			SecurityGroups: []awsv1.SecurityGroup{{ID: group.ID}}, InstanceProfile: "nodes",
			AMIs: []awsv1.AMI{{ID: image.ID, Requirements: []corev1.NodeSelectorRequirement{
				{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"amd64"}},
			}}},
			Conditions: []karpenterv1.Condition{{Type: karpenterv1.ConditionTypeReady, Status: "True", Reason: "Ready",
				ObservedGeneration: 1, LastTransitionTime: metav1.NewTime(c.Now())}},
		},
	}
	for _, n := range subnets {
		a.class.Status.Subnets = append(a.class.Status.Subnets, awsv1.Subnet{ID: n.ID, Zone: n.Zone, ZoneID: n.ZoneID})
	}
	a.faults.Seed = c.Seed
	return a, a.endpoint.SetFaults(a.faults)
}

// Class returns the account's node class with its status; its generation is 1.
func (a *Account) Class() *awsv1.EC2NodeClass { return a.class.DeepCopy() }

// Process is the input of one process's provider.
type Process struct {
	Name    string // unique among all processes
	Clock   timer.Clock
	Cluster ec2.Cluster
	Send    Transport
}

// NewProvider returns the shipped provider in the state of a new process.
func (a *Account) NewProvider(p Process) (*ec2.Provider, error) {
	return a.provider(p, a.clients(p.Clock, p.Send))
}

// provider is NewProvider with the clients of the process, which has one limiter for all of its calls.
func (a *Account) provider(p Process, clients calls.Clients) (*ec2.Provider, error) {
	return ec2.New(context.Background(), ec2.Config{
		Cluster: p.Cluster, Clock: p.Clock, Process: p.Name, Name: clusterName, Region: region, Types: a.ground.types,
		Prices: a.ground.prices, Queue: a.queue, Clients: clients,
		Facts: facts, Settings: offering.Settings{MemoryOverhead: 0.075},
	})
}

// facts returns what nodes have to know about the cluster.
func facts() ec2.Facts {
	join := userdata.Cluster{Name: clusterName, Endpoint: "https://c1.example.com", CA: "Y2E=", CIDR: "10.100.0.0/16"}
	return ec2.Facts{Join: join, DNS: []string{"10.100.0.10"}}
}

func (a *Account) clients(clock timer.Clock, send Transport) calls.Clients {
	config := a.endpoint.Config()
	config.HTTPClient = wire{a, send}
	return calls.New(calls.Config{AWS: config, Clock: clock, Pace: pace.New(clock)})
}

// settle takes in the effects of the last request on machines.
func (a *Account) settle() {
	for _, i := range a.endpoint.Instances() {
		m := a.byID[i.ID]
		if m == nil {
			m = a.machine(&i)
			a.byID[i.ID] = m
			a.machines = append(a.machines, m)
			a.config.Launched(m)
		}
		if m.GoneAt.IsZero() && (i.State == ec2test.ShuttingDown || i.State == ec2test.Terminated) {
			m.GoneAt = i.Ended.Add(shutTime)
			a.config.Ended(m)
		}
	}
}

// machine returns an instance as a machine of the simulation, which finds its claim itself.
func (a *Account) machine(i *ec2test.Instance) *cloud.Machine {
	id := machines.ProviderID(i.Zone, i.ID)
	m := &cloud.Machine{Fate: a.config.Fate(), Launch: i.Tags[launchid.Key], Instance: provider.Instance{
		ProviderID: id, ImageID: i.Image, ClaimName: i.Tags[launchid.ClaimKey], Type: i.Type, Zone: i.Zone,
		CapacityType: capacityType(i),
		Launched:     i.Launched, Labels: map[string]string{
			karpenterv1.NodePoolLabelKey: i.Tags[tag.Pool], ReservationLabel: i.Reservation,
		},
	}}
	m.ListLag = i.Visible().Sub(i.Launched)
	has := a.ground.resources[i.Type]
	m.Node = &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%04d", len(a.machines)+1)},
		Spec: corev1.NodeSpec{ProviderID: id, Taints: []corev1.Taint{
			{Key: karpenterv1.UnregisteredTaintKey, Effect: corev1.TaintEffectNoExecute},
		}},
		Status: corev1.NodeStatus{Capacity: has.capacity.DeepCopy(), Allocatable: has.allocatable.DeepCopy()},
	}
	m.Node.Labels = map[string]string{
		corev1.LabelHostname: m.Node.Name, corev1.LabelInstanceTypeStable: i.Type, corev1.LabelTopologyZone: i.Zone,
		corev1.LabelTopologyRegion: region, corev1.LabelArchStable: "amd64",
		corev1.LabelOSStable:              string(corev1.Linux),
		string(catalog.LabelCapacityType): m.CapacityType, karpenterv1.NodePoolLabelKey: i.Tags[tag.Pool],
		awsv1.NodeClassLabelKey: i.Tags[tag.Class],
	}
	return m
}

// Exists reports whether a machine is still there: running or ending.
func (a *Account) Exists(m *cloud.Machine) bool {
	return m.GoneAt.IsZero() || a.config.Now().Before(m.GoneAt)
}

// Machines returns the existing machines, by number, whatever EC2 shows of them.
func (a *Account) Machines() []*cloud.Machine {
	var there []*cloud.Machine
	for _, m := range a.machines {
		if a.Exists(m) {
			there = append(there, m)
		}
	}
	return there
}

// Vanish ends a machine that nobody asked to end.
func (a *Account) Vanish(m *cloud.Machine) {
	a.endpoint.End(instanceID(m), "Server.InternalError", "Server.InternalError: Internal error")
	a.settle()
}

// Interrupt warns the cluster that a machine will be taken away. The caller has to take it away then.
func (a *Account) Interrupt(m *cloud.Machine, _ time.Time) {
	if m.GoneAt.IsZero() {
		a.endpoint.Interrupt(instanceID(m))
	}
}

func instanceID(m *cloud.Machine) string {
	return m.ProviderID[strings.LastIndex(m.ProviderID, "/")+1:]
}
