package providertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/provider"
)

func catalogIsValid(t *testing.T, f fixture) {
	c := f.catalog(t)
	if err := c.Validate(); err != nil {
		t.Errorf("Validate: %v", err)
	}
	if len(c.Types) == 0 {
		t.Error("the catalogue is empty; the suite needs types to launch")
	}
	for _, kind := range c.Types {
		for r := range kind.Labels.All() {
			if !c.WellKnown[r.Key()] {
				t.Errorf("%s: label %s is not among the well-known ones", kind.Name, r.Key())
			}
		}
		for _, o := range kind.Offerings {
			for r := range o.Labels.All() {
				if !c.WellKnown[r.Key()] {
					t.Errorf("%s/%s/%s: label %s is not among the well-known ones", kind.Name, o.Zone, o.CapacityType,
						r.Key())
				}
			}
		}
	}
}

func unknownClass(t *testing.T, f fixture) {
	_, err := f.Catalog(t.Context(), "no-such-class")
	wantError(t, "Catalog", err, provider.ErrNodeClassNotFound)
	_, err = f.Launch(t.Context(), f.claimOf("no-such-class", "a"), time.Time{})
	wantError(t, "Launch", err, provider.ErrNodeClassNotFound)
	foreign := f.claim("b")
	foreign.Spec.NodeClassRef.Kind = "OtherNodeClass"
	_, err = f.Launch(t.Context(), foreign, time.Time{})
	wantError(t, "Launch with a node class of another kind", err, provider.ErrNodeClassNotFound)
	f.wantMachines(t, 0)
}

func notReadyClass(t *testing.T, f fixture) {
	_, catalogErr := f.Catalog(t.Context(), f.NotReadyClassName())
	_, launchErr := f.Launch(t.Context(), f.claimOf(f.NotReadyClassName(), "a"), time.Time{})
	for _, err := range []error{catalogErr, launchErr} {
		var notReady *provider.NodeClassNotReadyError
		if !errors.As(err, &notReady) || notReady.Class != f.NotReadyClassName() || notReady.Reason == "" {
			t.Errorf("error %v, want *NodeClassNotReadyError with class and reason", err)
		}
	}
	f.wantMachines(t, 0)
}

func catalogIsImmutable(t *testing.T, f fixture) {
	handedOut := f.catalog(t)
	before := fmt.Sprintf("%+v", handedOut)
	for i := range 3 {
		f.launch(t, f.claim(fmt.Sprintf("web-%d", i)))
	}
	f.Settle(t)
	if after := fmt.Sprintf("%+v", handedOut); after != before {
		t.Error("launching changed a catalogue that was handed out before")
	}
	if err := f.catalog(t).Validate(); err != nil {
		t.Errorf("after launching: %v", err)
	}
}

func listAndGetAgree(t *testing.T, f fixture) {
	var want []string
	launched := map[string]time.Time{}
	for i := range 3 {
		instance := f.launch(t, f.claim(fmt.Sprintf("web-%d", i)))
		want, launched[instance.ProviderID] = append(want, describe(instance)), instance.Launched
	}
	slices.Sort(want)
	for _, settled := range []bool{false, true} {
		if settled {
			f.Settle(t)
		}
		listed, err := f.List(t.Context())
		if err != nil {
			t.Fatalf("List: %v", err)
		}
		if !slices.IsSortedFunc(listed, func(a, b provider.Instance) int {
			return strings.Compare(a.ProviderID, b.ProviderID)
		}) {
			t.Error("List is not ordered by provider ID")
		}
		var got []string
		for _, instance := range listed {
			got = append(got, describe(instance))
			one, err := f.Get(t.Context(), instance.ProviderID)
			if err != nil || describe(one) != describe(instance) || !one.Launched.Equal(instance.Launched) {
				t.Errorf("Get returns %s, launched %s, and error %v, want what List has, %s, launched %s",
					describe(one), one.Launched, err, describe(instance), instance.Launched)
			}
			if apart := instance.Launched.Sub(launched[instance.ProviderID]).Abs(); apart > clocks {
				t.Errorf("List says that %s was launched at %s, Launch said %s", instance.ProviderID,
					instance.Launched, launched[instance.ProviderID])
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("settled %t: List returns\n%s\nwant what Launch returned\n%s", settled, strings.Join(got, "\n"),
				strings.Join(want, "\n"))
		}
	}
}

// terminates ends a machine that boots and one that has joined.
func terminates(t *testing.T, f fixture) {
	kept := f.launch(t, f.claim("kept"))
	for _, settled := range []bool{false, true} {
		instance := f.launch(t, f.claim(fmt.Sprintf("gone-%t", settled)))
		if settled {
			f.Settle(t)
		}
		if err := terminateUntilGone(t, f, instance.ProviderID); err != nil {
			t.Errorf("settled %t: %v", settled, err)
		}
		wantError(t, "Terminate of what is gone", f.Terminate(t.Context(), instance.ProviderID, nil),
			provider.ErrNotFound)
		_, err := f.Get(t.Context(), instance.ProviderID)
		wantError(t, "Get of what is gone", err, provider.ErrNotFound)
		f.Settle(t)
		f.wantMachines(t, 1)
	}
	if _, err := f.Get(t.Context(), kept.ProviderID); err != nil {
		t.Errorf("Get of the other machine: %v", err)
	}
}

func terminateUntilGone(t *testing.T, f fixture, providerID string) error {
	t.Helper()
	for range maxTerminateCalls {
		err := f.Terminate(t.Context(), providerID, nil)
		if errors.Is(err, provider.ErrNotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("terminating %s: %w", providerID, err)
		}
		f.Settle(t)
	}
	return fmt.Errorf("%s is not gone after %d calls of Terminate", providerID, maxTerminateCalls)
}

func unknownMachines(t *testing.T, f fixture) {
	instance := f.launch(t, f.claim("web"))
	for _, providerID := range []string{instance.ProviderID + "x", "other:///" + instance.ClaimName, "",
		instance.ClaimName, "://", "\x00"} {
		_, err := f.Get(t.Context(), providerID)
		wantError(t, fmt.Sprintf("Get(%q)", providerID), err, provider.ErrNotFound)
		wantError(t, fmt.Sprintf("Terminate(%q)", providerID), f.Terminate(t.Context(), providerID, nil),
			provider.ErrNotFound)
	}
	f.wantMachines(t, 1)
}

// ownsItsMachines checks that the provider ID alone tells whose a machine is, whether it exists or not.
func ownsItsMachines(t *testing.T, f fixture) {
	instance := f.launch(t, f.claim("web"))
	if !f.Owns(instance.ProviderID) {
		t.Errorf("Owns(%q) is false for a machine of its own", instance.ProviderID)
	}
	for _, providerID := range []string{"", "other:///" + instance.ClaimName, instance.ClaimName, "://",
		"x" + instance.ProviderID} {
		if f.Owns(providerID) {
			t.Errorf("Owns(%q) is true for an ID of another form", providerID)
		}
	}
}

func freshIsNotDrifted(t *testing.T, f fixture) {
	claim := f.claim("web")
	claim.Status.ProviderID = f.launch(t, claim).ProviderID
	for range 2 {
		if reason, err := f.Drifted(t.Context(), claim); reason.Reason != "" || err != nil {
			t.Errorf("Drifted returns %q and error %v, want none", reason, err)
		}
		f.Settle(t)
	}
}

func repairPolicies(t *testing.T, f fixture) {
	if err := provider.CheckRepairPolicies(f.Provider); err != nil {
		t.Error(err)
	}
}

// reboots checks providers that can reboot machines. The others replace them and have nothing to check.
func reboots(t *testing.T, f fixture) {
	p, can := f.Provider.(provider.Rebooter)
	if !can {
		return
	}
	boots, is := f.Harness.(Booting)
	if !is {
		t.Fatal("the harness of a provider that reboots machines has to tell their boots apart")
	}
	one, other := f.launch(t, f.claim("one")), f.launch(t, f.claim("other"))
	f.Settle(t)
	before, untouched := boots.BootOf(t, one.ProviderID), boots.BootOf(t, other.ProviderID)
	for _, unknown := range []string{one.ProviderID + "x", "", "other:///" + one.ClaimName} {
		wantError(t, fmt.Sprintf("Reboot(%q)", unknown), p.Reboot(t.Context(), unknown, "op"), provider.ErrNotFound)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Reboot(cancelled, one.ProviderID, "op"); err == nil || boots.BootOf(t, one.ProviderID) != before {
		t.Errorf("with a cancelled context: error %v, want one, and no reboot", err)
	}
	if err := p.Reboot(t.Context(), one.ProviderID, "op"); err != nil {
		t.Fatalf("Reboot: %v", err)
	}
	f.Settle(t)
	if boots.BootOf(t, one.ProviderID) == before || boots.BootOf(t, other.ProviderID) != untouched {
		t.Error("want the one machine to have started anew, and the other not")
	}
	f.wantMachines(t, 2)
	after, err := f.Get(t.Context(), one.ProviderID)
	if err != nil || after.Terminating || after.Type != one.Type || after.Zone != one.Zone ||
		after.ClaimUID != one.ClaimUID {
		t.Errorf("after the reboot: %+v, error %v; want the machine as it was: %+v", after, err, one)
	}
	first := boots.BootOf(t, one.ProviderID)
	if err := p.Reboot(t.Context(), one.ProviderID, "another op"); err != nil {
		t.Fatalf("Reboot: %v", err)
	}
	if f.Settle(t); boots.BootOf(t, one.ProviderID) == first {
		t.Error("another operation is another reboot")
	}
}

func identity(t *testing.T, f fixture) {
	if f.Name() == "" || f.NodeClass().Group == "" || f.NodeClass().Kind == "" {
		t.Errorf("name %q, node class %v; want both stated", f.Name(), f.NodeClass())
	}
}
