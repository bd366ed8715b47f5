package operator_test

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
)

// admitted is the guest as its API server is: a NodePool has a UID and a generation, and admission may change what is
// written.
func (s *scene) admitted(admission func(pool *karpenterv1.NodePool)) client.WithWatch {
	made := 0
	admit := func(o client.Object) {
		pool, is := o.(*karpenterv1.NodePool)
		if !is {
			return
		}
		admission(pool)
		switch known := s.nodePool(pool.Name); {
		case known == nil:
			made++
			pool.UID, pool.Generation = types.UID("uid-"+pool.Name+string(rune('0'+made))), 1
		case !reflect.DeepEqual(known.Spec, pool.Spec):
			pool.Generation = known.Generation + 1
		}
	}
	return interceptor.NewClient(s.guest, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			admit(o)
			return c.Create(ctx, o, options...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			admit(o)
			return c.Update(ctx, o, options...)
		},
	})
}

func asWritten(*karpenterv1.NodePool) {}

// stale is a cache over a server that shows some objects as they were when they were put in, and no others of their
// names.
type stale struct {
	client.WithWatch
	shows map[string]client.Object // by Go type and name; nil shows nothing
}

func newStale(server client.WithWatch) *stale { return &stale{server, map[string]client.Object{}} }

func (c *stale) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	shown, frozen := c.shows[reflect.TypeOf(o).String()+key.Name]
	switch {
	case frozen && shown == nil:
		return c.WithWatch.Get(ctx, client.ObjectKey{Name: "no-such-name"}, o, options...)
	case frozen:
		reflect.ValueOf(o).Elem().Set(reflect.ValueOf(shown.DeepCopyObject()).Elem())
		return nil
	}
	return c.WithWatch.Get(ctx, key, o, options...)
}

// freeze shows an object as it is, whatever becomes of it.
func (c *stale) freeze(o client.Object) {
	c.shows[reflect.TypeOf(o).String()+o.GetName()] = o.DeepCopyObject().(client.Object)
}

func (c *stale) hide(o client.Object) { c.shows[reflect.TypeOf(o).String()+o.GetName()] = nil }

func (s *scene) change(name string, change func(pool *karpenterv1.NodePool)) {
	s.t.Helper()
	pool := s.nodePool(name)
	change(pool)
	s.must(s.guest.Update(s.t.Context(), pool))
}

func (s *scene) deletePool(name string) {
	s.t.Helper()
	s.must(s.guest.Delete(s.t.Context(), s.nodePool(name)))
}

func (s *scene) deleteWrapper(name string) {
	s.t.Helper()
	s.must(s.guest.Delete(s.t.Context(), s.wrapper(name)))
}

// learn lets the board know an answer of the management cluster.
func (s *scene) learn(answer operator.Answer) {
	s.board.Set(operator.Reading{}.Next(answer, s.clock.Now(), false))
}
