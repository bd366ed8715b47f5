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

// RunPolicyOnly runs only the parts of an operator that talk to the management cluster, until ctx ends: the policy's
// feed, and the writer of its status. It needs no hosted cluster: that counts as protected and empty. It serves to
// measure the load of many operators on one management cluster.
func RunPolicyOnly(ctx context.Context, to *rest.Config, namespace string, log logr.Logger) error {
	limited := bounded(to, DefaultConfig())
	management, err := operator.NewManagementClient(limited, namespace)
	if err != nil {
		return err
	}
	stop := serve.StopWithin
	mgr, err := manager.New(limited, manager.Options{ // nobody uses its cache and client
		Logger: serve.Quiet(ctx, log), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		GracefulShutdownTimeout: &stop,
	})
	if err != nil {
		return fmt.Errorf("setting up the writer of the policy's status: %w", err)
	}
	bells := serve.NewBells()
	deps := operatorDeps{
		management: management, board: operator.NewBoard(), metrics: operator.NewMetrics(prometheus.NewRegistry()),
		bells: bells, now: time.Now, log: log,
	}
	deps.board.Protect()
	status := deps.policyStatus()
	status.Reconciler = serve.NewCalm(status.Reconciler)
	if err := serve.AddController(ctx, mgr, status, bells, log); err != nil {
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
