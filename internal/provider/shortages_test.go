package provider_test

import (
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/provider"
)

// P-31: an offering that is refused is unavailable for a minute, then for two, four and so on up to half an hour.
func TestShortagesBackOffExponentially(t *testing.T) {
	t.Parallel()
	var shortages provider.Shortages
	scarce := provider.Offering{Type: "m", Zone: "a", CapacityType: catalog.Spot}
	offered := catalog.Catalog{Types: []catalog.Type{{Name: "m", Offerings: []catalog.Offering{
		{Zone: "a", CapacityType: catalog.Spot, Available: true},
		{Zone: "b", CapacityType: catalog.Spot, Available: true},
	}}}}
	available := func(now time.Time) [2]bool {
		list := shortages.Without(offered, now).Types[0].Offerings
		return [2]bool{list[0].Available, list[1].Available}
	}
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for _, minutes := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		shortages.Note(scarce, now)
		shortages.Note(scarce, now.Add(30*time.Second)) // the same shortage, met by another launch
		end := now.Add(minutes * time.Minute)
		if got := available(end.Add(-time.Second)); got != [2]bool{false, true} {
			t.Errorf("within %d minutes: available %v, want only the other zone", minutes, got)
		}
		if got := available(end); got != [2]bool{true, true} {
			t.Errorf("after %d minutes: available %v, want both", minutes, got)
		}
		now = end
	}
	for name, restart := range map[string]func(){
		"after a launch":         func() { shortages.Clear(scarce) },
		"after a long good time": func() { now = now.Add(2 * time.Hour) },
	} {
		restart()
		shortages.Note(scarce, now)
		if got := available(now.Add(time.Minute)); got != [2]bool{true, true} {
			t.Errorf("%s: the first shortage lasts longer than a minute", name)
		}
		now = now.Add(time.Hour)
	}
	if !offered.Types[0].Offerings[0].Available {
		t.Error("the catalogue that was handed in has changed")
	}
}

// E-42: a pause lasts a minute however often it is repeated, and does not affect shortages before and after it.
func TestPausesDoNotDouble(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	var backoff provider.Backoff[string]
	until := func(d time.Duration) {
		t.Helper()
		if !backoff.Lacking(now.Add(d - time.Second))["a"] || backoff.Lacking(now.Add(d))["a"] {
			t.Errorf("unavailable at other times than for %s", d)
		}
		now = now.Add(d)
	}
	for range 3 {
		backoff.Pause("a", now)
		until(time.Minute)
	}
	for _, minutes := range []time.Duration{1, 2} {
		backoff.Pause("a", now)
		backoff.Note("a", now)
		until(minutes * time.Minute)
	}
	backoff.Pause("a", now.Add(29*time.Minute))
	now = now.Add(31 * time.Minute) // since the last shortage, in spite of the pause
	backoff.Note("a", now)
	until(time.Minute)
}
