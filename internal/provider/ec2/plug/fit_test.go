package plug

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
)

const instanceType = "node.kubernetes.io/instance-type"

// aPool returns a pool that refers to a class and accepts the given values of a label.
func aPool(name, class, key string, values ...string) *karpenterv1.NodePool {
	p := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name)}}
	p.Spec.Template.Spec.NodeClassRef = &karpenterv1.NodeClassReference{Group: awsv1.Group,
		Kind: "EC2NodeClass", Name: class}
	if len(values) > 0 {
		p.Spec.Template.Spec.Requirements = []karpenterv1.NodeSelectorRequirementWithMinValues{
			{Key: key, Operator: "In", Values: values}}
	}
	return p
}

func withEnclaves(c *awsv1.EC2NodeClass) {
	c.Spec.EnclaveOptions = &awsv1.EnclaveOptions{Enabled: true}
}

// E-01: a pool that has no type left, since its class requires enclaves, gets one event, and another when the text
// changes; other pools get none.
func TestAPoolWithoutEnclavesIsTold(t *testing.T) {
	t.Parallel()
	small := aPool("small", "secure", instanceType, "t3.micro", "t3.small", "t3.medium", "t3.nano")
	r := newRegion(t, nil, aClass("secure", withEnclaves), aClass("plain"), small,
		aPool("large", "secure", instanceType, "t3.micro", "m6g.large"),
		aPool("open", "plain", instanceType, "t3.micro"), aPool("nowhere", "secure", instanceType, "no.such"))
	r.connectNow()
	r.look()
	r.look()
	if told := r.saidOf(EventNoEnclaves); told != 1 {
		t.Fatalf("%d events, want one: %q", told, r.events)
	}
	for _, want := range []string{"spec.enclaveOptions.enabled of EC2NodeClass secure is true",
		"(t3.medium, t3.micro, t3.nano and 1 more)"} {
		if said := strings.Join(r.events, "\n"); !strings.Contains(said, want) {
			t.Errorf("%q is not in %s", want, said)
		}
	}
	change := func(values ...string) {
		t.Helper()
		if err := r.kube.Get(t.Context(), client.ObjectKeyFromObject(small), small); err != nil {
			t.Fatal(err)
		}
		small.Spec.Template.Spec.Requirements[0].Values = values
		if err := r.kube.Update(t.Context(), small); err != nil {
			t.Fatal(err)
		}
		r.look()
	}
	change("t3.micro")
	if told := r.saidOf(EventNoEnclaves); told != 2 {
		t.Errorf("%d events, want another one for another text: %q", told, r.events)
	}
	change("c6i.xlarge")
	change("t3.micro")
	if told := r.saidOf(EventNoEnclaves); told != 3 {
		t.Errorf("%d events, want another one once it was mended in between: %q", told, r.events)
	}
}

// E-77: a reservation whose type or zone no pool accepts is named, with the pool that comes closest. After a change of
// the pool so that it accepts the reservation, and for a class without pools, the condition is True. The class stays
// ready, and the reservation stays in its status.
func TestAReservationThatNoPoolTakes(t *testing.T) {
	t.Parallel()
	terms := func(c *awsv1.EC2NodeClass) {
		c.Spec.CapacityReservationSelectorTerms = []awsv1.CapacityReservationSelectorTerm{{ID: "cr-1"},
			{Tags: map[string]string{"team": "a"}}}
	}
	pool := aPool("general", "default", "karpenter.k8s.aws/instance-family", "c5")
	r := newRegion(t, nil, aClass("default", terms), aClass("alone", terms), pool)
	for id, kind := range map[string]string{"cr-1": "m5.large", "cr-2": "m5.xlarge", "cr-3": "c5.large"} {
		r.server.AddCapacityReservation(ec2test.CapacityReservation{ID: id, Type: kind, Zone: "us-east-1a", Total: 1,
			Tags: map[string]string{"team": map[bool]string{true: "b", false: "a"}[id == "cr-1"]}})
	}
	r.connectNow()
	r.look()
	c := r.condition("default", resolve.CapacityReservationsReady)
	for _, want := range []string{"cr-1 (m5.large in us-east-1a)", "no NodePool", "general",
		"karpenter.k8s.aws/instance-family"} {
		if c.Status != metav1.ConditionFalse || c.Reason != resolve.CapacityReservationNotFound ||
			!strings.Contains(c.Message, want) {
			t.Errorf("%+v, want it False and to have %q", c, want)
		}
	}
	if strings.Contains(c.Message, "Terms[1]") {
		t.Errorf("%s: cr-3 is taken, which is enough for its term", c.Message)
	}
	if is := r.condition("default", ready); strings.Contains(is.Message, resolve.CapacityReservationsReady) {
		t.Errorf("%+v: machines are launched without the reservation", is)
	}
	if n := len(r.class("default").Status.CapacityReservations); n != 3 {
		t.Errorf("%d reservations in the status, want 3: a pool may change", n)
	}
	if c := r.condition("alone", resolve.CapacityReservationsReady); c.Status != metav1.ConditionTrue {
		t.Errorf("%+v: no pool refers to the class yet", c)
	}
	change := func(key string, values ...string) karpenterv1.Condition {
		t.Helper()
		pool.Spec.Template.Spec.Requirements[0].Key, pool.Spec.Template.Spec.Requirements[0].Values = key, values
		if err := r.kube.Update(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
		r.look()
		return r.condition("default", resolve.CapacityReservationsReady)
	}
	const zone = "topology.kubernetes.io/zone"
	for _, c := range []karpenterv1.Condition{change(instanceType, "m5.large", "c5.large"),
		change(zone, "us-east-1a")} {
		if c.Status != metav1.ConditionTrue {
			t.Errorf("pool %+v: %+v", pool.Spec.Template.Spec.Requirements, c)
		}
	}
	if c := change(zone, "us-east-1b"); !strings.Contains(c.Message,
		"asked is topology.kubernetes.io/zone=us-east-1b") {
		t.Errorf("another zone: %+v", c)
	}
}
