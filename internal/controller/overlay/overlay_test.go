package overlay_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1alpha1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/overlay"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// verdict is the store: it knows one overlay of one generation.
type verdict struct {
	translate.Verdict
	generation int64
}

func (v verdict) OverlayVerdict(string) (translate.Verdict, int64, bool) {
	return v.Verdict, v.generation, v.generation > 0
}

// P-11, K-04: an overlay says whether it is in effect, and if not, why.
func TestAnOverlaySaysWhetherItIsInEffect(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		verdict verdict
		status  metav1.ConditionStatus // "" for no condition yet
		reason  string
		message string
	}{
		"in effect": {verdict{translate.Verdict{}, 3}, "True", "Ready", ""},
		"about nothing": {verdict{translate.Verdict{Message: "chooses nothing"}, 3}, "True", "Ready",
			"chooses nothing"},
		"for whole types": {verdict{translate.Verdict{Whole: true, Message: "some of them"}, 3}, "True",
			"WholeType", "some of them"},
		"in conflict": {verdict{translate.Verdict{Reason: "Conflict", Message: "with another"}, 3}, "False",
			"Conflict", "the overlay has no effect: with another"},
		"switched off": {verdict{translate.Verdict{Reason: translate.GateDisabled, Message: "the gate"}, 3},
			"False", "FeatureGateDisabled", "the overlay has no effect: the gate"},
		"not seen by the store": {verdict{}, "", "", ""},
		"seen as it was before": {verdict{translate.Verdict{Reason: "Conflict"}, 2}, "", "", ""},
	} {
		object := &karpenterv1alpha1.NodeOverlay{ObjectMeta: metav1.ObjectMeta{Name: "o", Generation: 3}}
		server := controllertest.NewServer(t, object).Build()
		request := reconcile.Request{NamespacedName: types.NamespacedName{Name: "o"}}
		tape := &controllertest.Tape{}
		controller := overlay.New(overlay.Config{Client: server, Verdicts: row.verdict, Events: tape,
			Now: controllertest.NewClock().Now})
		for range 2 { // the second time there is nothing to do
			result, err := controller.Reconcile(t.Context(), request)
			if err != nil || result.RequeueAfter == 0 {
				t.Fatalf("%s: result %+v, error %v; want to be called again", name, result, err)
			}
		}
		if said := tape.Said(); (len(said) > 0) != (row.reason == translate.GateDisabled) {
			t.Errorf("%s: said %q; want an event of an overlay whose gate is off alone", name, said)
		}
		var got karpenterv1alpha1.NodeOverlay
		if err := server.Get(t.Context(), request.NamespacedName, &got); err != nil {
			t.Fatal(err)
		}
		ready, _ := condition.Get(got.Status.Conditions, "Ready")
		valid, _ := condition.Get(got.Status.Conditions, "ValidationSucceeded")
		validity := row.status
		if row.reason == translate.GateDisabled {
			validity = "Unknown" // nobody has looked
		}
		if ready.Status != row.status || valid.Status != validity || ready.Reason != row.reason ||
			ready.Message != row.message {
			t.Errorf("%s: Ready %+v, ValidationSucceeded %+v; want both %q, reason %q, message %q", name, ready, valid,
				row.status, row.reason, row.message)
		}
	}
}
