package pack

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/topology"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// attachRule: a volume that several pods use, or that a node has attached already, takes only one of the places that
// the node's driver has (K-59). Volumes that only one pod brings are requests like others: roomRule counts them.
type attachRule struct{ anyPool }

func (attachRule) reads() []string { return []string{"Volumes"} }

// missing returns what the shape's volumes take that a bin does not have yet.
func (b *bin) missing(have []string, c *cluster.Shape) resources.Vector {
	var more resources.Vector
	for i, v := range c.Volumes {
		if slices.Contains(have, v.Name) || slices.Contains(b.volumes, v.Name) ||
			slices.ContainsFunc(c.Volumes[:i], v.Is) {
			continue
		}
		more = more.Plus(v.Takes)
	}
	return more
}

func (b *bin) attach(c *cluster.Shape) {
	for _, v := range c.Volumes {
		b.volumes = append(b.volumes, v.Name)
	}
}

// refuses for now: another pod may bring a volume that the next one shares.
func (attachRule) refuses(_ *solver, n *existing, a *attempt) topology.Verdict {
	if len(a.info.Volumes) == 0 {
		return topology.Yes
	}
	a.more = n.missing(n.node.Attached, a.info.Shape)
	if !a.want.Plus(a.more).Fits(n.free) {
		return topology.Now
	}
	return topology.Yes
}

func (attachRule) placedOn(_ *solver, n *existing, a *attempt) {
	if len(a.info.Volumes) > 0 {
		n.free = n.free.Minus(a.more)
		n.attach(a.info.Shape)
	}
}

func (attachRule) narrows(_ *solver, n *planned, a *attempt) topology.Verdict {
	if len(a.info.Volumes) == 0 {
		return topology.Yes
	}
	a.more = n.missing(nil, a.info.Shape)
	if !n.pool.keepFitting(n.used, a.want.Plus(a.more), a.offers) {
		return topology.Now
	}
	return topology.Yes
}

func (attachRule) placedIn(_ *solver, n *planned, a *attempt) {
	if len(a.info.Volumes) > 0 {
		n.used = n.used.Plus(a.more)
		n.attach(a.info.Shape)
	}
}

func (attachRule) ties(info *shape) bool { return len(info.Volumes) > 0 }

// alike: only shapes without such volumes come in groups.
func (attachRule) alike(text []byte, _ *shape) []byte { return text }

func (attachRule) explains(_ *solver, e *explainer) bool {
	all := (&bin{}).missing(nil, e.shape)
	for component, amount := range all {
		if amount == 0 {
			continue
		}
		amount = resources.Sum(amount, e.shape.Requests.At(component))
		allowed := e.pool.atLeast(component, amount)
		if allowed == nil {
			allowed = catalog.NewBits(len(e.pool.Catalog.Offers))
		}
		detail := e.names[component] + "=" + e.names.FormatOne(component, amount)
		if !e.narrow(plan.ByPod, cause.VolumeLimit, e.names[component], detail, allowed) {
			return false
		}
	}
	return true
}
