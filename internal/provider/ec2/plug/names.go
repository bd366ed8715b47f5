package plug

import (
	"context"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/calls"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/machines"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/pace"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
)

// Names asks EC2 for the node names of a cluster's instances (E-47), for the approver of their first certificates. It
// connects at the first question, by the SDK's own chain.
type Names struct {
	process context.Context // its goroutines end with it
	cluster string
	load    func(ctx context.Context) (aws.Config, error)

	mu       sync.Mutex
	machines *machines.Machines
}

// NewNames returns Names for the instances of a cluster in a region. cluster is the name in their tag
// eks:eks-cluster-name. region "" means the one that the SDK finds.
func NewNames(ctx context.Context, cluster, region string) *Names {
	return &Names{process: ctx, cluster: cluster, load: func(ctx context.Context) (aws.Config, error) {
		return config.LoadDefaultConfig(ctx, config.WithRegion(region))
	}}
}

// Of returns the names by provider ID. It leaves out instances that EC2 does not know in this cluster.
func (n *Names) Of(ctx context.Context, providerIDs []string) (map[string]string, error) {
	if len(providerIDs) == 0 {
		return nil, nil
	}
	from, err := n.connect(ctx)
	if err != nil {
		return nil, err
	}
	return from.Names(ctx, providerIDs)
}

func (n *Names) connect(ctx context.Context) (*machines.Machines, error) {
	n.mu.Lock()
	known := n.machines
	n.mu.Unlock()
	if known != nil {
		return known, nil
	}
	cfg, why := find(ctx, n.load)
	if why.Reason != "" {
		return nil, fmt.Errorf("%s: %s", why.Reason, why.Message)
	}
	clock := timer.Real{}
	clients := calls.New(calls.Config{AWS: cfg, Clock: clock, Pace: pace.New(clock)})
	made := machines.New(n.process, machines.Config{EC2: clients.EC2, Clock: clock, Cluster: n.cluster})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.machines = made
	return made, nil
}
