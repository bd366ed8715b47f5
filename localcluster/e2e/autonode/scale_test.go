package autonode

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

const (
	// poolsEnv names how many OpenshiftNodePools a change of the policy must reach; `make e2e` sets the number of the
	// specification.
	poolsEnv     = "JOINER_POLICY_POOLS"
	fewPools     = 20
	manyAtOnce   = 8 // concurrent creates
	poolPatience = 5 * time.Minute
)

func poolsFromEnv(t *testing.T) int {
	t.Helper()
	text := os.Getenv(poolsEnv)
	if text == "" {
		return fewPools
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q: want a number from 1", poolsEnv, text)
	}
	return n
}

// B-15: one change of the policy is one write for each NodePool, and nothing is listed again.
func TestB15_AChangeOfThePolicyIsOneWriteForEachPool(t *testing.T) {
	w := begin(t)
	n := poolsFromEnv(t)
	w.policy(restrict(in(instanceType, "a", "b")))
	t.Cleanup(func() { w.removePools() })
	w.createPools(n)
	w.allMerged(n, in(instanceType, "a", "b"))
	w.policySays("True", "")
	w.quiet()

	before := time.Now()
	w.policy(restrict(in(instanceType, "a", "b", "c")))
	w.allMerged(n, in(instanceType, "a", "b", "c"))
	merged := time.Since(before)
	w.policySays("True", "")
	ready := time.Since(before)
	w.quiet()
	guest := w.requests(w.guest, operatorUser, before)
	mgmt := w.requests(w.mgmt, managementUser, before)
	t.Logf("%d pools: merged after %s, Ready after %s; requests in the guest %v, on the management cluster %v",
		n, merged.Round(time.Millisecond), ready.Round(time.Millisecond), guest, mgmt)
	if writes := guest["patch nodepools"] + guest["update nodepools"]; writes != n {
		t.Errorf("%d writes of NodePools for %d pools", writes, n)
	}
	for what, count := range guest {
		if what == "list nodepools" || what == "list openshiftnodepools" || count > n {
			t.Errorf("%d × %s for %d pools", count, what, n)
		}
	}
	if writes := mgmt["patch autonodepolicies/status"] + mgmt["update autonodepolicies/status"]; writes > 20 {
		t.Errorf("%d writes of the policy's status, want a few", writes)
	}
}

func (w *world) createPools(n int) {
	w.t.Helper()
	var wg sync.WaitGroup
	numbers := make(chan int)
	for range manyAtOnce {
		wg.Go(func() {
			for i := range numbers {
				if err := w.cadmin.Create(w.ctx, newObject(poolWrapper, "", fmt.Sprintf("b15-%03d", i),
					wants(in(arch, "amd64")))); err != nil {
					w.t.Error(err)
				}
			}
		})
	}
	for i := range n {
		numbers <- i
	}
	close(numbers)
	wg.Wait()
}

// removePools exists because so many pools take longer to go than begin waits.
func (w *world) removePools() {
	w.t.Helper()
	if err := w.cadmin.DeleteAllOf(w.ctx, newObject(poolWrapper, "", "", nil)); err != nil {
		w.t.Error(err)
	}
	w.eventuallyIn(poolPatience, "the pools to go", func() (bool, string) {
		left := len(w.list(w.guest.Client, nodePoolKind))
		return left == 0, fmt.Sprintf("%d left", left)
	})
}

// allMerged waits until n NodePools begin with an entry.
func (w *world) allMerged(n int, first object) {
	w.t.Helper()
	want := show(first)
	w.eventuallyIn(poolPatience, fmt.Sprintf("%d merged NodePools", n), func() (bool, string) {
		done := 0
		for _, pool := range w.list(w.guest.Client, nodePoolKind) {
			if entries := requirementsOf(&pool); len(entries) == 2 && show(entries[0]) == want {
				done++
			}
		}
		return done == n, fmt.Sprint(done)
	})
}

// quiet waits until the operator has written nothing for a while.
func (w *world) quiet() {
	w.t.Helper()
	w.eventuallyIn(poolPatience, "the operator to be quiet", func() (bool, string) {
		writes := w.events(w.guest, func(e cluster.Event) bool {
			return e.User == operatorUser && e.Verb != "watch" && e.Verb != "get" &&
				e.ReceivedAt.After(time.Now().Add(-unchanged))
		})
		return len(writes) == 0, fmt.Sprintf("%d requests", len(writes))
	})
}

// requests counts a user's requests to a cluster since a time, by verb and resource.
func (w *world) requests(of *rig.Rig, user string, since time.Time) counts {
	w.t.Helper()
	sum := counts{}
	for _, e := range w.events(of, func(e cluster.Event) bool { return e.User == user && e.ReceivedAt.After(since) }) {
		resource := e.Resource
		if e.Sub != "" {
			resource += "/" + e.Sub
		}
		sum[e.Verb+" "+resource]++
	}
	return sum
}

// counts prints the most frequent first.
type counts map[string]int

func (c counts) String() string {
	type count struct {
		what string
		n    int
	}
	var all []count
	for what, n := range c {
		all = append(all, count{what, n})
	}
	slices.SortFunc(all, func(a, b count) int { return cmp.Or(b.n-a.n, cmp.Compare(a.what, b.what)) })
	texts := make([]string, len(all))
	for i, one := range all {
		texts[i] = fmt.Sprintf("%d × %s", one.n, one.what)
	}
	return strings.Join(texts, ", ")
}
