package ec2

import (
	"context"
	"slices"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/provider"
)

// Reasons of drift, as Karpenter has them (E-49).
const (
	DriftAMI           = "AMIDrift"
	DriftSubnet        = "SubnetDrift"
	DriftSecurityGroup = "SecurityGroupDrift"
)

// Drifted compares the claim's machine with what its class stands for now, without a call: by the class's status and the last
// listing. What is not known has not drifted.
func (p *Provider) Drifted(ctx context.Context, claim *karpenterv1.NodeClaim) (string, error) {
	if claim.Spec.NodeClassRef == nil {
		return "", nil
	}
	class, err := p.class(ctx, claim.Spec.NodeClassRef.Name)
	if err != nil {
		return "", err
	}
	image := claim.Status.ImageID
	if len(class.Status.AMIs) > 0 && image != "" && !slices.ContainsFunc(class.Status.AMIs, func(a awsv1.AMI) bool { return a.ID == image }) {
		return DriftAMI, nil
	}
	p.mu.Lock()
	m, seen := p.lastSeen[claim.Status.ProviderID]
	p.mu.Unlock()
	if seen {
		if len(class.Status.Subnets) > 0 && m.Subnet != "" &&
			!slices.ContainsFunc(class.Status.Subnets, func(s awsv1.Subnet) bool { return s.ID == m.Subnet }) {
			return DriftSubnet, nil
		}
		var wanted []string
		for _, group := range class.Status.SecurityGroups {
			wanted = append(wanted, group.ID)
		}
		slices.Sort(wanted)
		if len(wanted) > 0 && len(m.Groups) > 0 && len(class.Spec.NetworkInterfaces) == 0 && !slices.Equal(wanted, m.Groups) {
			return DriftSecurityGroup, nil
		}
	}
	kind := claim.Labels[string(catalog.LabelInstanceType)]
	offered, err := p.catalog(class)
	if err != nil || kind == "" || len(offered.Types) == 0 {
		return "", err
	}
	if _, found := typeIn(offered, kind); !found {
		return provider.DriftInstanceTypeNotFound, nil
	}
	return "", nil
}
