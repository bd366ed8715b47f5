package foretell

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/provider/choose"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/spec"
	"github.com/joiner-autoscaler/joiner/internal/translate"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// isNew is the part of a simulated node's name before its number.
const isNew = "-new-"

// pastNames starts new names after those of an earlier play. So no name that is removed in this play comes back in it.
func (s *Stage) pastNames() {
	for _, names := range [][]string{sortedNames(s.nodes), sortedNames(s.claims)} {
		for _, name := range names {
			if at := strings.LastIndex(name, isNew); at >= 0 {
				if number, err := strconv.Atoi(name[at+len(isNew):]); err == nil && number < 1<<30 {
					s.names = max(s.names, number)
				}
			}
		}
	}
}

// providerID is the prefix of the IDs of simulated machines.
const providerID = "foretold://"

// owners are the owners of a cluster, who also own the nodes that come in a play: no provider knows such a machine.
type owners struct{ world.Owners }

// OwnsNode implements world.Owners.
func (o owners) OwnsNode(node *corev1.Node, claim *karpenterv1.NodeClaim, pool *karpenterv1.NodePool) bool {
	return strings.HasPrefix(node.Spec.ProviderID, providerID) || o.Owners.OwnsNode(node, claim, pool)
}

// launch carries out a launch: it creates a claim, its machine and its node. It returns false if the catalogue has
// nothing that fits.
func (s *Stage) launch(names resources.Names, l plan.Launch) (*karpenterv1.NodeClaim, bool) {
	pool := s.pools[l.Pool]
	if pool == nil {
		return nil, false
	}
	claim := translate.NodeClaimFor(pool, names, l, s.nameFor(l))
	claim.UID, claim.CreationTimestamp = s.fresh(claim.Name), s.at()
	claim.Finalizers = nil // no cloud has to be waited for
	fresh, up := s.raise(claim)
	if !up {
		return nil, false
	}
	s.record.Launched = append(s.record.Launched, Launched{UID: claim.UID, Claim: claim.Name,
		Node: fresh.Status.NodeName, Pool: l.Pool, Pods: len(l.Pods), Replaces: l.Replaces, Round: s.round,
		Type: fresh.Labels[string(catalog.LabelInstanceType)], Zone: fresh.Labels[string(catalog.LabelZone)],
		Kind: fresh.Labels[string(catalog.LabelCapacityType)]})
	return fresh, true
}

// nameFor names a claim: after its slot if it has one, as the store expects, else with a name that differs from all
// others.
func (s *Stage) nameFor(l plan.Launch) string {
	if l.Slot != plan.NoSlot {
		return limit.SlotName(l.Pool, l.PoolUID, l.Slot)
	}
	return s.newName(l.Pool)
}

// newName returns a name that no claim or node has or had in this play.
func (s *Stage) newName(pool string) string {
	for {
		s.names++
		name := fmt.Sprintf("%s%s%d", pool, isNew, s.names)
		if s.claims[name] == nil && s.nodes[name] == nil {
			return name
		}
	}
}

// raise gives a claim a machine and an initialized node. It returns the updated claim.
func (s *Stage) raise(old *karpenterv1.NodeClaim) (*karpenterv1.NodeClaim, bool) {
	claim := old.DeepCopy()
	if !translate.Launched(claim) && !s.machine(claim) {
		return nil, false
	}
	node := s.nodes[claim.Status.NodeName]
	known := node != nil
	if !known {
		name := claim.Name
		if _, slotted := limit.SlotOf(name, translate.PoolOf(claim), s.poolUID(claim)); slotted {
			// slots reuse names, but people tell nodes apart by their names
			name = s.newName(translate.PoolOf(claim))
		}
		node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: s.fresh(name), CreationTimestamp: s.at(),
			Annotations: maps.Clone(claim.Annotations), Labels: map[string]string{}},
			Spec: corev1.NodeSpec{ProviderID: claim.Status.ProviderID, Taints: slices.Clone(claim.Spec.Taints)}}
	} else {
		node = node.DeepCopy()
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return passes(t, claim) })
		if node.Labels == nil {
			node.Labels = map[string]string{}
		}
	}
	maps.Copy(node.Labels, claim.Labels)
	if node.Labels[corev1.LabelHostname] == "" || !known {
		node.Labels[corev1.LabelHostname] = node.Name
	}
	node.Labels[karpenterv1.NodeRegisteredLabelKey], node.Labels[karpenterv1.NodeInitializedLabelKey] = "true", "true"
	if class := claim.Spec.NodeClassRef; class != nil {
		node.Labels[translate.NodeClassLabel(class)] = class.Name
	}
	node.Status.Capacity, node.Status.Allocatable = claim.Status.Capacity, claim.Status.Allocatable
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
		LastTransitionTime: s.at()}}
	node.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	claim.Status.NodeName = node.Name
	for _, kind := range []string{karpenterv1.ConditionTypeLaunched, karpenterv1.ConditionTypeRegistered,
		karpenterv1.ConditionTypeInitialized} {
		condition.Set(&claim.Status.Conditions, claim.Generation, condition.True(kind, kind, ""), s.clock)
	}
	s.put(claim)
	s.put(node)
	return claim, true
}

func (s *Stage) poolUID(claim *karpenterv1.NodeClaim) string {
	if pool := s.pools[translate.PoolOf(claim)]; pool != nil {
		return string(pool.UID)
	}
	return ""
}

// reboots reports whether a node is closed until it has been rebooted (K-49).
func reboots(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == karpenterv1.RebootingTaintKey
	})
}

// passes reports whether a node loses this taint before it is initialized, at first or after a reboot.
func passes(t corev1.Taint, claim *karpenterv1.NodeClaim) bool {
	switch t.Key {
	case karpenterv1.UnregisteredTaintKey, corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable,
		corev1.TaintNodeNetworkUnavailable, "node.cloudprovider.kubernetes.io/uninitialized",
		karpenterv1.RebootingTaintKey:
		return true
	}
	return slices.ContainsFunc(claim.Spec.StartupTaints, func(other corev1.Taint) bool { return t.MatchTaint(&other) })
}

// machine gives a claim the offering that a simulated cloud would choose: the cheapest that fits, reserved ones first.
func (s *Stage) machine(claim *karpenterv1.NodeClaim) bool {
	demand, err := choose.DemandOf(claim)
	if err != nil {
		s.record.Unlaunched = fmt.Sprintf("NodeClaim %s: %v", claim.Name, err)
		return false
	}
	taken, err := demand.Best(s.left(claim))
	if err != nil {
		s.record.Unlaunched = fmt.Sprintf("pool %s: %v", translate.PoolOf(claim), err)
		return false
	}
	labels := taken.NodeLabels(claim)
	maps.Copy(labels, claim.Labels)
	claim.Labels = labels
	claim.Status.ProviderID = providerID + claim.Name
	claim.Status.Capacity, claim.Status.Allocatable = demand.Resources(taken.Type)
	if class := s.classOf(claim); class != nil {
		if hash, err := spec.Hash(class); err == nil {
			claim.Annotations[spec.HashKey], claim.Annotations[spec.HashVersionKey] = hash, spec.HashVersion
		}
	}
	return true
}

// left returns what the node class of a claim offers, without used-up reservations.
func (s *Stage) left(of *karpenterv1.NodeClaim) catalog.Catalog {
	used := map[string]int{}
	for _, claim := range s.claims {
		used[claim.Labels[string(catalog.LabelInstanceType)]+" "+claim.Labels[string(catalog.LabelZone)]+" "+
			claim.Labels[string(catalog.LabelCapacityType)]]++
	}
	c, copied := s.offers(of), false
	for i, t := range c.Types {
		for j, o := range t.Offerings {
			if o.Reservation == 0 || used[t.Name+" "+o.Zone+" "+o.CapacityType] < o.Reservation {
				continue
			}
			if !copied {
				c.Types, copied = slices.Clone(c.Types), true
			}
			c.Types[i].Offerings = slices.Clone(c.Types[i].Offerings)
			c.Types[i].Offerings[j].Available = false
		}
	}
	return c
}
