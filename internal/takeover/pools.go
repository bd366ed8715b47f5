package takeover

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/settings"
	"github.com/joiner-autoscaler/joiner/internal/translate"
	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

// KindSettings is the kind of findings about settings, which are no objects.
const KindSettings = "Settings"

// Kinds of objects with the most findings.
const (
	kindPool    = "NodePool"
	kindClaim   = "NodeClaim"
	kindOverlay = "NodeOverlay"
)

// Feature gates that checks look at.
const (
	gateOverlay = "NodeOverlay"
	gateStatic  = "StaticCapacity"
	gateBuffer  = "CapacityBuffer"
	gateRepair  = "NodeRepair"
)

// gatesWith returns which gates are on with these settings: in Karpenter, or here.
func gatesWith(g Given, karpenter bool) map[string]bool {
	text, _ := g.value(settings.FeatureGates)
	if karpenter {
		return settings.KarpentersGates(text)
	}
	on, _, _ := settings.ParseGates(text)
	return on
}

// GatesOf returns the gates that plans depend on, for a text of --feature-gates. The error says why Joiner does not
// start with it.
func GatesOf(text string) (whatif.Gates, error) {
	on, _, err := settings.ParseGates(text)
	return whatif.GatesOf(on), err
}

// planned returns a pool of the engine's snapshot; nil if nothing is planned for it.
func (p *picture) planned(name string) *cluster.Pool {
	if p.snapshot == nil {
		return nil
	}
	return p.snapshot.Pool(name)
}

// nodeLimits finds pools that would lose nodes because of their limit, as the engine judges it (L-40).
func nodeLimits(p *picture) (found []Finding) {
	for _, object := range p.pools {
		pool := p.planned(object.Name)
		if pool == nil || pool.Held {
			continue
		}
		_, leaving := engine.Leaving(p.snapshot, pool.Name)
		excess := pool.Limits.Excess(pool.Kept(), pool.Used.Nodes, int64(len(leaving)))
		most, hard := pool.Limits.Nodes()
		if excess <= 0 || most == limit.None {
			continue
		}
		f := Finding{Severity: Danger, Kind: kindPool, Name: object.Name,
			Consequence: fmt.Sprintf(
				"it has %s and its %s limit is %d: Joiner removes %d of them, within the disruption budgets; "+
					"Karpenter removes none", count(int(pool.Used.Nodes), "node", "nodes"), limit.Kind(hard), most,
				excess),
			Remedy: fmt.Sprintf(
				"raise spec.limits.nodes to %d, or pause the pool before Joiner starts: kubectl annotate nodepool %s "+
					"%s=%s", pool.Used.Nodes, object.Name, karpenterv1.PausedAnnotationKey, karpenterv1.PausedDisrupt)}
		if most == 0 {
			f.Consequence =
				fmt.Sprintf("spec.limits.nodes is 0, as if it were paused: Joiner removes all its %s, within the "+
					"disruption budgets; Karpenter launches nothing and removes none",
					count(int(excess), "node", "nodes"))
			f.Remedy = fmt.Sprintf("take the limit away and pause the pool: kubectl annotate nodepool %s %s=%s",
				object.Name, karpenterv1.PausedAnnotationKey, karpenterv1.PausedLaunch)
		}
		found = append(found, f)
	}
	return found
}

// dormant finds objects that have no effect in Karpenter and would have one here.
func dormant(p *picture) (found []Finding) {
	theirs, ours := p.theirGates(), gatesWith(p.Ours, false)
	look := func(gate, kind, namespace, name, acts string) {
		f := Finding{Severity: Danger, Kind: kind, Namespace: namespace, Name: name,
			Consequence: fmt.Sprintf("the gate %s is off in Karpenter, and on in Joiner where nothing is said: %s",
				gate, acts),
			Remedy: fmt.Sprintf(
				"start Joiner with Karpenter's FEATURE_GATES, or with %s=false in it; or remove the object",
				gate)}
		switch {
		case theirs[gate]:
			return
		case p.Ours.Known() && ours[gate]:
			f.Consequence = fmt.Sprintf("the gate %s is off in Karpenter, and on in Joiner by %s: %s", gate,
				p.Ours.Where, acts)
		case p.Ours.Known():
			f.Severity = Info
			f.Consequence = fmt.Sprintf("it has no effect in Karpenter, and none in Joiner by %s: the gate %s is off",
				p.Ours.Where, gate)
			f.Remedy = "nothing has to be done"
		}
		found = append(found, f)
	}
	for _, o := range p.overlays {
		look(gateOverlay, kindOverlay, "", o.Name,
			"prices and capacities change, and so does what is launched and consolidated")
	}
	for _, pool := range p.pools {
		if pool.Spec.Replicas != nil {
			look(gateStatic, kindPool, "", pool.Name, fmt.Sprintf("Joiner launches or removes nodes until it has %d",
				*pool.Spec.Replicas))
		}
	}
	for _, o := range p.others[gateBuffer] {
		look(gateBuffer, gateBuffer, o.GetNamespace(), o.GetName(), "nodes are launched for the room that it asks for")
	}
	return found
}

// nodeClasses finds pools that nobody would serve.
func nodeClasses(p *picture) (found []Finding) {
	for _, pool := range p.pools {
		ref := pool.Spec.Template.Spec.NodeClassRef
		if whatif.Serves(ref) {
			continue
		}
		class := "no node class"
		if ref != nil {
			class = fmt.Sprintf("the node class %s %s.%s", ref.Name, ref.Kind, ref.Group)
		}
		nodes := 0
		for _, claim := range p.claims {
			if translate.PoolOf(claim) == pool.Name {
				nodes++
			}
		}
		found = append(found, Finding{Severity: Danger, Kind: kindPool, Name: pool.Name,
			Consequence: fmt.Sprintf(
				"it has %s, of which Joiner has no provider: nothing is launched for it, and its %s are left alone: "+
					"not drained, replaced or ended", class, count(nodes, "node", "nodes")),
			Remedy: "leave Karpenter with the provider for it in charge, " +
				"or move its pods to a NodePool with an EC2NodeClass or a KWOKNodeClass first"})
	}
	return found
}

// overlays finds NodeOverlays that may be judged differently. It judges like the store that plans with them.
func overlays(p *picture) (found []Finding) {
	for _, o := range p.overlays {
		verdict, known := p.World.OverlayVerdict(o.Name)
		if !known || verdict.Reason == "" {
			continue
		}
		found = append(found, Finding{Severity: Warning, Kind: kindOverlay, Name: o.Name,
			Consequence: "Joiner judges it otherwise, perhaps, and it has no effect: " + verdict.Message,
			Remedy:      "mend what the message names, and look at its condition Ready"})
	}
	return found
}

// begins counts the nodes that are due for drift or expiration as soon as Joiner starts.
func begins(p *picture) (found []Finding) {
	for _, object := range p.pools {
		pool := p.planned(object.Name)
		if pool == nil {
			continue
		}
		drifted := 0
		for _, node := range p.snapshot.Nodes {
			if node.Pool == pool.Name && node.Drifted && !node.Deleting {
				drifted++
			}
		}
		expired := 0
		for _, claim := range p.claims {
			after := claim.Spec.ExpireAfter.Duration
			if translate.PoolOf(claim) == pool.Name && claim.DeletionTimestamp == nil && after != nil &&
				!claim.CreationTimestamp.Add(*after).After(p.Now) {
				expired++
			}
		}
		pause := fmt.Sprintf("; or hold the pool: kubectl annotate nodepool %s %s=%s", pool.Name,
			karpenterv1.PausedAnnotationKey, karpenterv1.PausedDisrupt)
		if allowed := min(engine.Allowed(p.terms.Budgets[pool.Name], plan.Drifted), drifted); drifted > 0 {
			found = append(found, Finding{Severity: Warning, Kind: kindPool, Name: pool.Name,
				Consequence: fmt.Sprintf("%s drifted: Joiner replaces up to %d of them at a time, as the budgets allow now; "+
					"Karpenter begins with one after the other", count(drifted, "node has", "nodes have"), allowed),
				Remedy: "set a budget for Drifted in spec.disruption.budgets" + pause})
		}
		if expired > 0 {
			bound := "at once, whatever the budgets say, as Karpenter does"
			if pool.ExpiresGracefully {
				bound = "within the budgets, each after its replacement is there"
			}
			found = append(found, Finding{Severity: Warning, Kind: kindPool, Name: pool.Name,
				Consequence: fmt.Sprintf("%s older than expireAfter: what is due goes %s",
					count(expired, "node is", "nodes are"), bound),
				Remedy: "let Karpenter finish before the switch"})
		}
	}
	return found
}

// consolidation predicts the moves of pools whose consolidateAfter is zero.
func consolidation(p *picture) (found []Finding) {
	for _, object := range p.pools {
		d := object.Spec.Disruption
		underutilized := d.ConsolidationPolicy == karpenterv1.ConsolidationPolicyWhenEmptyOrUnderutilized ||
			d.ConsolidationPolicy == karpenterv1.ConsolidationPolicyWhenUnderutilized
		if p.planned(object.Name) == nil || !underutilized || d.ConsolidateAfter.Duration == nil ||
			*d.ConsolidateAfter.Duration > 0 {
			continue
		}
		c, err := p.foretold()
		if err != nil {
			p.err = err
			return found
		}
		moves := 0
		for _, node := range c.Nodes {
			saves := node.Reason == string(plan.Underutilized) || node.Reason == string(plan.Empty)
			if node.Pool == object.Name && saves && (node.Fate == whatif.Goes || node.Fate == whatif.Replaced) {
				moves++
			}
		}
		if moves == 0 {
			continue
		}
		price := "prices do not tell"
		if c.Quiet != nil {
			price = fmt.Sprintf("all nodes cost %s/h now and %s/h once nothing changes any more",
				c.Before.PricePerHour, c.Quiet.PricePerHour)
		}
		found = append(found, Finding{Severity: Info, Kind: kindPool, Name: object.Name,
			Consequence: fmt.Sprintf("consolidateAfter is 0s: Joiner moves %s to save money, in %s: %s",
				count(moves, "node", "nodes"), count(c.Rounds, "round", "rounds"), price),
			Remedy: "look at joinerctl simulate --until quiet; set consolidateAfter to wait before a node is moved"})
	}
	return found
}

// repairVeto checks what keeps nodes from repair in Joiner only (K-49).
func repairVeto(p *picture) []Finding {
	if veto, given := p.Ours.flagOrVariable("repair-veto", "REPAIR_VETO"); given && veto == "Karpenter" {
		return nil
	}
	kept := map[string]bool{}
	for _, node := range p.nodes {
		if node.Annotations[karpenterv1.DoNotDisruptAnnotationKey] == "true" {
			kept[node.Name] = true
		}
	}
	for _, claim := range p.claims {
		if claim.Annotations[karpenterv1.DoNotDisruptAnnotationKey] == "true" {
			kept[cmp.Or(claim.Status.NodeName, claim.Name)] = true
		}
	}
	f := Finding{Severity: Info, Kind: KindSettings, Name: "repair-veto",
		Consequence: "karpenter.sh/do-not-disrupt on a node or its NodeClaim keeps node repair away in Joiner, and not in Karpenter; " +
			"no node has it now",
		Remedy: "start Joiner with --repair-veto=Karpenter (chart: settings.repairVeto), so that karpenter.sh/do-not-repair " +
			"alone does"}
	if names := slices.Sorted(maps.Keys(kept)); len(names) > 0 {
		f.Severity = Warning
		f.Consequence = fmt.Sprintf(
			"karpenter.sh/do-not-disrupt on a node or its NodeClaim keeps node repair away in Joiner, and not in Karpenter: "+
				"it keeps %s (%s)", count(len(names), "node", "nodes"), some(names))
	}
	return []Finding{f}
}

// repair checks what limits node repair.
func repair(p *picture) (found []Finding) {
	if !p.theirGates()[gateRepair] {
		return nil
	}
	if p.Theirs.on("legacy-node-repair") {
		found = append(found, Finding{Severity: Warning, Kind: KindSettings, Name: "legacy-node-repair",
			Consequence: "LEGACY_NODE_REPAIR asks Karpenter to repair whatever budgets and do-not-disrupt say; Joiner keeps to both: " +
				"an unhealthy node of a pool whose budget is used up stays longer",
			Remedy: "give pools a budget with reasons: [Unhealthy] that is wide enough, beside one for the other reasons"})
	}
	found = append(found, repairVeto(p)...)
	var bound []string
	for _, pool := range p.pools {
		if slices.ContainsFunc(pool.Spec.Disruption.Budgets, func(b karpenterv1.Budget) bool {
			return len(b.Reasons) == 0
		}) {
			bound = append(bound, pool.Name)
		}
	}
	if len(bound) > 0 {
		slices.Sort(bound)
		found = append(found, Finding{Severity: Warning, Kind: kindPool,
			Consequence: fmt.Sprintf("budgets without reasons bind the repair of unhealthy nodes too, in %s (%s)",
				count(len(bound), "NodePool", "NodePools"), some(bound)),
			Remedy: "name the reasons in these budgets, so that Unhealthy is not among them"})
	}
	return found
}
