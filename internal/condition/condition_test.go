package condition_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
)

// V-11: the transition time belongs to the status, not to the reason or the message.
func TestTransitionTimeChangesOnlyWithTheStatus(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	var list []karpenterv1.Condition
	if !condition.Set(&list, 1, condition.False("Launched", "Waiting", "a"), start) {
		t.Fatal("a new condition is a change")
	}
	if !condition.Set(&list, 1, condition.False("Launched", "Waiting", "b"), start.Add(time.Minute)) {
		t.Fatal("a new message is a change")
	}
	if since, _ := condition.Since(list, "Launched"); !since.Equal(start) {
		t.Fatalf("transition at %v after a new message, want %v", since, start)
	}
	condition.Set(&list, 1, condition.True("Launched", "Launched", ""), start.Add(time.Hour))
	if since, _ := condition.Since(list, "Launched"); !since.Equal(start.Add(time.Hour)) {
		t.Fatalf("transition at %v after a new status, want %v", since, start.Add(time.Hour))
	}
}

func TestSettingTheSameValueIsNoChange(t *testing.T) {
	t.Parallel()
	var list []karpenterv1.Condition
	value := condition.True("Ready", "", "all is well")
	condition.Set(&list, 3, value, time.Unix(1, 0))
	if condition.Set(&list, 3, value, time.Unix(99, 0)) {
		t.Fatal("setting an equal value reported a change")
	}
	if got, _ := condition.Get(list, "Ready"); got.Reason != "Ready" {
		t.Fatalf("reason %q, want the type where none is given", got.Reason)
	}
	if !condition.Set(&list, 4, value, time.Unix(99, 0)) {
		t.Fatal("a new generation must be recorded")
	}
}

func TestClearAndRead(t *testing.T) {
	t.Parallel()
	list := []karpenterv1.Condition{{Type: "A", Status: metav1.ConditionTrue},
		{Type: "B", Status: metav1.ConditionFalse}}
	own := list
	if !condition.IsTrue(own, "A") || condition.IsTrue(own, "B") || condition.IsTrue(own, "C") {
		t.Fatal("IsTrue must be true for A only")
	}
	if !condition.Clear(&own, "A") || condition.Clear(&own, "A") {
		t.Fatal("Clear must report the first removal only")
	}
	if len(own) != 1 || own[0].Type != "B" || list[0].Type != "A" {
		t.Fatalf("got %v, and the caller's list %v", own, list)
	}
}
