package plug

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/claim"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/controller/node"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// How many nodes and claims joiner processes concurrently, as in internal/app/joiner/compose.go.
const (
	nodeWorkers  = 20
	claimWorkers = 500
)

// inTime shows the region's time, and waits by the machine's clock.
type inTime struct{ soon }

// AfterFunc implements timer.Clock.
func (inTime) AfterFunc(d time.Duration, f func()) func() { return timer.Real{}.AfterFunc(d, f) }

// ending runs the controllers that end nodes, with as many workers as joiner has. It is also their API server: the
// test measures how calls of EC2 are gathered, and the usual fake server would take longer than these. Nodes are
// already drained, a patch removes the finalizer, and conditions are ignored.
type ending struct {
	client.Client // of which nothing else is called
	*region
	queues  map[bool]workqueue.TypedRateLimitingInterface[string] // of nodes, true, and of claims
	workers sync.WaitGroup

	objects sync.Mutex
	nodes   map[string]*corev1.Node           // by the name of the claim
	claims  map[string]*karpenterv1.NodeClaim // by name
	names   map[string]string                 // of claims, by provider ID
}

func newEnding(r *region) *ending {
	e := &ending{region: r, queues: map[bool]workqueue.TypedRateLimitingInterface[string]{},
		nodes: map[string]*corev1.Node{}, claims: map[string]*karpenterv1.NodeClaim{}, names: map[string]string{}}
	r.link.clock = inTime{soon{r}}
	r.link.deps.Client = interceptor.NewClient(r.kube.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList,
			options ...client.ListOption) error {
			if _, of := list.(*karpenterv1.NodeClaimList); of && len(e.queues) > 0 {
				return e.List(ctx, list, options...)
			}
			return c.List(ctx, list, options...)
		},
	})
	return e
}

// start lets the controllers work.
func (e *ending) start() {
	e.t.Helper()
	var list karpenterv1.NodeClaimList
	if err := e.kube.List(e.t.Context(), &list); err != nil {
		e.t.Fatal(err)
	}
	for _, c := range list.Items {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: c.Status.NodeName, Finalizers: c.Finalizers,
			Labels: map[string]string{karpenterv1.ExcludeBalancersLabelKey: karpenterv1.ExcludeBalancersLabelValue}}}
		n.Spec.ProviderID = c.Status.ProviderID
		n.Spec.Taints = []corev1.Taint{{Key: karpenterv1.DisruptedTaintKey, Effect: corev1.TaintEffectNoSchedule}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		e.nodes[c.Name], e.claims[c.Name], e.names[c.Status.ProviderID] = n, &c, c.Name
	}
	machines, counts := fleet.New(lazy{link: e.link}), metrics.New(prometheus.NewRegistry())
	for isNode, c := range map[bool]struct {
		workers int
		reconcile.Reconciler
	}{
		true: {nodeWorkers,
			node.New(node.Config{Client: e, Live: e, Fleet: machines, Events: e, Metrics: counts, Now: e.Now,
				Log: logr.Discard()})},
		false: {claimWorkers,
			claim.New(claim.Config{Client: e, Live: e, Fleet: machines, Catalogs: e, PodEvents: claim.NewPodEvents(),
				Events: e, Metrics: counts, Holder: "test", Now: e.Now, Log: logr.Discard()})},
	} {
		queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
		e.queues[isNode] = queue
		for range c.workers {
			e.workers.Go(func() { e.work(queue, c) })
		}
	}
	e.t.Cleanup(func() {
		for _, queue := range e.queues {
			queue.ShutDown()
		}
		e.workers.Wait()
	})
}

// SetCatalog implements claim.Catalogs.
func (*ending) SetCatalog(world.ClassRef, catalog.Catalog) error { return nil }

// work is one worker of a controller, like controller-runtime's.
func (e *ending) work(queue workqueue.TypedRateLimitingInterface[string], r reconcile.Reconciler) {
	for {
		name, stop := queue.Get()
		if stop {
			return
		}
		result, err := r.Reconcile(e.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
		switch {
		case err != nil:
			queue.AddRateLimited(name)
		case result.RequeueAfter > 0:
			queue.Forget(name)
			queue.AddAfter(name, result.RequeueAfter)
		default:
			queue.Forget(name)
		}
		queue.Done(name)
	}
}

// Get implements client.Client.
func (e *ending) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	e.objects.Lock()
	defer e.objects.Unlock()
	switch o := into.(type) {
	case *corev1.Node:
		if n := e.nodes[strings.TrimPrefix(key.Name, "node-")]; n != nil {
			n.DeepCopyInto(o)
			return nil
		}
	case *karpenterv1.NodeClaim:
		if c := e.claims[key.Name]; c != nil {
			c.DeepCopyInto(o)
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// List implements client.Client: there are neither pods nor volumes.
func (e *ending) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	var id string // of the machine, "" for all
	if of := (&client.ListOptions{}).ApplyOptions(options).FieldSelector; of != nil {
		_, id, _ = strings.Cut(of.String(), "=")
	}
	e.objects.Lock()
	defer e.objects.Unlock()
	switch l := list.(type) {
	case *corev1.NodeList:
		if n := e.nodes[e.names[id]]; n != nil {
			l.Items = append(l.Items, *n.DeepCopy())
		}
	case *karpenterv1.NodeClaimList:
		for _, c := range e.claims {
			if id == "" || c.Status.ProviderID == id {
				l.Items = append(l.Items, *c)
			}
		}
	}
	return nil
}

// Delete implements client.Client.
func (e *ending) Delete(_ context.Context, o client.Object, _ ...client.DeleteOption) error {
	return e.change(o, func(o client.Object, _ string) {
		now := metav1.NewTime(e.Now())
		o.SetDeletionTimestamp(&now)
	})
}

// Patch implements client.Client.
func (e *ending) Patch(_ context.Context, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
	return e.change(o, func(o client.Object, name string) {
		if _, isNode := o.(*corev1.Node); isNode {
			delete(e.nodes, name)
		} else {
			delete(e.claims, name)
		}
	})
}

// change changes an object, and notifies the controllers, like watches.
func (e *ending) change(of client.Object, change func(o client.Object, name string)) error {
	name, isNode := strings.CutPrefix(of.GetName(), "node-")
	e.objects.Lock()
	defer e.objects.Unlock()
	if n := e.nodes[name]; isNode && n != nil {
		n = n.DeepCopy()
		e.nodes[name] = n
		change(n, name)
		e.queues[true].Add(of.GetName())
	} else if c := e.claims[name]; c != nil {
		c = c.DeepCopy()
		e.claims[name] = c
		change(c, name)
	}
	e.queues[false].Add(name)
	return nil
}

// Status implements client.Client.
func (*ending) Status() client.SubResourceWriter { return unread{} }

// unread accepts any status, and ignores it.
type unread struct{ client.SubResourceWriter }

// Patch implements client.SubResourceWriter.
func (unread) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return nil
}

// E-61: 500 nodes that end at once need five calls of TerminateInstances, however few are processed concurrently, and
// at most twenty of DescribeInstances.
func TestFiveHundredEnds(t *testing.T) {
	t.Parallel()
	const machines = 500
	r := newRegion(t, nil, aClass("default"))
	e := newEnding(r)
	newDay(r).run(70 * time.Second) // until EC2 is sure to know the profile
	r.fill(machines)
	e.start()
	r.server.Forget()
	began := time.Now()
	for name := range machines {
		if err := e.Delete(t.Context(), aClaim(fmt.Sprintf("n%04d", name))); err != nil {
			t.Fatal(err)
		}
	}
	e.until("every machine to end", func() bool {
		return !slices.ContainsFunc(r.server.Instances(), func(i ec2test.Instance) bool {
			return i.State != ec2test.ShuttingDown && i.State != ec2test.Terminated
		})
	})
	t.Logf("%s after the first claim was deleted all machines end: %v", time.Since(began).Round(time.Millisecond),
		r.server.Counts())
	r.pass(time.Minute) // EC2 takes half of it
	e.until("every claim to go", func() bool {
		e.objects.Lock()
		defer e.objects.Unlock()
		return len(e.claims) == 0
	})
	calls := r.server.Counts()
	t.Logf("%s after it all claims are gone: %v", time.Since(began).Round(time.Millisecond), calls)
	if ends, looks := calls["ec2:TerminateInstances"], calls["ec2:DescribeInstances"]; ends == 0 || ends > 5 ||
		looks > 20 {
		t.Errorf("%d calls of TerminateInstances and %d of DescribeInstances for %d machines: want at most 5 and 20",
			ends, looks, machines)
	}
}

// until waits for something.
func (e *ending) until(what string, is func() bool) {
	e.t.Helper()
	again, late := time.NewTicker(100*time.Millisecond), time.After(2*time.Minute)
	defer again.Stop()
	for !is() {
		select {
		case <-again.C:
		case <-late:
			e.t.Fatalf("waited two minutes for %s: %v", what, e.server.Counts())
		}
	}
}
