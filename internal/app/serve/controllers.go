package serve

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/joiner-autoscaler/joiner/internal/kube"
)

// Delays after failed steps: short at first, and never so long that a healed fault goes unnoticed.
const (
	retryFirst = 100 * time.Millisecond
	retryMost  = 10 * time.Second
)

// AddController adds a controller to a manager, with its queue and watches.
func AddController(ctx context.Context, mgr manager.Manager, c kube.Controller, bells *Bells, log logr.Logger) error {
	built, err := controller.New(c.Name, mgr, controller.Options{
		Reconciler: c.Reconciler, MaxConcurrentReconciles: c.Workers, SkipNameValidation: new(true),
		RateLimiter:    workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryFirst, retryMost),
		LogConstructor: func(*reconcile.Request) logr.Logger { return Quiet(ctx, log).WithName(c.Name) },
	})
	if err != nil {
		return err
	}
	ready := source.Func(func(_ context.Context, q queue) error {
		bells.add(c.Name, q)
		if c.Start {
			q.Add(kube.Singleton())
		}
		return nil
	})
	if err := built.Watch(ready); err != nil {
		return err
	}
	for _, watch := range c.Watches {
		if err := built.Watch(source.Kind(mgr.GetCache(), watch.Object, handlerOf(watch))); err != nil {
			return err
		}
	}
	return nil
}

// queue is the queue of one controller.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Bells wake controllers by name. They skip a controller that has not started yet: it looks at everything when it
// starts.
type Bells struct {
	mu     sync.Mutex
	queues map[string]queue
}

// NewBells returns bells without controllers.
func NewBells() *Bells { return &Bells{queues: map[string]queue{}} }

func (b *Bells) add(name string, q queue) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queues[name] = q
}

// Ring wakes a controller with a request, after a delay.
func (b *Bells) Ring(name string, request reconcile.Request, after time.Duration) {
	b.mu.Lock()
	q := b.queues[name]
	b.mu.Unlock()
	switch {
	case q == nil:
	case after > 0:
		q.AddAfter(request, after)
	default:
		q.Add(request)
	}
}

// Syncs knows whether each handler has seen the first list of its kind.
type Syncs struct {
	mu    sync.Mutex
	found []synced
}

type synced struct {
	what string
	has  func() bool
}

// Add adds a handler, with a name for what it waits for.
func (s *Syncs) Add(what string, has func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found = append(s.found, synced{what, has})
}

// All reports whether every handler has seen its first list.
func (s *Syncs) All() bool { return len(s.Missing()) == 0 }

// Missing returns the names of what has not been listed yet, sorted and without duplicates. A kind that may not be
// listed stays in it.
func (s *Syncs) Missing() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var missing []string
	for _, each := range s.found {
		if !each.has() {
			missing = append(missing, each.what)
		}
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}

// KindOf names the kind of an object for people: Pod, EC2NodeClass.
func KindOf(object client.Object) string { return reflect.TypeOf(object).Elem().Name() }

// handlerOf turns a watch into a handler of controller-runtime.
func handlerOf(watch kube.Watch) handler.EventHandler {
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
		UpdateFunc: func(ctx context.Context, e ctrlevent.UpdateEvent, q queue) {
			put(ctx, q, e.ObjectOld, e.ObjectNew)
		},
		DeleteFunc: func(ctx context.Context, e ctrlevent.DeleteEvent, q queue) { put(ctx, q, e.Object, nil) },
	}
}

var _ handler.EventHandler = handler.TypedFuncs[client.Object, reconcile.Request]{}
