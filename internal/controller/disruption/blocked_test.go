package disruption_test

import (
	"strings"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/controller/disruption"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
)

// B-22, K-15: a round each minute looks at what keeps a node. As long as that is the same, it is reported on the node
// and its claim once in half an hour; when it is something else, with the next round.
func TestWhatKeepsANodeIsRarelyRepeated(t *testing.T) {
	t.Parallel()
	r := clusterOf(t, "1", map[string]string{"a": "large"}, "1500m")
	var said []string
	recorder := event.NewDeduplicated(func(about client.Object, _ event.Kind, reason, message string) {
		if reason == event.DisruptionBlocked {
			said = append(said, about.GetName()+": "+message)
		}
	}, r.clock.Now)
	r.over(r.server, func(c *disruption.Config) { c.Events = recorder })
	closed := func(name string) {
		if err := r.store.Apply(&policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
			Spec: policyv1.PodDisruptionBudgetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			}}); err != nil {
			t.Fatal(err)
		}
	}
	closed("web")
	for _, want := range []struct{ minutes, events int }{{1, 2}, {29, 2}, {1, 4}, {3, 4}} {
		for range want.minutes {
			r.turn(t)
			r.clock.Advance(time.Minute)
		}
		if len(said) != want.events {
			t.Fatalf("after %d minutes more said %q, want %d events", want.minutes, said, want.events)
		}
	}
	closed("other")
	r.turn(t)
	if len(said) != 6 || !strings.Contains(said[5], "under more than one PodDisruptionBudget") {
		t.Errorf("said %q, want what is new at once", said[4:])
	}
}
