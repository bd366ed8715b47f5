package providertest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/provider"
)

func satisfiesClaim(t *testing.T, f fixture) {
	offered := offers(f.catalog(t), anyOffer)
	wanted := offered[len(offered)/2]
	claim := f.claim("web-1",
		in(string(catalog.LabelInstanceType), wanted.kind.Name, offered[len(offered)-1].kind.Name),
		in(string(catalog.LabelZone), wanted.Zone),
		in("example.com/flavour", "vanilla", "mint"),
		karpenterv1.NodeSelectorRequirementWithMinValues{Key: "example.com/shelf",
			Operator: corev1.NodeSelectorOpExists})
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	instance := f.launch(t, claim)
	if !requirementsOf(t, claim).Matches(instance.Labels) {
		t.Errorf("labels %v do not satisfy the claim's requirements %s", instance.Labels, requirementsOf(t, claim))
	}
	for key, want := range map[string]string{
		string(catalog.LabelInstanceType): instance.Type, string(catalog.LabelZone): instance.Zone,
		string(catalog.LabelCapacityType): instance.CapacityType, "team": "blue",
		karpenterv1.NodePoolLabelKey: "default",
	} {
		if instance.Labels[key] != want || want == "" {
			t.Errorf("label %s is %q, want %q", key, instance.Labels[key], want)
		}
	}
	kind := typeOf(t, f.catalog(t), instance.Type)
	if !kind.Labels.Matches(instance.Labels) {
		t.Errorf("labels %v are not those of its type, %s", instance.Labels, kind.Labels)
	}
	if instance.ClaimName != claim.Name || instance.ClaimUID != string(claim.UID) || instance.ProviderID == "" ||
		instance.Launched.IsZero() || instance.Terminating {
		t.Errorf("instance is incomplete: %s", describe(instance))
	}
	checkResources(t, kind, instance)
}

func typeOf(t *testing.T, c catalog.Catalog, name string) catalog.Type {
	t.Helper()
	i := slices.IndexFunc(c.Types, func(kind catalog.Type) bool { return kind.Name == name })
	if i < 0 {
		t.Fatalf("instance type %q is not in the catalogue", name)
	}
	return c.Types[i]
}

func checkResources(t *testing.T, kind catalog.Type, instance provider.Instance) {
	t.Helper()
	for name, want := range kind.Capacity {
		capacity, allocatable := instance.Capacity[corev1.ResourceName(name)],
			instance.Allocatable[corev1.ResourceName(name)]
		read := (*resource.Quantity).Value
		if name == string(corev1.ResourceCPU) {
			read = (*resource.Quantity).MilliValue
		}
		if read(&capacity) != want || read(&allocatable) != want-kind.Overhead[name] {
			t.Errorf("%s: capacity %s, allocatable %s; want %d and %d less, as the catalogue says", name, &capacity,
				&allocatable, want, kind.Overhead[name])
		}
	}
}

// takesCheapest restricts a claim step by step. Each time the provider must take the cheapest remaining offering.
func takesCheapest(t *testing.T, f fixture) {
	c := f.catalog(t)
	all := offers(c, anyOffer)
	dear := all[len(all)-1]
	for i, test := range []struct {
		requirements []karpenterv1.NodeSelectorRequirementWithMinValues
		match        func(offer) bool
	}{
		{nil, anyOffer},
		{[]karpenterv1.NodeSelectorRequirementWithMinValues{in(string(catalog.LabelCapacityType), dear.CapacityType)},
			func(o offer) bool { return o.CapacityType == dear.CapacityType }},
		{[]karpenterv1.NodeSelectorRequirementWithMinValues{in(string(catalog.LabelInstanceType), dear.kind.Name)},
			func(o offer) bool { return o.kind.Name == dear.kind.Name }},
		{[]karpenterv1.NodeSelectorRequirementWithMinValues{in(string(catalog.LabelInstanceType), dear.kind.Name),
			in(string(catalog.LabelCapacityType), dear.CapacityType)},
			func(o offer) bool { return o.kind.Name == dear.kind.Name && o.CapacityType == dear.CapacityType }},
	} {
		want := offers(c, test.match)[0]
		claim := f.claim(fmt.Sprintf("cheap-%d", i), test.requirements...)
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m")}
		instance := f.launch(t, claim)
		if instance.Price != want.Price {
			t.Errorf("claim %d: took %s/%s/%s at %s, want one at %s, such as %s/%s/%s", i, instance.Type,
				instance.Zone, instance.CapacityType, instance.Price,
				want.Price, want.kind.Name, want.Zone, want.CapacityType)
		}
	}
}

// launchesOpenClaim checks claims without instance types: those of static pools and those made by hand (P-33). The
// requested resources still count.
func launchesOpenClaim(t *testing.T, f fixture) {
	var most int64
	for _, kind := range f.catalog(t).Types {
		most = max(most, kind.Capacity[string(corev1.ResourceCPU)]-kind.Overhead[string(corev1.ResourceCPU)])
	}
	claim := f.claim("open")
	claim.Spec.Resources.Requests = corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewMilliQuantity(most, resource.DecimalSI),
	}
	instance := f.launch(t, claim)
	if got := instance.Allocatable.Cpu().MilliValue(); got < most {
		t.Errorf("allocatable cpu is %dm, want the %dm that were asked for", got, most)
	}
}

// launchIsIdempotent is P-32.
func launchIsIdempotent(t *testing.T, f fixture) {
	claim := f.claim("twice")
	first := f.launch(t, claim)
	second := f.launch(t, claim)
	f.Settle(t)
	third := f.launch(t, claim)
	for _, again := range []provider.Instance{second, third} {
		if !agree(again, first) {
			t.Errorf("launching again gives\n%s, want the first answer\n%s", describe(again), describe(first))
		}
	}
	f.wantMachines(t, 1)
	namesake := f.claim("twice")
	namesake.UID = f.uid("another")
	if other, err := f.Launch(t.Context(), namesake, time.Time{}); err == nil && other.ProviderID == first.ProviderID {
		t.Errorf("a claim of the same name with another UID was given the first one's instance %s", first.ProviderID)
	}
}

// launchTooLate is L-14: a launch has a deadline.
func launchTooLate(t *testing.T, f fixture) {
	claim := f.claim("late")
	_, err := f.Launch(t.Context(), claim, time.Unix(1, 0))
	wantError(t, "launching after the time until which it may land", err, provider.ErrExpired)
	if !provider.Refused(err) {
		t.Errorf("error %v leaves open whether there is an instance", err)
	}
	f.Settle(t)
	f.wantMachines(t, 0)
	if _, err := f.Launch(t.Context(), claim, time.Now().AddDate(100, 0, 0)); err != nil {
		t.Errorf("launching in time: %v", err)
	}
	f.Settle(t)
	f.wantMachines(t, 1)
}

func claimIsUnchanged(t *testing.T, f fixture) {
	claim := f.claim("same")
	before := claim.DeepCopy()
	instance := f.launch(t, claim)
	instance.Labels["team"] = "red"
	instance.Capacity[corev1.ResourceCPU] = resource.MustParse("1234")
	if !equality.Semantic.DeepEqual(claim, before) {
		t.Errorf("the claim was changed to %v, from %v", claim, before)
	}
	again, err := f.Get(t.Context(), instance.ProviderID)
	if err != nil || again.Labels["team"] != "blue" || again.Capacity.Cpu().Value() == 1234 {
		t.Errorf("changing an answer changed the machine: %s, error %v", describe(again), err)
	}
}

// nothingCompatible asks in several ways for what no catalogue has.
func nothingCompatible(t *testing.T, f fixture) {
	excess := f.claim("excess")
	excess.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("9999999")}
	beyond := f.claim("beyond")
	beyond.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1e90")}
	contradiction := f.claim("contradiction", in("example.com/flavour", "mint"), in("example.com/flavour", "vanilla"))
	for asked, claim := range map[string]*karpenterv1.NodeClaim{
		"no-such-type": f.claim("a", in(string(catalog.LabelInstanceType), "no-such-type")),
		"no-such-zone": f.claim("b", in(string(catalog.LabelZone), "no-such-zone")),
		"!topology": f.claim("c", karpenterv1.NodeSelectorRequirementWithMinValues{
			Key: string(catalog.LabelZone), Operator: corev1.NodeSelectorOpDoesNotExist,
		}),
		"9999999":             excess,
		"memory":              beyond,
		"example.com/flavour": contradiction,
		"plan9":               f.claim("d", in(corev1.LabelOSStable, "plan9")),
	} {
		_, err := f.Launch(t.Context(), claim, time.Time{})
		var insufficient *provider.InsufficientCapacityError
		if !errors.As(err, &insufficient) {
			t.Errorf("%s: error %v, want *InsufficientCapacityError", claim.Name, err)
			continue
		}
		if !strings.Contains(err.Error(), asked) {
			t.Errorf("%s: error %q does not name what was asked, %q", claim.Name, err, asked)
		}
	}
	f.wantMachines(t, 0)
}

func malformedClaim(t *testing.T, f fixture) {
	odd := f.claim("odd", karpenterv1.NodeSelectorRequirementWithMinValues{Key: "example.com/flavour",
		Operator: "Resembles", Values: []string{"mint"}})
	bare := f.claim("bare")
	bare.UID = ""
	for _, claim := range []*karpenterv1.NodeClaim{odd, bare} {
		var refused *provider.LaunchError
		if _, err := f.Launch(t.Context(), claim, time.Time{}); !errors.As(err, &refused) ||
			refused.ConditionReason == "" || refused.Message == "" {
			t.Errorf("%s: error %v, want a *LaunchError with reason and message", claim.Name, err)
		}
	}
	classless := f.claim("classless")
	classless.Spec.NodeClassRef = nil
	_, err := f.Launch(t.Context(), classless, time.Time{})
	wantError(t, "launching without a node class", err, provider.ErrNodeClassNotFound)
	f.wantMachines(t, 0)
}

func cancelledContext(t *testing.T, f fixture) {
	ctx := cancelled(t)
	if _, err := f.Launch(ctx, f.claim("never"), time.Time{}); err == nil {
		t.Error("Launch with a cancelled context returns no error")
	}
	f.Settle(t)
	f.wantMachines(t, 0)
	instance := f.launch(t, f.claim("lives"))
	err := f.Terminate(ctx, instance.ProviderID, nil)
	if err == nil || errors.Is(err, provider.ErrNotFound) {
		t.Errorf("Terminate with a cancelled context returns %v, want an error other than not found", err)
	}
	if _, err := f.Get(ctx, instance.ProviderID); err == nil || errors.Is(err, provider.ErrNotFound) {
		t.Errorf("Get with a cancelled context returns %v, want an error other than not found", err)
	}
	if _, err := f.List(ctx); err == nil {
		t.Error("List with a cancelled context returns no error")
	}
	if _, err := f.Notices(ctx); err == nil {
		t.Error("Notices with a cancelled context returns no error")
	}
	if _, err := f.Catalog(ctx, f.ClassName()); err == nil || errors.Is(err, provider.ErrNodeClassNotFound) {
		t.Errorf("Catalog with a cancelled context returns %v, want an error other than not found", err)
	}
	f.wantMachines(t, 1)
}
