package requirement_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
)

// universe is every value that the small laws look at; the members of a requirement among them, and absent, decide
// whether two requirements are the same set as far as anyone here can tell.
var universe = []string{"0", "1", "2", "3", "5", "05", "a", "b", "zz"}

// small is every requirement that one operator makes over a few values, with the special sets.
func small() []requirement.Requirement {
	all := []requirement.Requirement{
		requirement.Any("k"), requirement.Present("k"), requirement.Absent("k"), requirement.Nothing("k"),
	}
	lists := [][]string{{"a"}, {"b", "a"}, {"1"}, {"1", "2", "3"}, {"5"}, {"05"}}
	for _, list := range lists {
		all = append(all, requirement.OneOf("k", list...), must(requirement.New("k", requirement.NotIn, list...)))
	}
	for _, op := range []requirement.Operator{requirement.Gt, requirement.Lt, requirement.Gte, requirement.Lte} {
		for _, bound := range []string{"-1", "0", "2", "4", "6", "1000", "9223372036854775807"} {
			all = append(all, must(requirement.New("k", op, bound)))
		}
	}
	return all
}

func must(r requirement.Requirement, err error) requirement.Requirement {
	if err != nil {
		panic(err)
	}
	return r
}

// members lists what r has of the universe, absent as "-".
func members(r requirement.Requirement) []string {
	var list []string
	if r.AllowsAbsent() {
		list = append(list, "-")
	}
	for _, value := range universe {
		if r.Has(value) {
			list = append(list, value)
		}
	}
	return list
}

// P-02, architecture 4.2: membership of an intersection is membership of both; it is commutative and idempotent;
// Intersects is !Empty; a contradiction is not the same as absent. Every pair of small requirements is tried.
func TestIntersectionOfEveryPair(t *testing.T) {
	t.Parallel()
	all := small()
	for _, a := range all {
		if !a.And(a).Equal(a) {
			t.Errorf("%s and itself is %s", a, a.And(a))
		}
		for _, b := range all {
			both := a.And(b)
			var want []string
			for _, value := range members(a) {
				if slices.Contains(members(b), value) {
					want = append(want, value)
				}
			}
			if got := members(both); !slices.Equal(got, want) {
				t.Errorf("%s and %s: has %v, want %v", a, b, got, want)
			}
			if !both.Equal(b.And(a)) {
				t.Errorf("%s and %s: %s, the other way round %s", a, b, both, b.And(a))
			}
			if a.Intersects(b) == both.Empty() {
				t.Errorf("%s intersects %s: %t, but the intersection is %s", a, b, a.Intersects(b), both)
			}
		}
	}
}

func TestIntersectionOfEveryTripleIsAssociative(t *testing.T) {
	t.Parallel()
	all := small()
	for _, a := range all {
		for _, b := range all {
			for _, c := range all {
				if left, right := a.And(b).And(c), a.And(b.And(c)); !left.Equal(right) {
					t.Fatalf("(%s and %s) and %s is %s, but %s the other way", a, b, c, left, right)
				}
			}
		}
	}
}

// The defect that this algebra exists to avoid: a range whose only integer is excluded allows nothing, and the
// intersection of two different values is not "absent".
func TestContradictionsAreSeen(t *testing.T) {
	t.Parallel()
	between := must(requirement.New("k", requirement.Gt, "4")).And(must(requirement.New("k", requirement.Lt, "6")))
	if r := between.And(must(requirement.New("k", requirement.NotIn, "5"))); !r.Empty() {
		t.Errorf(">4 and <6 and not 5: got %s, want nothing", r)
	}
	contradiction := requirement.OneOf("k", "a").And(requirement.OneOf("k", "b"))
	if contradiction.Intersects(requirement.Absent("k")) || !contradiction.Empty() {
		t.Errorf("a and b: got %s, which must not be compatible with absent", contradiction)
	}
}

func TestBadOperatorsNameKeyAndValue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		op     requirement.Operator
		values []string
		want   string
	}{
		{requirement.In, nil, `requirement "k": operator In needs at least one value`},
		{requirement.Exists, []string{"a"}, `requirement "k": operator Exists takes no values, got ["a"]`},
		{requirement.Gt, []string{"x"}, `requirement "k": operator Gt needs an integer, got "x"`},
		{requirement.Lt, []string{"1", "2"}, `requirement "k": operator Lt needs exactly one integer, got ["1" "2"]`},
		{"Near", nil, `requirement "k": operator "Near" is none of In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte`},
	} {
		if _, err := requirement.New("k", c.op, c.values...); err == nil || err.Error() != c.want {
			t.Errorf("%s %q: got %v, want %s", c.op, c.values, err, c.want)
		}
	}
}

// draw makes a requirement by intersecting what one to four operators state.
func draw(t *rapid.T, label string) requirement.Requirement {
	r := requirement.Any("k")
	for i := range rapid.IntRange(1, 4).Draw(t, label+" terms") {
		name := fmt.Sprint(label, i)
		op := rapid.SampledFrom([]requirement.Operator{
			requirement.In, requirement.NotIn, requirement.Exists, requirement.DoesNotExist,
			requirement.Gt, requirement.Lt, requirement.Gte, requirement.Lte,
		}).Draw(t, name+" op")
		var values []string
		switch op {
		case requirement.In, requirement.NotIn:
			values = rapid.SliceOfN(value(), 1, 6).Draw(t, name+" values")
		case requirement.Exists, requirement.DoesNotExist:
		default:
			values = []string{fmt.Sprint(rapid.IntRange(-2, 700).Draw(t, name+" bound"))}
		}
		r = r.And(must(requirement.New("k", op, values...)))
	}
	return r
}

func value() *rapid.Generator[string] {
	return rapid.OneOf(rapid.SampledFrom([]string{"a", "b", "c", "01", ""}),
		rapid.Map(rapid.IntRange(0, 700), func(n int) string { return fmt.Sprint(n) }))
}

// The same laws on sets that small universes do not reach: long ranges with holes, many exclusions.
func TestLawsOnRandomRequirements(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := draw(t, "a"), draw(t, "b"), draw(t, "c")
		before := a.String() + b.String()
		both := a.And(b)
		x := value().Draw(t, "x")
		if both.Has(x) != (a.Has(x) && b.Has(x)) {
			t.Fatalf("%s and %s: has %q is %t", a, b, x, both.Has(x))
		}
		if !both.Equal(b.And(a)) || !both.And(c).Equal(a.And(b.And(c))) || !both.And(a).Equal(both) {
			t.Fatalf("not a lattice: %s, %s, %s", a, b, c)
		}
		if a.Intersects(b) == both.Empty() {
			t.Fatalf("%s intersects %s: %t, but the intersection is %s", a, b, a.Intersects(b), both)
		}
		if example, some := a.Example(); some != a.AllowsPresent() || some && !a.Has(example) {
			t.Fatalf("%s: example %q, %t", a, example, some)
		}
		if a.String()+b.String() != before {
			t.Fatalf("an argument was changed: %s, now %s %s", before, a, b)
		}
	})
}

// What a requirement is written as in the API means the same when it is read back (P-24).
func TestTermsReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := draw(t, "r")
		back := requirement.Any("k")
		for _, term := range r.Terms() {
			back = back.And(must(requirement.New("k", term.Operator, term.Values...)))
		}
		if !back.Equal(r) {
			t.Fatalf("%s is written as %v, which reads as %s", r, r.Terms(), back)
		}
	})
}

// A Set is the conjunction of its requirements, in whatever order they came.
func TestSetsAreConjunctions(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		keys := []requirement.Key{"a", "b", "c"}
		var list []requirement.Requirement
		for i := range rapid.IntRange(0, 6).Draw(t, "n") {
			key := rapid.SampledFrom(keys).Draw(t, fmt.Sprint("key", i))
			list = append(list,
				must(requirement.New(key, requirement.In,
					rapid.SliceOfN(value(), 1, 3).Draw(t, fmt.Sprint("values", i))...)))
		}
		s := requirement.NewSet(list...)
		if !s.Equal(requirement.NewSet(rapid.Permutation(list).Draw(t, "order")...)) {
			t.Fatalf("order matters: %s", s)
		}
		labels := map[string]string{}
		for _, key := range keys {
			if rapid.Bool().Draw(t, "has "+string(key)) {
				labels[string(key)] = value().Draw(t, "label "+string(key))
			}
		}
		want := true
		for _, r := range list {
			v, present := labels[string(r.Key())]
			want = want && present && r.Has(v)
		}
		if s.Matches(labels) != want {
			t.Fatalf("%s matches %v: %t, want %t", s, labels, s.Matches(labels), want)
		}
	})
}
