package autonode

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
)

// sizesEnv asks for the hosted cluster of A-47, and for its window of measurement. Without it the cluster is small,
// and the window short.
const sizesEnv = "JOINER_OPERATOR_SIZES"

// hostedSize is the size of a hosted cluster at rest, and how long it is measured.
type hostedSize struct {
	pools, classes, claims int
	window                 time.Duration
}

func sizeFromEnv(t *testing.T) hostedSize {
	t.Helper()
	switch text := os.Getenv(sizesEnv); text {
	case "":
		return hostedSize{pools: 10, classes: 2, claims: 50, window: 20 * time.Second}
	case "full":
		return hostedSize{pools: 100, classes: 10, claims: 1000, window: 5 * time.Minute}
	default:
		t.Fatalf("%s is %q: want full, or nothing", sizesEnv, text)
		return hostedSize{}
	}
}

// what one operator costs beside a hosted cluster at rest: memory, processor time, and requests to the
// management cluster. Requests can be counted exactly, so the test bounds them. The figures of the machine are only
// logged.
func TestA47_OneOperatorIsSmall(t *testing.T) {
	w := begin(t)
	size := sizeFromEnv(t)
	w.policy(restrict(in(instanceType, "a", "b")))
	t.Cleanup(func() {
		if err := w.cadmin.DeleteAllOf(w.ctx, newObject(nodeClaimKind, "", "", nil)); err != nil {
			t.Error(err)
		}
		w.removePools()
	})
	for i := range size.classes {
		w.class(fmt.Sprintf("a47-%d", i), object{"monitoring": "Basic"})
	}
	w.createPools(size.pools)
	w.allMerged(size.pools, in(instanceType, "a", "b"))
	w.quiet() // then the API server has the rule for claims
	w.createClaims(size.claims)
	w.conforming("True", "Conforms")
	w.quiet()

	began, spent := time.Now(), processorTime(t, w.operator.PID())
	most := int64(0)
	for ticks := time.Tick(poll); time.Since(began) < size.window; <-ticks {
		most = max(most, residentMemory(t, w.operator.PID()))
	}
	took := time.Since(began)
	spent = processorTime(t, w.operator.PID()) - spent
	asked := w.requests(w.mgmt, managementUser, began)
	total := 0
	for _, count := range asked {
		total += count
	}
	t.Logf(
		"%d pools, %d node classes, %d claims, at rest for %s: %d MiB of memory at most, %.1f mCPU, "+
			"%.3f requests/s to the management cluster (%v), in the guest %v",
		size.pools, size.classes, size.claims, took.Round(time.Second), most>>20, 1000*spent.Seconds()/took.Seconds(),
		float64(total)/took.Seconds(), asked, w.requests(w.guest, operatorUser, began))
	const perSecond, slack = 0.03, 2 // a list and a watch that ends may fall into a short window
	if allowed := perSecond*took.Seconds() + slack; float64(total) > allowed {
		t.Errorf("%d requests to the management cluster within %s, want at most %.0f: %v", total,
			took.Round(time.Second), allowed, asked)
	}
	writes := w.events(w.guest, func(e cluster.Event) bool {
		return e.User == operatorUser && e.ReceivedAt.After(began) && e.Verb != "get" && e.Verb != "list" &&
			e.Verb != "watch"
	})
	if len(writes) > 0 {
		t.Errorf("at rest it wrote %d times in the guest, the first time %s %s", len(writes), writes[0].Verb,
			writes[0].Resource)
	}
	w.inside(size.pools)
}

// createClaims makes claims of the pools, as Karpenter would.
func (w *world) createClaims(n int) {
	w.t.Helper()
	pools := w.list(w.guest.Client, nodePoolKind)
	var wg sync.WaitGroup
	numbers := make(chan int)
	for range manyAtOnce {
		wg.Go(func() {
			for i := range numbers {
				pool := pools[i%len(pools)]
				claim := claimOf(fmt.Sprintf("a47-%04d", i), pool.GetName(), string(pool.GetUID()))
				entry := in(arch, "amd64")
				claim.Object["spec"].(object)["requirements"] = list(in(instanceType, "a"), entry)
				if err := w.cadmin.Create(w.ctx, claim); err != nil {
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

// processorTime returns a process's time in user mode and in the kernel (proc(5): fields 14 and 15 of stat, in
// hundredths of a second on every Linux that Go runs on).
func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, behind, _ := strings.Cut(string(stat), ") ") // the name may have spaces
	fields := strings.Fields(behind)
	const user, system = 14 - 3, 15 - 3
	sum := int64(0)
	for _, at := range []int{user, system} {
		ticks, err := strconv.ParseInt(fields[at], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += ticks
	}
	return time.Duration(sum) * 10 * time.Millisecond
}

// residentMemory returns how many bytes of a process are in memory.
func residentMemory(t *testing.T, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if text, found := strings.CutPrefix(line, "VmRSS:"); found {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(text), " kB"), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatalf("process %d has no VmRSS", pid)
	return 0
}
