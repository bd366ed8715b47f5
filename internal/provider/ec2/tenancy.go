package ec2

import (
	"fmt"
	"strings"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/offering"
)

// This file handles dedicated machines (E-18). A pool asks for them by a requirement. A class makes the same offer to
// all of its pools. A pool without a requirement on tenancy would take dedicated machines too, as soon as shared ones
// are short. So a class offers only dedicated machines if all of its pools ask for them, and otherwise only shared
// ones.

const (
	tenancyDefault   = string(ec2types.TenancyDefault)
	tenancyDedicated = string(ec2types.TenancyDedicated)
)

// asksForDedicated reports whether requirements allow only dedicated machines.
func asksForDedicated(requirements requirement.Set) bool {
	tenancy := requirements.Get(offering.LabelTenancy)
	return requirements.Holds(offering.LabelTenancy) && tenancy.Has(tenancyDedicated) && !tenancy.Has(tenancyDefault)
}

// Tenancy stores the tenancy of a class by its pools. news reports whether prices of dedicated machines are wanted
// from now on. told has a message, by name, for each pool that asks for such machines and gets none.
func (p *Provider) Tenancy(class *awsv1.EC2NodeClass,
	pools []karpenterv1.NodePool) (news bool, told map[string]string) {
	var asking, others []string
	for _, w := range wishesOf(pools) {
		if asksForDedicated(w.Requirements) {
			asking = append(asking, w.pool)
		} else {
			others = append(others, w.pool)
		}
	}
	dedicated := len(asking) > 0 && len(others) == 0
	p.mu.Lock()
	if changed := p.dedicated[class.UID] != dedicated; changed {
		delete(p.dedicated, class.UID)
		if dedicated {
			p.dedicated[class.UID] = true
		}
		defer p.changed()
	}
	p.mu.Unlock()
	if dedicated {
		return p.config.Prices.WantDedicated(), nil
	}
	told = map[string]string{}
	for _, pool := range asking {
		told[pool] =
			fmt.Sprintf(
				"the requirement %s of this NodePool takes dedicated machines only, and EC2NodeClass %s is also that "+
					"of NodePools that do not ask for them (%s): nothing is launched for it; give it a class of its own",
				offering.LabelTenancy, class.Name, strings.Join(others, ", "))
	}
	return false, told
}

// isDedicated reports whether a class offers dedicated machines.
func (p *Provider) isDedicated(class *awsv1.EC2NodeClass) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dedicated[class.UID]
}

// unasked returns an error for a claim that does not ask for dedicated machines although its class offers only these:
// its pool joined the class a moment ago.
func (p *Provider) unasked(class *awsv1.EC2NodeClass, claim *karpenterv1.NodeClaim, asked requirement.Set) error {
	if !p.isDedicated(class) || asksForDedicated(asked) ||
		claim.Labels[string(offering.LabelTenancy)] == tenancyDedicated {
		return nil
	}
	return &provider.NodeClassNotReadyError{Class: class.Name,
		Reason: fmt.Sprintf("it offers dedicated machines at the moment, which the "+
			"claim does not ask for by %s", offering.LabelTenancy)}
}
