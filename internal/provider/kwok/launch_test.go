package kwok_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/kwok"
	"github.com/joiner-autoscaler/joiner/internal/provider/kwok/kwoktest"
)

// newClaim returns a claim with a requirement In for each label.
func newClaim(name string, labels map[string]string) *karpenterv1.NodeClaim {
	claim := &karpenterv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name)},
		Spec: karpenterv1.NodeClaimSpec{NodeClassRef: &karpenterv1.NodeClassReference{Group: "karpenter.kwok.sh",
			Kind: "KWOKNodeClass", Name: "default"}},
	}
	for key, value := range labels {
		claim.Spec.Requirements = append(claim.Spec.Requirements, karpenterv1.NodeSelectorRequirementWithMinValues{
			Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}})
	}
	return claim
}

func mustLaunch(t *testing.T, w *world, claim *karpenterv1.NodeClaim) provider.Instance {
	t.Helper()
	instance, err := w.Launch(t.Context(), claim, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return instance
}

// TestTheNodeIsKarpenters is P-51: name, provider ID, labels, annotation, taint and status.
func TestTheNodeIsKarpenters(t *testing.T) {
	t.Parallel()
	w := newWorld(t, mustGeneric(t), 0)
	claim := newClaim("web-1", map[string]string{string(catalog.LabelInstanceType): "s-4x-arm64-linux",
		string(catalog.LabelZone): "test-zone-c"})
	claim.Labels = map[string]string{karpenterv1.NodePoolLabelKey: "default"}
	claim.Spec.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
	claim.Spec.StartupTaints = []corev1.Taint{{Key: "starting", Effect: corev1.TaintEffectNoSchedule}}
	mustLaunch(t, w, claim)
	node, err := w.cluster.Node(t.Context(), "web-1")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"kwok.x-k8s.io/node": "fake", "kwok-partition": "a", "eks-node-viewer/instance-price": "0.082026",
		"karpenter.kwok.sh/instance-size": "4", "karpenter.kwok.sh/instance-family": "s",
		"karpenter.kwok.sh/instance-cpu":    "4",
		"karpenter.kwok.sh/instance-memory": "16Gi", "kubernetes.io/arch": "arm64", "kubernetes.io/os": "linux",
		"kubernetes.io/hostname":           "web-1",
		"node.kubernetes.io/instance-type": "s-4x-arm64-linux", "topology.kubernetes.io/zone": "test-zone-c",
		"karpenter.sh/capacity-type": "spot", "karpenter.sh/nodepool": "default",
	}
	if fmt.Sprint(node.Labels) != fmt.Sprint(want) {
		t.Errorf("labels\n%v, want\n%v", node.Labels, want)
	}
	if taints := node.Spec.Taints; len(taints) != 1 ||
		taints[0] != (corev1.Taint{Key: "karpenter.sh/unregistered", Effect: corev1.TaintEffectNoExecute}) {
		t.Errorf("taints %v, want karpenter.sh/unregistered:NoExecute only: registration adds the claim's", taints)
	}
	if node.Spec.ProviderID != "kwok://web-1" || node.Annotations["kwok.x-k8s.io/node"] != "fake" {
		t.Errorf("provider ID %q, annotations %v", node.Spec.ProviderID, node.Annotations)
	}
	capacity, allocatable := node.Status.Capacity, node.Status.Allocatable
	if capacity.Cpu().String() != "4" || allocatable.Cpu().String() != "3900m" ||
		allocatable.Memory().String() != "16374Mi" || allocatable.Pods().String() != "64" {
		t.Errorf("capacity %v, allocatable %v; want 4 cpus and 16Gi less 100m and 10Mi, 64 pods", capacity,
			allocatable)
	}
}

// TestEqualOfferingsAreSpread: claims that leave the zone open do not all end in the first one, and the same claim
// always gets the same answer.
func TestEqualOfferingsAreSpread(t *testing.T) {
	t.Parallel()
	w, again := newWorld(t, mustGeneric(t), 0), newWorld(t, mustGeneric(t), 0)
	zones := map[string]int{}
	for i := range 100 {
		claim := newClaim(fmt.Sprintf("web-%d", i),
			map[string]string{string(catalog.LabelInstanceType): "c-1x-amd64-linux"})
		first, second := mustLaunch(t, w, claim), mustLaunch(t, again, claim)
		if first.Zone != second.Zone {
			t.Errorf("%s: zone %s, then %s", claim.Name, first.Zone, second.Zone)
		}
		zones[first.Zone]++
	}
	for zone, count := range zones {
		if len(zones) != 4 || count < 10 {
			t.Errorf("machines by zone %v, want some in each of four; %s has %d", zones, zone, count)
		}
	}
}

// TestAReservationIsUsedUp is P-11: reserved capacity is preferred and counted down.
func TestAReservationIsUsedUp(t *testing.T) {
	t.Parallel()
	reserved := element(`0.5`, `0.5, "ReservationCapacity": 2`)
	reserved = strings.Replace(reserved, `["spot"]`, `["reserved", "on-demand"]`, 1)
	inventory, err := kwok.ParseInventory([]byte(reserved))
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, inventory, time.Minute)
	var got []string
	for i := range 3 {
		got = append(got, mustLaunch(t, w, newClaim(fmt.Sprintf("web-%d", i), nil)).CapacityType)
	}
	if want := []string{"reserved", "reserved", "on-demand"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("capacity types %v, want %v", got, want)
	}
	full := newClaim("web-9", map[string]string{string(catalog.LabelCapacityType): "reserved"})
	var insufficient *provider.InsufficientCapacityError
	if _, err := w.Launch(t.Context(), full, time.Time{}); !errors.As(err, &insufficient) ||
		len(insufficient.Tried) != 1 ||
		insufficient.Tried[0] != (provider.Offering{Type: "a", Zone: "z", CapacityType: "reserved"}) {
		t.Errorf("error %v, want insufficient capacity after trying a/z/reserved", err)
	}
	if err := w.Terminate(t.Context(), "kwok://web-0", nil); !errors.Is(err, provider.ErrNotFound) {
		t.Fatal(err)
	}
	if c, err := w.Catalog(t.Context(), "default"); err != nil || !c.Types[0].Offerings[1].Available {
		t.Errorf("after ending one: catalogue %v, error %v; want the reservation available", c, err)
	}
	mustLaunch(t, w, full)
}

// TestLaunchesGoByWhatUsersSay is P-11: a NodeOverlay of a type affects which type is launched, and its resources.
func TestLaunchesGoByWhatUsersSay(t *testing.T) {
	t.Parallel()
	cluster := kwoktest.New(time.Now)
	cluster.SetNodeClass("default", 0, "")
	p, err := kwok.New(kwok.Config{Cluster: cluster, Inventory: mustGeneric(t), Now: time.Now,
		Correct: func(claim *karpenterv1.NodeClaim, c catalog.Catalog) catalog.Catalog {
			c.Types = slices.Clone(c.Types)
			for i := range c.Types {
				if c.Types[i].Name == "m-8x-amd64-linux" && claim.Name == "web" {
					c.Types[i].Capacity = resources.Amounts{resources.NameCPU: 8000, resources.NameMemory: 64 << 30,
						"example.com/fuse": 5}
					c.Types[i].Offerings = []catalog.Offering{
						{Zone: "test-zone-a", CapacityType: catalog.Spot, Available: true},
					}
				}
			}
			return c
		}})
	if err != nil {
		t.Fatal(err)
	}
	claim := newClaim("web", nil)
	claim.Spec.Resources.Requests = corev1.ResourceList{"example.com/fuse": resource.MustParse("2")}
	instance, err := p.Launch(t.Context(), claim, time.Time{})
	fuses := instance.Capacity["example.com/fuse"]
	if err != nil || instance.Type != "m-8x-amd64-linux" || fuses.Value() != 5 {
		t.Errorf("instance %+v, error %v; want the type that is free of charge, with its 5 fuses", instance, err)
	}
}

// TestAReservationIsPaidForAnyway is P-11: it is taken before cheaper offerings, and the catalogue has its size.
func TestAReservationIsPaidForAnyway(t *testing.T) {
	t.Parallel()
	inventory, err :=
		kwok.ParseInventory([]byte(`[{"name": "a", "architecture": "amd64", "operatingSystems": ["linux"],
	 "resources": {"cpu": "2", "memory": "8Gi"}, "offerings": [
	  {"Price": 0.1, "Requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
	   {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z"]}]},
	  {"Price": 0.3, "ReservationCapacity": 2, "Requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["reserved"]},
	   {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z"]}]}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, inventory, time.Minute)
	if got := mustLaunch(t, w, newClaim("web", nil)).CapacityType; got != "reserved" {
		t.Errorf("capacity type %s; want reserved", got)
	}
	if c, err := w.Catalog(t.Context(), "default"); err != nil || c.Types[0].Offerings[1].Reservation != 2 {
		t.Errorf("catalogue %+v, error %v; want a reservation of 2, of which one runs", c, err)
	}
}

func TestSoldOutOfferingsAreNotTaken(t *testing.T) {
	t.Parallel()
	inventory, err := kwok.ParseInventory([]byte(smallFile))
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, inventory, 0)
	if instance := mustLaunch(t, w, newClaim("web", nil)); instance.CapacityType != "on-demand" ||
		instance.Price != 96_000 || instance.Labels[corev1.LabelOSStable] != "linux" {
		t.Errorf("took %s at %s on %s, want on-demand at 0.096 on linux: spot is sold out", instance.CapacityType,
			instance.Price, instance.Labels[corev1.LabelOSStable])
	}
	_, err = w.Launch(t.Context(), newClaim("spot", map[string]string{string(catalog.LabelCapacityType): "spot"}),
		time.Time{})
	if want := "matches only offerings that are unavailable: m5.large/zone-a/spot"; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
}

func TestResourcesOfAnOverlayAreGranted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, mustGeneric(t), 0)
	claim := newClaim("web", nil)
	claim.Spec.Resources.Requests = corev1.ResourceList{"example.com/fuse": resource.MustParse("3"),
		corev1.ResourceCPU: resource.MustParse("1500m")}
	instance := mustLaunch(t, w, claim)
	fuses := instance.Allocatable["example.com/fuse"]
	if fuses.Value() != 3 || instance.Type != "c-2x-amd64-linux" {
		t.Errorf("%s with %s fuses, want the cheapest type with 1500m and 3 fuses", instance.Type, &fuses)
	}
}

// TestAliasesOfLabelsAreUnderstood: a hand-made claim may use old names of labels.
func TestAliasesOfLabelsAreUnderstood(t *testing.T) {
	t.Parallel()
	w := newWorld(t, mustGeneric(t), 0)
	instance := mustLaunch(t, w, newClaim("web", map[string]string{"beta.kubernetes.io/arch": "arm64"}))
	if instance.Labels[corev1.LabelArchStable] != "arm64" {
		t.Errorf("architecture %s, want arm64", instance.Labels[corev1.LabelArchStable])
	}
}

func TestLongClaimNamesGiveValidHostnames(t *testing.T) {
	t.Parallel()
	w := newWorld(t, mustGeneric(t), 0)
	seen := map[string]bool{}
	for _, ending := range []string{"1", "2"} {
		instance := mustLaunch(t, w, newClaim(strings.Repeat("pool-", 20)+ending, nil))
		host := instance.Labels[corev1.LabelHostname]
		if len(host) > 63 || seen[host] || instance.ClaimName != strings.Repeat("pool-", 20)+ending {
			t.Errorf("hostname %q of claim %s: want at most 63 characters, each its own", host, instance.ClaimName)
		}
		seen[host] = true
	}
}

// TestANameIsFreeOnlyWhenItsNodeIsGone: slots reuse names.
func TestANameIsFreeOnlyWhenItsNodeIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, mustGeneric(t), 0)
	first := mustLaunch(t, w, newClaim("slot-0", nil))
	w.cluster.SetFinalizers("slot-0", karpenterv1.TerminationFinalizer)
	if err := w.Terminate(t.Context(), first.ProviderID, nil); !errors.Is(err, provider.ErrNotFound) {
		t.Fatal(err)
	}
	next := newClaim("slot-0", nil)
	next.UID = "another"
	var refused *provider.LaunchError
	if _, err := w.Launch(t.Context(), next, time.Time{}); !errors.As(err, &refused) ||
		refused.ConditionReason != kwok.ReasonNodeNameTaken {
		t.Errorf("error %v, want %s", err, kwok.ReasonNodeNameTaken)
	}
	if _, err := w.Launch(t.Context(), newClaim("slot-0", nil), time.Time{}); !errors.As(err, &refused) ||
		refused.ConditionReason != kwok.ReasonInstanceTerminated {
		t.Errorf("error %v, want %s", err, kwok.ReasonInstanceTerminated)
	}
	w.cluster.SetFinalizers("slot-0")
	if instance := mustLaunch(t, w, next); instance.ClaimUID != "another" {
		t.Errorf("claim UID %s, want another", instance.ClaimUID)
	}
}

// TestAMachineOutlivesTheDeletionOfItsNode: a user deletes the Node, which drains; the machine runs until Terminate.
func TestAMachineOutlivesTheDeletionOfItsNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, mustGeneric(t), 0)
	instance := mustLaunch(t, w, newClaim("web", nil))
	w.cluster.SetFinalizers("web", karpenterv1.TerminationFinalizer)
	node, err := w.cluster.Node(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.cluster.DeleteNode(t.Context(), "web", node.UID); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Get(t.Context(), instance.ProviderID); err != nil {
		t.Errorf("Get while the node drains: %v", err)
	}
	for range 2 {
		if err := w.Terminate(t.Context(), instance.ProviderID, nil); !errors.Is(err, provider.ErrNotFound) {
			t.Errorf("Terminate: %v", err)
		}
	}
	if list, err := w.List(t.Context()); len(list) != 0 || err != nil {
		t.Errorf("List after Terminate: %v, error %v", list, err)
	}
	if node, err = w.cluster.Node(t.Context(), "web"); err != nil || node.DeletionTimestamp == nil {
		t.Errorf("the Node must stay until its finalizers go: %v", err)
	}
}

// B-12: if a machine's deleted node only waits for the answer, the machine's end is kept in memory, not written; a
// node with finalizers of others is marked. Neither hides the next machine of that name.
func TestAnEndIsWrittenDownWhereOthersHoldTheNode(t *testing.T) {
	t.Parallel()
	for _, foreign := range []bool{false, true} {
		w := newWorld(t, mustGeneric(t), 0)
		instance := mustLaunch(t, w, newClaim("slot-0", nil))
		finalizers := []string{karpenterv1.TerminationFinalizer}
		if foreign {
			finalizers = append(finalizers, "example.com/hold")
		}
		w.cluster.SetFinalizers("slot-0", finalizers...)
		node, err := w.cluster.Node(t.Context(), "slot-0")
		if err = errors.Join(err, w.cluster.DeleteNode(t.Context(), "slot-0", node.UID)); err != nil {
			t.Fatal(err)
		}
		calls := map[string]int{}
		w.cluster.Disturb(func(_ int, call string) (error, error) { calls[call]++; return nil, nil })
		terminate := func(when string) {
			t.Helper()
			if err := w.Terminate(t.Context(), instance.ProviderID, nil); !errors.Is(err, provider.ErrNotFound) {
				t.Errorf("held by others %t, %s: %v", foreign, when, err)
			}
		}
		terminate("while the node waits")
		if marked := calls["annotate node"] > 0; marked != foreign {
			t.Errorf("held by others %t: marked %t", foreign, marked)
		}
		if list, err := w.List(t.Context()); len(list) != 0 || err != nil {
			t.Errorf("held by others %t: List says %v, error %v", foreign, list, err)
		}
		var refused *provider.LaunchError
		if _, err := w.Launch(t.Context(), newClaim("slot-0", nil), time.Time{}); !errors.As(err, &refused) ||
			refused.ConditionReason != kwok.ReasonInstanceTerminated {
			t.Errorf("held by others %t: a launch of what has ended: %v, want %s", foreign, err,
				kwok.ReasonInstanceTerminated)
		}
		w.cluster.SetFinalizers("slot-0")
		clear(calls)
		terminate("once it is gone")
		if _, err := w.Get(t.Context(), instance.ProviderID); !errors.Is(err, provider.ErrNotFound) {
			t.Errorf("held by others %t: Get once it is gone: %v", foreign, err)
		}
		if asked := calls["get node"] > 0; asked != foreign {
			t.Errorf("held by others %t: it was asked for again: %v", foreign, calls)
		}
		next := newClaim("slot-0", nil)
		next.UID = "another"
		mustLaunch(t, w, next)
		if again, err := w.Get(t.Context(), instance.ProviderID); err != nil || again.ClaimUID != "another" {
			t.Errorf("held by others %t: the next machine is %+v, error %v", foreign, again, err)
		}
		if terminate("the next"); w.Machines() != 0 {
			t.Errorf("held by others %t: %d machines are left", foreign, w.Machines())
		}
	}
}

// TestNodesOfKarpentersProviderAreTakenOver is P-34.
func TestNodesOfKarpentersProviderAreTakenOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, mustGeneric(t), 0)
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "kwok-default-x7k2p-amber-otter-123", Labels: map[string]string{
			"kwok.x-k8s.io/node": "fake", "kubernetes.io/hostname": "default-x7k2p",
			"node.kubernetes.io/instance-type": "c-1x-amd64-linux",
			"topology.kubernetes.io/zone":      "test-zone-a", "karpenter.sh/capacity-type": "spot",
			"eks-node-viewer/instance-price": "0.019003"}},
		Spec: corev1.NodeSpec{ProviderID: "kwok://kwok-default-x7k2p-amber-otter-123"},
	}
	other := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker"},
		Spec: corev1.NodeSpec{ProviderID: "aws:///us-east-1a/i-1"}}
	for _, each := range []*corev1.Node{node, other} {
		if err := w.cluster.CreateNode(t.Context(), each); err != nil {
			t.Fatal(err)
		}
	}
	list, err := w.List(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("List: %v, error %v; want the kwok node only", list, err)
	}
	if got := list[0]; got.ClaimName != "default-x7k2p" || got.ClaimUID != "" || got.Price != 19_003 ||
		got.Type != "c-1x-amd64-linux" || got.Launched.IsZero() {
		t.Errorf("instance %+v", got)
	}
	if err := w.Terminate(t.Context(), node.Spec.ProviderID, nil); !errors.Is(err, provider.ErrNotFound) ||
		w.Machines() != 1 {
		t.Errorf("Terminate: %v; %d nodes are left, want the worker", err, w.Machines())
	}
	unpriced := node.DeepCopy()
	delete(unpriced.Labels, "eks-node-viewer/instance-price")
	if err := w.cluster.CreateNode(t.Context(), unpriced); err != nil {
		t.Fatal(err)
	}
	if got, err := w.Get(t.Context(), node.Spec.ProviderID); err != nil || got.Price != resources.Unpriced {
		t.Errorf("price %s, error %v; want unpriced", got.Price, err)
	}
}

func TestANodeClassUnderDeletionIsNotReady(t *testing.T) {
	t.Parallel()
	w := newWorld(t, mustGeneric(t), 0)
	w.cluster.DeleteNodeClass("default")
	var notReady *provider.NodeClassNotReadyError
	if _, err := w.Launch(t.Context(), newClaim("web", nil), time.Time{}); !errors.As(err, &notReady) {
		t.Errorf("error %v, want *NodeClassNotReadyError", err)
	}
}

func TestAnIncompleteConfigurationIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, mustGeneric(t), 0)
	for want, config := range map[string]kwok.Config{
		"no cluster":        {Inventory: mustGeneric(t), Now: time.Now},
		"no clock":          {Inventory: mustGeneric(t), Cluster: w.cluster},
		"no instance types": {Cluster: w.cluster, Now: time.Now},
	} {
		if _, err := kwok.New(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}
