package app

import (
	"context"
	"net"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// ports are the listeners that were opened before anything else, so that a taken port is said at once.
type ports struct {
	metrics, health net.Listener // nil when not served
	handedOver      bool
}

func openPorts(config Config) (*ports, error) {
	p := &ports{}
	var err error
	if config.MetricsPort != 0 {
		if p.metrics, err = listen("metrics-port", config.MetricsPort); err != nil {
			return nil, err
		}
	}
	if config.HealthProbePort != 0 {
		if p.health, err = listen("health-probe-port", config.HealthProbePort); err != nil {
			p.close()
			return nil, err
		}
	}
	return p, nil
}

// add gives the listeners to the manager, which closes them. It starts servers of its own type before it fills the caches:
// probes are answered meanwhile.
func (p *ports) add(mgr manager.Manager, metrics, health http.Handler) error {
	p.handedOver = true
	if p.metrics != nil {
		if err := mgr.Add(early(p.metrics, metrics)); err != nil {
			return err
		}
	}
	if p.health != nil {
		return mgr.Add(early(p.health, health))
	}
	return nil
}

func early(listener net.Listener, handler http.Handler) *manager.Server {
	return &manager.Server{Name: listener.Addr().String(), Server: server{handler: handler}.web(), Listener: listener,
		ShutdownTimeout: new(closeWithin)}
}

func (p *ports) close() {
	if p.handedOver {
		return
	}
	for _, listener := range []net.Listener{p.metrics, p.health} {
		if listener != nil {
			_ = listener.Close() // the process ends anyway
		}
	}
}

// endWithin bounds how long a manager may take to end: its own bound, and that of its servers.
const endWithin = stopWithin + closeWithin

// runManager runs a manager until ctx ends. One that is still filling its caches then does not end (controller-runtime v0.24.1
// goes round in a circle): it is left behind after a while, as the process ends.
func runManager(ctx context.Context, mgr manager.Manager, within time.Duration) error {
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(within):
		return nil
	}
}

// handlerOf turns a watch into what the library calls.
func handlerOf(watch Watch) handler.EventHandler {
	put := func(ctx context.Context, q queue, old, fresh client.Object) {
		for _, request := range watch.Heard(ctx, old, fresh) {
			if watch.After > 0 {
				q.AddAfter(request, watch.After)
			} else {
				q.Add(request)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e ctrlevent.CreateEvent, q queue) { put(ctx, q, nil, e.Object) },
		UpdateFunc: func(ctx context.Context, e ctrlevent.UpdateEvent, q queue) { put(ctx, q, e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(ctx context.Context, e ctrlevent.DeleteEvent, q queue) { put(ctx, q, e.Object, nil) },
	}
}

var _ handler.EventHandler = handler.TypedFuncs[client.Object, reconcile.Request]{}
