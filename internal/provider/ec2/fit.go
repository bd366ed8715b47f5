package ec2

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/provider/choose"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/offering"
)

// This file reports conflicts between a class and the NodePools that refer to it.

// wish is the machines that a pool accepts.
type wish struct {
	pool string
	choose.Demand
}

// wishesOf returns the wishes of pools, by name. It skips pools that cannot be read; these are reported elsewhere.
func wishesOf(pools []karpenterv1.NodePool) []wish {
	var list []wish
	for _, pool := range pools {
		claim := &karpenterv1.NodeClaim{}
		claim.Name, claim.Spec.Requirements = pool.Name, pool.Spec.Template.Spec.Requirements
		d, err := choose.DemandOf(claim)
		if err != nil {
			continue
		}
		d.Requirements = d.Requirements.And(requirement.FromLabels(pool.Spec.Template.ObjectMeta.Labels))
		list = append(list, wish{pool.Name, d})
	}
	slices.SortFunc(list, func(a, b wish) int { return strings.Compare(a.pool, b.pool) })
	return list
}

// Untaken returns the capacity reservations of a class's status that none of its pools can use, by id. The text says
// why: the closest pool and what it asks for instead (E-77). It returns nothing if no pool refers to the class, or
// while EC2's offer is unknown.
func (p *Provider) Untaken(class *awsv1.EC2NodeClass, pools []karpenterv1.NodePool) map[string]string {
	wishes := wishesOf(pools)
	if len(wishes) == 0 || len(class.Status.CapacityReservations) == 0 {
		return nil
	}
	offered, err := p.asOffered(class)
	if err != nil {
		return nil
	}
	untaken := map[string]string{}
	for _, r := range class.Status.CapacityReservations {
		t, found := typeIn(offered, r.InstanceType)
		at := slices.IndexFunc(t.Offerings, func(o catalog.Offering) bool {
			id, _ := o.Labels.Get(offering.LabelReservationID).Single()
			return id == r.ID
		})
		if !found || at < 0 {
			untaken[r.ID] = fmt.Sprintf("is for a type that the class does not offer in %s", r.AvailabilityZone)
			continue
		}
		if closest, problems := nearest(offered, t, t.Offerings[at], wishes); len(problems) > 0 {
			untaken[r.ID] = fmt.Sprintf("is taken by no NodePool of the class; closest is %s: %s", closest,
				strings.Join(problems, "; "))
		}
	}
	return untaken
}

// nearest returns the first pool with the fewest problems with an offering, and its problems; none if it takes the
// offering.
func nearest(c catalog.Catalog, t catalog.Type, o catalog.Offering, wishes []wish) (pool string, problems []string) {
	for i, w := range wishes {
		if own := w.Problems(c, t, o); i == 0 || len(own) < len(problems) {
			pool, problems = w.pool, own
		}
	}
	return pool, problems
}

// WithoutEnclaves returns the pools of a class that get no machines only because the class asks for Nitro enclaves.
// The map has a message for each, by the pool's name (E-01).
func (p *Provider) WithoutEnclaves(class *awsv1.EC2NodeClass, pools []karpenterv1.NodePool) map[string]string {
	if wanted := class.Spec.EnclaveOptions; wanted == nil || !wanted.Enabled {
		return nil
	}
	plain := class.DeepCopy()
	plain.Spec.EnclaveOptions = nil
	with, err := p.asOffered(class)
	without, err1 := p.asOffered(plain)
	if cmp.Or(err, err1) != nil {
		return nil
	}
	told := map[string]string{}
	for _, w := range wishesOf(pools) {
		if len(takes(with, w)) > 0 {
			continue
		}
		if types := takes(without, w); len(types) > 0 {
			const most = 3
			named := strings.Join(types[:min(len(types), most)], ", ")
			if more := len(types) - most; more > 0 {
				named += fmt.Sprintf(" and %d more", more)
			}
			told[w.pool] = fmt.Sprintf("spec.enclaveOptions.enabled of EC2NodeClass %s is true, and no instance type "+
				"that this NodePool takes has Nitro enclaves (%s): nothing is launched for it; let its requirements allow a "+
				"type that has them, or give it a class without enclaves", class.Name, named)
		}
	}
	return told
}

// takes returns the names of the types that a pool accepts.
func takes(c catalog.Catalog, w wish) []string {
	var types []string
	for _, t := range c.Types {
		if slices.ContainsFunc(t.Offerings, func(o catalog.Offering) bool { return len(w.Problems(c, t, o)) == 0 }) {
			types = append(types, t.Name)
		}
	}
	return types
}

// asOffered returns what a class would offer, ready or not. It sends no events.
func (p *Provider) asOffered(class *awsv1.EC2NodeClass) (catalog.Catalog, error) {
	in, err := p.input(class, p.config.Types.Known(), p.config.Prices.Known(), p.config.Clock.Now(), "")
	if err != nil {
		return catalog.Catalog{}, err
	}
	result, err := p.build(in)
	return result.Catalog, err
}
