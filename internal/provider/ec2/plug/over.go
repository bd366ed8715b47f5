package plug

import (
	"context"
	"time"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/kube"
	"github.com/joiner-autoscaler/joiner/internal/plugin"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/class"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
)

// Connected is a connection to AWS that the caller has made.
type Connected struct {
	Cluster  string // its name
	Machines *ec2.Provider
	Resolver *resolve.Resolver
	Clock    timer.Clock
	// Facts are what nodes have to know about the cluster, and Kubernetes is the version of its API server.
	Facts      ec2.Facts
	Kubernetes string
}

// Over returns the parts of the provider over a connection that is already made, with the controllers that keep node
// classes and what is known of nodes up to date: [Classes] and [Offers], as [Plug.New] has them. Simulated worlds use
// it, which have their own account and clock. Types and prices stay as the caller has them, and no class is tried by a
// dry run.
func Over(deps plugin.Deps, c Connected) plugin.Parts {
	l := newLink(settings{clusterName: c.Cluster, dryRunOff: true}, deps)
	l.clock = c.Clock
	l.now = &connection{machines: c.Machines, resolver: c.Resolver}
	l.facts = facts{join: class.Join{Cluster: c.Facts.Join, DNS: c.Facts.DNS}, kubernetes: c.Kubernetes,
		pods: c.Facts.PodAddresses}
	known := newOffers(l)
	learn := func(ctx context.Context, c *connection) (time.Duration, error) {
		return learnEvery, known.learn(ctx, c)
	}
	return plugin.Parts{
		Provider: c.Machines, Class: &awsv1.EC2NodeClass{}, Drifts: mayDrift, Held: ec2.SignedFor,
		Controllers: []kube.Controller{
			{Name: Classes, Workers: 1, Start: true, Reconciler: newClasses(l), Watches: classWatches()},
			{Name: Offers, Workers: 1, Start: true, Looks: true, Reconciler: stepper{l, learn}},
		},
	}
}
