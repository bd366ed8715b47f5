package devices_test

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/engine/script"
)

// K-42. The devices of a cluster pass the suite that those of scripts pass.
func TestK42_DevicesOfAnAPIServer(t *testing.T) {
	t.Parallel()
	enginetest.Devices(t, func(_ *testing.T, inventory enginetest.Inventory) cluster.Devices {
		return published(inventory)
	})
}

func on(d cluster.Devices, claims ...string) string {
	return strings.Join(enginetest.Serving(d, []string{"n1", "n2", "n3"}, claims...), " ")
}

// K-42. Claims can request exactly what the allocator of kube-scheduler finds.
func TestK42_WhatClaimsAskFor(t *testing.T) {
	t.Parallel()
	gpu := func(name, model, numa string) resourcev1.Device {
		return device(name, "kind", "gpu", "model", model, "numa", numa)
	}
	cluster := func(more ...any) []any {
		return append([]any{classOf("gpu"), classOf("nic"), class("any"),
			sliceOn("n1", gpu("g0", "a", "0"), gpu("g1", "b", "1"), device("i0", "kind", "nic", "numa", "1")),
			sliceOn("n2", gpu("g0", "b", "0"), gpu("g1", "b", "0"), gpu("g2", "a", "1"))}, more...)
	}
	same := claim("c", exactly("x", "gpu", 1), exactly("y", "gpu", 1))
	attribute := resourcev1.FullyQualifiedName(driver + "/numa")
	same.Spec.Devices.Constraints = []resourcev1.DeviceConstraint{
		{Requests: []string{"x", "y"}, MatchAttribute: &attribute},
	}
	distinct := claim("c", exactly("x", "gpu", 2))
	distinct.Spec.Devices.Constraints = []resourcev1.DeviceConstraint{{DistinctAttribute: &attribute}}
	model := func(m string) []resourcev1.DeviceSelector {
		return cel(fmt.Sprintf("device.attributes[%q].model == %q", driver, m))
	}
	taken := allocated(claim("other", exactly("any", "gpu", 1)), "n1", "g0")
	for name, c := range map[string]struct {
		objects []any
		want    string
	}{
		"a count":                        {cluster(claim("c", exactly("g", "gpu", 2))), "n1 n2"},
		"a count that one node has":      {cluster(claim("c", exactly("g", "gpu", 3))), "n2"},
		"a count less what is taken":     {cluster(taken, claim("c", exactly("g", "gpu", 2))), "n2"},
		"two requests":                   {cluster(claim("c", exactly("g", "gpu", 1), exactly("i", "nic", 1))), "n1"},
		"a selector of the request":      {cluster(claim("c", exactly("g", "gpu", 2, model("b")...))), "n2"},
		"all":                            {cluster(claim("c", allOf("g", "gpu"))), "n1 n2"},
		"all, of which one is taken":     {cluster(taken, claim("c", allOf("g", "gpu"))), "n2"},
		"all, where there are none":      {cluster(claim("c", allOf("g", "nic"))), "n1"},
		"the first of two classes":       {cluster(claim("c", first("f", "nic", "gpu"))), "n1 n2"},
		"the second is nowhere":          {cluster(claim("c", first("f", "nic", "any"))), "n1 n2"},
		"one attribute for two requests": {cluster(same), "n2"},
		"an attribute that must differ":  {cluster(distinct), "n1 n2"},
		"a pool that is not complete": {[]any{classOf("gpu"), incomplete(sliceOn("n1", gpu("g0", "a", "0"))),
			claim("c", exactly("g", "gpu", 1))}, ""},
		"a device with a taint": {[]any{classOf("gpu"), sliceOn("n1", tainted(gpu("g0", "a", "0"))),
			claim("c", exactly("g", "gpu", 1))}, ""},
		"nothing is published for a claim": {[]any{classOf("gpu"), claim("c", exactly("g", "gpu", 1))}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := on(with(c.objects...), "c"); got != c.want {
				t.Errorf("nodes %q, want %q", got, c.want)
			}
		})
	}
}

func incomplete(s *resourcev1.ResourceSlice) *resourcev1.ResourceSlice {
	s.Spec.Pool.ResourceSliceCount = 2
	return s
}

func tainted(d resourcev1.Device) resourcev1.Device {
	d.Taints = []resourcev1.DeviceTaint{{Key: "broken", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
	return d
}

// K-42. Devices attached by the network belong to all nodes of a selector, and count once for all of them.
func TestK42_DevicesOfManyNodes(t *testing.T) {
	t.Parallel()
	shared := sliceOn("", device("d0", "kind", "disk"))
	shared.Name, shared.Spec.NodeName, shared.Spec.Pool.Name = "network", nil, "network"
	shared.Spec.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: cluster.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"n1", "n3"}}}}}}
	d := with(classOf("disk"), shared, claim("a", exactly("d", "disk", 1)), claim("b", exactly("d", "disk", 1)))
	if got := on(d, "a"); got != "n1 n3" {
		t.Errorf("nodes %q, want n1 n3", got)
	}
	left, _ := d.Place(enginetest.Asking("a"),
		&cluster.Node{Name: "n1", Labels: map[string]string{cluster.LabelHostname: "n1"}})
	if left == nil || on(left, "b") != "" {
		t.Errorf("the device is given away, and nodes have it: %v", left)
	}
	if got := on(left, "a"); got != "n1 n3" {
		t.Errorf("pods that share the claim may run on %q, want on each node of the selector: n1 n3", got)
	}
	everywhere := sliceOn("", device("d0", "kind", "disk"))
	yes := true
	everywhere.Spec.NodeName, everywhere.Spec.AllNodes, everywhere.Spec.Pool.Name = nil, &yes, "all"
	if got := on(with(classOf("disk"), everywhere, claim("a", exactly("d", "disk", 1))), "a"); got != "n1 n2 n3" {
		t.Errorf("nodes %q of a device of all nodes", got)
	}
}

// K-42. Parts of a device: consumable capacity, and partitions that count against counters of their pool.
func TestK42_PartsOfDevices(t *testing.T) {
	t.Parallel()
	yes, half := true, quantity("5")
	share := device("d0", "kind", "gpu")
	share.AllowMultipleAllocations = &yes
	share.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: quantity("10")}}
	wants := func(name string) *resourcev1.ResourceClaim {
		r := exactly("g", "gpu", 1)
		r.Exactly.Capacity = &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{
			"memory": half,
		}}
		return claim(name, r)
	}
	var d cluster.Devices = with(classOf("gpu"), sliceOn("n1", share), wants("a"), wants("b"), wants("c"))
	node := &cluster.Node{Name: "n1"}
	for _, name := range []string{"a", "b"} {
		left, why := d.Place(enginetest.Asking(name), node)
		if left == nil {
			t.Fatalf("claim %s finds no half of the device: %s", name, why)
		}
		d = left
	}
	if got := on(d, "c"); got != "" {
		t.Errorf("a third half of a device is found on %s", got)
	}
	part := func(name string) resourcev1.Device {
		p := device(name, "kind", "gpu")
		p.ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: "set",
			Counters: map[string]resourcev1.Counter{"memory": {Value: half}}}}
		return p
	}
	counters, parts := sliceOn("n1"), sliceOn("n1", part("p0"), part("p1"), part("p2"))
	counters.Name, counters.Spec.Pool.ResourceSliceCount, parts.Spec.Pool.ResourceSliceCount = "counters", 2, 2
	counters.Spec.SharedCounters = []resourcev1.CounterSet{{Name: "set",
		Counters: map[string]resourcev1.Counter{"memory": {Value: quantity("10")}}}}
	p := with(classOf("gpu"), counters, parts, claim("a", exactly("g", "gpu", 2)), claim("b", exactly("g", "gpu", 3)))
	if a, b := on(p, "a"), on(p, "b"); a != "n1" || b != "" {
		t.Errorf("two partitions are found on %q, want n1; three on %q, want nowhere", a, b)
	}
}

// K-42. Errors name claim, request and class, and the selector.
func TestK42_ProblemsAreTold(t *testing.T) {
	t.Parallel()
	gpu := sliceOn("n1", device("g0", "kind", "gpu", "model", "a"), device("i0", "kind", "nic"))
	going := claim("c", exactly("g", "gpu", 1))
	going.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	full := allocated(claim("c", exactly("g", "gpu", 1)), "n1", "g0")
	for range resourcev1.ResourceClaimReservedForMaxSize {
		full.Status.ReservedFor = append(full.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{
			Resource: "pods",
		})
	}
	old := sliceOn("n1", device("g0", "kind", "tpu"))
	old.Name, old.Spec.Pool.Generation = "old", 0
	own := []cluster.DeviceClaim{{Name: "gpus", Object: "c", Owner: "uid-of-pod"}}
	for name, c := range map[string]struct {
		objects []any
		claims  []cluster.DeviceClaim
		code    cause.Code
		text    string
	}{
		"not made yet": {nil, []cluster.DeviceClaim{{Name: "gpus", Template: "tmpl"}}, cause.DeviceClaimMissing,
			"its ResourceClaim (spec.resourceClaims gpus) is not made yet from ResourceClaimTemplate default/tmpl"},
		"of an unknown kind": {nil, []cluster.DeviceClaim{{Name: "gpus"}}, cause.DeviceClaimInvalid,
			"its claim (spec.resourceClaims gpus) names neither a resourceClaimName nor a " +
				"resourceClaimTemplateName: one of both is understood"},
		"missing": {nil, nil, cause.DeviceClaimMissing,
			"ResourceClaim default/c (spec.resourceClaims gpus) does not exist"},
		"going": {[]any{classOf("gpu"), gpu, going}, nil, cause.DeviceClaimMissing,
			"ResourceClaim default/c (spec.resourceClaims gpus) is being deleted"},
		"of another pod": {[]any{claim("c")}, own, cause.DeviceClaimMissing,
			"ResourceClaim default/c (spec.resourceClaims gpus) was made for another pod"},
		"of too many pods": {[]any{classOf("gpu"), gpu, full}, nil, cause.DevicesInUse,
			"ResourceClaim default/c (spec.resourceClaims gpus) is used by 256 pods, and no more may use it"},
		"no class": {[]any{gpu, claim("c", exactly("g", "gpu", 1))}, nil, cause.DeviceClassMissing,
			`request g of ResourceClaim default/c wants DeviceClass "gpu", which does not exist`},
		"no class of an alternative": {[]any{classOf("gpu"), gpu, claim("c", first("f", "gpu", "tpu"))}, nil,
			cause.DeviceClassMissing,
			`request f/way-1 of ResourceClaim default/c wants DeviceClass "tpu", which does not exist`},
		"no kind of request": {[]any{gpu, claim("c", resourcev1.DeviceRequest{Name: "r"})}, nil,
			cause.DeviceClaimInvalid,
			"request r of ResourceClaim default/c is of a kind that is not known: exactly and firstAvailable are"},
		"bad CEL": {[]any{class("gpu", cel("device.nonsense(")...), gpu, claim("c", exactly("g", "gpu", 1))}, nil,
			cause.DeviceClaimInvalid,
			`request g of ResourceClaim default/c (DeviceClass gpu): the selector "device.nonsense(" of the class is no valid CEL: `},
		"CEL that fails": {[]any{class("all"), gpu, claim("c", exactly("g", "all", 1,
			cel(fmt.Sprintf("device.attributes[%q].model == 'a'", driver))...))}, nil, cause.DeviceClaimInvalid,
			`a selector of the request fails on device dra.example.com/n1/i0 (no such key: model), ` +
				`and kube-scheduler gives up there: device.`},
		"no driver": {[]any{classOf("gpu"), claim("c", exactly("g", "gpu", 1))}, nil, cause.DevicesNotFound,
			"request g of ResourceClaim default/c (DeviceClass gpu): no driver publishes any device"},
		"nothing of the class": {[]any{class("tpu", cel("device.driver == 'tpu'")...), gpu, old,
			claim("c", exactly("g", "tpu", 1))}, nil,
			cause.DevicesNotFound,
			"request g of ResourceClaim default/c (DeviceClass tpu): no published device passes the selector " +
				"of the class: device.driver == 'tpu'"},
		"nothing of the request": {[]any{classOf("gpu"), gpu, claim("c", exactly("g", "gpu", 1, cel("false")...))},
			nil, cause.DevicesNotFound,
			`request g of ResourceClaim default/c (DeviceClass gpu): no published device passes the selector of the request: false`},
		"none": {[]any{classOf("gpu"), gpu, claim("c", exactly("g", "gpu", 1))}, nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shape := &cluster.Shape{Namespace: "default", Claims: c.claims}
			if c.claims == nil {
				shape.Claims = []cluster.DeviceClaim{{Name: "gpus", Object: "c"}}
			}
			d := with(c.objects...)
			code, text := d.Problem(shape)
			if code != c.code || !strings.Contains(text, c.text) || c.text == "" && text != "" {
				t.Errorf("%q %q, want %q %q", code, text, c.code, c.text)
			}
			left, why := d.Place(shape, &cluster.Node{Name: "n1"})
			if (left == nil) != (c.code != "") || left == nil && why != text {
				t.Errorf("it is placed: %t, and why not: %q", left != nil, why)
			}
		})
	}
}

// K-42. A search that would take too long is given up, and says so: for 21 devices of one value, of which there are
// 20, the allocator tries each subset of those.
func TestK42_ASearchHasABound(t *testing.T) {
	t.Parallel()
	var list []resourcev1.Device
	for i := range 40 {
		list = append(list, device(fmt.Sprintf("d%02d", i), "kind", "gpu", "numa", fmt.Sprint(i%2)))
	}
	attribute := resourcev1.FullyQualifiedName(driver + "/numa")
	c := claim("c", exactly("x", "gpu", 21))
	c.Spec.Devices.Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: &attribute}}
	left, why := with(classOf("gpu"), sliceOn("n1", list...), c).Place(enginetest.Asking("c"),
		&cluster.Node{Name: "n1"})
	if left != nil || !strings.Contains(why, "no allocation was found within 200000 steps") {
		t.Errorf("placed %t, and why not: %q", left != nil, why)
	}
}

// K-42. The reason names the nodes to which a claim is allocated.
func TestK42_AnAllocatedClaimSaysWhere(t *testing.T) {
	t.Parallel()
	_, why := with(classOf("gpu"), allocated(claim("c", exactly("g", "gpu", 1)), "n1", "g0")).Place(
		enginetest.Asking("c"),
		&cluster.Node{Name: "n2"})
	if want := "ResourceClaim default/c is allocated, to nodes with metadata.name In [n1]"; why != want {
		t.Errorf("%q, want %q", why, want)
	}
	wanted := with(claim("c", exactly("g", "gpu", 1), first("f", "a", "b"))).Wanted(enginetest.Asking("c", "c"))
	const all = "ResourceClaim default/c with request g (1 of DeviceClass gpu), request f/way-0 (1 of DeviceClass a), " +
		"request f/way-1 (1 of DeviceClass b)"
	if wanted != all {
		t.Errorf("%q, want %q", wanted, all)
	}
}

// K-42. If devices are only counted, the devices of scripts and the allocator of kube-scheduler agree, pod after pod.
func TestK42_ScriptsAndTheAllocatorAgree(t *testing.T) {
	t.Parallel()
	kinds := []string{"gpu", "nic"}
	amounts := rapid.MapOfN(rapid.SampledFrom(kinds), rapid.Int64Range(1, 3), 1, 2)
	rapid.Check(t, func(t *rapid.T) {
		inventory := enginetest.Inventory{Nodes: map[string]map[string]int64{},
			Claims: map[string]enginetest.ClaimOf{}}
		var lines []string
		say := func(head string, have map[string]int64) {
			for kind, n := range have {
				head += fmt.Sprintf(" %s=%d", kind, n)
			}
			lines = append(lines, head)
		}
		for _, node := range []string{"n1", "n2", "n3"} {
			inventory.Nodes[node] = amounts.Draw(t, node)
			say("devices "+node, inventory.Nodes[node])
		}
		for i := range 5 {
			name := fmt.Sprint("c", i)
			of := enginetest.ClaimOf{Kinds: amounts.Draw(t, name),
				On: rapid.SampledFrom([]string{"", "", "n1"}).Draw(t, "on")}
			inventory.Claims[name] = of
			say(strings.TrimSuffix("resourceclaim "+name+" on="+of.On, " on="), of.Kinds)
		}
		s, err := script.Parse(strings.Join(lines, "\n"))
		if err != nil {
			t.Fatal(err)
		}
		fake, real := s.Devices, published(inventory)
		for range 6 {
			pod := rapid.SliceOfNDistinct(rapid.SampledFrom(slices.Sorted(maps.Keys(inventory.Claims))), 1, 2,
				rapid.ID).Draw(t, "pod")
			a, _ := fake.Problem(enginetest.Asking(pod...))
			b, _ := real.Problem(enginetest.Asking(pod...))
			if a != b || on(fake, pod...) != on(real, pod...) {
				t.Fatalf("%s\n%q: a script says %q %q, the allocator %q %q", strings.Join(lines, "\n"), pod, a,
					on(fake, pod...), b, on(real, pod...))
			}
			if nodes := strings.Fields(on(fake, pod...)); len(nodes) > 0 {
				node := &cluster.Node{Name: rapid.SampledFrom(nodes).Draw(t, "node")}
				fake, _ = fake.Place(enginetest.Asking(pod...), node)
				real, _ = real.Place(enginetest.Asking(pod...), node)
			}
		}
	})
}

// K-42. kube-scheduler gives up on a pod where its allocator fails on a node, not where it only finds nothing there:
// all devices of a class that do not go together, or that are not all published yet. Nothing else is worth a look at
// other nodes.
func TestK42_WhereTheAllocatorFails(t *testing.T) {
	t.Parallel()
	attribute := resourcev1.FullyQualifiedName(driver + "/numa")
	together := func(r resourcev1.DeviceRequest) *resourcev1.ResourceClaim {
		c := claim("c", r)
		c.Spec.Devices.Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: &attribute}}
		return c
	}
	gpu := func(name, numa string) resourcev1.Device { return device(name, "kind", "gpu", "numa", numa) }
	cluster := func(more ...any) []any {
		return append([]any{classOf("gpu"), sliceOn("n1", gpu("g0", "0"), gpu("g1", "1")),
			sliceOn("n2", gpu("g0", "0"), gpu("g1", "0"))}, more...)
	}
	held := allocated(together(allOf("g", "gpu")), "n2", "g0", "g1")
	for name, c := range map[string]struct {
		objects []any
		fits    string
		breaks  string // a part of it
	}{
		"all together": {cluster(together(allOf("g", "gpu"))), "n2",
			"looks at node n1, whatever other nodes have: "},
		"all, wherever they are": {cluster(claim("c", allOf("g", "gpu"))), "n1 n2", ""},
		"two together":           {cluster(together(exactly("g", "gpu", 2))), "n2", ""},
		"allocated":              {cluster(held), "n2", ""},
		"all, of which one is taken": {cluster(allocated(claim("o", exactly("g", "gpu", 1)), "n1", "g0"),
			together(allOf("g", "gpu"))), "n2", ""},
		"all, and some are not there yet": {
			[]any{classOf("gpu"), sliceOn("n1", gpu("g0", "0")), incomplete(sliceOn("n2", gpu("g0", "0"))),
				claim("c", allOf("g", "gpu"))}, "n1", "node n2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state := with(c.objects...)
			if got := on(state, "c"); got != c.fits {
				t.Errorf("nodes %q, want %q", got, c.fits)
			}
			got := state.Breaks(enginetest.Asking("c"), nodes("n1", "n2"))
			if (got == "") != (c.breaks == "") || !strings.Contains(got, c.breaks) {
				t.Errorf("it breaks by %q, want %q", got, c.breaks)
			}
		})
	}
	state := with(cluster(together(allOf("g", "gpu")))...)
	if got := state.Breaks(enginetest.Asking("c"), nodes("n2")); got != "" {
		t.Errorf("it breaks by %q, and kube-scheduler does not look at that node", got)
	}
}

// nodes are the nodes that can only lack devices.
func nodes(names ...string) iter.Seq[*cluster.Node] {
	return func(yield func(*cluster.Node) bool) {
		for _, name := range names {
			if !yield(&cluster.Node{Name: name, Initialized: true,
				Labels: map[string]string{cluster.LabelHostname: name}}) {
				return
			}
		}
	}
}
