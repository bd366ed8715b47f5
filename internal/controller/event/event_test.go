package event_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/controller/event"
)

type tape struct {
	now  time.Time
	said []string
}

func (t *tape) recorder() *event.Deduplicated {
	return event.NewDeduplicated(func(about client.Object, _ event.Kind, reason, message string) {
		t.said = append(t.said, about.GetName()+" "+reason+" "+message)
	}, func() time.Time { return t.now })
}

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
