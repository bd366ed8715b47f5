package serve

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Collisions of optimistic writes are everyday life, not errors in the log.
func TestConflictsAreTriedAgainQuietly(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Resource: "nodes"}
	for name, test := range map[string]struct {
		err   error
		quiet bool
	}{
		"conflict": {apierrors.NewConflict(resource, "n", errors.New("changed")), true},
		"stale patch": {
			&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid, Code: 422,
				Details: &metav1.StatusDetails{}}}, true,
		},
		"invalid": {
			&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid, Code: 422,
				Details: &metav1.StatusDetails{
					Causes: []metav1.StatusCause{{Field: "spec"}},
				}}}, false},
		"other": {errors.New("boom"), false},
		"conflicts only": {errors.Join(apierrors.NewConflict(resource, "n", errors.New("x")), nil,
			fmt.Errorf("node m: %w", apierrors.NewConflict(resource, "m", errors.New("x")))), true},
		"a conflict, then another": {
			errors.Join(apierrors.NewConflict(resource, "n", errors.New("x")), errors.New("boom")), false,
		},
		"another, then a conflict": {
			fmt.Errorf("draining: %w",
				errors.Join(errors.New("boom"), apierrors.NewConflict(resource, "n", errors.New("x")))), false,
		},
		"conflicts within a refusal": {errors.Join(errors.Join(apierrors.NewConflict(resource, "n", errors.New("x")),
			apierrors.NewForbidden(resource, "n", errors.New("denied")))), false},
	} {
		step := NewCalm(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{}, test.err
		}))
		result, err := step.Reconcile(t.Context(), reconcile.Request{})
		if (err == nil) != test.quiet || test.quiet && result.RequeueAfter == 0 {
			t.Errorf("%s: result %+v, error %v", name, result, err)
		}
	}
}

// A watch that is late for a minute must not make a step collide ten times a second (P-40: a drain writes conditions).
func TestCollisionsInARowAreRepeatedMoreAndMoreRarely(t *testing.T) {
	t.Parallel()
	outcome := apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, "n", errors.New("changed"))
	var err error = outcome
	step := NewCalm(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		return reconcile.Result{}, err
	}))
	wait := func() time.Duration {
		result, failure := step.Reconcile(t.Context(), reconcile.Request{})
		if failure != nil {
			t.Fatal(failure)
		}
		return result.RequeueAfter
	}
	var waits []time.Duration
	for range 8 {
		waits = append(waits, wait())
	}
	if waits[0] != conflictAfter || waits[1] != 2*conflictAfter || waits[7] != conflictMost {
		t.Errorf("waits %v", waits)
	}
	err = nil
	wait()
	err = outcome
	if again := wait(); again != conflictAfter {
		t.Errorf("after a step that went well the first collision waits %s, want %s", again, conflictAfter)
	}
}
