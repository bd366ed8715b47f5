package translate_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// K-52. What each value of the annotation stops: launches by the pool's picture, disruption by a budget of 0 for every
// reason and by holding back trims. An unknown word stops both, and is named.
func TestK52_WhatAPauseStops(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]struct {
		launch, disrupt bool
		fault           string
	}{
		"Launch":          {true, false, ""},
		"Disrupt":         {false, true, ""},
		"Disrupt, Launch": {true, true, ""},
		"":                {true, true, `is "": want Launch, Disrupt, or both`},
		"true":            {true, true, `is "true": want Launch, Disrupt, or both`},
		"Launch,disrupt":  {true, true, `is "Launch,disrupt"`},
	} {
		pool := &karpenterv1.NodePool{}
		pool.Name, pool.Annotations = "web", map[string]string{karpenterv1.PausedAnnotationKey: value}
		pool.Spec.Template.Spec.NodeClassRef = &karpenterv1.NodeClassReference{Group: "karpenter.kwok.sh",
			Kind: "KWOKNodeClass", Name: "default"}
		pool.Spec.Disruption.Budgets = []karpenterv1.Budget{{Nodes: intstr.FromString("50%")}}
		pool.Status.Conditions = []karpenterv1.Condition{{Type: karpenterv1.ConditionTypeReady, Status: "True"}}
		pause := translate.PoolPauseOf(pool)
		if pause.Launch != want.launch || pause.Disrupt != want.disrupt || (pause.Fault == "") != (want.fault == "") ||
			!strings.Contains(pause.Fault, want.fault) {
			t.Errorf("%q stops launches %t, disruption %t (%q); want %t, %t, %q", value, pause.Launch, pause.Disrupt,
				pause.Fault, want.launch, want.disrupt, want.fault)
		}
		picture, err := translate.Pool(resources.NewSpace(), pool)
		if err != nil || (picture.BlockedBy == cause.PoolPaused) != want.launch || picture.Held != want.disrupt {
			t.Errorf("%q: blocked by %q (%s), held %t, error %v", value, picture.BlockedBy, picture.Blocked,
				picture.Held, err)
		}
		budgets, err := translate.ActiveBudgets(pool, time.Now(), 10)
		if err != nil || len(budgets) != 1 || (budgets[0].Max == 0) != want.disrupt {
			t.Errorf("%q: budgets %+v, error %v", value, budgets, err)
		}
	}
	if translate.PoolPauseOf(&karpenterv1.NodePool{}).On() {
		t.Error("a pool without the annotation is paused")
	}
}
