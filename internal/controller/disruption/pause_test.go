package disruption_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/internal/controller/disruption"
)

func pauseSwitch(value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: disruption.SwitchName},
		Data:       map[string]string{disruption.SwitchPaused: value, disruption.SwitchReason: "release week"},
	}
}

func (r *rig) pausedGauge(t *testing.T, want float64) {
	t.Helper()
	families, err := r.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "karpenter_voluntary_disruption_paused" {
			if got := family.GetMetric()[0].GetGauge().GetValue(); got != want {
				t.Errorf("the metric is %v, want %v", got, want)
			}
			return
		}
	}
	t.Error("there is no metric")
}

// D-14: while the switch is on nothing is chosen, whatever the budgets say; an event and a metric show it. When it is
// off, work goes on.
func TestThePauseSwitchStopsEverything(t *testing.T) {
	t.Parallel()
	r := newRig(t, append(fleet("100%", "a", "b"), pauseSwitch("true"))...)
	r.reconcile(t)
	if _, marked := r.claims(t); marked != 0 {
		t.Fatalf("%d nodes are marked while disruption is paused", marked)
	}
	if said := strings.Join(r.tape.Said(), "\n"); !strings.Contains(said,
		"default DisruptionPaused: voluntary disruption is paused by ConfigMap kube-system/joiner-disruption: release week") {
		t.Fatalf("said %s", said)
	}
	r.pausedGauge(t, 1)
	if err := r.server.Delete(t.Context(), pauseSwitch("")); err != nil {
		t.Fatal(err)
	}
	r.reconcile(t)
	if _, marked := r.claims(t); marked != 2 {
		t.Fatalf("%d nodes are marked after the pause, want both", marked)
	}
	r.pausedGauge(t, 0)
}

// D-14, D-10: what is marked and not deleted yet when the switch comes on is taken back.
func TestAPauseTakesIntentsBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleet("100%", "a")...)
	r.reconcile(t)
	if err := r.server.Create(t.Context(), pauseSwitch("true")); err != nil {
		t.Fatal(err)
	}
	r.sync(t)
	r.reconcile(t)
	if all, marked := r.claims(t); all != 1 || marked != 0 || r.tainted(t, "a") {
		t.Fatalf("%d claims, %d marked, tainted %t: want the node as it was", all, marked, r.tainted(t, "a"))
	}
}

// D-14: an invalid value pauses too and is reported; false and a missing value do not.
func TestWhatThePauseSwitchMaySay(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]int{"true": 0, "yes": 0, "false": 1, "": 1} {
		r := newRig(t, append(fleet("100%", "a"), pauseSwitch(value))...)
		r.reconcile(t)
		if _, marked := r.claims(t); marked != want {
			t.Errorf("paused: %q: %d nodes are marked, want %d", value, marked, want)
		}
		if said := strings.Join(r.tape.Said(), "\n"); strings.Contains(said,
			"want true or false") != (value == "yes") {
			t.Errorf("paused: %q: said %s", value, said)
		}
	}
}

// TestU27_APauseEndsByItself: until its end nothing is chosen, and the next round comes at that time. Then work goes
// on, whoever leads, even with the ConfigMap still there.
func TestU27_APauseEndsByItself(t *testing.T) {
	t.Parallel()
	object := pauseSwitch("true")
	r := newRig(t, fleet("100%", "a", "b")...)
	end := r.clock.Now().Add(30 * time.Second).UTC().Truncate(time.Second)
	object.Data[disruption.SwitchUntil] = end.Format(time.RFC3339)
	if err := r.server.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	left := end.Sub(r.clock.Now())
	if result := r.reconcile(t); result.RequeueAfter != left {
		t.Errorf("the next round comes after %s, want %s", result.RequeueAfter, left)
	}
	said := strings.Join(r.tape.Said(), "\n")
	if _, marked := r.claims(t); marked != 0 || !strings.Contains(said,
		"joiner-disruption until "+end.Format(time.RFC3339)+": release week") {
		t.Fatalf("%d nodes are marked, said %s", marked, said)
	}
	r.clock.Advance(left - time.Nanosecond)
	r.reconcile(t)
	if _, marked := r.claims(t); marked != 0 {
		t.Fatalf("%d nodes are marked before the end", marked)
	}
	r.clock.Advance(time.Nanosecond)
	r.restart()
	r.sync(t)
	r.reconcile(t)
	if _, marked := r.claims(t); marked != 2 {
		t.Fatalf("%d nodes are marked after the end, want both", marked)
	}
	r.pausedGauge(t, 0)
}

// TestU27_AnEndThatCannotBeReadIsNone: it holds up, and says so.
func TestU27_AnEndThatCannotBeReadIsNone(t *testing.T) {
	t.Parallel()
	object := pauseSwitch("true")
	object.Data[disruption.SwitchUntil] = "2h"
	r := newRig(t, append(fleet("100%", "a"), object)...)
	r.reconcile(t)
	said := strings.Join(r.tape.Said(), "\n")
	if _, marked := r.claims(t); marked != 0 || !strings.Contains(said, `until is "2h": want a time such as`) {
		t.Errorf("%d nodes are marked, said %s", marked, said)
	}
}
