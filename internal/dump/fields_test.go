package dump

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// leftOut are the fields of what the engine plans with and says that are not written, and why.
var leftOut = map[string]string{
	"cluster.Snapshot.Devices": "what there is of devices is not written: a dump is made of a picture without " +
		"them (Snapshot.WithoutDevices)",
	"cluster.Pod.Kept":           "no plan depends on it: it is room that kube-scheduler keeps, and given back by the controller",
	"cluster.Shape.Claims":       "pods that ask for devices are blocked in such a picture",
	"cluster.Snapshot.change":    "only says how a what-if differs from what it was made of, so that less is looked at",
	"cluster.Snapshot.Drawing":   "only in what-ifs",
	"cluster.Snapshot.Reserving": "only in what-ifs",
	"cluster.Snapshot.Undrawn":   "only in what-ifs",
	"cluster.Snapshot.Vacant":    "only in what-ifs",
	"cluster.Shape.key":          "follows from the other fields",
	"cluster.Shape.ask":          "follows from the other fields",
	"plan.Plan.Names":            "those of the snapshot, which are written once",
}

// otherwise are the fields that nobody outside of their package can read, and how they are written all the same.
var otherwise = map[string]string{
	"cluster.Shape.own":       "by Selecting, as own",
	"catalog.Index.wellKnown": "by WellKnown",
	"catalog.Index.byKey":     "follows from Offers and wellKnown (Compile)",
	"catalog.Index.covered":   "follows from Snapshot.Commitments (Covered)",
	"catalog.Index.terms":     "follows from Snapshot.Commitments (Covered)",
	"catalog.Index.byType":    "follows from Offers (Compile)",
}

// whole are types that the test makes by their own functions.
var whole = map[reflect.Type]func(n int) any{
	reflect.TypeFor[requirement.Set](): func(n int) any { return requirement.NewSet(some1(n)) },
	reflect.TypeFor[requirement.Requirement](): func(n int) any {
		return some1(n)
	},
	reflect.TypeFor[cluster.Devices]():     nil,
	reflect.TypeFor[catalog.Bits]():        nil,
	reflect.TypeFor[*catalog.Thresholds](): nil,
	reflect.TypeFor[*catalog.Index]():      func(int) any { return anIndex() },
}

// some1 is one requirement of each kind in turn.
func some1(n int) requirement.Requirement {
	key := requirement.Key(fmt.Sprint("key-", n))
	r, _ := requirement.New(key, requirement.NotIn, "x", "y")
	gte, _ := requirement.New(key, requirement.Gte, "7")
	lt, _ := requirement.New(key, requirement.Lt, "5000")
	not, _ := requirement.New(key, requirement.NotIn, "4711")
	kinds := []requirement.Requirement{requirement.OneOf(key, "a", "b"), r, gte.And(lt).And(not),
		requirement.Absent(key), requirement.Present(key), requirement.Nothing(key), requirement.Any(key), gte, lt,
		r.And(requirement.Present(key))}
	return kinds[n%len(kinds)]
}

func anIndex() *catalog.Index {
	types := []catalog.IndexedType{
		{Name: "large", Capacity: resources.Vector{8, 9}, Allocatable: resources.Vector{7, 8}},
		{Name: "small", Capacity: resources.Vector{4, 5}, Allocatable: resources.Vector{3}}}
	var offers []catalog.Offer
	for i, o := range []struct {
		at   int
		zone string
	}{{1, "a"}, {1, "b"}, {0, "a"}} {
		kind := map[bool]string{true: catalog.Reserved, false: catalog.Spot}[i == 0]
		offers = append(offers, catalog.Offer{Type: o.at, Zone: o.zone, CapacityType: kind,
			Price:     resources.Money(10 + i),
			Available: i != 1, Reservation: map[bool]int{true: 3}[i == 0], Labels: requirement.NewSet(
				requirement.OneOf(catalog.LabelInstanceType, types[o.at].Name),
				requirement.OneOf(catalog.LabelZone, o.zone),
				requirement.OneOf(catalog.LabelCapacityType, kind), requirement.OneOf("family", "m"))})
	}
	return catalog.Compile(types, offers, []requirement.Key{"family", "gpu"})
}

// filler gives each field a value of its own that is not zero, and notes the fields.
type filler struct {
	n      int
	fields map[string]bool
}

func (f *filler) fill(v reflect.Value) {
	if makes, known := whole[v.Type()]; known {
		if f.n++; makes != nil {
			v.Set(reflect.ValueOf(makes(f.n)))
		}
		return
	}
	f.n++
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("text-%05d", f.n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(f.n))
	case reflect.Uint64:
		v.SetUint(uint64(f.n))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		f.fill(v.Index(0))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		f.fill(key)
		f.fill(value)
		v.SetMapIndex(key, value)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			f.fields[v.Type().String()+"."+v.Type().Field(i).Name] = true
			if v.Type().Field(i).IsExported() {
				f.fill(v.Field(i))
			}
		}
	default:
		panic("a field of the kind " + v.Kind().String())
	}
}

// TestU40_EveryFieldIsWrittenOrLeftOutForAReason: a value with every field set comes back as it was. Fields that are
// not written are on a list, with the reason.
func TestU40_EveryFieldIsWrittenOrLeftOutForAReason(t *testing.T) {
	t.Parallel()
	f := &filler{fields: map[string]bool{}}
	d := Dump{Header: header(), Snapshot: &cluster.Snapshot{}}
	f.fill(reflect.ValueOf(d.Snapshot).Elem())
	f.fill(reflect.ValueOf(&d.Terms).Elem())
	var p plan.Plan
	f.fill(reflect.ValueOf(&p).Elem())
	d.Plans = []Planned{{AskLaunches, p}}
	settle(d.Snapshot)
	for i := range reflect.TypeFor[catalog.Index]().NumField() {
		f.fields["catalog.Index."+reflect.TypeFor[catalog.Index]().Field(i).Name] = true
	}
	back := readBack(t, written(t, d))
	back.Plans[0].Plan.Names = d.Plans[0].Plan.Names
	for _, pair := range []struct{ name, got, want any }{
		{"terms", back.Terms, d.Terms}, {"plan", back.Plans[0].Plan, d.Plans[0].Plan},
		{"snapshot", *back.Snapshot, *d.Snapshot},
	} {
		for _, difference := range differ(fmt.Sprint(pair.name), reflect.ValueOf(pair.got),
			reflect.ValueOf(pair.want)) {
			t.Error(difference)
		}
	}
	for name := range maps.Keys(leftOut) {
		if !f.fields[name] {
			t.Errorf("%s is on the list of what is left out, and there is no such field", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.fields)) {
		last := name[strings.LastIndex(name, ".")+1:]
		if unexported := last[:1] == strings.ToLower(last[:1]); unexported && leftOut[name] == "" &&
			otherwise[name] == "" {
			t.Errorf("%s is neither written nor left out for a reason", name)
		}
	}
	if len(f.fields) < 100 {
		t.Errorf("%d fields were looked at; want all", len(f.fields))
	}
}

// settle makes what was filled something that a snapshot can be, so that it can be read again.
func settle(s *cluster.Snapshot) {
	s.Names = append(resources.NewSpace().Names(), "example.com/x")
	table := cluster.NewShapes()
	own := func(pod *cluster.Pod) { pod.Shape.Narrow(pod.Shape.Alternatives[:1]) }
	for _, list := range [][]*cluster.Pod{s.Pending, s.Repelling, s.Nodes[0].Pods, s.Nodes[0].Coming,
		s.Leaving[0].Pods, s.Leaving[0].Coming, s.Closed[0].Pods, s.Closed[0].Coming} {
		own(list[0])
		list[0].Shape = table.Intern(list[0].Shape)
	}
	s.Daemons[0].Shape = table.Intern(s.Daemons[0].Shape)
	s.Pools[0].Consolidates = cluster.Balanced
}

// differ lists where two values are not the same. Fields that are left out do not count.
func differ(at string, a, b reflect.Value) []string {
	if a.Type() == reflect.TypeFor[requirement.Requirement]() || a.Type() == reflect.TypeFor[requirement.Set]() ||
		a.Type() == reflect.TypeFor[*catalog.Index]() {
		if !reflect.DeepEqual(a.Interface(), b.Interface()) {
			return []string{fmt.Sprintf("%s: %v, was %v", at, a, b)}
		}
		return nil
	}
	var list []string
	switch a.Kind() {
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			break
		}
		return differ(at, a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			name := a.Type().String() + "." + a.Type().Field(i).Name
			if field := a.Type().Field(i); field.IsExported() && leftOut[name] == "" {
				list = append(list, differ(at+"."+field.Name, a.Field(i), b.Field(i))...)
			}
		}
		if shape, is := a.Interface().(cluster.Shape); is {
			other := b.Interface().(cluster.Shape)
			list = append(list, differ(at+".own", reflect.ValueOf(shape.Selecting().Alternatives),
				reflect.ValueOf(other.Selecting().Alternatives))...)
		}
		return list
	case reflect.Slice:
		if a.Len() != b.Len() {
			break
		}
		for i := range a.Len() {
			list = append(list, differ(fmt.Sprintf("%s[%d]", at, i), a.Index(i), b.Index(i))...)
		}
		return list
	}
	if !reflect.DeepEqual(a.Interface(), b.Interface()) {
		return []string{fmt.Sprintf("%s: %v, was %v", at, a, b)}
	}
	return nil
}

// TestU06_EveryKindOfRequirement comes back as it was.
func TestU06_EveryKindOfRequirement(t *testing.T) {
	t.Parallel()
	for n := range 10 {
		if r := some1(n); !readAllowed(allowed(r)).Equal(r) {
			t.Errorf("%s came back as %s", r, readAllowed(allowed(r)))
		}
	}
}
