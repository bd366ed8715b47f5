// Package providertest is the contract of every provider.Provider, as one suite (P-50). A provider's own tests call
// [Run] with a fresh provider and a [Harness] for what the provider runs on.
package providertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/provider"
)

// Harness is what a provider runs on in a test.
type Harness interface {
	// ClassName is a node class that exists and is ready.
	ClassName() string
	// NotReadyClassName is one that exists and is not ready.
	NotReadyClassName() string
	// Settle waits until everything under way has happened: machines have booted or ended.
	Settle(t *testing.T)
	// Interrupt makes the cloud announce that it takes away a machine that has joined.
	Interrupt(t *testing.T, providerID string)
	// Machines counts the existing machines, at their source and not through the provider.
	Machines() int
}

// Shared is a Harness that other suites use too: the UIDs of their claims must differ, like those of an API server.
type Shared interface {
	// Suffix ends the UIDs of this test's claims.
	Suffix() string
}

// Booting is a Harness for a provider that reboots machines.
type Booting interface {
	// BootOf identifies the last start of a machine, as seen at its source.
	BootOf(t *testing.T, providerID string) string
}

// maxTerminateCalls bounds the calls of Terminate for a machine, with a Settle between them.
const maxTerminateCalls = 10

// Run runs the suite. fresh is called once for each test and returns a provider without machines.
func Run(t *testing.T, fresh func(t *testing.T) (provider.Provider, Harness)) {
	t.Helper()
	for _, test := range []struct {
		name string
		run  func(*testing.T, fixture)
	}{
		{"the catalogue is valid", catalogIsValid},
		{"the catalogue of an unknown node class is refused", unknownClass},
		{"a node class that is not ready is refused", notReadyClass},
		{"a launched instance satisfies its claim", satisfiesClaim},
		{"the cheapest compatible offering is taken", takesCheapest},
		{"a claim that lists no instance types is launched", launchesOpenClaim},
		{"launching twice gives one instance", launchIsIdempotent},
		{"a launch that comes too late launches nothing", launchTooLate},
		{"a catalogue handed out never changes", catalogIsImmutable},
		{"a claim is not changed by launching it", claimIsUnchanged},
		{"what nothing can satisfy is insufficient capacity", nothingCompatible},
		{"a malformed claim is refused with a reason", malformedClaim},
		{"list and get agree", listAndGetAgree},
		{"termination is idempotent and ends in not found", terminates},
		{"unknown machines are not found", unknownMachines},
		{"machines of its own are told by their provider IDs", ownsItsMachines},
		{"a fresh instance has not drifted", freshIsNotDrifted},
		{"a cancelled context launches nothing", cancelledContext},
		{"what is marked unavailable is not offered for a while", markedUnavailable},
		{"an interruption is noticed until its machine is gone", interrupted},
		{"repair policies are complete", repairPolicies},
		{"a reboot starts the machine anew and leaves it as it is", reboots},
		{"name and node class are stated", identity},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p, harness := fresh(t)
			test.run(t, fixture{Provider: p, Harness: harness})
		})
	}
}

type fixture struct {
	provider.Provider
	Harness
}

// uid returns the UID of a claim.
func (f fixture) uid(name string) types.UID {
	if shared, is := f.Harness.(Shared); is {
		name += shared.Suffix()
	}
	return types.UID("uid-of-" + name)
}

// claim returns a claim that any provider with a catalogue can launch.
func (f fixture) claim(name string,
	requirements ...karpenterv1.NodeSelectorRequirementWithMinValues) *karpenterv1.NodeClaim {
	return f.claimOf(f.ClassName(), name, requirements...)
}

func (f fixture) claimOf(class, name string,
	requirements ...karpenterv1.NodeSelectorRequirementWithMinValues) *karpenterv1.NodeClaim {
	return &karpenterv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: f.uid(name), Labels: map[string]string{
			karpenterv1.NodePoolLabelKey: "default", "team": "blue",
		}, Annotations: map[string]string{"note": "kept"}},
		Spec: karpenterv1.NodeClaimSpec{
			Requirements: append([]karpenterv1.NodeSelectorRequirementWithMinValues{
				in(karpenterv1.NodePoolLabelKey, "default"),
			}, requirements...),
			NodeClassRef: &karpenterv1.NodeClassReference{Group: f.NodeClass().Group, Kind: f.NodeClass().Kind,
				Name: class},
		},
	}
}

func in(key string, values ...string) karpenterv1.NodeSelectorRequirementWithMinValues {
	return karpenterv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn,
		Values: values}
}

func (f fixture) catalog(t *testing.T) catalog.Catalog {
	t.Helper()
	c, err := f.Catalog(t.Context(), f.ClassName())
	if err != nil {
		t.Fatalf("Catalog: %v", err)
	}
	return c
}

func (f fixture) launch(t *testing.T, claim *karpenterv1.NodeClaim) provider.Instance {
	t.Helper()
	instance, err := f.Launch(t.Context(), claim, time.Time{})
	if err != nil {
		t.Fatalf("Launch(%s): %v", claim.Name, err)
	}
	return instance
}

func (f fixture) wantMachines(t *testing.T, want int) {
	t.Helper()
	if got := f.Machines(); got != want {
		t.Errorf("%d machines exist, want %d", got, want)
	}
	listed, err := f.List(t.Context())
	if err != nil || len(listed) != want {
		t.Errorf("List returns %d instances and error %v, want %d instances", len(listed), err, want)
	}
}

// requirementsOf returns the claim's requirements as the engine reads them.
func requirementsOf(t *testing.T, claim *karpenterv1.NodeClaim) requirement.Set {
	t.Helper()
	var set requirement.Set
	for _, r := range claim.Spec.Requirements {
		parsed, err := requirement.New(requirement.Key(r.Key), requirement.Operator(r.Operator), r.Values...)
		if err != nil {
			t.Fatal(err)
		}
		set = set.With(parsed)
	}
	return set
}

// offer is an available offering of the catalogue with its type.
type offer struct {
	catalog.Offering
	kind catalog.Type
}

// offers returns the available offerings that match, cheapest first, straight from the catalogue.
func offers(c catalog.Catalog, match func(offer) bool) []offer {
	var list []offer
	for _, kind := range c.Types {
		for _, o := range kind.Offerings {
			if candidate := (offer{o, kind}); o.Available && match(candidate) {
				list = append(list, candidate)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b offer) int { return int(min(max(a.Price-b.Price, -1), 1)) })
	return list
}

func anyOffer(offer) bool { return true }

// clocks is how far the launch time may differ between Launch, by the provider's clock, and List, by the cloud's.
const clocks = time.Minute

// agree reports whether two answers say the same about the same machine.
func agree(a, b provider.Instance) bool {
	return describe(a) == describe(b) && a.Launched.Sub(b.Launched).Abs() <= clocks
}

// describe returns an instance as text, without the time of its launch.
func describe(instance provider.Instance) string {
	var labels []string
	for _, key := range slices.Sorted(maps.Keys(instance.Labels)) {
		labels = append(labels, key+"="+instance.Labels[key])
	}
	return fmt.Sprintf("%s %s %s/%s/%s %s [%s] %v %v terminating %t", instance.ProviderID, instance.ClaimName+"/"+
		instance.ClaimUID, instance.Type, instance.Zone, instance.CapacityType, instance.Price,
		strings.Join(labels, " "), amounts(instance.Capacity), amounts(instance.Allocatable), instance.Terminating)
}

func amounts(list corev1.ResourceList) []string {
	var parts []string
	for name, quantity := range list {
		parts = append(parts, string(name)+"="+quantity.String())
	}
	slices.Sort(parts)
	return parts
}

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error %v, want one that is %q", what, err, want)
	}
}

func cancelled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
