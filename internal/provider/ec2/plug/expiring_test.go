package plug

import (
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
)

// blockWorld is a class that chooses a capacity block and a plain reservation, both with an hour to go, and a machine
// in each.
func blockWorld(t *testing.T) (r *region, c *connection, block string, ends time.Time) {
	t.Helper()
	r = newRegion(t, nil, aClass("default", func(c *awsv1.EC2NodeClass) {
		c.Spec.CapacityReservationSelectorTerms = []awsv1.CapacityReservationSelectorTerm{
			{ID: "cr-block"}, {ID: "cr-plain"},
		}
	}))
	ends = r.Now().Add(2 * time.Hour)
	for id, kind := range map[string]string{"cr-block": "capacity-block", "cr-plain": "default"} {
		r.server.AddCapacityReservation(ec2test.CapacityReservation{ID: id, Type: "m5.large", Zone: "us-east-1a",
			Total: 1, Kind: kind, Ends: ends})
	}
	newDay(r).run(70 * time.Second) // until EC2 is sure to know the profile
	r.join("plain")                 // the plain one comes first
	r.pass(2 * time.Second)         // by then the catalogue shows that it is full
	r.join("block")
	c = r.connected()
	if _, err := c.machines.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	in := map[string]string{}
	for _, i := range r.server.Instances() {
		in[i.Reservation] = "aws:///" + i.Zone + "/" + i.ID
	}
	if len(in) != 2 || in["cr-block"] == "" || in["cr-plain"] == "" {
		t.Fatalf("machines in reservations: %v", in)
	}
	return r, c, in["cr-block"], ends
}

func (r *region) noticesOf(c *connection) []provider.Notice {
	r.t.Helper()
	notices, err := c.machines.Notices(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return notices.List
}

// E-13: a machine in a capacity block gets a notice 40 min before the block's end, with the time at which EC2 begins
// to end its instances, and the receiver of notices is woken. The event is emitted once. A reservation of another kind
// causes no notice.
func TestACapacityBlockThatEndsIsDrained(t *testing.T) {
	t.Parallel()
	r, c, block, ends := blockWorld(t)
	r.pass(ends.Sub(r.Now()) - 41*time.Minute)
	r.look()
	if list := r.noticesOf(c); len(list) > 0 {
		t.Fatalf("notices %+v with 41 min to go", list)
	}
	r.woken = nil
	r.pass(61 * time.Second)
	r.look()
	list := r.noticesOf(c)
	if len(list) != 1 || list[0].Kind != provider.CapacityBlockExpiring || list[0].ProviderID != block ||
		!list[0].Gone.Equal(ends.Add(-30*time.Minute).Truncate(time.Second)) {
		t.Fatalf("notices %+v, want one of %s, gone 30 min before %s", list, block, ends)
	}
	if woken := strings.Join(r.woken, ","); !strings.Contains(","+woken+",", ",,") {
		t.Errorf("woken are %q, want who asks for notices", woken)
	}
	r.look()
	if list := r.noticesOf(c); len(list) != 1 {
		t.Errorf("notices %+v before anybody has acted, want the same one", list)
	}
	if err := c.machines.Acknowledge(t.Context(), list[0]); err != nil {
		t.Fatal(err)
	}
	r.pass(time.Minute)
	r.look()
	if list := r.noticesOf(c); len(list) > 0 {
		t.Errorf("notices %+v after all was done", list)
	}
}

// E-13: machines in a block that no class selects any more are drained, too, and a failed query removes no notice.
func TestABlockThatNoClassChoosesIsDrained(t *testing.T) {
	t.Parallel()
	r, c, block, ends := blockWorld(t)
	class := r.class("default")
	class.Spec.CapacityReservationSelectorTerms, class.Generation = nil, 2
	if err := r.kube.Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	r.pass(ends.Sub(r.Now()) - 39*time.Minute)
	r.look()
	r.faults(ec2test.Faults{Deny: []ec2test.Denial{{Action: "ec2:DescribeCapacityReservations"}}})
	r.pass(2 * time.Minute)
	r.look()
	if list := r.noticesOf(c); len(list) != 1 || list[0].ProviderID != block {
		t.Errorf("notices %+v, want one of %s", list, block)
	}
	if err := r.kube.Get(t.Context(), client.ObjectKeyFromObject(class), class); err != nil ||
		len(class.Status.CapacityReservations) > 0 {
		t.Errorf("error %v, reservations %+v of a class that chooses none", err, class.Status.CapacityReservations)
	}
}

// E-13: when a reservation ends, its machine continues as on-demand in the labels of claim and node, and does not
// drift. One in a continuing reservation keeps its labels, even if its class no longer selects the reservation.
func TestAMachineWhoseReservationEndedIsOnDemand(t *testing.T) {
	t.Parallel()
	r, c, _, ends := blockWorld(t)
	labels := map[string]string{karpenterv1.CapacityTypeLabelKey: "reserved", "team": "a"}
	for _, key := range ec2.ReservationLabels() {
		labels[key] = "x"
	}
	for _, name := range []string{"plain", "block"} {
		for _, o := range r.objectsOf(name) {
			maps.Copy(o.GetLabels(), labels)
			if err := r.kube.Update(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	look := func() {
		t.Helper()
		if _, err := c.machines.List(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := newOffers(r.link).step(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	want := func(name, capacityType string) {
		t.Helper()
		for _, o := range r.objectsOf(name) {
			got := o.GetLabels()
			_, reserved := got[ec2.ReservationLabels()[0]]
			if got[karpenterv1.CapacityTypeLabelKey] != capacityType || reserved != (capacityType == "reserved") ||
				got["team"] != "a" {
				t.Errorf("%T %s: labels %v, want %s", o, o.GetName(), got, capacityType)
			}
		}
	}
	look()
	want("plain", "reserved")
	r.pass(ends.Sub(r.Now()) - 35*time.Minute) // before the block's machines end
	r.server.EndReservation("cr-plain")
	look()
	want("plain", "on-demand")
	want("block", "reserved")
	node := r.objectsOf("plain")[1] // it got its claim's old labels, and then its new capacity type (seed 1032281)
	for _, key := range ec2.ReservationLabels() {
		node.GetLabels()[key] = "x"
	}
	if err := r.kube.Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	look()
	want("plain", "on-demand")
	claim := r.objectsOf("plain")[0].(*karpenterv1.NodeClaim)
	claim.Spec.NodeClassRef = &karpenterv1.NodeClassReference{Group: awsv1.Group, Kind: "EC2NodeClass",
		Name: "default"}
	if reason, err := c.machines.Drifted(t.Context(), claim); err != nil || reason.Reason == ec2.DriftReservation {
		t.Errorf("drifted by %q, error %v", reason, err)
	}
}

// objectsOf returns a claim, and its node.
func (r *region) objectsOf(name string) []client.Object {
	r.t.Helper()
	claim, node := &karpenterv1.NodeClaim{}, &corev1.Node{}
	for o, key := range map[client.Object]string{claim: name, node: "node-" + name} {
		if err := r.kube.Get(r.t.Context(), client.ObjectKey{Name: key}, o); err != nil {
			r.t.Fatal(err)
		}
	}
	return []client.Object{claim, node}
}
