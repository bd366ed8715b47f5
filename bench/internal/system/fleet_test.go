package system

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

func empty() *fleet {
	return &fleet{pods: map[types.UID]bool{}, claims: map[types.UID]bool{}, nodes: map[types.UID]float64{}}
}

// B-10, B-11, B-16: from what the times and counts are made.
func TestAFleetIsWhatTheWatchesTell(t *testing.T) {
	t.Parallel()
	f, start := empty(), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	meta := func(uid types.UID) metav1.ObjectMeta { return metav1.ObjectMeta{UID: uid, Namespace: "default"} }
	pending, bound := &corev1.Pod{ObjectMeta: meta("p")},
		&corev1.Pod{ObjectMeta: meta("p"), Spec: corev1.PodSpec{NodeName: "n"}}
	claim := &karpenterv1.NodeClaim{ObjectMeta: meta("c")}
	ready := claim.DeepCopy()
	ready.Status.Conditions = []karpenterv1.Condition{
		{Type: karpenterv1.ConditionTypeInitialized, Status: metav1.ConditionTrue},
	}
	leaving := ready.DeepCopy()
	leaving.DeletionTimestamp = &metav1.Time{Time: start}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{UID: "n", Labels: map[string]string{priceLabel: "0.25"}}}
	for i, row := range []struct {
		event   watch.Event
		changes bool
		want    sight
	}{
		{event: watch.Event{Type: watch.Added, Object: pending}, changes: true, want: sight{unbound: 1}},
		{event: watch.Event{Type: watch.Added, Object: claim}, changes: true,
			want: sight{planned: 1, unbound: 1, claims: 1}},
		{event: watch.Event{Type: watch.Added, Object: node}, changes: true,
			want: sight{planned: 1, unbound: 1, claims: 1, nodes: 1, launched: 1, price: 0.25}},
		{event: watch.Event{Type: watch.Modified, Object: node},
			want: sight{planned: 1, unbound: 1, claims: 1, nodes: 1, launched: 1, price: 0.25}},
		{event: watch.Event{Type: watch.Modified, Object: ready}, changes: true,
			want: sight{planned: 1, unbound: 1, claims: 1, ready: 1, nodes: 1, launched: 1, price: 0.25}},
		{event: watch.Event{Type: watch.Modified, Object: bound}, changes: true,
			want: sight{planned: 1, bound: 1, claims: 1, ready: 1, nodes: 1, launched: 1, price: 0.25}},
		{event: watch.Event{Type: watch.Modified, Object: leaving}, changes: true,
			want: sight{planned: 1, bound: 1, claims: 1, nodes: 1, launched: 1, price: 0.25}},
		{event: watch.Event{Type: watch.Deleted, Object: bound}, changes: true,
			want: sight{planned: 1, claims: 1, nodes: 1, launched: 1, price: 0.25}},
		{event: watch.Event{Type: watch.Deleted, Object: node}, changes: true,
			want: sight{planned: 1, claims: 1, launched: 1, removed: 1}},
		{event: watch.Event{Type: watch.Deleted, Object: leaving}, changes: true,
			want: sight{planned: 1, launched: 1, removed: 1}},
	} {
		now := start.Add(time.Duration(i) * time.Second)
		f.take(row.event, now)
		got, err := f.look()
		if err != nil {
			t.Fatal(err)
		}
		if got.changed.Equal(now) != row.changes {
			t.Errorf("event %d: changed at %s, now is %s; want a change: %t", i, got.changed, now, row.changes)
		}
		if i >= 5 && !got.lastBound.Equal(start.Add(5*time.Second)) {
			t.Errorf("event %d: the last pod was bound at %s, want 5 s after the start", i, got.lastBound)
		}
		got.changed, got.lastBound = time.Time{}, time.Time{}
		if got != row.want {
			t.Errorf("event %d: %+v, want %+v", i, got, row.want)
		}
	}
	if f.take(watch.Event{Type: watch.Error, Object: &metav1.Status{}}, start); f.broken == nil {
		t.Error("a watch that answers an error is not one that tells the truth")
	}
}

// B-16: claims of the first plan may still come while pods are bound already. A claim more than a second after the
// last of them does not belong to it.
func TestWhatIsOfTheFirstPlan(t *testing.T) {
	t.Parallel()
	f, start := empty(), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, at := range []int{0, 3000, 3900, 4900, 5901, 6000} { // milliseconds
		if i == 2 {
			f.take(watch.Event{Type: watch.Modified,
				Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "p", Namespace: "default"},
					Spec: corev1.PodSpec{NodeName: "n"}}}, start.Add(3500*time.Millisecond))
		}
		claim := &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{UID: types.UID(rune('a' + i))}}
		f.take(watch.Event{Type: watch.Added, Object: claim}, start.Add(time.Duration(at)*time.Millisecond))
	}
	if got, err := f.look(); err != nil || got.planned != 4 || got.claims != 6 {
		t.Errorf("%d planned of %d, error %v; want 4 of 6", got.planned, got.claims, err)
	}
	// B-11: in the next phase the first claims belong to its first plan, although pods are bound.
	f.begin()
	for i, at := range []int{20_000, 20_900, 22_000} {
		claim := &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{UID: types.UID(rune('k' + i))}}
		f.take(watch.Event{Type: watch.Added, Object: claim}, start.Add(time.Duration(at)*time.Millisecond))
	}
	if got, err := f.look(); err != nil || got.planned != 2 || got.claims != 9 {
		t.Errorf("%d planned in the next phase, %d in all, error %v; want 2 of 9", got.planned, got.claims, err)
	}
}

// B-12: requests count for the phase in which they came, by user, without watches.
func TestRequestsAreCountedByPhase(t *testing.T) {
	t.Parallel()
	line := func(user, verb, resource, at string) string {
		return `{"stage":"ResponseComplete","verb":"` + verb + `","user":{"username":"` + user +
			`"},"objectRef":{"resource":"` + resource +
			`","apiGroup":"karpenter.sh","subresource":"status"},"requestReceivedTimestamp":"2026-01-02T03:04:` + at +
			`Z"}` + "\n"
	}
	log := filepath.Join(t.TempDir(), "audit.log")
	text := line("joiner", "patch", "nodeclaims", "04") + line("joiner", "patch", "nodeclaims", "05") +
		line("joiner", "watch", "nodeclaims", "06") +
		line("admin", "patch", "nodeclaims", "07") + line("joiner", "patch", "nodeclaims", "08") +
		line("joiner", "get", "nodeclaims", "10")
	if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	at := func(second int) time.Time { return time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC) }
	phases := []Phase{{from: at(5), to: at(10)}, {from: at(10), to: at(20)}}
	if err := countRequests(log, "joiner", phases); err != nil {
		t.Fatal(err)
	}
	const patches, gets = "patch nodeclaims.karpenter.sh/status", "get nodeclaims.karpenter.sh/status"
	if phases[0].Requests[patches] != 2 || phases[0].Requests.Total() != 2 || phases[1].Requests[gets] != 1 ||
		phases[1].Requests.Total() != 1 {
		t.Errorf("counted %v and %v, want two patches and one get", phases[0].Requests, phases[1].Requests)
	}
}

// B-22: a new process's writes count from its start; reads, leases and others' writes do not.
func TestB22_WritesAfterARestart(t *testing.T) {
	t.Parallel()
	line := func(user, verb, resource, at string) string {
		return `{"stage":"ResponseComplete","verb":"` + verb + `","user":{"username":"` + user +
			`"},"objectRef":{"resource":"` + resource +
			`"},"requestReceivedTimestamp":"2026-01-02T03:04:` + at + `Z"}` + "\n"
	}
	log := filepath.Join(t.TempDir(), "audit.log")
	text := line("joiner", "patch", "nodes", "04") + line("joiner", "patch", "nodes", "05") +
		line("joiner", "list", "nodes", "06") +
		line("joiner", "update", "leases", "06") + line("admin", "patch", "nodes", "07")
	if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := writes(log, "joiner", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	if err != nil || got.String() != "patch nodes 1" {
		t.Errorf("%s, %v; want one patch of nodes", got, err)
	}
}
