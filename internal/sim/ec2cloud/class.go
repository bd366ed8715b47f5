package ec2cloud

import (
	"fmt"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/plugin"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/plug"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
)

// This file has the node class: what users write there, what it selects, and the shipped controllers that find it.

const images = "amazon-eks-node-al2023-x86_64-standard-1.33-"

// selecting returns a node class as users write it. It selects all that the status of the account's has.
func selecting(reservations bool) awsv1.EC2NodeClassSpec {
	family, profile, discovery := "AL2023", "nodes", map[string]string{"karpenter.sh/discovery": clusterName}
	spec := awsv1.EC2NodeClassSpec{
		AMIFamily: &family, AMISelectorTerms: []awsv1.AMISelectorTerm{{Name: images + "*", Owner: "amazon"}},
		InstanceProfile:            &profile,
		SubnetSelectorTerms:        []awsv1.SubnetSelectorTerm{{Tags: discovery}},
		SecurityGroupSelectorTerms: []awsv1.SecurityGroupSelectorTerm{{Tags: discovery}},
	}
	if reservations {
		spec.CapacityReservationSelectorTerms = []awsv1.CapacityReservationSelectorTerm{{Tags: chosen()}}
	}
	return spec
}

// NewImage publishes a newer image, which the class selects.
func (a *Account) NewImage() ec2test.Image {
	a.images++
	image := a.endpoint.AddImage(ec2test.Image{Name: fmt.Sprintf("%sv202611%02d", images, a.images)})
	a.newest = image.ID
	return image
}

// Newest returns the ID of the image that the class selects.
func (a *Account) Newest() string { return a.newest }

// SelectSubnets returns terms that select the subnet of a zone of EC2, all subnets ("all"), or none ("none").
func (a *Account) SelectSubnets(which string) []awsv1.SubnetSelectorTerm {
	switch which {
	case "all":
		return selecting(false).SubnetSelectorTerms
	case "none":
		return []awsv1.SubnetSelectorTerm{{Tags: map[string]string{"karpenter.sh/discovery": "nobody"}}}
	}
	var terms []awsv1.SubnetSelectorTerm
	for _, n := range a.class.Status.Subnets {
		if n.Zone == which {
			terms = append(terms, awsv1.SubnetSelectorTerm{ID: n.ID})
		}
	}
	return terms
}

// Parts returns the shipped provider in the state of a new process, with the controllers that keep the node class and
// the labels of nodes up to date.
func (a *Account) Parts(p Process, deps plugin.Deps) (plugin.Parts, error) {
	clients := a.clients(p.Clock, p.Send)
	machines, err := a.provider(p, clients)
	if err != nil {
		return plugin.Parts{}, err
	}
	resolver, err := resolve.New(resolve.Config{EC2: clients.EC2, SSM: clients.SSM, IAM: clients.IAM,
		Now: p.Clock.Now, Cluster: clusterName, Region: region})
	if err != nil {
		return plugin.Parts{}, err
	}
	return plug.Over(deps, plug.Connected{Cluster: clusterName, Machines: machines, Resolver: resolver,
		Clock: p.Clock, Facts: facts(), Kubernetes: "1.33"}), nil
}
