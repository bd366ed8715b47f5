package providertest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/provider"
)

// markedUnavailable is P-31 and P-43: for some time, an offering whose machines were taken away is neither offered nor
// launched.
func markedUnavailable(t *testing.T, f fixture) {
	cheapest := offers(f.catalog(t), anyOffer)[0]
	marked := provider.Offering{Type: cheapest.kind.Name, Zone: cheapest.Zone, CapacityType: cheapest.CapacityType}
	available := func() bool {
		for _, o := range offers(f.catalog(t), anyOffer) {
			if o.kind.Name == marked.Type && o.Zone == marked.Zone && o.CapacityType == marked.CapacityType {
				return true
			}
		}
		return false
	}
	f.MarkUnavailable(marked)
	f.MarkUnavailable(provider.Offering{Type: "no-such-type", Zone: "nowhere", CapacityType: catalog.Spot})
	if available() {
		t.Errorf("%s is offered although it was marked unavailable", marked)
	}
	only := f.claim("only", in(string(catalog.LabelInstanceType), marked.Type),
		in(string(catalog.LabelZone), marked.Zone), in(string(catalog.LabelCapacityType), marked.CapacityType))
	var insufficient *provider.InsufficientCapacityError
	if _, err := f.Launch(t.Context(), only, time.Time{}); !errors.As(err, &insufficient) {
		t.Errorf("launching what is marked unavailable: error %v, want *InsufficientCapacityError", err)
	}
	if instance := f.launch(t, f.claim("any")); instance.Type == marked.Type && instance.Zone == marked.Zone &&
		instance.CapacityType == marked.CapacityType {
		t.Errorf("%s was launched although it was marked unavailable", marked)
	}
	f.Settle(t)
	if !available() {
		t.Errorf("%s is not offered again after a long time", marked)
	}
}

// interrupted is P-43.
func interrupted(t *testing.T, f fixture) {
	kept, taken := f.launch(t, f.claim("kept")), f.launch(t, f.claim("taken"))
	f.Settle(t)
	noticed := func() []provider.Notice {
		notices, err := f.Notices(t.Context())
		if err != nil {
			t.Fatalf("Notices: %v", err)
		}
		return notices.List
	}
	if list := noticed(); len(list) != 0 {
		t.Errorf("notices %+v before any interruption", list)
	}
	f.Interrupt(t, taken.ProviderID)
	first, again := noticed(), noticed()
	if len(first) != 1 || first[0].ProviderID != taken.ProviderID || first[0].ID == "" || !first[0].Kind.Ends() {
		t.Fatalf("notices %+v, want one that says that %s goes", first, taken.ProviderID)
	}
	if fmt.Sprint(again) != fmt.Sprint(first) {
		t.Errorf("notices %+v when asked again, want %+v until they are acknowledged", again, first)
	}
	for range 2 {
		if err := f.Acknowledge(t.Context(), first[0]); err != nil {
			t.Errorf("Acknowledge: %v", err)
		}
	}
	if err := terminateUntilGone(t, f, taken.ProviderID); err != nil {
		t.Error(err)
	}
	if list := noticed(); len(list) != 0 {
		t.Errorf("notices %+v of a machine that is gone", list)
	}
	if _, err := f.Get(t.Context(), kept.ProviderID); err != nil {
		t.Errorf("Get of the other machine: %v", err)
	}
}
