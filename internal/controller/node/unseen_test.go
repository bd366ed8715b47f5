package node_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/kube/unseen"
)

// B-12: while the cache does not show what the process wrote of a node, no step begins from it: it would write the
// same again.
func TestNoStepBeginsFromWhatWasOvertaken(t *testing.T) {
	t.Parallel()
	n, claim := dying()
	r := newRig(t, n, claim)
	r.unseen = unseen.New(r.clock.Now)
	r.fleet(r.cloud)
	var before, now corev1.Node
	read := func(into *corev1.Node) {
		t.Helper()
		if err := r.server.Get(t.Context(), client.ObjectKey{Name: "n1"}, into); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	read(&before)
	controllertest.Write(t, r.unseen, &before)
	result := r.reconcile(t)
	if read(&now); now.ResourceVersion != before.ResourceVersion || result.RequeueAfter == 0 {
		t.Errorf("version %s became %s, again after %s", before.ResourceVersion, now.ResourceVersion,
			result.RequeueAfter)
	}
	r.clock.Advance(5 * time.Second)
	r.reconcile(t)
	now = corev1.Node{}
	read(&now)
	if now.ResourceVersion == before.ResourceVersion {
		t.Error("it was written 5 s ago, and is waited for")
	}
}
