package buffer_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	autoscalingv1beta1 "github.com/joiner-autoscaler/joiner/api/autoscaling/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/controller/buffer"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// verdict is the store: it knows one buffer.
type verdict translate.BufferVerdict

func (v verdict) BufferVerdict(types.NamespacedName) (translate.BufferVerdict, int64, bool) {
	return translate.BufferVerdict(v), 3, true
}

// resolved is a buffer of which it is known what it asks for.
func resolved(pods int, limited string) verdict {
	return verdict{Reason: translate.BufferResolved, Pods: pods, Limited: limited,
		Source: &translate.BufferSource{Template: &corev1.PodTemplateSpec{}, Generation: 7}}
}

// spoken is a condition as a line.
func spoken(c *metav1.Condition) string {
	return strings.Join([]string{c.Type, string(c.Status), c.Reason, c.Message}, " ")
}

// K-36, K-04: a buffer's status says whether its request is understood, whether there is room, and what limits it,
// according to the plan.
func TestK36_WhatABufferSays(t *testing.T) {
	t.Parallel()
	const machine = "type m5.large  cpu=2 mem=8Gi zones=a od=0.096\n"
	const there, one, two = "node n1 type=m5.large zone=a pool=default\n", "buffer room-0 cpu=1500m\n",
		"buffer room-0..1 cpu=1500m\n"
	for name, row := range map[string]struct {
		verdict verdict
		off     bool
		cluster string   // "" for no plan yet
		says    []string // type status reason, and a part of the message
	}{
		"there": {resolved(1, ""), false, machine + "pool default\n" + there + one, []string{
			"ReadyForProvisioning True Resolved it asks for room for 1 pod",
			"Provisioning True FitsExistingCapacity there is room for 1 pod", "LimitedByQuotas False WithinLimits"}},
		"on its way": {resolved(2, ""), false, machine + "pool default\n" + there + two, []string{
			"Provisioning False RequiresNewCapacity there is room for 1 of 2 pods, for 1 it is on its way"}},
		"a limit": {resolved(2, ""), false, machine + "pool default nodes=1\n" + there + two, []string{
			"Provisioning False LimitReached there is room for 1 of 2 pods, " +
				"for 1 there is none: SoftLimitNodes: pool default: nodes 1 of 1 (soft limit)",
			"LimitedByQuotas True LimitReached SoftLimitNodes: pool default: nodes 1 of 1"}},
		"its own limits": {resolved(1, "spec.limits.cpu is 2: that is room for 1 of 4 pods"), false,
			machine + "pool default\n" + there + one,
			[]string{"Provisioning True FitsExistingCapacity", "LimitedByQuotas True OwnLimits spec.limits.cpu is 2"}},
		"it fits nowhere": {resolved(1, ""), false, machine + "pool default\nbuffer room-0 cpu=9\n", []string{
			"Provisioning False RequiresNewCapacity there is room for 0 of 1 pod, " +
				"for 1 there is none: PodTooLarge: pool default: cpu=9 is more than",
			"LimitedByQuotas False WithinLimits"}},
		"no plan yet": {resolved(1, ""), false, "",
			[]string{"Provisioning False RequiresNewCapacity no plan has been made for it yet"}},
		"nothing": {resolved(0, ""), false, "",
			[]string{"Provisioning False BufferEmpty", "ReadyForProvisioning True Resolved"}},
		"not resolved": {verdict{Reason: translate.BufferTemplateNotFound,
			Message: "there is no PodTemplate shop/web"}, false, "", []string{
			"ReadyForProvisioning False PodTemplateNotFound there is no PodTemplate shop/web",
			"Provisioning False NotReadyForProvisioning"}},
		"switched off": {resolved(1, ""), true, "", []string{
			"ReadyForProvisioning False FeatureGateDisabled the feature gate CapacityBuffer is off",
			"Provisioning False NotReadyForProvisioning"}},
	} {
		b := &autoscalingv1beta1.CapacityBuffer{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "room", Generation: 3},
		}
		b.Spec.PodTemplateRef = &autoscalingv1beta1.LocalObjectRef{Name: "web"}
		scheme := runtime.NewScheme()
		if err := autoscalingv1beta1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(b).WithStatusSubresource(b).Build()
		tape, board := &controllertest.Tape{}, &buffer.Board{}
		if row.cluster != "" {
			s, err := enginetest.Parse(row.cluster)
			if err != nil {
				t.Fatal(err)
			}
			if changed := board.Take(s, engine.Provision(s)); len(changed) != 1 {
				t.Errorf("%s: %v stand otherwise than before", name, changed)
			}
			if changed := board.Take(s, engine.Provision(s)); len(changed) != 0 {
				t.Errorf("%s: %v stand otherwise, and nothing has changed", name, changed)
			}
		}
		controller := buffer.New(buffer.Config{Client: server, Verdicts: row.verdict, Board: board, Off: row.off,
			Events: tape, Now: controllertest.NewClock().Now})
		request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "room"}}
		version := ""
		for range 3 { // from the second time on there is nothing to write
			if result, err := controller.Reconcile(t.Context(), request); err != nil || result.RequeueAfter == 0 {
				t.Fatalf("%s: result %+v, error %v; want to be called again", name, result, err)
			}
			if err := server.Get(t.Context(), request.NamespacedName, b); err != nil {
				t.Fatal(err)
			}
			if version != "" && version != b.ResourceVersion {
				t.Errorf("%s: it was written again", name)
			}
			version = b.ResourceVersion
		}
		for _, want := range row.says {
			kind, _, _ := strings.Cut(want, " ")
			c := meta.FindStatusCondition(b.Status.Conditions, kind)
			if c == nil {
				t.Errorf("%s: no condition %s", name, kind)
			} else if got := spoken(c); !strings.HasPrefix(got, want) {
				t.Errorf("%s: it says\n%s\nwant\n%s", name, got, want)
			}
		}
		if said := tape.Said(); (len(said) > 0) != row.off {
			t.Errorf("%s: said %q; want an event while the gate is off alone", name, said)
		}
		if row.verdict.Source != nil && !row.off {
			if g := b.Status.PodTemplateGeneration; g == nil || *g != 7 ||
				*b.Status.Replicas != int32(row.verdict.Pods) || b.Status.PodTemplateRef.Name != "web" {
				t.Errorf("%s: the status is %+v", name, b.Status)
			}
		}
	}
}
