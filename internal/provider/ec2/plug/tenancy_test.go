package plug

import (
	"errors"
	"strings"
	"testing"
	"time"

	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/provider"
)

const tenancy = "karpenter.k8s.aws/instance-tenancy"

// tenancies returns the tenancies of the types that a class offers.
func (r *region) tenancies(class string) string {
	r.t.Helper()
	offered, err := r.connected().machines.Catalog(r.t.Context(), class)
	if err != nil {
		r.t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, kind := range offered.Types {
		value, _ := kind.Labels.Get(tenancy).Single()
		seen[value] = true
	}
	if len(seen) != 1 {
		r.t.Fatalf("class %s offers %v", class, seen)
	}
	for value := range seen {
		return value
	}
	return ""
}

// asking returns a claim of a class with a requirement.
func asking(name, class, key string, values ...string) *karpenterv1.NodeClaim {
	c := aClaim(name)
	c.Spec.NodeClassRef.Name = class
	c.Spec.Requirements = []karpenterv1.NodeSelectorRequirementWithMinValues{
		{Key: instanceType, Operator: "In", Values: []string{"m5.large"}}, {Key: key, Operator: "In", Values: values}}
	return c
}

// E-18, E-24, E-31: a class whose pools all require dedicated machines offers these, at their prices, and its launch
// template requests them; a claim without the requirement gets none. A pool that requires them beside others that do
// not gets one event.
func TestDedicatedMachinesAreForThoseWhoAsk(t *testing.T) {
	t.Parallel()
	r := newRegion(t, nil, aClass("own"), aClass("default"), aPool("alone", "own", tenancy, "dedicated"),
		aPool("either", "default", tenancy, "dedicated", "default"), aPool("beside", "default", tenancy, "dedicated"))
	r.server.SetPrice("m5.large", 0.1)
	day := newDay(r)
	day.run(70 * time.Second) // until EC2 is sure to know the profiles
	if _, err := newOffers(r.link).step(t.Context(), r.connected()); err != nil {
		t.Fatal(err)
	}
	if own, others := r.tenancies("own"), r.tenancies("default"); own != "dedicated" || others != "default" {
		t.Errorf("offered are %s and %s machines", own, others)
	}
	if said := strings.Join(r.events, "\n"); r.saidOf(EventTenancy) != 1 ||
		!strings.Contains(said, "EC2NodeClass default") || !strings.Contains(said, "(either)") {
		t.Errorf("%d events: %s", r.saidOf(EventTenancy), said)
	}
	ask := asking("asks", "own", tenancy, "dedicated")
	if err := r.kube.Create(t.Context(), ask); err != nil {
		t.Fatal(err)
	}
	i, err := r.connected().machines.Launch(t.Context(), ask, time.Time{})
	if err != nil || i.Labels[tenancy] != "dedicated" || i.CapacityType != string(catalog.OnDemand) ||
		i.Price.Dollars() != 0.11 {
		t.Fatalf("%+v, error %v", i, err)
	}
	out, err := awsec2.NewFromConfig(r.server.OthersConfig()).DescribeInstances(t.Context(),
		&awsec2.DescribeInstancesInput{})
	if err != nil || out.Reservations[0].Instances[0].Placement.Tenancy != ec2types.TenancyDedicated {
		t.Errorf("EC2 shows %+v, error %v", out, err)
	}
	var notReady *provider.NodeClassNotReadyError
	if _, err := r.connected().machines.Launch(t.Context(), asking("does-not", "own", "kubernetes.io/arch", "amd64"),
		time.Time{}); !errors.As(err, &notReady) {
		t.Errorf("a claim that does not ask: error %v, want the class not to be ready for it", err)
	}
	if err := r.kube.Create(t.Context(), aPool("new", "own", "kubernetes.io/arch", "amd64")); err != nil {
		t.Fatal(err)
	}
	r.look()
	if own := r.tenancies("own"); own != "default" {
		t.Errorf("with a pool that does not ask the class offers %s machines", own)
	}
	r.link = r.again() // which did not launch the machine
	r.connectNow()
	if list, err := (lazy{link: r.link}).List(t.Context()); err != nil || len(list) != 1 ||
		list[0].Labels[tenancy] != "dedicated" {
		t.Errorf("listed: %+v, error %v", list, err)
	}
}
