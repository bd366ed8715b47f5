package disruption_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// end begins the end of a pod, or completes it.
func (r *rig) end(t *testing.T, name string, gone bool) {
	t.Helper()
	var pod corev1.Pod
	if err := r.server.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: name}, &pod); err != nil {
		t.Fatal(err)
	}
	if !gone {
		pod.Finalizers = []string{"example.com/ending"}
		if err := r.server.Update(t.Context(), &pod); err != nil {
			t.Fatal(err)
		}
		if err := r.server.Delete(t.Context(), &pod); err != nil {
			t.Fatal(err)
		}
	} else {
		pod.Finalizers = nil
		if err := r.server.Update(t.Context(), &pod); err != nil {
			t.Fatal(err)
		}
		r.store.Remove(&pod)
	}
	r.sync(t)
}

// shrinking is a pool in which something cheaper could replace a node, while a pod ends on another one.
func shrinking(t *testing.T) *rig {
	t.Helper()
	r := clusterOf(t, "100%", map[string]string{"a": "large", "b": "small"}, "800m")
	stays := podAsking("stays", "b", "1300m")
	stays.Annotations = map[string]string{karpenterv1.DoNotDisruptAnnotationKey: "true"}
	r.create(t, stays)
	r.end(t, "on-b", false)
	return r
}

// D-15, B-11: while pods of a pool end, none of its nodes is replaced to save money; once they have been gone for 5 s,
// it is.
func TestNothingIsReplacedWhileAWorkloadShrinks(t *testing.T) {
	t.Parallel()
	r := shrinking(t)
	again := r.reconcile(t).RequeueAfter
	if marked, _ := r.state(t); len(marked) > 0 || again > 5*time.Second {
		t.Fatalf("marked %v, looks again after %s; want none, within 5 s", marked, again)
	}
	if said := strings.Join(r.tape.Said(), "\n"); strings.Contains(said, "Unconsolidatable") {
		t.Errorf("said %q of nodes that nobody has looked at", said)
	}
	r.end(t, "on-b", true)
	r.clock.Advance(4 * time.Second)
	r.reconcile(t)
	if marked, _ := r.state(t); len(marked) > 0 {
		t.Fatalf("marked %v 4 s after the last pod; others may follow", marked)
	}
	r.clock.Advance(2 * time.Second)
	r.reconcile(t)
	if marked, _ := r.state(t); len(marked) != 1 || len(r.replacements(t)) != 1 {
		t.Fatalf("marked %v, replaced by %v 6 s after the last pod; want the large node", marked, r.replacements(t))
	}
}

// D-15: a pod that never ends holds nothing up for more than two minutes, however seldom the controller looks.
func TestAPodThatNeverEndsIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{2 * time.Second, 6 * time.Second, time.Minute} {
		r := shrinking(t)
		for passed := time.Duration(0); passed <= 2*time.Minute; passed += every {
			r.reconcile(t)
			if marked, _ := r.state(t); (len(marked) > 0) != (passed >= 2*time.Minute) {
				t.Fatalf("looking every %s: marked %v after %s", every, marked, passed)
			}
			r.clock.Advance(every)
			r.sync(t)
		}
	}
}

// D-15: pods that end after a calm time are waited for anew.
func TestAWorkloadThatShrinksLaterIsWaitedFor(t *testing.T) {
	t.Parallel()
	r := shrinking(t)
	r.reconcile(t)
	r.end(t, "on-b", true)
	r.reconcile(t) // nothing is ending now
	r.clock.Advance(3 * time.Minute)
	r.create(t, podAsking("later", "b", "100m"))
	r.end(t, "later", false)
	r.reconcile(t)
	if marked, _ := r.state(t); len(marked) > 0 {
		t.Fatalf("marked %v while a pod ends, three minutes after the one before", marked)
	}
}
