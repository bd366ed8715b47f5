package operator_test

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
)

func (s *scene) teardown(server client.Client, done *int) *operator.Teardown {
	s.t.Helper()
	return operator.NewTeardown(operator.TeardownConfig{
		Guest: operator.GuestClient{Client: server}, Kinds: s.kinds, Protections: protections(s.t), Board: s.board,
		Done: func() { *done++ }, Log: logr.Discard(),
	})
}

// G19: a teardown is done when all is gone; what it could not list or delete is tried again.
func TestNoFailureOfATeardownIsSwallowed(t *testing.T) {
	t.Parallel()
	controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
		s := newScene(t, []client.Object{wrapper("web"), class("big")})
		for _, protection := range protections(t) {
			s.must(s.guest.Create(t.Context(), &protection.Policy))
			s.must(s.guest.Create(t.Context(), &protection.Binding))
		}
		done := 0
		steps := s.steps(s.teardown(f.Wrap(s.guest), &done), "", nil, nil, nil)
		return func() error {
			err := steps()
			if (err == nil) != (done == 1) {
				t.Errorf("done %d times, error %v", done, err)
			}
			return err
		}
	})
}

// G19: a wrapper that is on its way is waited for, a second at a time, and not deleted again.
func TestATeardownWaitsForWhatIsGoing(t *testing.T) {
	t.Parallel()
	held := wrapper("web")
	held.Finalizers = []string{operator.PoolFinalizer}
	s := newScene(t, []client.Object{held})
	done := 0
	c := s.teardown(s.guest, &done)
	for range 3 {
		if again := s.step(c, "").RequeueAfter; again != time.Second {
			t.Errorf("again after %s, want 1s", again)
		}
	}
	if n := s.guestWrites["delete OpenshiftNodePool"]; n != 1 || done != 0 {
		t.Errorf("deleted %d times, done %d times; want it deleted once", n, done)
	}
}
