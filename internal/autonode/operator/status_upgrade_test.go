package operator_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
)

// what a newer operator said of the policy, and this one does not know, stays as it was. On a wrapper it goes:
// what an operator does not know there is the product's.
func TestA48_WhatANewerOperatorSaidStays(t *testing.T) {
	t.Parallel()
	later := karpenterv1.Condition{Type: "Later", Status: metav1.ConditionTrue, Reason: "Newer",
		Message: "of a newer operator", ObservedGeneration: 1}
	w, p := wrapper("web"), policyOf(1, in(instanceType, "a"))
	w.Status.Conditions, p.Status.Conditions = []karpenterv1.Condition{later}, []karpenterv1.Condition{later}
	s := newScene(t, []client.Object{w}, p)
	s.read()
	s.step(s.pools, "web")
	s.policySays(metav1.ConditionTrue, "Applied")
	if said, found := condition.Get(s.stored().Status.Conditions, "Later"); !found || said != later {
		t.Errorf("the policy says %+v, want %+v", said, later)
	}
	if said, found := condition.Get(s.wrapper("web").Status.Conditions, "Later"); found {
		t.Errorf("the wrapper says %+v", said)
	}
}
