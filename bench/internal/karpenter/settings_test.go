package karpenter

import (
	"flag"
	"fmt"
	"reflect"
	"testing"

	kwok "sigs.k8s.io/karpenter/kwok/options"
	"sigs.k8s.io/karpenter/pkg/operator/options"

	"github.com/joiner-autoscaler/joiner/internal/settings"
)

// kinds returns the kinds of settings by the type of Go's flags.
func kinds() map[string]settings.Kind {
	return map[string]settings.Kind{
		"*flag.stringValue": settings.Text, "*flag.intValue": settings.Number, "*flag.int64Value": settings.Number,
		"*flag.durationValue": settings.Duration, "*flag.float64Value": settings.Decimal,
		"flag.boolFuncValue": settings.Switch,
	}
}

// K-01: the table of settings has exactly the flags of Karpenter's core and of its provider for simulated nodes, with
// defaults and types.
func TestK01_TheTableIsKarpenters(t *testing.T) {
	seen := map[string]bool{}
	for _, set := range []struct {
		origin settings.Origin
		flags  interface{ AddFlags(*options.FlagSet) }
	}{{settings.Core, &options.Options{}}, {settings.KWOK, &kwok.Options{}}} {
		flags := &options.FlagSet{FlagSet: flag.NewFlagSet("", flag.ContinueOnError)}
		set.flags.AddFlags(flags)
		flags.VisitAll(func(f *flag.Flag) {
			seen[f.Name] = true
			found, known := settings.Find(f.Name)
			want := settings.Setting{Name: f.Name, Kind: kinds()[fmt.Sprintf("%T", f.Value)], Default: f.DefValue,
				Origin: set.origin}
			if want.Kind == settings.Switch {
				want.Default = defaultOf(t, set.flags, f)
			}
			if want.Effect, want.Ours = found.Effect, found.Ours; !known || found != want {
				t.Errorf("the table has %+v; Karpenter has %+v", found, want)
			}
		})
	}
	for _, s := range settings.Table() {
		if (s.Origin == settings.Core || s.Origin == settings.KWOK) && !seen[s.Name] {
			t.Errorf("Karpenter has no --%s", s.Name)
		}
	}
	if len(seen) < 25 {
		t.Errorf("Karpenter has %d flags only: were they read?", len(seen))
	}
}

// defaultOf returns the default of a switch, which its flag does not show: the value that changes nothing.
func defaultOf(t *testing.T, of any, f *flag.Flag) string {
	t.Helper()
	before := reflect.ValueOf(of).Elem().Interface()
	if err := f.Value.Set("true"); err != nil {
		t.Fatal(err)
	}
	same := reflect.DeepEqual(before, reflect.ValueOf(of).Elem().Interface())
	if err := f.Value.Set(fmt.Sprint(same)); err != nil { // as it was
		t.Fatal(err)
	}
	return fmt.Sprint(same)
}

// K-04: the same for the gates.
func TestK04_TheGatesAreKarpenters(t *testing.T) {
	ours := settings.Gates()
	if len(ours) != len(options.KarpenterFeatureGates) {
		t.Errorf("%d gates, Karpenter has %d", len(ours), len(options.KarpenterFeatureGates))
	}
	for i, g := range options.KarpenterFeatureGates {
		if i < len(ours) && (ours[i].Name != g.Name || ours[i].Karpenter != g.Default) {
			t.Errorf("gate %d is %+v, Karpenter's %s is %t", i, ours[i], g.Name, g.Default)
		}
	}
}
