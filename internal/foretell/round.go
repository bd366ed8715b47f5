package foretell

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// MaxRounds bounds a play. If it has not settled by then, it goes in circles.
const MaxRounds = 200

// Plan carries out one plan. Nodes on their way come up, surplus nodes are chosen for removal, and pods get places. No
// node is removed yet.
func (s *Stage) Plan() {
	s.round++
	s.prepare()
	s.place()
	s.settleDaemons()
}

// Settle continues, round by round, until nothing changes. It starts where Plan stopped.
func (s *Stage) Settle() {
	for ; s.round <= MaxRounds; s.round++ {
		changed := s.prepare()
		changed = s.place() || changed
		changed = s.drain() || changed
		s.settleDaemons()
		s.judge()
		switch {
		case changed, s.disrupt():
			s.record.Rounds++
		case !s.wait():
			s.record.Quiet = true
			return
		}
	}
}

// prepare brings up claims that are on their way, lets controllers judge, and chooses surplus nodes for removal.
func (s *Stage) prepare() (changed bool) {
	for _, name := range sortedNames(s.claims) {
		claim := s.claims[name]
		node := s.nodes[claim.Status.NodeName]
		fit := node != nil && node.Labels[karpenterv1.NodeInitializedLabelKey] == "true" && !reboots(node)
		lost := node == nil && condition.IsTrue(claim.Status.Conditions, karpenterv1.ConditionTypeRegistered)
		if claim.DeletionTimestamp == nil && !fit && !lost && s.in.Fleet.OwnsClaim(claim) {
			_, up := s.raise(claim)
			changed = changed || up
		}
	}
	s.judge()
	for _, node := range s.Snapshot().Nodes {
		if claim := s.claims[node.Claim]; node.Leaves() && !node.Deleting && claim != nil {
			intent, _ := condition.Get(claim.Status.Conditions, karpenterv1.ConditionTypeDisruptionReason)
			s.choose(node, plan.DisruptionReason(intent.Reason), "it was chosen before")
			changed = true
		}
	}
	for _, r := range engine.Trim(s.Snapshot(), s.Terms().Budgets).Removes {
		changed = s.chooseNamed(r) || changed
	}
	return changed
}

// place carries out the plan for pods: it launches nodes, and binds each pod that has a place.
func (s *Stage) place() (changed bool) {
	p := engine.Launches(s.Snapshot())
	for _, l := range p.Launches {
		claim, up := s.launch(p.Names, l)
		if !up {
			continue
		}
		changed = true
		for _, pod := range l.Pods {
			s.bind(nameOf(pod), claim.Status.NodeName)
		}
	}
	for _, n := range p.Nominations {
		node := n.Node
		if claim := s.claims[node]; claim != nil && s.nodes[node] == nil {
			node = claim.Status.NodeName
		}
		changed = s.bind(nameOf(n.Pod), node) || changed
	}
	return changed
}

// drain removes the nodes being deleted, unless a pod stays there for good. Pods without a new place wait from now on.
func (s *Stage) drain() (changed bool) {
	snapshot := s.Snapshot()
	leaves := map[string]bool{}
	for _, pod := range snapshot.Pending {
		leaves[pod.UID] = true
	}
	for _, node := range snapshot.Nodes {
		claim := s.claims[node.Claim]
		if claim == nil || !node.Deleting || slices.ContainsFunc(node.Pods, func(p *cluster.Pod) bool {
			return !p.Fixed && !leaves[p.UID]
		}) {
			continue
		}
		changed = true
		s.end(node, claim)
	}
	return changed
}

// end removes a node.
func (s *Stage) end(node *cluster.Node, claim *karpenterv1.NodeClaim) {
	for _, p := range node.Pods {
		pod := s.pods[nameOf(plan.PodRef{Namespace: p.Namespace, Name: p.Name})]
		switch {
		case pod == nil:
		case p.Fixed:
			s.remove(pod)
		default:
			s.release(pod)
		}
	}
	gone, known := s.going[claim.Name]
	if !known { // it was being deleted when the play began
		gone = s.goneOf(node, s.Reason(claim.Name), "")
		gone.Round = 1
	}
	gone.UID, gone.Pods = claim.UID, s.moved[claim.Name]
	s.record.Gone = append(s.record.Gone, gone)
	delete(s.going, claim.Name) // another claim may get the name
	delete(s.moved, claim.Name)
	delete(s.in.Going, claim.Name)
	if object := s.nodes[node.Name]; object != nil {
		s.remove(object)
	}
	s.remove(claim)
}

func (s *Stage) goneOf(node *cluster.Node, reason plan.DisruptionReason, why string) Gone {
	gone := Gone{Claim: node.Claim, Node: node.Name, Pool: node.Pool, Reason: reason, Why: why, Round: s.round,
		Type: node.InstanceType, Zone: node.Labels[string(catalog.LabelZone)],
		Kind: node.Labels[string(catalog.LabelCapacityType)]}
	if claim := s.claims[node.Claim]; claim != nil && reason == plan.Drifted {
		drifted, _ := condition.Get(claim.Status.Conditions, karpenterv1.ConditionTypeDrifted)
		gone.Drift = drifted.Message
	}
	return gone
}

// choose chooses a node for removal: from now on its claim is being deleted.
func (s *Stage) choose(node *cluster.Node, reason plan.DisruptionReason, why string) {
	claim := s.claims[node.Claim]
	s.going[node.Claim] = s.goneOf(node, reason, why)
	fresh := claim.DeepCopy()
	now := s.at()
	fresh.DeletionTimestamp = &now
	s.put(fresh)
}

func (s *Stage) chooseNamed(r plan.Remove) bool {
	for _, node := range s.Snapshot().Nodes {
		if node.Claim == r.Claim && s.claims[r.Claim] != nil && !node.Deleting {
			s.choose(node, r.Reason, r.Why)
			return true
		}
	}
	return false
}

// disrupt asks the methods in the controller's order, and carries out the first plan that removes nodes. Replacements
// come up before the nodes go.
func (s *Stage) disrupt() bool {
	snapshot, terms := s.Snapshot(), s.Terms()
	for _, method := range engine.Methods() {
		if p := method.Plan(snapshot, terms); len(p.Removes) > 0 {
			return s.carryOut(p)
		}
	}
	return false
}

func (s *Stage) carryOut(p plan.Plan) (changed bool) {
	failed := map[string]bool{}
	for _, l := range p.Launches {
		if _, up := s.launch(p.Names, l); !up {
			for _, claim := range l.Replaces {
				failed[claim] = true
			}
			continue
		}
		changed = true
	}
	for _, r := range p.Removes {
		if !failed[r.Claim] {
			changed = s.chooseNamed(r) || changed
		}
	}
	return changed
}

// wait lets all waiting times of nodes pass, and reports whether there were any.
func (s *Stage) wait() bool {
	last := s.clock.Unix()
	for _, node := range s.Snapshot().Nodes {
		if node.ConsolidatableAt != cluster.Never {
			last = max(last, node.ConsolidatableAt, node.ReplaceableAt())
		}
	}
	if last == s.clock.Unix() {
		return false
	}
	s.clock = time.Unix(last, 0)
	return true
}

// Unplaced returns the pods that wait, each with every pool's cause. It leaves out pods that still run on a node being
// removed.
func (s *Stage) Unplaced() []plan.Unplaced {
	return slices.DeleteFunc(engine.Launches(s.Snapshot()).Unplaced, func(u plan.Unplaced) bool {
		pod := s.pods[nameOf(u.Pod)]
		return pod != nil && pod.Spec.NodeName != ""
	})
}

// Held returns why a node that is due for removal stays, see engine.WhyDue. It returns false if nothing wants the node
// removed.
func (s *Stage) Held(node *cluster.Node) (engine.Standing, bool) {
	return engine.WhyDue(s.Snapshot(), s.Terms(), node)
}

// Reason returns why a claim is being deleted.
func (s *Stage) Reason(claim string) plan.DisruptionReason {
	if gone, chosen := s.going[claim]; chosen {
		return gone.Reason
	}
	return cmp.Or(s.in.Going[claim], Deleted)
}

// DriftText returns the message of a claim's condition Drifted.
func (s *Stage) DriftText(claim string) string {
	if known := s.claims[claim]; known != nil {
		drifted, _ := condition.Get(known.Status.Conditions, karpenterv1.ConditionTypeDrifted)
		return drifted.Message
	}
	return ""
}

func nameOf(pod plan.PodRef) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}
