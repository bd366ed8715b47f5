package ec2_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/calls"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/claimstest"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/offering"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/pace"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/subnet"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/userdata"
	"github.com/joiner-autoscaler/joiner/internal/provider/providertest"
)

// cluster simulates the API server: node classes, and the claims on which a launch was written.
type cluster struct {
	claimstest.Store
	mu      sync.Mutex
	classes map[string]*awsv1.EC2NodeClass
}

func (c *cluster) NodeClass(_ context.Context, name string) (*awsv1.EC2NodeClass, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if class := c.classes[name]; class != nil {
		return class.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: awsv1.Group, Resource: "ec2nodeclasses"}, name)
}

// clock shows the endpoint's time. Delayed calls happen soon or, if a test depends on company, much later.
type clock struct {
	of   *ec2test.Server
	slow bool
	// never drops delayed calls.
	never bool
}

func (c clock) Now() time.Time { return c.of.Now() }

func (c clock) AfterFunc(d time.Duration, f func()) func() {
	if c.never && d > 0 {
		return func() {}
	}
	if c.slow {
		return timer.Real{}.AfterFunc(100*d, f)
	}
	return timer.Real{}.AfterFunc(5*time.Millisecond, f)
}

// account is an endpoint with the resources of a class, and the provider.
type account struct {
	*ec2.Provider
	kube   *cluster
	server *ec2test.Server
	clock  clock
	image  ec2test.Image

	pods    subnet.PodAddresses                    // of the cluster, for the next process
	through func(to aws.HTTPClient) aws.HTTPClient // sees the requests of the next process; nil for nobody
	// branches has the branch interfaces of types, for the next process. A catalogue asks for those of all its types.
	branches func(kind string) int64

	mu   sync.Mutex
	told []ec2.Event
}

// sold is what the endpoint sells. It is asked for once, since it is the same for every account.
type sold struct {
	types  *offering.Types
	prices *offering.Prices
}

func whatIsSold(t *testing.T) sold {
	t.Helper()
	server := ec2test.Start(t, ec2test.Options{})
	clients := calls.New(calls.Config{AWS: server.Config(), Clock: timer.Real{}})
	s := sold{
		types: offering.NewTypes(clients.EC2, timer.Real{}),
		prices: offering.NewPrices(offering.PricesConfig{Clock: timer.Real{}, Region: "us-east-1", EC2: clients.EC2,
			Pricing: clients.Pricing}),
	}
	if err := s.types.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.prices.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

const clusterName = "c1"

func newAccount(t *testing.T, s sold, faults ec2test.Faults) *account {
	t.Helper()
	server := ec2test.Start(t, ec2test.Options{Faults: faults})
	a := &account{server: server, clock: clock{of: server}, kube: &cluster{
		classes: map[string]*awsv1.EC2NodeClass{},
	}}
	server.AddRole("nodes")
	server.AddInstanceProfile("nodes", "nodes")
	subnets, group := server.AddNetwork(clusterName, "us-east-1a", "us-east-1b", "us-east-1c")
	a.image = server.AddImage(ec2test.Image{Name: "amazon-eks-node-al2023-x86_64-standard-1.33-v20261101"})
	class := &awsv1.EC2NodeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "uid-of-default", Generation: 1, ResourceVersion: "1"},
		Spec:       awsv1.EC2NodeClassSpec{AMISelectorTerms: []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}}},
		Status: awsv1.EC2NodeClassStatus{
			SecurityGroups: []awsv1.SecurityGroup{{ID: group.ID}}, InstanceProfile: "nodes",
			AMIs:       []awsv1.AMI{{ID: a.image.ID, Requirements: onlyAMD64()}},
			Conditions: []karpenterv1.Condition{{Type: "Ready", Status: "True", ObservedGeneration: 1}},
		},
	}
	for _, n := range subnets {
		class.Status.Subnets = append(class.Status.Subnets, awsv1.Subnet{ID: n.ID, Zone: n.Zone, ZoneID: n.ZoneID})
	}
	a.kube.classes["default"] = class
	broken := class.DeepCopy()
	broken.Name, broken.UID = "broken", "uid-of-broken"
	broken.Status.Conditions = []karpenterv1.Condition{
		{Type: "Ready", Status: "False", ObservedGeneration: 1, Reason: "SubnetsNotFound", Message: "no subnet"},
	}
	a.kube.classes["broken"] = broken
	a.Provider = a.restart(t, s, server.AddQueue(clusterName))
	return a
}

// restart begins another process, without memory.
func (a *account) restart(t *testing.T, s sold, queue string) *ec2.Provider {
	t.Helper()
	config := a.server.Config()
	if a.through != nil {
		config.HTTPClient = a.through(config.HTTPClient)
	}
	p, err := ec2.New(t.Context(), ec2.Config{
		Cluster: a.kube, Clock: a.clock, Name: clusterName, Region: "us-east-1", Types: s.types, Prices: s.prices,
		Queue: queue, Branches: a.branches,
		Clients: calls.New(calls.Config{AWS: config, Clock: a.clock, Pace: pace.New(timer.Real{})}),
		Facts: func() ec2.Facts {
			return ec2.Facts{Join: userdata.Cluster{Name: clusterName, Endpoint: "https://c1.example.com", CA: "Y2E=",
				CIDR: "10.100.0.0/16"}, DNS: []string{"10.100.0.10"}, PodAddresses: a.pods}
		},
		Settings: offering.Settings{MemoryOverhead: 0.075},
		Told: func(e ec2.Event) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.told = append(a.told, e)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (a *account) ClassName() string         { return "default" }
func (a *account) NotReadyClassName() string { return "broken" }
func (a *account) Machines() int {
	n := 0
	for _, i := range a.server.Instances() {
		if i.State == ec2test.Pending || i.State == ec2test.Running {
			n++
		}
	}
	return n
}

// Interrupt has EC2 warn a spot instance.
func (a *account) Interrupt(_ *testing.T, providerID string) {
	a.server.Interrupt(providerID[strings.LastIndex(providerID, "/")+1:])
}

// Settle lets some minutes pass: machines run, or have ended.
func (a *account) Settle(*testing.T) { a.server.Advance(3 * time.Minute) }

// P-50: the contract of all providers, against the endpoint.
func TestContract(t *testing.T) {
	t.Parallel()
	s := whatIsSold(t)
	providertest.Run(t, func(t *testing.T) (provider.Provider, providertest.Harness) {
		a := newAccount(t, s, ec2test.Faults{})
		return a, a
	})
}

func onlyAMD64() []corev1.NodeSelectorRequirement {
	return []corev1.NodeSelectorRequirement{
		{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"amd64"}},
	}
}
