package subnet_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/subnet"
)

var start = time.Unix(1_700_000_000, 0)

func after(d time.Duration) time.Time { return start.Add(d) }

// E-12: how many addresses a machine takes.
func TestWhatAMachineNeeds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pods              subnet.PodAddresses
		maxPods, prefixes int64
		want              subnet.Need
	}{
		{subnet.Elsewhere, 110, 0, subnet.Need{AtOnce: 1}},
		{subnet.Secondary, 58, 0, subnet.Need{AtOnce: 1, Later: 58}},
		{subnet.Prefixes, 110, 0, subnet.Need{AtOnce: 1, Later: 112}},
		{subnet.Prefixes, 110, 3, subnet.Need{AtOnce: 49, Later: 64}},
		{subnet.Prefixes, 16, 4, subnet.Need{AtOnce: 65}},
		{subnet.Elsewhere, 110, 2, subnet.Need{AtOnce: 33}},
	} {
		if got := subnet.NeedOf(c.pods, c.maxPods, c.prefixes); got != c.want {
			t.Errorf("%d, %d pods, %d prefixes: %+v, want %+v", c.pods, c.maxPods, c.prefixes, got, c.want)
		}
	}
}

// E-12: the life of a count: launches under way, launched, seen, settled, refused.
func TestFreeAddressesAreCounted(t *testing.T) {
	t.Parallel()
	f := subnet.NewFree()
	left := func(when string, a, b int64) {
		t.Helper()
		for id, want := range map[string]int64{"a": a, "b": b} {
			if got, known := f.Left(id); !known || got != want {
				t.Errorf("%s: %s has %d (known: %t), want %d", when, id, got, known, want)
			}
		}
	}
	if _, known := f.Left("a"); known {
		t.Error("a subnet that EC2 has not named is known")
	}
	need := subnet.Need{AtOnce: 1, Later: 10}
	f.Seen(after(0), map[string]int64{"a": 100, "b": 50})
	launch := f.Begin([]string{"a", "b"}, need, 3)
	left("under way, either may have all machines, and half of their pods", 77, 27)
	if got, known := f.AtRest("b"); !known || got != 50 {
		t.Errorf("without the launch b has %d (known: %t), want 50", got, known)
	}
	f.End(launch, after(20*time.Second), subnet.Took{Machine: "i-1", Subnet: "a", Need: need},
		subnet.Took{Machine: "i-2", Subnet: "a", Need: need})
	left("launched into a", 78, 50)
	f.Seen(after(25*time.Second), map[string]int64{"a": 100})
	left("EC2 may not have counted them yet", 78, 50)
	f.Seen(after(31*time.Second), map[string]int64{"a": 98, "b": 50})
	left("it has, but they still start", 78, 50)
	f.Seen(after(24*time.Second), map[string]int64{"a": 5})
	left("an old answer comes late", 78, 50)
	f.Settled("i-1", after(40*time.Second))
	left("one runs", 78, 50)
	f.Seen(after(60*time.Second), map[string]int64{"a": 90})
	left("and that is counted", 80, 50)
	f.Full("b", after(70*time.Second))
	left("a refusal", 80, 0)
	f.Seen(after(69*time.Second), map[string]int64{"b": 50})
	left("an answer from before it", 80, 0)
	f.Seen(after(71*time.Second), map[string]int64{"b": 2})
	left("an answer after it", 80, 2)
	f.Seen(after(16*time.Minute), map[string]int64{"a": 88, "b": 2})
	left("the other has had its time", 88, 2)
	f.End(0, after(16*time.Minute), subnet.Took{Machine: "i-3", Subnet: "new", Need: need})
	f.Seen(after(17*time.Minute), map[string]int64{"a": 88})
	f.Seen(after(18*time.Minute), map[string]int64{"new": 30})
	if got, _ := f.Left("new"); got != 20 {
		t.Errorf("a machine that was there before its subnet was known: %d left, want 20", got)
	}
	f.Seen(after(48*time.Hour), map[string]int64{"a": 88})
	if _, known := f.Left("b"); known {
		t.Error("a subnet that EC2 has not named for a day is known")
	}
}

// world is the true state of a subnet.
type world struct {
	free     int64
	machines map[string]*machine
	counts   []int64 // how many were free at each second
}

type machine struct{ later int64 } // it may still take so many

// E-12, as a law: as long as nobody else takes addresses, the count never exceeds what is left after all machines have
// taken their maximum. Once all have settled and EC2 has been asked again, it equals EC2's count.
func TestNoMoreIsPromisedThanThereIs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := subnet.NewFree()
		w := &world{free: int64(rapid.IntRange(50, 500).Draw(t, "size")), machines: map[string]*machine{}}
		second := 0
		pass := func(n int) {
			for range n {
				w.counts = append(w.counts, w.free)
				second++
			}
		}
		now := func() time.Time { return after(time.Duration(second) * time.Second) }
		ask := func() { // an answer that may be ten seconds old
			old := rapid.IntRange(0, min(10, len(w.counts)-1)).Draw(t, "age")
			f.Seen(now(), map[string]int64{"a": w.counts[len(w.counts)-1-old]})
		}
		pass(1)
		ask()
		names := []string{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				need := subnet.Need{AtOnce: rapid.Int64Range(1, 17).Draw(t, "once"),
					Later: rapid.Int64Range(0, 30).Draw(t, "later")}
				if left, _ := f.Left("a"); left < need.Total() {
					continue
				}
				launch := f.Begin([]string{"a", "b"}, need, 1)
				w.free -= need.AtOnce
				pass(rapid.IntRange(0, 20).Draw(t, "takes"))
				name := fmt.Sprint("i-", len(names))
				names = append(names, name)
				w.machines[name] = &machine{later: need.Later}
				f.End(launch, now(), subnet.Took{Machine: name, Subnet: "a", Need: need})
			case 1:
				ask()
			case 2:
				pass(rapid.IntRange(1, 60).Draw(t, "seconds"))
			default:
				if len(names) > 0 {
					name := rapid.SampledFrom(names).Draw(t, "machine")
					m := w.machines[name]
					n := int64(rapid.IntRange(0, int(m.later)).Draw(t, "takes"))
					w.free, m.later = w.free-n, m.later-n
					if m.later == 0 || rapid.Bool().Draw(t, "settles") {
						m.later = 0
						f.Settled(name, now())
					}
				}
			}
			certain := w.free
			for _, m := range w.machines {
				certain -= m.later
			}
			if left, _ := f.Left("a"); left > max(0, certain) {
				t.Fatalf("after %d s: %d promised, %d certain", second, left, certain)
			}
		}
		for _, name := range names {
			f.Settled(name, now())
		}
		pass(30)
		f.Seen(now(), map[string]int64{"a": w.free})
		if left, _ := f.Left("a"); left != w.free {
			t.Fatalf("at rest: %d left, EC2 says %d", left, w.free)
		}
	})
}

// E-12: per zone the subnet with most addresses left; zones without enough are left out, unless all are.
func TestWhichSubnetALaunchUses(t *testing.T) {
	t.Parallel()
	subnets := []subnet.Subnet{{ID: "s3", Zone: "b"}, {ID: "s2", Zone: "a"}, {ID: "s1", Zone: "a"},
		{ID: "s4", Zone: "c"}}
	for name, c := range map[string]struct {
		left  map[string]int64
		want  string
		short bool
	}{
		"most left":   {left: map[string]int64{"s1": 50, "s2": 60, "s3": 100, "s4": 11}, want: "a/s2 b/s3 c/s4"},
		"of equals":   {left: map[string]int64{"s1": 50, "s2": 50, "s3": 100, "s4": 11}, want: "a/s1 b/s3 c/s4"},
		"a zone less": {left: map[string]int64{"s1": 50, "s2": 60, "s3": 10, "s4": 11}, want: "a/s2 c/s4"},
		"none":        {left: map[string]int64{"s1": 3, "s2": 4, "s3": 9, "s4": 9}, want: "b/s3", short: true},
		"none at all": {left: map[string]int64{}, want: "a/s1", short: true},
	} {
		left := func(id string) int64 { return c.left[id] }
		choices, short := subnet.Choose(subnets, left, subnet.Need{AtOnce: 1, Later: 10})
		var got []string
		for _, choice := range choices {
			if choice.Enough {
				got = append(got, choice.Zone+"/"+choice.ID)
			}
		}
		if strings.Join(got, " ") != c.want || (short != "") != c.short || len(choices) != 3 {
			t.Errorf("%s: %v, %q, want %s", name, got, short, c.want)
		}
		if c.short && !strings.Contains(short, "11 free addresses") {
			t.Errorf("%s: the text does not say what is needed: %s", name, short)
		}
	}
	if choices, short := subnet.Choose(nil, nil, subnet.Need{}); choices != nil || short != "" {
		t.Errorf("no subnets: %v, %q", choices, short)
	}
}
