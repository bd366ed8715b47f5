package churn

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// The same seed draws the same steps, and another seed draws others.
func TestASeedDrawsTheSameSteps(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		first, again := Draw(seed, time.Minute).String(), Draw(seed, time.Minute).String()
		if first != again {
			t.Fatalf("seed %d is drawn as\n%s\nand as\n%s", seed, first, again)
		}
		if other := Draw(seed+1, time.Minute).String(); other == first {
			t.Errorf("seeds %d and %d draw the same", seed, seed+1)
		}
	}
}

// A longer run begins like a shorter one: what is drawn does not depend on how long users act.
func TestALongerRunBeginsLikeAShorterOne(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		short, long := Draw(seed, 10*time.Second).Steps, Draw(seed, time.Minute).Steps
		for i, step := range short {
			if step.String() != long[i].String() {
				t.Fatalf("seed %d, step %d is %q, in the longer run %q", seed, i, step, long[i])
			}
		}
	}
}

// Over some seeds, users do everything that they can do, to every kind of workload and pool.
func TestSeedsDrawEverything(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	verbs := map[Verb]bool{}
	for seed := range uint64(100) {
		script := Draw(seed, time.Minute)
		all.WriteString(script.String())
		for _, step := range script.Steps {
			verbs[step.Verb] = true
		}
	}
	for _, verb := range []Verb{Apply, Delete, DeleteAny, ProtectAny, InterruptAny, UnprotectAll, Kill} {
		if !verbs[verb] {
			t.Errorf("nobody does %q", verb)
		}
	}
	want := []string{
		"delete any pod", "delete any node", "delete any nodeclaim", "kind: Job", "kind: DaemonSet",
		"kind: LimitRange", "kind: PriorityClass",
		"maxUnavailable: 0", "maxUnavailable: 1", "minAvailable: 50%", "priorityClassName", "do-not-disrupt",
		"hostPort", "minDomains", "maxSurge: 0", "type: Recreate",
		"another image", "kind: EC2NodeClass", "other containers", "hard limit 0", "replicas ", "soft limit", "weight",
		"zones [", "generation", "Never", "expireAfter: 20s", "insufficientCapacity", "slowBoot", "throttling",
		"no budget", "with all that is in it",
	}
	for _, c := range (&users{}).constraints() {
		want = append(want, "pods, "+c.name)
	}
	text := all.String()
	if missing := slices.DeleteFunc(want, func(w string) bool { return strings.Contains(text, w) }); len(missing) > 0 {
		t.Errorf("nobody has drawn %q", missing)
	}
}
