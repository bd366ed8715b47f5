package ec2_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/refusal"
)

// warnings puts messages about an instance into the queue, each with an id of its own.
func (a *account) warnings(t *testing.T, count int, instance string) {
	t.Helper()
	for i := range count {
		text, err := json.Marshal(map[string]any{
			"id": fmt.Sprint("warning-", i), "detail-type": "EC2 Spot Instance Interruption Warning",
			"source": "aws.ec2", "time": a.server.Now().UTC().Format(time.RFC3339),
			"detail": map[string]string{"instance-id": instance, "instance-action": "terminate"},
		})
		if err != nil {
			t.Fatal(err)
		}
		a.server.Send(clusterName, string(text))
	}
}

// emptied waits until the queue has no messages, and returns how many calls it took to delete them.
func (a *account) emptied(t *testing.T) int {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); a.server.Messages(clusterName) > 0; <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d messages are left", a.server.Messages(clusterName))
		}
	}
	counts := a.server.Counts()
	return counts["sqs:DeleteMessage"] + counts["sqs:DeleteMessageBatch"]
}

// E-51, E-52: finished messages are deleted ten at a time: those about other instances and those that were handled.
// Handling a message does not wait for the deletion.
func TestMessagesAreDeletedTogether(t *testing.T) {
	t.Parallel()
	const messages, most = 60, 15 // a busy machine may be late for some company
	a := newAccount(t, whatIsSold(t), ec2test.Faults{})
	if _, err := a.List(t.Context()); err != nil { // before that it would not be known whose they are
		t.Fatal(err)
	}
	a.warnings(t, messages, "i-0123456789abcdef0") // nobody's
	if list, err := a.Notices(t.Context()); err != nil || len(list.List) > 0 {
		t.Fatalf("notices %v, error %v of somebody else's machine", list, err)
	}
	if calls := a.emptied(t); calls > most {
		t.Errorf("%d calls delete %d messages about others: want %d at most", calls, messages, most)
	}
	instance, err := a.Launch(t.Context(), claim("taken"), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	a.Settle(t)
	a.server.Forget()
	a.warnings(t, messages, instance.ProviderID[len("aws:///us-east-1a/"):])
	list, err := a.Notices(t.Context())
	if err != nil || len(list.List) == 0 {
		t.Fatalf("notices %v, error %v", list, err)
	}
	for _, notice := range list.List {
		if err := a.Acknowledge(t.Context(), notice); err != nil {
			t.Fatal(err)
		}
	}
	if again, err := a.Notices(t.Context()); err != nil || len(again.List) > 0 {
		t.Errorf("notices %v, error %v after all were acted on", again, err)
	}
	if calls := a.emptied(t); calls > most {
		t.Errorf("%d calls delete %d messages that were acted on: want %d at most", calls, messages, most)
	}
}

// E-51, E-52: a new process loses no warning that comes before it has listed its machines. Those of machines that
// claims name are notices at once, others stay in the queue until the listing.
func TestANewProcessLosesNoWarning(t *testing.T) {
	t.Parallel()
	s := whatIsSold(t)
	a := newAccount(t, s, ec2test.Faults{})
	ids := map[string]string{} // by claim
	for _, name := range []string{"bound", "loose"} {
		c := claim(name)
		i, err := a.Launch(t.Context(), c, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		if ids[name] = i.ProviderID; name == "bound" {
			a.kube.bind(a.kube.Of(c.UID), i.ProviderID)
		}
	}
	a.Settle(t)
	if _, err := a.Notices(t.Context()); err != nil { // that they run
		t.Fatal(err)
	}
	a.emptied(t)
	a.Provider = a.restart(t, s, a.server.URL()+"/"+ec2test.Account+"/"+clusterName)
	a.Interrupt(t, ids["bound"])
	a.Interrupt(t, ids["loose"])
	a.warnings(t, 1, "i-0123456789abcdef0") // nobody's
	list, err := a.Notices(t.Context())
	if err != nil || len(list.List) != 1 || list.List[0].ProviderID != ids["bound"] {
		t.Errorf("before the listing: notices %v, error %v; want that of %s", list.List, err, ids["bound"])
	}
	if _, err := a.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.server.Advance(time.Minute) // they are shown again
	if list, err = a.Notices(t.Context()); err != nil || len(list.List) != 2 {
		t.Errorf("after the listing: notices %v, error %v; want those of both machines", list.List, err)
	}
	for _, notice := range list.List {
		if err := a.Acknowledge(t.Context(), notice); err != nil {
			t.Fatal(err)
		}
	}
	a.emptied(t)
}

// E-51: a failed deletion of a message is no failure of reading. It is reported by itself, and the message comes
// again.
func TestMessagesThatCannotBeDeleted(t *testing.T) {
	t.Parallel()
	a := newAccount(t, whatIsSold(t), ec2test.Faults{Deny: []ec2test.Denial{{Action: "sqs:DeleteMessage"}}})
	if _, err := a.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.warnings(t, 3, "i-0123456789abcdef0")
	for deadline := time.Now().Add(time.Minute); ; <-time.After(time.Millisecond) {
		if _, err := a.Notices(t.Context()); err != nil {
			t.Fatalf("the queue cannot be read: %v", err)
		}
		if failures, err := a.Undeleted(); failures > 0 && refusal.Of(err).Class == refusal.Rights {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nobody says that messages cannot be deleted")
		}
	}
	if left := a.server.Messages(clusterName); left != 3 {
		t.Errorf("%d messages are left, want all 3", left)
	}
	if err := a.server.SetFaults(ec2test.Faults{}); err != nil {
		t.Fatal(err)
	}
	a.server.Advance(time.Minute) // they are shown again
	if _, err := a.Notices(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.emptied(t)
	for deadline := time.Now().Add(time.Minute); ; <-time.After(time.Millisecond) {
		if failures, err := a.Undeleted(); failures == 0 && err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("they still count as not deleted")
		}
	}
}
