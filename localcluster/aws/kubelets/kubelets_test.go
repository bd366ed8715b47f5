package kubelets_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/userdata"
	"github.com/joiner-autoscaler/joiner/localcluster/aws/account"
	"github.com/joiner-autoscaler/joiner/localcluster/aws/kubelets"
)

// apiServer keeps nodes, and nothing else of an API server.
type apiServer struct {
	*httptest.Server
	mu    sync.Mutex
	nodes map[string]*corev1.Node
}

func newAPIServer(t *testing.T) *apiServer {
	s := &apiServer{nodes: map[string]*corev1.Node{}}
	s.Server = httptest.NewTLSServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	name := strings.Trim(strings.TrimPrefix(r.URL.Path, "/api/v1/nodes"), "/")
	node := s.nodes[name]
	switch {
	case r.Method == http.MethodGet && name == "":
		list := corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}}
		for _, n := range s.nodes {
			list.Items = append(list.Items, *n)
		}
		_ = json.NewEncoder(w).Encode(list)
	case r.Method == http.MethodPost:
		made := &corev1.Node{}
		_ = json.NewDecoder(r.Body).Decode(made)
		s.nodes[made.Name] = made
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(made)
	case node == nil:
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
			Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound})
	default:
		if r.Method == http.MethodDelete {
			delete(s.nodes, name)
		}
		_ = json.NewEncoder(w).Encode(node)
	}
}

func (s *apiServer) all() []corev1.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []corev1.Node
	for _, n := range s.nodes {
		list = append(list, *n)
	}
	return list
}

// place is an account and an API server, with the kubelets between them.
type place struct {
	*account.Account
	api  *apiServer
	ec2  *ec2.Client
	kube *kubelets.Kubelets
}

func newPlace(t *testing.T) *place {
	t.Helper()
	a, err := account.Start(account.Options{Cluster: "prod", Boot: 50 * time.Millisecond, Shut: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	p := &place{Account: a, api: newAPIServer(t), ec2: ec2.NewFromConfig(a.Config(account.You))}
	p.kube, err = kubelets.Start(kubelets.Options{
		AWS: a.Config(account.Kubelets), Cluster: "prod", Every: 20 * time.Millisecond, Log: t.Output(),
		Kube: &rest.Config{
			Host: p.api.URL, TLSClientConfig: rest.TLSClientConfig{CAData: p.authority()},
			ContentConfig: rest.ContentConfig{ContentType: "application/json"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.kube.Stop()
		if err := a.Stop(); err != nil {
			t.Error(err)
		}
		for _, text := range a.Unknown() {
			t.Errorf("the endpoint was asked for what it does not know: %s", text)
		}
	})
	return p
}

func (p *place) authority() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.api.Certificate().Raw})
}

// node is what the user data of tests says.
func (p *place) node() userdata.Node {
	return userdata.Node{
		Cluster: userdata.Cluster{Name: "prod", Endpoint: p.api.URL,
			CA: base64.StdEncoding.EncodeToString(p.authority()), CIDR: "10.96.0.0/16"},
		MaxPods: 29, Labels: map[string]string{"team": "web"},
		Taints: []corev1.Taint{{Key: "karpenter.sh/unregistered", Effect: corev1.TaintEffectNoExecute}},
	}
}

// launch launches an m5.large with user data and returns its id.
func (p *place) launch(t *testing.T, name, image, data string) string {
	t.Helper()
	picture := p.images(t, image)
	_, err := p.ec2.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: &name, LaunchTemplateData: &types.RequestLaunchTemplateData{
			ImageId: &picture, UserData: aws.String(base64.StdEncoding.EncodeToString([]byte(data))),
			SecurityGroupIds: []string{p.Group.ID},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.ec2.CreateFleet(t.Context(), &ec2.CreateFleetInput{
		Type: types.FleetTypeInstant,
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{TotalTargetCapacity: aws.Int32(1),
			DefaultTargetCapacityType: types.DefaultTargetCapacityTypeOnDemand},
		OnDemandOptions: &types.OnDemandOptionsRequest{
			AllocationStrategy: types.FleetOnDemandAllocationStrategyLowestPrice,
		},
		LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: &name,
				Version: aws.String("$Latest")},
			Overrides: []types.FleetLaunchTemplateOverridesRequest{
				{InstanceType: "m5.large", SubnetId: &p.Subnets[0].ID},
			},
		}},
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeInstance,
			Tags: []types.Tag{{Key: aws.String("eks:eks-cluster-name"), Value: aws.String("prod")}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Instances[0].InstanceIds[0]
}

// images finds an image by a part of its name, or publishes it.
func (p *place) images(t *testing.T, part string) string {
	t.Helper()
	for _, image := range p.Release(time.Now()) {
		if strings.Contains(image.Name, part) && image.Architecture == "x86_64" {
			return image.ID
		}
	}
	t.Fatalf("no image has %q in its name", part)
	return ""
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for tick := time.NewTicker(10 * time.Millisecond); !done(); {
		select {
		case <-ctx.Done():
			t.Fatalf("waited in vain for %s", what)
		case <-tick.C:
		}
	}
}

// E-63: an instance becomes the node that its user data asks for, and its Node goes when it has ended.
func TestInstancesBecomeNodes(t *testing.T) {
	t.Parallel()
	disk := map[string]int64{"al2023": 20, "bottlerocket": 2} // the only volume
	for name, write := range map[string]func(*place) (string, error){
		"al2023":       func(p *place) (string, error) { return userdata.AL2023("", p.node()) },
		"bottlerocket": func(p *place) (string, error) { return userdata.Bottlerocket("", p.node(), "1.50.0") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			data, err := write(p)
			if err != nil {
				t.Fatal(err)
			}
			id := p.launch(t, name, name, data)
			eventually(t, "a node", func() bool { return len(p.api.all()) == 1 })
			node := p.api.all()[0]
			for key, want := range map[string]string{
				"team": "web", "node.kubernetes.io/instance-type": "m5.large",
				"topology.kubernetes.io/zone":   "us-east-1a",
				"topology.kubernetes.io/region": "us-east-1", "topology.k8s.aws/zone-id": "use1-az1",
				"kubernetes.io/arch": "amd64", "kubernetes.io/hostname": node.Name,
			} {
				if node.Labels[key] != want {
					t.Errorf("label %s is %q, want %q", key, node.Labels[key], want)
				}
			}
			if want := "aws:///us-east-1a/" + id; node.Spec.ProviderID != want ||
				!strings.HasSuffix(node.Name, ".ec2.internal") {
				t.Errorf("node %s is %s, want %s", node.Name, node.Spec.ProviderID, want)
			}
			if len(node.Spec.Taints) != 1 || node.Spec.Taints[0].Key != "karpenter.sh/unregistered" {
				t.Errorf("taints are %v", node.Spec.Taints)
			}
			has, left := node.Status.Capacity, node.Status.Allocatable
			if has.Cpu().Value() != 2 || has.Pods().Value() != 29 ||
				has.StorageEphemeral().Value() != disk[name]<<30 ||
				has.Memory().Value() >= 8<<30 || has.Memory().Value() < 7<<30 ||
				left.Memory().Value() >= has.Memory().Value()-500<<20 || left.Cpu().MilliValue() != 1930 {
				t.Errorf("capacity %v, allocatable %v", has, left)
			}
			p.End(id, "Client.UserInitiatedShutdown", "")
			eventually(t, "the node to go", func() bool { return len(p.api.all()) == 0 })
		})
	}
}

// E-32: unreadable user data makes no node, and the reason can be asked for.
func TestWhyAnInstanceIsNoNode(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	other, strange := p.node(), p.node()
	other.Cluster.Name = "another"
	strange.Cluster.CA = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCkFBQUEKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="
	write := func(n userdata.Node) string {
		text, err := userdata.AL2023("", n)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	rows := map[string]struct{ image, data, says string }{
		"script":  {"al2023", "#!/bin/bash\n", "no multipart document"},
		"family":  {"bottlerocket", write(p.node()), "user data"},
		"cluster": {"al2023", write(other), `cluster "another"`},
		"trust":   {"al2023", write(strange), "certificate"},
	}
	ids := map[string]string{}
	for name, row := range rows {
		ids[name] = p.launch(t, name, row.image, row.data)
	}
	eventually(t, "all reasons", func() bool { return len(p.kube.Failures()) == len(rows) })
	for name, row := range rows {
		if why := p.kube.Failures()[ids[name]]; !strings.Contains(why, row.says) {
			t.Errorf("%s: %q, want it to say %q", name, why, row.says)
		}
	}
	if nodes := p.api.all(); len(nodes) != 0 {
		t.Errorf("there are nodes: %v", nodes)
	}
}
