package ec2

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/provider/choose"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launch"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/refusal"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/tag"
)

// Reasons of a failed dry run (E-73), as in Karpenter, plus one for refusals that are not about rights.
const (
	ReasonTemplateRights = "CreateLaunchTemplateAuthCheckFailed"
	ReasonRunRights      = "RunInstancesAuthCheckFailed"
	ReasonFleetRights    = "CreateFleetAuthCheckFailed"
	ReasonDryRun         = "DryRunFailed"
)

// codeDryRun is EC2's code for a call that would have succeeded.
const codeDryRun = "DryRunOperation"

// Trial is the result of a dry run of a launch.
type Trial struct {
	// Reason and Message say what EC2 refuses; "" when it would launch, or when the result is unknown.
	Reason, Message string
	// Untold is the error if the result is unknown: nothing is offered, or AWS has trouble.
	Untold error
}

// Try asks EC2 whether it would launch with a class for a pool, without launching (E-62): a launch template, an
// instance and a fleet. It does create the template, since the other calls need it. An unused template is collected
// after a while. class need not be ready.
func (p *Provider) Try(ctx context.Context, class *awsv1.EC2NodeClass, pool string) Trial {
	o, err := p.sample(ctx, class, pool)
	if err != nil {
		return Trial{Untold: err}
	}
	if err := p.ensure(ctx, o); err != nil {
		return trial("ec2:CreateLaunchTemplate", ReasonTemplateRights, err)
	}
	for _, each := range []struct {
		action, reason string
		call           func() error
	}{
		{"ec2:RunInstances", ReasonRunRights, func() error {
			_, err := p.config.Clients.EC2.RunInstances(ctx, running(o))
			return err
		}},
		{"ec2:CreateFleet", ReasonFleetRights, func() error {
			in := launch.Fleet(o.request)
			in.DryRun = aws.Bool(true)
			_, err := p.config.Clients.EC2.CreateFleet(ctx, in)
			return err
		}},
	} {
		if err := each.call(); err != nil && refusal.Of(err).Code != codeDryRun {
			return trial(each.action, each.reason, err)
		}
	}
	return Trial{}
}

// trial classifies an error: only missing rights and bad requests are faults of the class.
func trial(action, reason string, err error) Trial {
	r := refusal.Of(err)
	switch r.Class {
	case refusal.Rights:
		return Trial{Reason: reason, Message: fmt.Sprintf("%s is refused: %s", action, text(r))}
	case refusal.Request:
		return Trial{Reason: ReasonDryRun, Message: fmt.Sprintf("%s would fail: %s", action, text(r))}
	}
	return Trial{Untold: fmt.Errorf("trying %s: %w", action, err)}
}

// sample returns the order of a possible claim of the pool, for the cheapest type that the class offers.
func (p *Provider) sample(ctx context.Context, class *awsv1.EC2NodeClass, pool string) (*order, error) {
	offered, err := p.catalogOf(ctx, class)
	if err != nil {
		return nil, err
	}
	labels, err := p.poolLabels(ctx, pool)
	if err != nil {
		return nil, err
	}
	if labels == nil {
		labels = map[string]string{}
	}
	labels[karpenterv1.NodePoolLabelKey] = pool
	claim := &karpenterv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: pool, Labels: labels},
		Spec: karpenterv1.NodeClaimSpec{Requirements: []karpenterv1.NodeSelectorRequirementWithMinValues{{
			Key: karpenterv1.CapacityTypeLabelKey, Operator: "In", Values: []string{karpenterv1.CapacityTypeOnDemand},
		}}},
	}
	d, err := choose.DemandOf(claim)
	if err != nil {
		return nil, err
	}
	choices, err := d.All(offered)
	if err != nil {
		return nil, err
	}
	if len(choices) == 0 {
		return nil, errors.New("the class offers no type")
	}
	cheapest := slices.MinFunc(choices, func(a, b choose.Choice) int {
		return cmp.Or(cmp.Compare(a.Offering.Price, b.Offering.Price), cmp.Compare(a.Type.Name, b.Type.Name))
	})
	only := catalog.Catalog{Types: []catalog.Type{cheapest.Type}}
	o, err := p.orderOf(ctx, claim, class, d, only, false)
	if err != nil {
		return nil, err
	}
	o.request.ID, o.request.Count = "joiner-dry-run", 1 // no launch has this token
	return o, nil
}

// running returns the request for one instance of an order.
func running(o *order) *awsec2.RunInstancesInput {
	first := o.request.Overrides[0]
	in := &awsec2.RunInstancesInput{
		DryRun: aws.Bool(true), MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
		InstanceType:   ec2types.InstanceType(first.Type),
		LaunchTemplate: &ec2types.LaunchTemplateSpecification{LaunchTemplateName: aws.String(first.Template)},
	}
	if content := o.templates[first.Template]; len(content.LaunchTemplateData.NetworkInterfaces) == 0 {
		in.SubnetId = aws.String(first.Subnet) // like groups, EC2 refuses it beside interfaces
	}
	for _, kind := range []ec2types.ResourceType{ec2types.ResourceTypeInstance, ec2types.ResourceTypeVolume} {
		in.TagSpecifications = append(in.TagSpecifications,
			ec2types.TagSpecification{ResourceType: kind, Tags: tag.List(o.request.Tags)})
	}
	return in
}
