package event_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
)

type tape struct {
	now  time.Time
	said []string
}

func (t *tape) recorder() *event.Deduplicated { return event.NewDeduplicated(t.say, t.time) }

func (t *tape) say(about client.Object, _ event.Kind, reason, message string) {
	t.said = append(t.said, about.GetName()+" "+reason+" "+message)
}

func (t *tape) time() time.Time { return t.now }

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// P-12: a pod that cannot be placed gets one event, not one for each round.
func TestAnEqualEventIsSaidOnceInItsWindow(t *testing.T) {
	t.Parallel()
	tape := &tape{now: time.Unix(0, 0)}
	r := tape.recorder()
	for range 3 {
		r.Event(pod("web"), event.Warning, event.FailedScheduling, "no room")
		tape.now = tape.now.Add(time.Minute)
	}
	r.Event(pod("web"), event.Warning, event.FailedScheduling, "another text")
	r.Event(pod("api"), event.Warning, event.FailedScheduling, "no room")
	if len(tape.said) != 3 {
		t.Fatalf("said %q, want one for each object and text", tape.said)
	}
	tape.now = tape.now.Add(5 * time.Minute)
	r.Event(pod("web"), event.Warning, event.FailedScheduling, "no room")
	if len(tape.said) != 4 {
		t.Fatalf("said %q, want it again after the window", tape.said)
	}
}

func TestNominationsHaveARate(t *testing.T) {
	t.Parallel()
	tape := &tape{now: time.Unix(0, 0)}
	r := tape.recorder()
	for i := range 100 {
		r.Event(pod(fmt.Sprint("web-", i)), event.Normal, event.Nominated, "expected on node a")
	}
	if len(tape.said) != 10 {
		t.Fatalf("%d nominations at once, want the burst of 10", len(tape.said))
	}
	tape.now = tape.now.Add(time.Second)
	for i := range 100 {
		r.Event(pod(fmt.Sprint("api-", i)), event.Normal, event.Nominated, "expected on node a")
	}
	if len(tape.said) != 15 {
		t.Fatalf("%d nominations after a second, want 5 more", len(tape.said))
	}
}

func TestALongMessageIsCutToWhatTheServerTakes(t *testing.T) {
	t.Parallel()
	tape := &tape{}
	tape.recorder().Event(pod("web"), event.Warning, event.FailedScheduling, strings.Repeat("x", 5000))
	if got := len(tape.said[0]) - len("web FailedScheduling "); got != 1024 {
		t.Fatalf("message of %d bytes, want 1024", got)
	}
}

// U-09: how long an equal event is not repeated depends on its reason. It is repeated after the window, and not
// before.
func TestEachReasonHasItsWindow(t *testing.T) {
	t.Parallel()
	for reason, window := range map[string]time.Duration{
		event.FailedScheduling:          5 * time.Minute,
		event.LimitReached:              5 * time.Minute,
		event.DisruptionPaused:          time.Hour,
		event.PoolPaused:                time.Hour,
		event.FeatureGateDisabled:       time.Hour,
		event.Unconsolidatable:          15 * time.Minute,
		event.NoCompatibleInstanceTypes: time.Minute,
		event.NodeRepairBlocked:         15 * time.Minute,
		event.RebootObserved:            30 * time.Minute,
		event.RebootFailed:              30 * time.Minute,
		event.DroppedAnnotation:         24 * time.Hour,
		event.InvalidDoNotDisrupt:       24 * time.Hour,
		event.IgnoredField:              24 * time.Hour,
		event.DisruptionBlocked:         2 * time.Minute,
		event.Nominated:                 2 * time.Minute,
	} {
		tape := &tape{now: time.Unix(0, 0)}
		r := tape.recorder()
		say := func() int {
			r.Event(pod("web"), event.Warning, reason, "text")
			return len(tape.said)
		}
		say()
		tape.now = tape.now.Add(window - time.Nanosecond)
		if n := say(); n != 1 {
			t.Errorf("%s was said %d times in %s, want once", reason, n, window)
		}
		tape.now = tape.now.Add(time.Nanosecond)
		if n := say(); n != 2 {
			t.Errorf("%s was said %d times after %s, want twice", reason, n, window)
		}
	}
}

// Two things about one object are two events, also with the same text.
func TestAnotherReasonIsAnotherEvent(t *testing.T) {
	t.Parallel()
	tape := &tape{now: time.Unix(0, 0)}
	r := tape.recorder()
	r.Event(pod("web"), event.Warning, event.FailedScheduling, "text")
	r.Event(pod("web"), event.Warning, event.LaunchFailed, "text")
	if len(tape.said) != 2 {
		t.Fatalf("said %q, want both", tape.said)
	}
}

// Only nominations have a rate: the reason why a pod waits is said for each of a thousand pods.
func TestReasonsOtherThanNominationsHaveNoRate(t *testing.T) {
	t.Parallel()
	tape := &tape{now: time.Unix(0, 0)}
	r := tape.recorder()
	for i := range 1000 {
		r.Event(pod(fmt.Sprint("web-", i)), event.Warning, event.FailedScheduling, "no room")
	}
	if len(tape.said) != 1000 {
		t.Fatalf("said %d, want all 1000", len(tape.said))
	}
}

// A quiet hour saves up no more than one burst.
func TestTheBurstOfNominationsDoesNotGrow(t *testing.T) {
	t.Parallel()
	tape := &tape{now: time.Unix(0, 0)}
	r := tape.recorder()
	r.Event(pod("first"), event.Normal, event.Nominated, "expected on node a")
	tape.now = tape.now.Add(time.Hour)
	for i := range 100 {
		r.Event(pod(fmt.Sprint("web-", i)), event.Normal, event.Nominated, "expected on node a")
	}
	if len(tape.said) != 1+10 {
		t.Fatalf("said %d after an hour, want a burst of 10", len(tape.said)-1)
	}
}

func TestAMessageThatTheServerTakesIsNotCut(t *testing.T) {
	t.Parallel()
	tape := &tape{}
	text := strings.Repeat("x", 1024)
	tape.recorder().Event(pod("web"), event.Warning, event.FailedScheduling, text)
	if tape.said[0] != "web FailedScheduling "+text {
		t.Fatal("a message of 1024 bytes was changed")
	}
}

// remember says n events about different pods.
func remember(r *event.Deduplicated, n int) {
	for i := range n {
		r.Event(pod(fmt.Sprint("web-", i)), event.Warning, event.DisruptionBlocked, "text")
	}
}

// The memory is bounded. When it is full, entries out of their window go first; the others stay, and are not repeated.
func TestAFullMemoryForgetsWhatIsOld(t *testing.T) {
	t.Parallel()
	tape := &tape{now: time.Unix(0, 0)}
	r := tape.recorder()
	remember(r, 19_999)
	tape.now = tape.now.Add(2 * time.Minute)
	r.Event(pod("fresh"), event.Warning, event.DisruptionBlocked, "text")
	r.Event(pod("one more"), event.Warning, event.DisruptionBlocked, "text")
	before := len(tape.said)
	r.Event(pod("fresh"), event.Warning, event.DisruptionBlocked, "text")
	if len(tape.said) != before {
		t.Error("what is in its window was forgotten")
	}
}

// If a full memory has only entries in their window, all of them go: a repeated event is better than a growing
// process.
func TestAFullMemoryOfFreshEventsIsCleared(t *testing.T) {
	t.Parallel()
	tape := &tape{now: time.Unix(0, 0)}
	r := tape.recorder()
	remember(r, 20_000)
	r.Event(pod("web-0"), event.Warning, event.DisruptionBlocked, "text")
	if len(tape.said) != 20_000 {
		t.Fatalf("said %d, want 20000: the memory is full and nothing had to go", len(tape.said))
	}
	r.Event(pod("one more"), event.Warning, event.DisruptionBlocked, "text")
	r.Event(pod("web-0"), event.Warning, event.DisruptionBlocked, "text")
	if len(tape.said) != 20_002 {
		t.Fatalf("said %d, want 20002: the memory was cleared", len(tape.said))
	}
}

// U-09: a text that is too long is cut between characters, never within one.
func TestALongTextIsCutBetweenCharacters(t *testing.T) {
	t.Parallel()
	for _, character := range []string{"x", "é", "€", "𝄞"} {
		for lead := range 5 {
			tape := &tape{now: time.Unix(0, 0)}
			tape.recorder().Event(pod("web"), event.Warning, event.FailedScheduling, strings.Repeat("x",
				lead)+strings.Repeat(character, 2000))
			text := strings.TrimPrefix(tape.said[0], "web FailedScheduling ")
			if len(text) > 1024 || len(text) < 1024-len(character) || !utf8.ValidString(text) ||
				!strings.HasSuffix(text,
					"...") {
				t.Errorf("%d and many %s: %d bytes, valid %t, ends in %q", lead, character, len(text),
					utf8.ValidString(text), text[len(text)-8:])
			}
		}
	}
}

// K-15: an event about a state is sent once in its window, whatever the amounts; a new cause is news, once a minute.
func TestAmountsAreNoNewsOfANodeThatStays(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{event.FailedScheduling, event.Unconsolidatable, event.DisruptionBlocked,
		event.NodeRepairBlocked} {
		tape := &tape{now: time.Unix(0, 0)}
		r := tape.recorder()
		for _, text := range []string{"NothingCheaper: $1", "NothingCheaper: $2", "PodFitsNowhereElse: $1", "later",
			"PodFitsNowhereElse: $2", "NothingCheaper: $3"} {
			if text == "later" {
				tape.now = tape.now.Add(time.Minute)
				continue
			}
			r.Event(pod("a"), event.Normal, reason, text)
		}
		if len(tape.said) != 2 || tape.said[1] != "a "+reason+" PodFitsNowhereElse: $2" {
			t.Errorf("said %q", tape.said)
		}
	}
}

// K-15, B-22: that a node is kept is said again after half an hour, on the node and on its claim. Another cause passes
// after a minute, and other words of a cause, such as another pod, after two. Other amounts and times are no other
// words. On NodePools, which are few, it is said every two minutes.
func TestK15_WhatKeepsANodeIsRarelyRepeated(t *testing.T) {
	t.Parallel()
	meta := metav1.ObjectMeta{Name: "a", UID: "a"}
	const kept, other = "DoNotDisruptPod: it is set on pod web", "DoNotDisruptPod: it is set on pod api"
	for _, row := range []struct {
		about         client.Object
		first, second string
		again         time.Duration
	}{
		{&corev1.Node{ObjectMeta: meta}, kept, kept, 30 * time.Minute},
		{&karpenterv1.NodeClaim{ObjectMeta: meta}, kept, kept, 30 * time.Minute},
		{event.NodeRef("a"), kept, other, 2 * time.Minute},
		{event.NodeRef("a"), kept, "PodDisruptionBudget: pod web is under it", time.Minute},
		{event.NodeRef("a"), "PodFitsNowhereElse: nodes 3 of 3", "PodFitsNowhereElse: nodes 12 of 12",
			30 * time.Minute},
		{event.NodeRef("a"), "QuietTime: at 2026-01-02T03:04:05Z", "QuietTime: at 2026-01-02T03:04:55Z",
			30 * time.Minute},
		{&karpenterv1.NodePool{ObjectMeta: meta}, "BudgetClosed: 1", "BudgetClosed: 2", 2 * time.Minute},
	} {
		tape := &tape{now: time.Unix(0, 0)}
		r := tape.recorder()
		r.Event(row.about, event.Normal, event.DisruptionBlocked, row.first)
		said := func(after time.Duration) int {
			tape.now = tape.now.Add(after)
			r.Event(row.about, event.Normal, event.DisruptionBlocked, row.second)
			return len(tape.said)
		}
		got := []int{said(0), said(row.again - 1), said(1)}
		if want := []int{1, 1, 2}; !slices.Equal(got, want) {
			t.Errorf("%T: %q and then %q: said at once, just before %s and then %v times, want %v", row.about,
				row.first, row.second, row.again, got, want)
		}
	}
}

// K-15: events that each pod of a round gets have a rate limit; those of a NodeClaim have none.
func TestK15_WhatIsSaidOfEachPodHasARate(t *testing.T) {
	t.Parallel()
	tape := &tape{now: time.Unix(0, 0)}
	r := tape.recorder()
	for i := range 30 {
		r.Event(pod(fmt.Sprint("web-", i)), event.Warning, event.InsufficientCapacity, "sold out")
		r.Event(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("claim-", i)}}, event.Warning,
			event.InsufficientCapacity, "sold out")
	}
	if len(tape.said) != 40 {
		t.Errorf("%d events, want 10 of pods and 30 of others", len(tape.said))
	}
}

// K-15: a process sends so many events a second and ten times as many at once, and counts the dropped ones. Routine
// events leave a quarter of these to warnings.
func TestK15_AProcessHasACeiling(t *testing.T) {
	t.Parallel()
	tape, dropped := &tape{now: time.Unix(0, 0)}, map[string]int{}
	limit := event.NewLimit(2)
	limit.Dropped(func(reason string) { dropped[reason]++ })
	sent := 0
	sink := limit.Before(func(client.Object, event.Kind, string, string) { sent++ },
		func() time.Time { return tape.now })
	many := func(n int, kind event.Kind, reason string) int {
		sent = 0
		for range n {
			sink(pod("web"), kind, reason, "text")
		}
		return sent
	}
	if n := many(25, event.Normal, event.Evicted); n != 15 || dropped[event.Evicted] != 10 {
		t.Errorf("%d of 25 are sent and %v dropped, want 15 and 10", n, dropped)
	}
	if n := many(6, event.Warning, event.LaunchFailed); n != 5 || dropped[event.LaunchFailed] != 1 {
		t.Errorf("%d of 6 warnings are sent and %v dropped, want 5 and 1", n, dropped)
	}
	tape.now = tape.now.Add(3 * time.Second)
	if n := many(10, event.Normal, event.Evicted); n != 1 {
		t.Errorf("%d are sent after three seconds, want 1: six came, and five of them are for warnings again", n)
	}
	tape.now = tape.now.Add(time.Hour)
	if n := many(25, event.Warning, event.LaunchFailed); n != 20 {
		t.Errorf("%d warnings are sent after an hour, want 20", n)
	}
	none := event.NewLimit(0).Before(func(client.Object, event.Kind, string, string) { sent++ }, time.Now)
	sent = 0
	for range 1000 {
		none(pod("web"), event.Normal, event.Evicted, "text")
	}
	if sent != 1000 {
		t.Errorf("%d of 1000 are sent without a ceiling", sent)
	}
}

// K-15: an event that the ceiling drops has not been said. It passes again after two minutes, or after its window if
// that is shorter, and then counts for its whole window.
func TestK15_ADroppedEventPassesAgain(t *testing.T) {
	t.Parallel()
	for reason, row := range map[string]struct{ again, window time.Duration }{
		event.IgnoredField:              {2 * time.Minute, 24 * time.Hour},
		event.FailedScheduling:          {2 * time.Minute, 5 * time.Minute},
		event.DisruptionBlocked:         {2 * time.Minute, 2 * time.Minute},
		event.NoCompatibleInstanceTypes: {time.Minute, time.Minute},
	} {
		tape := &tape{now: time.Unix(0, 0)}
		r := event.NewBounded(event.NewLimit(1).Before(tape.say, tape.time), tape.time)
		for i := range 10 {
			r.Event(pod(fmt.Sprint("web-", i)), event.Warning, event.LaunchFailed, "no")
		}
		said := func(after time.Duration) int {
			tape.now = tape.now.Add(after)
			r.Event(pod("batch"), event.Warning, reason, "text")
			return len(tape.said) - 10
		}
		got := []int{said(0), said(row.again - 1), said(1), said(row.window - 1), said(1)}
		if want := []int{0, 0, 1, 1, 2}; !slices.Equal(got, want) {
			t.Errorf("%s: at the ceiling, just before %s, then, just before %s more and then %v are sent, want %v",
				reason, row.again, row.window, got, want)
		}
	}
}
