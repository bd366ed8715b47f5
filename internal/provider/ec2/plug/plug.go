// Package plug plugs the EC2 provider into a program: its flags, the connection to AWS, its access to the cluster, and
// these controllers beside launches:
//
//   - connect finds region and credentials, and the facts of the cluster (E-16, E-59).
//   - classes resolves EC2NodeClasses and writes the results (E-02 to E-05, E-62).
//   - offers refreshes types and prices (E-17, E-24), and learns from nodes (E-21).
//   - tags names instances after their nodes (E-57).
//   - collect deletes launch templates and instance profiles that nobody needs (E-56).
//   - queue reads warnings (E-51), health checks status checks (E-53).
//
// Start with [Plug] and then [link].
package plug

import (
	"context"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/kube"
	"github.com/joiner-autoscaler/joiner/internal/plugin"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2"
)

// The names of the controllers.
const (
	Connect = "ec2.connect"
	Classes = "ec2.classes"
	Offers  = "ec2.offers"
	Tags    = "ec2.tags"
	Collect = "ec2.collect"
	Queue   = "ec2.queue"
	Health  = "ec2.health"
)

// Plug is the EC2 provider with its settings.
type Plug struct{ settings settings }

var _ plugin.Plugin = (*Plug)(nil)

// New returns the plug-in with default settings.
func New() *Plug { return &Plug{defaults()} }

// Name returns "ec2".
func (p *Plug) Name() string { return "ec2" }

// Class returns EC2NodeClass.
func (p *Plug) Class() plugin.Class {
	return plugin.Class{Resource: awsv1.GroupVersion().WithResource("ec2nodeclasses"), Object: &awsv1.EC2NodeClass{}}
}

// Flags implements plugin.Plugin.
func (p *Plug) Flags(flags *pflag.FlagSet) { p.settings.flags(flags) }

// Load implements plugin.Plugin: it checks the settings.
func (p *Plug) Load() error { return p.settings.validate() }

// Lacks implements plugin.Plugin: without the cluster's name it cannot tell which instances are ours.
func (p *Plug) Lacks() string {
	if p.settings.clusterName == "" {
		return "cluster-name"
	}
	return ""
}

// AddToScheme implements plugin.Plugin.
func (p *Plug) AddToScheme(scheme *runtime.Scheme) error { return awsv1.AddToScheme(scheme) }

// Cached implements plugin.Plugin: it reads only kinds that others read too.
func (p *Plug) Cached(string) map[client.Object]cache.ByObject { return nil }

// New implements plugin.Plugin. It makes no calls yet: only the leader does.
func (p *Plug) New(ctx context.Context, deps plugin.Deps) (plugin.Parts, error) {
	l := newLink(p.settings, deps)
	return l.parts(ctx), nil
}

// parts returns the parts of the provider.
func (l *link) parts(process context.Context) plugin.Parts {
	step := func(do func(ctx context.Context, c *connection) (time.Duration, error)) reconcile.Reconciler {
		return stepper{l, do}
	}
	classes := newClasses(l)
	return plugin.Parts{
		Provider: lazy{link: l}, Class: &awsv1.EC2NodeClass{}, Ready: l.ready, Drifts: mayDrift, Held: ec2.SignedFor,
		Controllers: []kube.Controller{
			{Name: Connect, Workers: 1, Start: true, Looks: true, Reconciler: connector{l, process}},
			{Name: Classes, Workers: 1, Start: true, Reconciler: classes, Watches: classWatches()},
			{Name: Offers, Workers: 1, Start: true, Looks: true, Reconciler: step(newOffers(l).step)},
			{Name: Tags, Workers: 5, Reconciler: newTagger(l), Watches: tagWatches()},
			{Name: Collect, Workers: 1, Start: true, Reconciler: step(newCollector(l).step)},
			{Name: Queue, Workers: 1, Start: true, Reconciler: step(newReader(l).step)},
			{Name: Health, Workers: 1, Start: true, Reconciler: step(newHealth(l).step)},
		},
	}
}

const (
	// againSoon is after what time to try to connect again, and to check again for a connection.
	againSoon = 10 * time.Second
	// factsEvery is how often the facts of the cluster are updated: its version changes.
	factsEvery = 5 * time.Minute
	// factsAgain is how soon they are asked for again after a failure: classes may wait for them.
	factsAgain = time.Minute
)

// connector is the step function that connects.
type connector struct {
	link    *link
	process context.Context // the provider's goroutines end with it
}

// Reconcile implements reconcile.Reconciler.
func (c connector) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	l := c.link
	if l.connected() == nil {
		if err := l.connect(c.process); err != nil {
			l.deps.Log.Info("AWS cannot be asked; trying again", "reason", err.Error())
			l.deps.Wake(Classes)
			return reconcile.Result{RequeueAfter: againSoon}, nil
		}
		l.deps.Log.Info("connected", "region", l.connected().region, "cluster", l.settings.clusterName)
	}
	before := l.known()
	complete := l.look(ctx, l.connected())
	for _, controller := range []string{Offers, Classes, Queue, Health, Collect} {
		if before.kubernetes == "" || controller == Classes {
			l.deps.Wake(controller)
		}
	}
	switch {
	case !complete && before.kubernetes == "":
		return reconcile.Result{RequeueAfter: againSoon}, nil
	case !complete:
		return reconcile.Result{RequeueAfter: factsAgain}, nil
	}
	return reconcile.Result{RequeueAfter: factsEvery}, nil
}

// stepper is a step function that needs a connection.
type stepper struct {
	link *link
	do   func(ctx context.Context, c *connection) (again time.Duration, err error)
}

// Reconcile implements reconcile.Reconciler.
func (s stepper) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	c := s.link.connected()
	if c == nil {
		return reconcile.Result{}, nil // the connector wakes it
	}
	again, err := s.do(ctx, c)
	return reconcile.Result{RequeueAfter: again}, err
}

// metaOf returns the metadata of an object that a patch needs.
func metaOf(o client.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: o.GetName(), Namespace: o.GetNamespace(), UID: o.GetUID()}
}

// classWatches returns the watches for classes: changes by users, but not of our own status; and deleted claims, since
// a class may wait for them.
func classWatches() []kube.Watch {
	return []kube.Watch{
		{Object: &awsv1.EC2NodeClass{}, After: kube.OwnPatches,
			Requests: func(_ context.Context, old, fresh client.Object) []reconcile.Request {
				if old != nil && fresh != nil && old.GetGeneration() == fresh.GetGeneration() &&
					sameAnnotations(old, fresh) &&
					(old.GetDeletionTimestamp() == nil) == (fresh.GetDeletionTimestamp() == nil) {
					return nil
				}
				return []reconcile.Request{kube.Singleton()}
			}},
		{Object: &karpenterv1.NodeClaim{}, After: time.Second,
			Requests: func(_ context.Context, old, fresh client.Object) []reconcile.Request {
				claim, is := old.(*karpenterv1.NodeClaim)
				if fresh != nil || !is || !refers(claim) {
					return nil
				}
				return []reconcile.Request{kube.Singleton()}
			}},
	}
}

// tagWatches returns the watch for claims whose node has registered.
func tagWatches() []kube.Watch {
	return []kube.Watch{
		{Object: &karpenterv1.NodeClaim{},
			Requests: func(_ context.Context, _, fresh client.Object) []reconcile.Request {
				claim, is := fresh.(*karpenterv1.NodeClaim)
				if !is || claim.Status.NodeName == "" || claim.DeletionTimestamp != nil || !refers(claim) {
					return nil
				}
				return kube.Requests(claim.Name)
			}}}
}
