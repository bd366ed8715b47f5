package world

import (
	"fmt"
	"testing"
	"time"
)

// expect nominates web to n1 again, some time later, and returns where it was passed over.
func (c *clock) expect(s *Store, later time.Duration) string {
	c.now = c.now.Add(later)
	s.Snapshot()
	s.Nominate(ref("web", "u1"), "n1")
	for _, pod := range s.Snapshot().Pending {
		if pod.Name == "web" {
			return pod.PassedOver
		}
	}
	return "not pending"
}

// P-23: a pod that is not bound for a minute to the ready node where it is expected, while others are bound, is not
// expected there for a while, and then longer.
func TestAPodThatIsPassedOverIsExpectedElsewhere(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := c.store()
	_ = s.Apply(testNode("n1", "n1", 1, ""))
	_ = s.Apply(testPod("web", "u1", 1, ""))
	_ = s.Apply(testPod("other", "u2", 1, ""))
	for range 12 { // kube-scheduler may stand still: nobody is bound
		if got := c.expect(s, 10*time.Second); got != "" {
			t.Fatalf("passed over on %s although no pod was bound", got)
		}
	}
	_ = s.Apply(testPod("other", "u2", 2, "n1"))
	if got := c.expect(s, 10*time.Second); got != "n1" {
		t.Fatalf("passed over on %q, want n1", got)
	}
	if got := promisedOf(t, s); got != "" {
		t.Errorf("still promised %s", got)
	}
	c.now = c.now.Add(5 * time.Minute)
	if pod := s.Snapshot().Pending[0]; pod.PassedOver != "" {
		t.Errorf("passed over on %s for ever", pod.PassedOver)
	}
	c.expect(s, 0)
	_ = s.Apply(testPod("third", "u3", 1, ""))
	c.now = c.now.Add(time.Second)
	_ = s.Apply(testPod("third", "u3", 2, "n1"))
	if got := c.expect(s, time.Minute); got != "n1" {
		t.Fatalf("passed over on %q the second time, want n1", got)
	}
	c.now = c.now.Add(6 * time.Minute)
	if pod := s.Snapshot().Pending[0]; pod.PassedOver != "n1" {
		t.Error("the second time is no longer than the first")
	}
	_ = s.Apply(testPod("web", "u1", 2, "n1"))
	c.now = c.now.Add(6 * time.Hour)
	if len(s.Snapshot().Pending) != 0 || len(s.passing) != 0 {
		t.Error("something is left of a pod that was bound")
	}
}

// P-23, P-01: a pod that kube-scheduler has not come to yet is not passed over, however long that takes: the minute
// begins with the first try.
func TestAPodThatWasNotTriedIsNotPassedOver(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := c.store()
	_ = s.Apply(testNode("n1", "n1", 1, ""))
	_ = s.Apply(untriedPod("web", "u1", 1))
	_ = s.Apply(testPod("first", "u2", 1, "")) // so that web is planned for
	for minute := range 5 {
		if got := c.expect(s, time.Minute); got != "" {
			t.Fatalf("passed over on %q after %d minutes in which it was not tried", got, minute+1)
		}
		c.now = c.now.Add(time.Second)
		other := fmt.Sprint("other", minute)
		_ = s.Apply(testPod(other, other, 1, ""))
		_ = s.Apply(testPod(other, other, 2, "n1"))
	}
	_ = s.Apply(testPod("web", "u1", 2, ""))
	if got := c.expect(s, time.Minute); got != "" {
		t.Fatalf("passed over on %q at once", got)
	}
	c.now = c.now.Add(time.Second)
	_ = s.Apply(testPod("first", "u2", 2, "n1"))
	if got := c.expect(s, time.Minute); got != "n1" {
		t.Fatalf("passed over on %q a minute after it was tried, want n1", got)
	}
}
