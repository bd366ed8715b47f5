package apiserver_test

import (
	"math/rand/v2"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/sim/apisemantics"
	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
)

// stand is a server of one test.
type stand struct {
	server *apiserver.Server
	client client.WithWatch
}

func newStand(t *testing.T) stand {
	t.Helper()
	scheme, err := apiserver.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	server := apiserver.New(apiserver.Config{Kinds: apiserver.NewKinds(), Now: time.Now,
		Rand: rand.New(rand.NewPCG(1, 2))})
	return stand{server: server, client: server.NewClient(scheme, apiserver.Direct, nil)}
}

func (s stand) Client() client.WithWatch { return s.client }

func (s stand) Settle(t *testing.T, budget *policyv1.PodDisruptionBudget) {
	t.Helper()
	if err := s.server.CountBudgets(); err != nil {
		t.Fatal(err)
	}
}

// the simulated API server keeps what the real one keeps.
func TestTheSimulatedServerKeepsTheSemantics(t *testing.T) {
	t.Parallel()
	apisemantics.Run(t, func(t *testing.T) apisemantics.Harness { return newStand(t) })
}
