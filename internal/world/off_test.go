package world

import (
	"strings"
	"testing"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// P-11: with the gate NodeOverlay off an overlay changes nothing, and its verdict says why.
func TestOverlaysThatAreSwitchedOff(t *testing.T) {
	t.Parallel()
	for _, off := range []bool{false, true} {
		s := New(Config{Now: newClock().Now, Off: Off{Overlays: off}})
		_ = s.SetCatalog(testClass(), testCatalog(10_000))
		_ = s.Apply(testPool("pool-0", 1))
		if err := s.Apply(testOverlay("dear", "u1", 1, "7", "", "large")); err != nil {
			t.Fatal(err)
		}
		if changed := strings.Contains(prices(s.Snapshot()), "=7"); changed == off {
			t.Errorf("off %v: prices %s", off, prices(s.Snapshot()))
		}
		verdict, _, known := s.OverlayVerdict("dear")
		if !known || (verdict.Reason == translate.GateDisabled) != off {
			t.Errorf("off %v: verdict %+v, known %v", off, verdict, known)
		}
	}
}

// P-11: with the gate ReservedCapacity off reservations are known and cannot be had, neither in plans nor by a
// provider.
func TestReservationsThatAreSwitchedOff(t *testing.T) {
	t.Parallel()
	for _, off := range []bool{false, true} {
		offered := testCatalog(10_000)
		offered.Types[1].Offerings = append(offered.Types[1].Offerings,
			catalog.Offering{Zone: "a", CapacityType: catalog.Reserved, Price: 1, Available: true})
		s := New(Config{Now: newClock().Now, Off: Off{Reserved: off}})
		_ = s.SetCatalog(testClass(), offered)
		_ = s.Apply(testPool("pool-0", 1))
		index := s.Snapshot().Pools[0].Catalog
		claim := testClaim("c1", "cu1", 1, "pool-0", "")
		for where, has := range map[string]bool{
			"the plan":     index.Offers[index.Available.First()].CapacityType == catalog.Reserved,
			"the provider": s.Corrected(claim, offered).Types[1].Offerings[1].Available} {
			if has == off {
				t.Errorf("off %v: %s has a reservation: %v", off, where, has)
			}
		}
		if len(index.Offers) != 3 || !offered.Types[1].Offerings[1].Available {
			t.Errorf("off %v: %d offers, want 3 that are known, and the provider's catalogue as it was", off,
				len(index.Offers))
		}
	}
}

// D-12: with the gate StaticCapacity off static pools are dormant, others are not.
func TestStaticPoolsThatAreSwitchedOff(t *testing.T) {
	t.Parallel()
	static, plain := testPool("pool-0", 1), testPool("pool-1", 2)
	static.Spec.Replicas = new(int64(3))
	for _, off := range []bool{false, true} {
		s := New(Config{Now: newClock().Now, Off: Off{Static: off}})
		for _, pool := range []*karpenterv1.NodePool{static, plain} {
			_ = s.Apply(pool)
		}
		if now := s.Snapshot(); now.Pool("pool-0").Dormant != off || now.Pool("pool-1").Dormant {
			t.Errorf("off %v: dormant %v, another %v", off, now.Pool("pool-0").Dormant, now.Pool("pool-1").Dormant)
		}
	}
}
