package node_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
)

// unwilling is a cloud that answers every question with an error.
type unwilling struct {
	controllertest.Everything
	answer error
}

func (u unwilling) Find(context.Context, string) (fleet.Fate, error) { return fleet.Unproved, u.answer }

func (u unwilling) Terminate(context.Context, string, func() bool) (fleet.Fate, error) {
	return fleet.Unproved, u.answer
}

// P-40: a deleted node stays while its cloud refuses to end its machine, or does not say whether that is gone. After a
// minute an event says why; a cloud that is busy is not worth one.
func TestADeletedNodeSaysWhatKeepsIt(t *testing.T) {
	t.Parallel()
	other := errors.New("instance i-1 runs with the tag of cluster other")
	for name, c := range map[string]struct {
		ready  corev1.ConditionStatus
		answer error
		after  time.Duration
		told   string
	}{
		"no proof": {"Unknown", other, time.Minute,
			"Cannot end: looking for the instance of node n1: instance i-1"},
		"refused":                  {"True", other, time.Minute, "Cannot end: ending the instance of node n1: instance i-1"},
		"it has just been deleted": {"True", other, 59 * time.Second, ""},
		"throttled":                {"True", fmt.Errorf("%w: slow down", provider.ErrThrottled), time.Hour, ""},
	} {
		n, claim := dying()
		taint(n)
		n.Status.Conditions[0].Status = c.ready
		r := newRig(t, n, claim)
		r.fleet(unwilling{answer: c.answer})
		r.clock.Advance(c.after)
		_, err := r.step.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "n1"}})
		said := strings.Join(r.tape.Said(), "\n")
		if !errors.Is(err, c.answer) || r.gone(t) || !strings.Contains(said, c.told) || (said == "") != (c.told == "") {
			t.Errorf("%s: error %v, gone %t, said %q; want the error, the node, and %q", name, err, r.gone(t), said,
				c.told)
		}
	}
}
