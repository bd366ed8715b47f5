package ec2

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
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
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/spec"
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
func (p *Provider) Drifted(ctx context.Context, claim *karpenterv1.NodeClaim) (provider.Drift, error) {
	if claim.Spec.NodeClassRef == nil {
		return provider.Drift{}, nil
	}
	class, err := p.class(ctx, claim.Spec.NodeClassRef.Name)
	if err != nil {
		return provider.Drift{}, err
	}
	image := claim.Status.ImageID
	if len(class.Status.AMIs) > 0 && image != "" &&
		!slices.ContainsFunc(class.Status.AMIs, func(a awsv1.AMI) bool { return a.ID == image }) {
		return drift(DriftAMI, "it runs image %s, and EC2NodeClass %s selects %s", image, class.Name,
			first(class.Status.AMIs, func(a awsv1.AMI) string { return a.ID })), nil
	}
	if nodeclass.Drifted(claim.Annotations, class.Annotations) {
		return provider.Drift{Reason: DriftNodeClass, Message: spec.DriftText(class.Name)}, nil
	}
	p.mu.Lock()
	m, seen := p.lastSeen[claim.Status.ProviderID]
	p.mu.Unlock()
	if seen {
		if found := p.moved(class, m); found.Reason != "" {
			return found, nil
		}
	}
	kind := claim.Labels[string(catalog.LabelInstanceType)]
	if lost, err := p.lost(ctx, class, kind); err != nil || !lost {
		return provider.Drift{}, err
	}
	return provider.TypeNotFound(kind), nil
}

// lost reports whether a class offers other types, and not this one, available or not. It builds this type only: all
// claims ask every few minutes, and among many classes nearly each question would come after the end of a cached
// catalogue (see keptFor). The whole catalogue is for the few machines whose type is not found.
func (p *Provider) lost(ctx context.Context, class *awsv1.EC2NodeClass, kind string) (bool, error) {
	if kind == "" {
		return false, nil
	}
	in, err := p.input(class, p.config.Types.Known(), p.config.Prices.Known(), p.config.Clock.Now(), kind)
	if err != nil {
		return false, err
	}
	part, err := p.build(in)
	if err != nil || len(part.Catalog.Types) > 0 {
		return false, err
	}
	offered, err := p.catalogOf(ctx, class)
	if err != nil || len(offered.Types) == 0 {
		return false, err
	}
	_, found := typeIn(offered, kind)
	return !found, nil
}

func drift(reason, format string, args ...any) provider.Drift {
	return provider.Drift{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// first lists up to three names, and says how many more there are.
func first[T any](all []T, name func(T) string) string {
	const most = 3
	var names []string
	for _, each := range all[:min(len(all), most)] {
		names = append(names, name(each))
	}
	text := strings.Join(names, ", ")
	if more := len(all) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// moved compares subnet, security groups, reservation and placement group of a machine with those of its class.
func (p *Provider) moved(class *awsv1.EC2NodeClass, m machines.Machine) provider.Drift {
	status := class.Status
	if len(status.Subnets) > 0 && m.Subnet != "" &&
		!slices.ContainsFunc(status.Subnets, func(s awsv1.Subnet) bool { return s.ID == m.Subnet }) {
		return drift(DriftSubnet, "it is in subnet %s, and EC2NodeClass %s selects %s", m.Subnet, class.Name,
			first(status.Subnets, func(s awsv1.Subnet) string { return s.ID }))
	}
	if p.otherGroups(class, m) {
		same := func(id string) string { return id }
		return drift(DriftSecurityGroup, "it has the security groups %s, and EC2NodeClass %s selects %s",
			first(m.Groups, same), class.Name, first(groupsOf(class), same))
	}
	if m.Reservation != "" && condition.IsTrue(status.Conditions, resolve.CapacityReservationsReady) &&
		!slices.ContainsFunc(status.CapacityReservations, func(r awsv1.CapacityReservation) bool {
			return r.ID == m.Reservation
		}) {
		return drift(DriftReservation, "EC2NodeClass %s does not select its capacity reservation %s any more",
			class.Name, m.Reservation)
	}
	if group, err := p.placement(class); err == nil && group.ID != "" && m.PlacementGroup != "" &&
		group.ID != m.PlacementGroup {
		return drift(DriftPlacement, "it is in placement group %s, and EC2NodeClass %s selects %s", m.PlacementGroup,
			class.Name, group.ID)
	}
	return provider.Drift{}
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
