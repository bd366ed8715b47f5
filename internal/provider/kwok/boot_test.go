package kwok_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/kwok"
)

// TestMachinesJoinWhenTheirTimeHasCome is P-51, slow boot.
func TestMachinesJoinWhenTheirTimeHasCome(t *testing.T) {
	t.Parallel()
	w := newWorld(t, mustGeneric(t), 30*time.Second)
	start := w.clock
	mustLaunch(t, w, newClaim("one", nil))
	w.clock = start.Add(10 * time.Second)
	mustLaunch(t, w, newClaim("two", nil))
	for _, step := range []struct {
		at     time.Duration
		joined string
		next   time.Duration // after start; 0 for none
	}{
		{0, "", 30 * time.Second},
		{30*time.Second - 1, "", 30 * time.Second},
		{30 * time.Second, "one", 40 * time.Second},
		{40 * time.Second, "one two", 0},
		{41 * time.Second, "one two", 0},
	} {
		next, err := w.Boot(t.Context(), start.Add(step.at))
		if err != nil {
			t.Fatal(err)
		}
		want := time.Time{}
		if step.next > 0 {
			want = start.Add(step.next)
		}
		if !next.Equal(want) {
			t.Errorf("after %s: the next is due at %v, want %v", step.at, next, want)
		}
		nodes, err := w.cluster.Nodes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, node := range nodes {
			names = append(names, node.Name)
		}
		if got := strings.Join(names, " "); got != step.joined {
			t.Errorf("after %s: nodes %q, want %q", step.at, got, step.joined)
		}
		if w.Machines() != 2 {
			t.Errorf("after %s: %d machines, want 2", step.at, w.Machines())
		}
	}
}

func TestOneFailureDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, mustGeneric(t), time.Second)
	for i := range 3 {
		mustLaunch(t, w, newClaim(fmt.Sprintf("web-%d", i), nil))
	}
	failed := false
	w.cluster.Disturb(func(_ int, call string) (before, after error) {
		if call == "create node" && !failed {
			failed = true
			return errors.New("no more etcd space"), nil
		}
		return nil, nil
	})
	if _, err := w.Boot(t.Context(), w.clock.Add(time.Minute)); err == nil ||
		!strings.Contains(err.Error(), "booting web-0: creating node: no more etcd space") {
		t.Errorf("error %v, want one that names the machine", err)
	}
	if nodes, err := w.cluster.Nodes(t.Context()); err != nil || len(nodes) != 2 {
		t.Errorf("%d nodes, error %v; want the other two", len(nodes), err)
	}
	w.Settle(t)
	if nodes, err := w.cluster.Nodes(t.Context()); err != nil || len(nodes) != 3 {
		t.Errorf("%d nodes, error %v; want all three after another call", len(nodes), err)
	}
}

// TestABootingMachineWaitsForItsName: a Node of that name that is not its own is in the way.
func TestABootingMachineWaitsForItsName(t *testing.T) {
	t.Parallel()
	w := newWorld(t, mustGeneric(t), time.Second)
	mustLaunch(t, w, newClaim("web", nil))
	record, err := w.cluster.BootRecord(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	intruder := record.Node.DeepCopy()
	intruder.Annotations[kwok.ClaimUIDAnnotationKey] = "someone else"
	if err := w.cluster.CreateNode(t.Context(), intruder); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Boot(t.Context(), w.clock.Add(time.Minute)); err == nil ||
		!strings.Contains(err.Error(), "belongs to another claim") {
		t.Errorf("error %v, want one that says whose node is in the way", err)
	}
	if _, err := w.cluster.BootRecord(t.Context(), "web"); err != nil {
		t.Errorf("the record must stay: %v", err)
	}
}

func TestBootRecordsAreReadStrictly(t *testing.T) {
	t.Parallel()
	for _, data := range []string{"", "null", "{}", `{"node": {}}`,
		`{"node": {"metadata": {"name": "a"}, "spec": {"providerID": "kwok://b"}}}`, `{"due": "soon"}`} {
		if _, err := kwok.ReadBootRecord([]byte(data)); err == nil {
			t.Errorf("%q is accepted", data)
		}
	}
}

// TestACrashAtAnyCallLosesNothingAndDoublesNothing is P-32. The life of a machine is run once for each of its calls,
// with a crash there, before or after the call takes effect; then a new process repeats what its controllers would do.
func TestACrashAtAnyCallLosesNothingAndDoublesNothing(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{0, time.Minute} {
		for _, lands := range []bool{false, true} {
			for crash := 1; ; crash++ {
				w := newWorld(t, mustGeneric(t), delay)
				name := fmt.Sprintf("delay %s, crash at call %d, landing %t", delay, crash, lands)
				w.cluster.Disturb(func(number int, _ string) (before, after error) {
					died := errors.New("the process died")
					switch {
					case number > crash, number == crash && !lands:
						return died, nil
					case number == crash:
						return nil, died
					}
					return nil, nil
				})
				crashed := live(t, w, name)
				if !crashed {
					break
				}
			}
		}
	}
}

// live launches a machine, boots it, launches it again and ends it. It returns whether the crash came before the end.
func live(t *testing.T, w *world, name string) (crashed bool) {
	t.Helper()
	claim := newClaim("web", nil)
	survive := func(step func() error, done func(error) bool) {
		if err := step(); done(err) {
			return
		}
		crashed = true
		w.cluster.Disturb(nil) // a new process
		if w.Machines() > 1 {
			t.Fatalf("%s: %d machines after the crash", name, w.Machines())
		}
		if err := step(); !done(err) {
			t.Fatalf("%s: again after the crash: %v", name, err)
		}
	}
	fine := func(err error) bool { return err == nil }
	var instance provider.Instance
	launch := func() (err error) {
		instance, err = w.Launch(t.Context(), claim, time.Time{})
		return err
	}
	survive(launch, fine)
	w.clock = w.clock.Add(time.Hour)
	survive(func() error {
		_, err := w.Boot(t.Context(), w.clock)
		return err
	}, fine)
	survive(launch, fine)
	if w.Machines() != 1 {
		t.Fatalf("%s: %d machines, want 1", name, w.Machines())
	}
	w.cluster.SetFinalizers("web", "karpenter.sh/termination")
	survive(func() error { return w.Terminate(t.Context(), instance.ProviderID, nil) },
		func(err error) bool { return errors.Is(err, provider.ErrNotFound) })
	survive(func() error {
		_, err := w.Boot(t.Context(), w.clock)
		return err
	}, fine)
	w.cluster.Disturb(nil)
	w.cluster.SetFinalizers("web")
	if _, err := w.cluster.Node(t.Context(), "web"); !apierrors.IsNotFound(err) || w.Machines() != 0 {
		t.Fatalf("%s: node %v, %d machines; want nothing left", name, err, w.Machines())
	}
	return crashed
}
