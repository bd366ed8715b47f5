package unseen_test

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/kube/unseen"
)

// server answers each patch with a version, or with an error where it has none.
type server struct {
	client.Client
	version string
}

func (s *server) answer(obj client.Object) error {
	if s.version == "" {
		return errors.New("refused")
	}
	obj.SetResourceVersion(s.version)
	return nil
}

func (s *server) Patch(_ context.Context, obj client.Object, _ client.Patch, _ ...client.PatchOption) error {
	return s.answer(obj)
}

func (s *server) Status() client.SubResourceWriter { return status{s: s} }

type status struct {
	client.SubResourceWriter
	s *server
}

func (s status) Patch(_ context.Context, obj client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.s.answer(obj)
}

func claimOf(version string) *karpenterv1.NodeClaim {
	return &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: version}}
}

// B-12: a step waits for the cache while that has an older object than this process wrote, for at most 5 s. It does
// not wait if the object is not known to be older.
func TestAStepWaitsForWhatItsOwnProcessWrote(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	at := &server{version: "12"}
	o := unseen.New(func() time.Time { return now })
	c := o.Client(at)
	expect := func(what string, obj client.Object, want bool) {
		t.Helper()
		if got := o.Behind(obj) > 0; got != want {
			t.Errorf("%s: waits %t, want %t", what, got, want)
		}
	}
	write := func(version string, obj client.Object, ofStatus bool) {
		t.Helper()
		at.version = version
		err := error(nil)
		if ofStatus {
			err = c.Status().Patch(t.Context(), obj, client.MergeFrom(obj))
		} else {
			err = c.Patch(t.Context(), obj, client.MergeFrom(obj))
		}
		if (err != nil) != (version == "") {
			t.Fatal(err)
		}
	}
	expect("nothing written", claimOf("9"), false)
	write("12", claimOf("9"), false)
	expect("older", claimOf("9"), true)
	expect("a node of that name", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "9"}}, false)
	expect("shown", claimOf("12"), false)
	expect("older again, as no cache is", claimOf("9"), false)
	write("15", claimOf("12"), true)
	write("14", claimOf("12"), false) // the answer of an earlier one comes late
	write("", claimOf("12"), true)
	expect("the status", claimOf("14"), true)
	expect("newer than what was written", claimOf("20"), false)
	write("100", claimOf("20"), true)
	expect("a version of more digits", claimOf("20"), true)
	now = now.Add(5 * time.Second)
	expect("for too long", claimOf("20"), false)
	write("110", claimOf("100"), true)
	o.Gone(&karpenterv1.NodeClaim{}, "a")
	expect("one made anew", claimOf("109"), false)
	write("120", claimOf("110"), true)
	expect("no number", claimOf("x"), false)
	write("130", claimOf("120"), true)
	now = now.Add(-time.Hour)
	expect("a clock that jumped", claimOf("120"), false)
	none := (*unseen.Objects)(nil)
	none.Gone(claimOf("1"), "a")
	if none.Behind(claimOf("1")) != 0 {
		t.Error("nobody remembers, and waits")
	}
}

// B-12: the answer to the removal of an object's last finalizer has the object's old version. While the cache shows
// the object, no step starts. A later object of the same name is another one.
func TestAStepWaitsForTheEndThatItsOwnProcessWrote(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	at := &server{version: "12"}
	o := unseen.New(func() time.Time { return now })
	c := o.Client(at)
	node := func(uid, version string, finalizers ...string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: types.UID(uid), ResourceVersion: version,
			DeletionTimestamp: &metav1.Time{Time: now}, Finalizers: finalizers}}
	}
	patch := func(obj client.Object) {
		t.Helper()
		if err := c.Patch(t.Context(), obj, client.MergeFrom(obj)); err != nil {
			t.Fatal(err)
		}
	}
	patch(node("u", "12", "other.example/finalizer"))
	if o.Behind(node("u", "12", "other.example/finalizer")) > 0 {
		t.Error("another finalizer holds it, and it is waited for")
	}
	patch(node("u", "12"))
	if o.Behind(node("u", "12", "joiner")) == 0 {
		t.Error("it is gone, which the cache does not show, and a step begins")
	}
	if o.Behind(node("v", "13", "joiner")) > 0 {
		t.Error("another node of its name is waited for")
	}
	patch(node("u", "12"))
	if now = now.Add(5 * time.Second); o.Behind(node("u", "12", "joiner")) > 0 {
		t.Error("it is waited for after 5 s")
	}
}
