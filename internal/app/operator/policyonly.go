package operator

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/joiner-autoscaler/joiner/internal/app/serve"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
)

// RunPolicyOnly runs what of an operator speaks with the management cluster, until ctx ends: the policy's feed, and
// the writer of its status. The hosted cluster counts as protected and has nothing in it, so that none is needed: by
// this it is measured what many operators cost one management cluster.
func RunPolicyOnly(ctx context.Context, to *rest.Config, namespace string, log logr.Logger) error {
	limited := bounded(to, DefaultConfig())
	management, err := operator.NewManagementClient(limited, namespace)
	if err != nil {
		return err
	}
	stop := serve.StopWithin
	mgr, err := manager.New(limited, manager.Options{ // whose cache and client nobody uses
		Logger: serve.Quiet(ctx, log), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		GracefulShutdownTimeout: &stop,
	})
	if err != nil {
		return fmt.Errorf("setting up the writer of the policy's status: %w", err)
	}
	deps := operatorDeps{
		management: management, board: operator.NewBoard(), metrics: operator.NewMetrics(prometheus.NewRegistry()),
		bells: serve.NewBells(), now: time.Now, log: log,
	}
	deps.board.Protect()
	status := deps.policyStatus()
	status.Reconciler = serve.NewCalm(status.Reconciler)
	if err := serve.AddController(ctx, mgr, status, deps.bells, log); err != nil {
		return fmt.Errorf("adding controller %s: %w", status.Name, err)
	}
	if err := mgr.Add(&policyFeed{
		client: management, board: deps.board, changed: deps.policyChanged, metrics: deps.metrics, now: time.Now,
		log: log.WithName("policy"),
	}); err != nil {
		return err
	}
	return serve.RunManager(ctx, mgr, serve.EndWithin)
}
