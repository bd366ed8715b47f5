package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/sim/apisemantics"
	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
)

// realServer is a kube-apiserver, with the controller manager beside it.
type realServer struct {
	client client.WithWatch
}

func (r realServer) Client() client.WithWatch { return r.client }

// Settle waits for the disruption controller.
func (r realServer) Settle(t *testing.T, budget *policyv1.PodDisruptionBudget) {
	t.Helper()
	for end := time.Now().Add(soon); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		var pods corev1.PodList
		if err := r.client.List(t.Context(), &pods, client.InNamespace(budget.Namespace),
			client.MatchingLabels(budget.Spec.Selector.MatchLabels)); err != nil {
			t.Fatal(err)
		}
		if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(budget), budget); err != nil {
			t.Fatal(err)
		}
		if budget.Status.ObservedGeneration == budget.Generation &&
			int(budget.Status.CurrentHealthy) == len(pods.Items) {
			return
		}
	}
	t.Fatalf("the status of PodDisruptionBudget %s does not settle: %+v", budget.Name, budget.Status)
}

// a real API server passes the tests that the simulated one must pass.
func TestTheRealServerKeepsTheSemanticsOfTheSimulation(t *testing.T) {
	t.Parallel()
	scheme, err := apiserver.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(sharedEnvironment.Get(t).config)
	real, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	apisemantics.Run(t, func(*testing.T) apisemantics.Harness { return realServer{real} })
}
