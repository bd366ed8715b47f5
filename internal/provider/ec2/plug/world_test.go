package plug

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/plugin"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
)

const clusterName = "c1"

// region is an endpoint, an API server of the fake kind, and the plug-in between them.
type region struct {
	*link
	t       *testing.T
	server  *ec2test.Server
	kube    client.Client
	classes *classes

	mu     sync.Mutex
	later  time.Duration
	events []string // reason: message
	about  []string // the kinds and names of what events are about
	woken  []string
}

// Event implements event.Recorder.
func (r *region) Event(about client.Object, _ event.Kind, reason, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.about = append(r.about, fmt.Sprintf("%T %s", about, about.GetName()))
	r.events = append(r.events, reason+": "+message)
}

// newRegion returns a region with everything that a class needs. It is not connected yet.
func newRegion(t *testing.T, change func(*settings), objects ...client.Object) *region {
	t.Helper()
	r := &region{t: t}
	r.server = ec2test.Start(t, ec2test.Options{Now: r.Now})
	r.server.AddRole("nodes")
	r.server.AddNetwork(clusterName, "us-east-1a", "us-east-1b")
	made := r.Now() // of all images, since the newest come first in a status
	for variant, arch := range map[string]string{
		"x86_64/standard": "x86_64", "x86_64/nvidia": "x86_64", "x86_64/neuron": "x86_64", "arm64/standard": "arm64",
		"arm64/nvidia": "arm64",
	} {
		image := r.server.AddImage(ec2test.Image{Architecture: arch, Created: made,
			Name: "amazon-eks-node-al2023-" + strings.ReplaceAll(variant, "/", "-") + "-1.34-v20261101"})
		r.server.SetParameter("/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/"+variant+"/recommended/image_id",
			image.ID)
	}
	r.server.AddCluster(ec2test.Cluster{Name: clusterName, Version: "1.34", Endpoint: "https://c1.example.com",
		CA: "Y2E=", CIDR: "10.100.0.0/16"})
	scheme := runtime.NewScheme()
	if err := errors.Join(appsv1.AddToScheme(scheme), coordinationv1.AddToScheme(scheme),
		corev1.AddToScheme(scheme), karpenterv1.AddToScheme(scheme), awsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	r.kube = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&awsv1.EC2NodeClass{},
		&karpenterv1.NodeClaim{}).
		WithObjects(objects...).Build()
	s := defaults()
	s.clusterName = clusterName
	if change != nil {
		change(&s)
	}
	r.link = newLink(s, plugin.Deps{
		Client: r.kube, Live: r.kube, Events: r, Registerer: prometheus.NewRegistry(), Now: r.Now, Log: logr.Discard(),
		Version: func(context.Context) (string, error) { return "1.34", nil },
		Wake: func(controller string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.woken = append(r.woken, controller)
		},
	})
	r.link.clock = soon{r}
	r.link.load = func(context.Context) (aws.Config, error) { return r.server.Config(), nil }
	r.classes = newClasses(r.link)
	return r
}

// Now is the machine's time and what later adds.
func (r *region) Now() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Now().Add(r.later)
}

// soon shows the region's time; delayed calls happen soon.
type soon struct{ of *region }

// Now implements timer.Clock.
func (s soon) Now() time.Time { return s.of.Now() }

// AfterFunc implements timer.Clock.
func (soon) AfterFunc(_ time.Duration, f func()) func() {
	return timer.Real{}.AfterFunc(5*time.Millisecond, f)
}

// pass lets time pass.
func (r *region) pass(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.later += d
}

// connectNow connects, and asks for what EC2 sells.
func (r *region) connectNow() *connection {
	r.t.Helper()
	if _, err := (connector{r.link, r.t.Context()}).Reconcile(r.t.Context(), reconcile.Request{}); err != nil {
		r.t.Fatal(err)
	}
	c := r.connected()
	if c == nil {
		r.t.Fatalf("not connected: %v", r.why())
	}
	if _, err := newOffers(r.link).step(r.t.Context(), c); err != nil {
		r.t.Fatal(err)
	}
	return c
}

// look lets the controller of classes look once.
func (r *region) look() reconcile.Result {
	r.t.Helper()
	result, err := r.classes.Reconcile(r.t.Context(), reconcile.Request{})
	if err != nil {
		r.t.Fatal(err)
	}
	return result
}

func (r *region) class(name string) *awsv1.EC2NodeClass {
	r.t.Helper()
	var class awsv1.EC2NodeClass
	if err := r.kube.Get(r.t.Context(), types.NamespacedName{Name: name}, &class); err != nil {
		r.t.Fatal(err)
	}
	return &class
}

// condition returns a condition of a class.
func (r *region) condition(name, kind string) karpenterv1.Condition {
	r.t.Helper()
	c, _ := condition.Get(r.class(name).Status.Conditions, kind)
	return c
}

// aClass returns a class as a user writes it.
func aClass(name string, change ...func(*awsv1.EC2NodeClass)) *awsv1.EC2NodeClass {
	role, discovery := "nodes", map[string]string{"karpenter.sh/discovery": clusterName}
	c := &awsv1.EC2NodeClass{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name), Generation: 1},
		Spec: awsv1.EC2NodeClassSpec{
			Role: &role, AMISelectorTerms: []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}},
			SubnetSelectorTerms:        []awsv1.SubnetSelectorTerm{{Tags: discovery}},
			SecurityGroupSelectorTerms: []awsv1.SecurityGroupSelectorTerm{{Tags: discovery}},
		},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func request() reconcile.Request { return reconcile.Request{} }

// nobody answers no request.
type nobody struct{}

func (nobody) Do(*http.Request) (*http.Response, error) { return nil, errors.New("nobody is there") }
