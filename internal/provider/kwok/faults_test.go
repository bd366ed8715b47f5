package kwok_test

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/kwok"
)

// newFaultyWorld returns a world with faults in its node class.
func newFaultyWorld(t *testing.T, faults string) *world {
	t.Helper()
	w := newWorld(t, mustGeneric(t), 0)
	w.cluster.SetFaults("default", faults)
	return w
}

func launchedAs(t *testing.T, w *world, name string) provider.Offering {
	t.Helper()
	instance := mustLaunch(t, w, newClaim(name, nil))
	return provider.Offering{Type: instance.Type, Zone: instance.Zone, CapacityType: instance.CapacityType}
}

// P-31, P-51: an offering without capacity is skipped in the same launch, and is unavailable in the catalogue for some
// time.
func TestInsufficientCapacityIsPassedOver(t *testing.T) {
	t.Parallel()
	w := newFaultyWorld(t,
		"insufficientCapacity: [{capacityTypes: [spot], zones: [test-zone-a, test-zone-b, test-zone-c, "+
			"test-zone-d], types: ['c-1x-*'], until: 2026-07-01T13:00:00Z}]")
	first := launchedAs(t, w, "one")
	if first.CapacityType == catalog.Spot && strings.HasPrefix(first.Type, "c-1x-") {
		t.Fatalf("launched %s, of which there is no capacity", first)
	}
	out := 0
	offered, err := w.Catalog(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range offered.Types {
		for _, o := range kind.Offerings {
			if !o.Available {
				if out++; o.CapacityType != catalog.Spot || !strings.HasPrefix(kind.Name, "c-1x-") {
					t.Errorf("%s in %s, %s, is unavailable and was never refused", kind.Name, o.Zone, o.CapacityType)
				}
			}
		}
	}
	if out == 0 {
		t.Error("nothing is unavailable after offerings were refused")
	}
	w.clock = w.clock.Add(2 * time.Hour)
	if again := launchedAs(t, w, "two"); again.CapacityType != catalog.Spot ||
		!strings.HasPrefix(again.Type, "c-1x-") {
		t.Errorf("launched %s after the shortage, want the cheapest again, a c-1x of spot", again)
	}
}

func TestAClaimThatFindsNoCapacityIsToldWhatWasTried(t *testing.T) {
	t.Parallel()
	w := newFaultyWorld(t, "insufficientCapacity: [{}]")
	claim := newClaim("web", nil)
	claim.Spec.Requirements = append(claim.Spec.Requirements, karpenterv1.NodeSelectorRequirementWithMinValues{
		Key: "topology.kubernetes.io/zone", Operator: "In", Values: []string{"test-zone-b"},
	})
	claim.Spec.Requirements = append(claim.Spec.Requirements, karpenterv1.NodeSelectorRequirementWithMinValues{
		Key: "node.kubernetes.io/instance-type", Operator: "In", Values: []string{"c-4x-amd64-linux"},
	})
	_, err := w.Launch(t.Context(), claim, time.Time{})
	var insufficient *provider.InsufficientCapacityError
	if !errors.As(err, &insufficient) || len(insufficient.Tried) != 2 {
		t.Fatalf("error %v, want insufficient capacity of two offerings", err)
	}
	if w.Machines() != 0 {
		t.Error("a machine was made all the same")
	}
}

// Chance is drawn from the seed: some claims are hit, the same ones each time.
func TestChanceIsDrawnFromTheSeed(t *testing.T) {
	t.Parallel()
	draw := func(seed int) (hits string) {
		w := newFaultyWorld(t, fmt.Sprintf("{seed: %d, neverJoin: [{probability: 0.3}]}", seed))
		for i := range 200 {
			claim := newClaim(fmt.Sprintf("web-%d", i), nil)
			mustLaunch(t, w, claim)
		}
		nodes, err := w.cluster.Nodes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, node := range nodes {
			hits += node.Name + " "
		}
		if n := len(nodes); n < 120 || n > 160 {
			t.Errorf("seed %d: %d of 200 machines joined, want about 140", seed, n)
		}
		return hits
	}
	if one, again, other := draw(1), draw(1), draw(2); one != again || one == other {
		t.Error("the same seed must hit the same claims, and another one others")
	}
}

// P-51: slow boot and nodes that never join; both exist for the provider, and both can be ended.
func TestMachinesJoinLateOrNever(t *testing.T) {
	t.Parallel()
	w := newFaultyWorld(t, "{slowBoot: [{delay: 2m}], neverJoin: [{capacityTypes: [on-demand]}]}")
	late := mustLaunch(t, w, newClaim("late", nil))
	stuck := newClaim("stuck", nil)
	stuck.Spec.Requirements = append(stuck.Spec.Requirements, karpenterv1.NodeSelectorRequirementWithMinValues{
		Key: "karpenter.sh/capacity-type", Operator: "In", Values: []string{"on-demand"},
	})
	never := mustLaunch(t, w, stuck)
	joined := func() int {
		nodes, err := w.cluster.Nodes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(nodes)
	}
	if next, err := w.Boot(t.Context(), w.clock); err != nil || !next.Equal(w.clock.Add(2*time.Minute)) ||
		joined() != 0 {
		t.Errorf("next boot at %v, error %v, %d nodes; want the late machine in two minutes", next, err, joined())
	}
	w.Settle(t)
	if joined() != 1 || w.Machines() != 2 {
		t.Errorf("%d nodes of %d machines, want 1 of 2", joined(), w.Machines())
	}
	for _, id := range []string{late.ProviderID, never.ProviderID} {
		if err := w.Terminate(t.Context(), id, nil); !errors.Is(err, provider.ErrNotFound) {
			t.Errorf("Terminate(%s): %v", id, err)
		}
	}
	if w.Machines() != 0 {
		t.Errorf("%d machines are left", w.Machines())
	}
}

// P-51, P-43: drift and interruption come with age; a throttled call says so; prices follow their curve.
func TestDriftInterruptionThrottlingAndPrices(t *testing.T) {
	t.Parallel()
	w := newFaultyWorld(t, `
drift: [{after: 10m, reason: ImageDrift}]
interruption: [{after: 20m, notice: 50m}]
throttling: [{calls: [get], from: 2026-07-01T12:30:00Z}]
prices:
- {capacityTypes: [spot], every: 1h, steps: [{at: 40m, factor: 3}, {at: 50m, factor: 0.5}]}
- {capacityTypes: [on-demand], factor: 2, from: 2026-07-01T12:40:00Z}
`)
	claim := newClaim("web", nil)
	claim.CreationTimestamp = metav1.NewTime(w.clock)
	claim.Status.ProviderID = mustLaunch(t, w, claim).ProviderID
	before, err := w.Catalog(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		minute          int
		drift           string
		notices         int
		throttled       bool
		spot, guarantee float64 // factors on prices
	}{{0, "", 0, false, 1, 1}, {10, "ImageDrift", 0, false, 1, 1}, {21, "ImageDrift", 1, false, 1, 1},
		{40, "ImageDrift", 1, true, 3, 2}, {55, "ImageDrift", 1, true, 0.5, 2}, {61, "ImageDrift", 1, true, 1, 2}} {
		now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(step.minute) * time.Minute)
		w.clock = now
		if reason, err := w.Drifted(t.Context(), claim); reason.Reason != step.drift || err != nil {
			t.Errorf("minute %d: drift %q, error %v; want %q", step.minute, reason, err, step.drift)
		}
		notices, err := w.Notices(t.Context())
		if err != nil || len(notices.List) != step.notices || notices.Again <= 0 {
			t.Errorf("minute %d: notices %+v, error %v; want %d, and to be asked again", step.minute, notices, err,
				step.notices)
		}
		if len(notices.List) == 1 && !notices.List[0].Gone.Equal(now.Add(time.Duration(70-step.minute)*time.Minute)) {
			t.Errorf("minute %d: the machine is gone at %v, want minute 70", step.minute, notices.List[0].Gone)
		}
		if _, err := w.Get(t.Context(), claim.Status.ProviderID); errors.Is(err,
			provider.ErrThrottled) != step.throttled || (err != nil) != step.throttled {
			t.Errorf("minute %d: Get: %v, want throttled %t", step.minute, err, step.throttled)
		}
		offered, err := w.Catalog(t.Context(), "default")
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range offered.Types[3].Offerings {
			factor := map[string]float64{catalog.Spot: step.spot, catalog.OnDemand: step.guarantee}[o.CapacityType]
			want := before.Types[3].Offerings[i].Price.Dollars() * factor
			if got := o.Price.Dollars(); got < want-0.000002 || got > want+0.000002 {
				t.Errorf("minute %d: %s costs %v, want %v", step.minute, o.CapacityType, got, want)
			}
		}
	}
}

// P-43: once the notice has expired the machine is removed, whatever was done meanwhile; others stay.
func TestAnInterruptedMachineIsTakenAway(t *testing.T) {
	t.Parallel()
	w := newFaultyWorld(t,
		"interruption: [{after: 10m, notice: 2m, types: ['c-1x-*']}, {kind: SpotRebalanceRecommendation, types: ['m-*']}]")
	taken := mustLaunch(t, w, newClaim("taken", nil))
	advised := newClaim("advised", nil)
	advised.Spec.Requirements = append(advised.Spec.Requirements, karpenterv1.NodeSelectorRequirementWithMinValues{
		Key: "karpenter.kwok.sh/instance-family", Operator: "In", Values: []string{"m"},
	})
	kept := mustLaunch(t, w, advised)
	start := w.clock
	for _, step := range []struct {
		after   time.Duration
		notices int
		left    int
		again   time.Duration
	}{{9 * time.Minute, 1, 2, 5 * time.Second}, {11*time.Minute + 58*time.Second, 2, 2, 2 * time.Second},
		{12 * time.Minute, 1, 1, 5 * time.Second}} {
		w.clock = start.Add(step.after)
		notices, err := w.Notices(t.Context())
		if err != nil || len(notices.List) != step.notices || notices.Again != step.again ||
			w.Machines() != step.left {
			t.Errorf(
				"after %s: notices %+v, %d machines, error %v; want %d notices, %d machines, to be asked again after %s",
				step.after, notices, w.Machines(), err, step.notices, step.left, step.again)
		}
	}
	if _, err := w.Get(t.Context(), taken.ProviderID); !errors.Is(err, provider.ErrNotFound) {
		t.Errorf("Get of the machine that was taken away: %v", err)
	}
	if _, err := w.Get(t.Context(), kept.ProviderID); err != nil {
		t.Errorf("Get of the machine of which there was a recommendation only: %v", err)
	}
}

// The examples of the page are accepted as they stand there.
func TestTheExamplesOfThePageAreAccepted(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/kwok.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		for document := range strings.SplitSeq(block[1], "---\n") {
			var object metav1.PartialObjectMetadata
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				t.Errorf("%v in\n%s", err, document)
			}
			text, stated := object.Annotations[kwok.FaultsAnnotationKey]
			if !stated {
				continue
			}
			found++
			w := newFaultyWorld(t, text)
			if _, err := w.Catalog(t.Context(), "default"); err != nil {
				t.Errorf("%s: %v", object.Name, err)
			}
		}
	}
	if found != 2 {
		t.Errorf("%d examples found, want 2", found)
	}
}

// Invalid faults, and faults that match nothing, make the class not ready, with the reason.
func TestBadFaultsMakeTheNodeClassNotReady(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"slowBoot: [{delay: soon}]":               `slowBoot[0].delay: got "soon"; want a duration`,
		"neverJoin: [{zones: [test-zone-z]}]":     `match no offering`,
		"insufficientCapacity: [{types: [m5.*]}]": `insufficientCapacity[0]: types ["m5.*"]`,
	} {
		w := newFaultyWorld(t, text)
		_, catalogErr := w.Catalog(t.Context(), "default")
		_, launchErr := w.Launch(t.Context(), newClaim("web", nil), time.Time{})
		for _, err := range []error{catalogErr, launchErr} {
			var notReady *provider.NodeClassNotReadyError
			if !errors.As(err, &notReady) || !strings.Contains(notReady.Reason, want) ||
				!strings.Contains(notReady.Reason, kwok.FaultsAnnotationKey) {
				t.Errorf("%s: error %v, want the class not ready because of %s", text, err, want)
			}
		}
	}
}
