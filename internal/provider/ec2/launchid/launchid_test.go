package launchid_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launchid"
)

// E-36: an id is the same for the same claims in any order, differs for other claims and rounds, and is a valid client
// token.
func TestLaunchIDs(t *testing.T) {
	t.Parallel()
	id := launchid.New([]string{"b", "a"}, 0)
	if id != launchid.New([]string{"a", "b"}, 0) {
		t.Error("the order of the claims matters")
	}
	others := [][]string{{"a"}, {"a", "b", "c"}, {"ab"}, {"a", "c"}}
	seen := map[launchid.ID]bool{id: true, launchid.New([]string{"a", "b"}, 1): true}
	for _, uids := range others {
		seen[launchid.New(uids, 0)] = true
	}
	if len(seen) != len(others)+2 {
		t.Errorf("some launches have one id: %v", slices.Sorted(maps.Keys(seen)))
	}
	if round := launchid.NextRound([]launchid.ID{id, "hand-made", launchid.New([]string{"x"}, 6)}); round != 7 {
		t.Errorf("the next round is %d, want 7", round)
	}
	if round := launchid.NextRound(nil); round != 0 {
		t.Errorf("the first round is %d", round)
	}
}

// E-36: every launch is tagged with its id, one of a single claim with that claim's name too.
func TestLaunchesAreTagged(t *testing.T) {
	t.Parallel()
	for want, claims := range map[string][]string{
		"map[joiner.sh/launch:x karpenter.sh/nodeclaim:a]": {"a"}, "map[joiner.sh/launch:x]": {"a", "b"},
	} {
		if got := fmt.Sprint(launchid.Tags("x", claims)); got != want {
			t.Errorf("%v: %s, want %s", claims, got, want)
		}
	}
}

// E-36, as a law: every id has at most 64 ASCII characters, and contains the number of instances and the round.
func TestLaunchIDsSayWhatTheyAreFor(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		uids := rapid.SliceOfNDistinct(rapid.String(), 1, 100, rapid.ID).Draw(t, "uids")
		round := rapid.IntRange(0, 1_000_000).Draw(t, "round")
		id := launchid.New(uids, round)
		if len(id) > launchid.Longest ||
			strings.ContainsFunc(string(id), func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.Fatalf("%q is no client token", id)
		}
		if n, r, ok := id.Parse(); !ok || n != len(uids) || r != round {
			t.Fatalf("%s says %d instances, round %d, %t", id, n, r, ok)
		}
	})
	for _, bad := range []launchid.ID{
		"", "joiner-", "joiner-abc-1-0", launchid.New([]string{"a"}, 0) + "-",
		"joiner-0123456789abcdef0123456789abcdef-0-0",
	} {
		if _, _, ok := bad.Parse(); ok {
			t.Errorf("%q is taken for an id", bad)
		}
	}
}

var (
	base = time.Unix(1_700_000_000, 0)
	abc  = launchid.New([]string{"a", "b", "c"}, 0)
)

func claim(uid string, id launchid.ID, machine string) launchid.Claim {
	return launchid.Claim{UID: uid, Name: "name-" + uid, Launch: id, ProviderID: machine}
}

func instance(id string, launch launchid.ID) launchid.Instance {
	return launchid.Instance{ProviderID: id, Launch: launch, Launched: base}
}

// E-37: the table of what happens after a lost answer, a crash or a change of leader.
func TestRecovery(t *testing.T) {
	t.Parallel()
	going := claim("a", abc, "")
	going.Deleting = true
	ended := instance("i1", abc)
	ended.Ending = true
	dealt := instance("i1", abc)
	dealt.DealtTo = "c"
	named, nameless := instance("i9", ""), claim("p", "", "")
	named.ClaimName = "name-p"
	three := []launchid.Claim{claim("a", abc, ""), claim("b", abc, ""), claim("c", abc, "")}
	busy := map[launchid.ID]launchid.Try{abc: {Busy: true}}
	asked := func(ago time.Duration) map[launchid.ID]launchid.Try {
		return map[launchid.ID]launchid.Try{abc: {Repeated: base.Add(-ago)}}
	}
	list := func(ids ...string) (all []launchid.Instance) {
		for _, id := range ids {
			all = append(all, instance(id, abc))
		}
		return all
	}
	for name, c := range map[string]struct {
		claims    []launchid.Claim
		instances []launchid.Instance
		tries     map[launchid.ID]launchid.Try
		want      string
	}{
		"all are there":  {claims: three, instances: list("i3", "i1", "i2"), want: "a=i1 b=i2 c=i3"},
		"one is missing": {claims: three, instances: list("i1", "i2"), want: "a=i1 b=i2 repeat:3"},
		"one is missing, was repeated": {
			claims: three, instances: list("i1", "i2"), tries: asked(59 * time.Second), want: "a=i1 b=i2 look:1s",
		},
		"and a minute has passed": {
			claims: three, instances: list("i1", "i2"), tries: asked(time.Minute), want: "a=i1 b=i2 anew:c",
		},
		"nothing is there":    {claims: three, want: "repeat:3"},
		"too many":            {claims: three[:1], instances: list("i1", "i2"), want: "a=i1"},
		"a call is under way": {claims: three, instances: list("i1"), tries: busy, want: ""},
		"one has its machine": {
			claims: []launchid.Claim{claim("a", abc, "i1"), three[1]}, instances: list("i1"), want: "repeat:3",
		},
		"a machine that ends": {claims: three[:1], instances: []launchid.Instance{ended}, want: "repeat:3"},
		"of another launch": {
			claims: three[:1], instances: []launchid.Instance{instance("i1", "x")}, want: "repeat:3",
		},
		"dealt out already":         {claims: three, instances: append(list("i2"), dealt), want: "a=i2 c=i1 repeat:3"},
		"dealt to one that is gone": {claims: three[:1], instances: []launchid.Instance{dealt}, want: "a=i1"},
		"dealt to one of a later launch": {
			claims: []launchid.Claim{three[0], claim("c", "later", "")}, instances: []launchid.Instance{dealt},
			want: "c=i1 repeat:3",
		},
		"one goes":                   {claims: []launchid.Claim{going}, want: ""},
		"one goes and has a machine": {claims: []launchid.Claim{going}, instances: list("i1"), want: "a=i1"},
		"those that stay first":      {claims: []launchid.Claim{going, three[2]}, instances: list("i1"), want: "c=i1"},
		"Karpenter's": {
			claims: []launchid.Claim{nameless}, instances: []launchid.Instance{named}, want: "p=i9",
		},
		"not launched yet": {
			claims: []launchid.Claim{nameless}, instances: []launchid.Instance{instance("i1", "")}, want: "",
		},
		"an id that is not ours": {
			claims: []launchid.Claim{claim("a", "odd", ""), claim("b", "odd", "")}, want: "repeat:2",
		},
	} {
		plan := launchid.Recover(c.claims, c.instances, c.tries, base)
		var got []string
		for _, uid := range slices.Sorted(maps.Keys(plan.Take)) {
			got = append(got, uid+"="+plan.Take[uid])
		}
		for _, r := range plan.Repeat {
			got = append(got, fmt.Sprint("repeat:", r.Count))
		}
		for _, l := range plan.Look {
			got = append(got, fmt.Sprint("look:", l.Until.Sub(base)))
		}
		for _, uid := range plan.Anew {
			got = append(got, "anew:"+uid)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}

// E-37, E-38: which instances are orphans, and which of two for one claim stays.
func TestOrphans(t *testing.T) {
	t.Parallel()
	named := func(id, name string) launchid.Instance {
		i := instance(id, "")
		i.ClaimName = name
		return i
	}
	dealt := instance("i1", abc)
	dealt.DealtTo = "z"
	for name, c := range map[string]struct {
		claims    []launchid.Claim
		instances []launchid.Instance
		age       time.Duration
		tries     map[launchid.ID]launchid.Try
		want      string
	}{
		"young": {instances: []launchid.Instance{instance("i1", abc)}, age: launchid.Young - 1},
		"busy": {
			instances: []launchid.Instance{instance("i1", abc), instance("i2", "x")},
			tries:     map[launchid.ID]launchid.Try{abc: {Busy: true}}, want: "i2",
		},
		"no claim": {
			instances: []launchid.Instance{instance("i2", abc), instance("i1", "")}, want: "i1 i2",
		},
		"a claim's own": {
			claims: []launchid.Claim{claim("a", abc, "i1")}, instances: []launchid.Instance{instance("i1", abc)},
		},
		"one of the launch waits": {
			claims: []launchid.Claim{claim("a", abc, "")}, instances: []launchid.Instance{instance("i1", abc)},
		},
		"one of another launch waits": {
			claims: []launchid.Claim{claim("a", "x", "")}, instances: []launchid.Instance{instance("i1", abc)},
			want: "i1",
		},
		"none of the launch waits": {
			claims:    []launchid.Claim{claim("a", abc, "i1")},
			instances: []launchid.Instance{instance("i1", abc), instance("i2", abc)}, want: "i2",
		},
		"without a launch, neither has": {
			claims: []launchid.Claim{claim("a", "", "")}, instances: []launchid.Instance{instance("i1", "")},
			want: "i1",
		},
		"two bear a name, one is named": {
			claims:    []launchid.Claim{claim("a", "", "i1")},
			instances: []launchid.Instance{named("i1", "name-a"), named("i2", "name-a")}, want: "i2",
		},
		"two bear a name, none is named": {
			claims:    []launchid.Claim{claim("a", "", "")},
			instances: []launchid.Instance{named("i1", "name-a"), named("i2", "name-a")},
		},
		"dealt to a claim that waits": {
			claims: []launchid.Claim{claim("z", "x", "")}, instances: []launchid.Instance{dealt},
		},
		"dealt to a claim with a machine": {
			claims: []launchid.Claim{claim("z", abc, "i7")}, instances: []launchid.Instance{dealt}, want: "i1",
		},
	} {
		if c.age == 0 {
			c.age = launchid.Young
		}
		if got := launchid.Orphans(c.claims, c.instances, c.tries, base.Add(c.age)); strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}
