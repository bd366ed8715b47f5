package ec2_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/calls"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test/ground"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/offering"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/userdata"
	"github.com/joiner-autoscaler/joiner/internal/provider/providertest"
)

// ahead is the provider's clock: that of the machine plus the time that a test has skipped.
type ahead struct{ skipped atomic.Int64 }

func (a *ahead) Now() time.Time { return time.Now().Add(time.Duration(a.skipped.Load())) }

func (a *ahead) AfterFunc(d time.Duration, f func()) func() {
	return timer.Real{}.AfterFunc(min(d, 20*time.Millisecond), f)
}

// place is a provider with its ground at a server of which only the URL is known.
type place struct {
	*ec2.Provider
	*ground.Ground
	t     *testing.T
	clock *ahead
}

func (p *place) Suffix() string            { return "-" + p.Cluster }
func (p *place) ClassName() string         { return "default" }
func (p *place) NotReadyClassName() string { return "broken" }

// Settle waits until machines run or have ended, and moves the provider's clock on.
func (p *place) Settle(t *testing.T) {
	t.Helper()
	if err := p.Ground.Settle(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
	p.clock.skipped.Add(int64(3 * time.Minute))
}

// Machines counts the instances that start or run.
func (p *place) Machines() int {
	p.t.Helper()
	list, err := p.Instances(context.WithoutCancel(p.t.Context()), ec2types.InstanceStateNamePending,
		ec2types.InstanceStateNameRunning)
	if err != nil {
		p.t.Error(err)
	}
	return len(list)
}

// Interrupt sends the message that EventBridge would send.
func (p *place) Interrupt(t *testing.T, providerID string) {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"version": "0", "id": "warning", "detail-type": "EC2 Spot Instance Interruption Warning", "source": "aws.ec2",
		"time": p.clock.Now().UTC().Format(time.RFC3339),
		"detail": map[string]string{"instance-id": providerID[strings.LastIndex(providerID, "/")+1:],
			"instance-action": "terminate"},
	})
	if err == nil {
		err = p.Send(t.Context(), string(text))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// somewhere returns the server that the environment names, or one of our own behind a URL. Both results are
// configurations of clients: of the provider, and of the code that creates its ground.
func somewhere(t *testing.T) (controller, user aws.Config) {
	t.Helper()
	if config, url, is := ground.FromEnv(); is {
		t.Logf("against %s", url)
		return config, config
	}
	var server *ec2test.Server
	listener := httptest.NewUnstartedServer(nil)
	server, err := ec2test.New(ec2test.Options{
		Now: time.Now, URL: "http://" + listener.Listener.Addr().String(), Boot: 200 * time.Millisecond,
		Shut: 200 * time.Millisecond, Unknown: func(text string) { t.Errorf("ec2test: %s", text) },
	})
	if err != nil {
		t.Fatal(err)
	}
	listener.Config.Handler = server
	listener.Start()
	t.Cleanup(listener.Close)
	return server.Config(), server.OthersConfig()
}

// soldAt returns what a server sells. Without prices, or without spot prices, planning uses the tables (E-26).
func soldAt(t *testing.T, config aws.Config) sold {
	t.Helper()
	clients := calls.New(calls.Config{AWS: config, Clock: timer.Real{}})
	s := sold{
		types: offering.NewTypes(clients.EC2, timer.Real{}),
		prices: offering.NewPrices(offering.PricesConfig{
			Clock: timer.Real{}, Region: config.Region, EC2: clients.EC2, Pricing: clients.Pricing,
		}),
	}
	if err := s.types.Refresh(t.Context()); err != nil {
		t.Fatalf("instance types: %v", err)
	}
	if err := s.prices.Refresh(t.Context()); err != nil {
		t.Logf("prices are those of the tables: %v", err)
	}
	return s
}

// newPlace makes the ground for one test, with a class that has it, and the provider.
func newPlace(t *testing.T, s sold, controller, user aws.Config, name string) *place {
	t.Helper()
	g, err := ground.Make(t.Context(), user, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Remove(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	p := &place{Ground: g, t: t, clock: &ahead{}}
	kube := &cluster{classes: map[string]*awsv1.EC2NodeClass{}}
	class := &awsv1.EC2NodeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "default", UID: types.UID("uid-of-" + name), Generation: 1,
			ResourceVersion: "1"},
		Spec: awsv1.EC2NodeClassSpec{
			AMIFamily: aws.String("AL2023"), AMISelectorTerms: []awsv1.AMISelectorTerm{{ID: g.Image}},
			InstanceProfile: &g.Profile,
		},
		Status: awsv1.EC2NodeClassStatus{
			SecurityGroups: []awsv1.SecurityGroup{{ID: g.Group}}, InstanceProfile: g.Profile,
			AMIs:       []awsv1.AMI{{ID: g.Image, Requirements: onlyAMD64()}},
			Conditions: []karpenterv1.Condition{{Type: "Ready", Status: "True", ObservedGeneration: 1}},
		},
	}
	for _, n := range g.Subnets {
		class.Status.Subnets = append(class.Status.Subnets, awsv1.Subnet{ID: n.ID, Zone: n.Zone, ZoneID: n.ZoneID})
	}
	broken := class.DeepCopy()
	broken.Name, broken.UID = "broken", types.UID("uid-of-broken-"+name)
	broken.Status.Conditions = []karpenterv1.Condition{
		{Type: "Ready", Status: "False", ObservedGeneration: 1, Reason: "SubnetsNotFound", Message: "no subnet"},
	}
	kube.classes["default"], kube.classes["broken"] = class, broken
	p.Provider, err = ec2.New(t.Context(), ec2.Config{
		Cluster: kube, Clock: p.clock, Process: string(uuid.NewUUID()), Name: name, Region: controller.Region,
		Types: s.types, Prices: s.prices, Queue: g.Queue,
		Clients: calls.New(calls.Config{AWS: controller, Clock: p.clock}),
		Facts: func() ec2.Facts {
			return ec2.Facts{Join: userdata.Cluster{Name: name, Endpoint: "https://c1.example.com", CA: "Y2E=",
				CIDR: "10.100.0.0/16"}, DNS: []string{"10.100.0.10"}}
		},
		Settings: offering.Settings{MemoryOverhead: 0.075},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// E-64: the contract of all providers against a server of which only the URL is known: one of our own, or that of the
// variable JOINER_EC2_ENDPOINT (make e2e-ec2). Resources for the tests are created through AWS's API, and removed
// again.
func TestContractAnywhere(t *testing.T) {
	t.Parallel()
	controller, user := somewhere(t)
	s := soldAt(t, controller)
	run, count := time.Now().UnixNano(), atomic.Int64{}
	providertest.Run(t, func(t *testing.T) (provider.Provider, providertest.Harness) {
		p := newPlace(t, s, controller, user, fmt.Sprintf("joiner-%d-%d", run, count.Add(1)))
		return p, p
	})
}
