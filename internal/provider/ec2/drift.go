package ec2

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	nodeclass "github.com/joiner-autoscaler/joiner/internal/provider/ec2/class"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/machines"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
)

// Reasons of drift, as in Karpenter (E-49).
const (
	DriftAMI           = "AMIDrift"
	DriftSubnet        = "SubnetDrift"
	DriftSecurityGroup = "SecurityGroupDrift"
	DriftNodeClass     = "NodeClassDrift"
	DriftReservation   = "CapacityReservationDrift"
	DriftPlacement     = "PlacementGroupDrift"
)

// Drifted compares the claim's machine with the current state of its class. It makes no call and uses the class's
// status and the last listing. Unknown facts count as not drifted.
func (p *Provider) Drifted(ctx context.Context, claim *karpenterv1.NodeClaim) (string, error) {
	if claim.Spec.NodeClassRef == nil {
		return "", nil
	}
	class, err := p.class(ctx, claim.Spec.NodeClassRef.Name)
	if err != nil {
		return "", err
	}
	image := claim.Status.ImageID
	if len(class.Status.AMIs) > 0 && image != "" &&
		!slices.ContainsFunc(class.Status.AMIs, func(a awsv1.AMI) bool { return a.ID == image }) {
		return DriftAMI, nil
	}
	if nodeclass.Drifted(claim.Annotations, class.Annotations) {
		return DriftNodeClass, nil
	}
	p.mu.Lock()
	m, seen := p.lastSeen[claim.Status.ProviderID]
	p.mu.Unlock()
	if seen {
		if reason := p.moved(class, m); reason != "" {
			return reason, nil
		}
	}
	kind := claim.Labels[string(catalog.LabelInstanceType)]
	offered, err := p.catalogOf(ctx, class)
	if err != nil || kind == "" || len(offered.Types) == 0 {
		return "", err
	}
	if _, found := typeIn(offered, kind); !found {
		return provider.DriftInstanceTypeNotFound, nil
	}
	return "", nil
}

// moved compares subnet, security groups, reservation and placement group of a machine with those of its class.
func (p *Provider) moved(class *awsv1.EC2NodeClass, m machines.Machine) string {
	status := class.Status
	if len(status.Subnets) > 0 && m.Subnet != "" &&
		!slices.ContainsFunc(status.Subnets, func(s awsv1.Subnet) bool { return s.ID == m.Subnet }) {
		return DriftSubnet
	}
	if p.otherGroups(class, m) {
		return DriftSecurityGroup
	}
	if m.Reservation != "" && condition.IsTrue(status.Conditions, resolve.CapacityReservationsReady) &&
		!slices.ContainsFunc(status.CapacityReservations, func(r awsv1.CapacityReservation) bool {
			return r.ID == m.Reservation
		}) {
		return DriftReservation
	}
	if group, err := p.placement(class); err == nil && group.ID != "" && m.PlacementGroup != "" &&
		group.ID != m.PlacementGroup {
		return DriftPlacement
	}
	return ""
}

// otherGroups reports whether the security groups of a machine differ from those of its class. Groups that others add,
// such as a firewall manager, do not matter while the class has the groups of the machine's launch (E-50).
func (p *Provider) otherGroups(class *awsv1.EC2NodeClass, m machines.Machine) bool {
	wanted := groupsOf(class)
	if len(wanted) == 0 || len(m.Groups) == 0 || len(class.Spec.NetworkInterfaces) > 0 ||
		slices.Equal(wanted, m.Groups) {
		return false
	}
	all := !slices.ContainsFunc(wanted, func(id string) bool { return !slices.Contains(m.Groups, id) })
	return !all || m.Tags[tagGroups] != hashOf(wanted)
}

// groupsOf returns the ids of the class's security groups, sorted.
func groupsOf(class *awsv1.EC2NodeClass) []string {
	var ids []string
	for _, group := range class.Status.SecurityGroups {
		ids = append(ids, group.ID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// tagGroups is the tag of an instance with a hash of its class's security groups at the launch.
const tagGroups = "joiner.sh/security-groups"

func hashOf(ids []string) string {
	sum := sha256.Sum256([]byte(strings.Join(ids, ",")))
	return hex.EncodeToString(sum[:8])
}
