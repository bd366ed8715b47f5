package joiner

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/plugin"
	ec2plug "github.com/joiner-autoscaler/joiner/internal/provider/ec2/plug"
	kwokplug "github.com/joiner-autoscaler/joiner/internal/provider/kwok/plug"
)

// E-62: providers and controllers measure into one registry, in one process: no two of them have a metric of one name.
func TestTheMetricsOfAllPartsGoTogether(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	metrics.New(registry)
	deps := plugin.Deps{Registerer: registry, Now: time.Now, Log: logr.Discard()}
	for _, p := range []plugin.Plugin{ec2plug.New(), kwokplug.New()} {
		if err := p.Load(); err != nil {
			t.Errorf("%s: %v", p.Name(), err)
		}
		if _, err := p.New(t.Context(), deps); err != nil {
			t.Errorf("%s: %v", p.Name(), err)
		}
	}
	if _, err := registry.Gather(); err != nil {
		t.Error(err)
	}
}
