package merge

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
)

// Target is what [Ready] needs to know about one wrapper. It holds no contents of the guest beyond the name (G28).
type Target struct {
	kind, name string
	deleting   bool
	applied    karpenterv1.Condition // PolicyApplied, the zero value if the wrapper has none
	observed   *hypershiftv1.ObservedPolicy
	conflict   bool
}

// PoolTarget returns the target of an OpenshiftNodePool.
func PoolTarget(pool *hypershiftv1beta1.OpenshiftNodePool) Target {
	compatible, found := condition.Get(pool.Status.Conditions, hypershiftv1beta1.ConditionTypeRequirementsCompatible)
	target := newTarget("OpenshiftNodePool", pool.ObjectMeta, pool.Status.Conditions, pool.Status.ObservedPolicy)
	target.conflict = found && compatible.Status == metav1.ConditionFalse
	return target
}

// EC2NodeClassTarget returns the target of an OpenshiftEC2NodeClass.
func EC2NodeClassTarget(class *hypershiftv1.OpenshiftEC2NodeClass) Target {
	return newTarget(hypershiftv1.OpenshiftEC2NodeClassKind, class.ObjectMeta, class.Status.Conditions,
		class.Status.ObservedPolicy)
}

func newTarget(kind string, meta metav1.ObjectMeta, conditions []karpenterv1.Condition,
	observed *hypershiftv1.ObservedPolicy) Target {
	applied, _ := condition.Get(conditions, hypershiftv1beta1.ConditionTypePolicyApplied)
	return Target{kind: kind, name: meta.Name, deleting: meta.DeletionTimestamp != nil, applied: applied,
		observed: observed}
}

// state says how far a wrapper is with this generation of the policy.
type state int

const (
	waiting state = iota // it has not seen this generation, or cannot act on it yet
	applied
	failed
)

func (t Target) state(policy *hypershiftv1beta1.AutoNodePolicy) state {
	current := t.observed != nil && t.observed.UID == policy.UID && t.observed.Generation == policy.Generation
	switch {
	case !current:
		return waiting
	case t.applied.Status == metav1.ConditionTrue:
		return applied
	case t.applied.Status == metav1.ConditionFalse:
		return failed
	}
	return waiting
}

// reason says why the policy could not be applied.
func (t Target) reason() string {
	if t.applied.Reason == "" {
		return hypershiftv1beta1.ReasonReconcileFailed
	}
	return t.applied.Reason
}

// Ready returns the condition Ready of a policy's present generation, from the status of all wrappers of the guest, in
// any order (R42, R43, G16). Only one writer sets it: the controllers of the wrappers set PolicyApplied on their
// wrapper instead.
//
//   - False if the policy fails [Check], with the reason of the first problem (R44).
//   - False if it could not be applied to some wrapper, with the reason of the first of them: pools before node
//     classes, then by name.
//   - Unknown while some wrapper has not reported this generation.
//   - True otherwise. If there is nothing to apply it to, the reason is NoTargets.
//
// Wrappers that are being deleted do not count. Pools that ask for what the policy excludes do not make it less ready;
// the message counts them (G9). The message has only names from the guest, at most 10.
func Ready(policy *hypershiftv1beta1.AutoNodePolicy, targets []Target) condition.Value {
	const kind = hypershiftv1beta1.ConditionTypeReady
	if problems := Check(policy); len(problems) > 0 {
		return condition.False(kind, problems[0].Reason, "not applied, what was applied before stays: "+join(problems))
	}
	alive := slices.DeleteFunc(slices.Clone(targets), func(t Target) bool { return t.deleting })
	slices.SortFunc(alive, func(a, b Target) int {
		if a.kind != b.kind {
			return strings.Compare(b.kind, a.kind) // pools first
		}
		return strings.Compare(a.name, b.name)
	})
	if len(alive) == 0 {
		return condition.True(kind, hypershiftv1beta1.ReasonNoTargets,
			"there is no OpenshiftNodePool and no node class yet")
	}
	byState := map[state][]Target{}
	for _, target := range alive {
		s := target.state(policy)
		byState[s] = append(byState[s], target)
	}
	counts := fmt.Sprintf("applied to %d of %d OpenshiftNodePools and node classes", len(byState[applied]), len(alive))
	switch {
	case len(byState[failed]) > 0:
		return condition.False(kind, byState[failed][0].reason(), counts+"; failed for "+listed(byState[failed], true))
	case len(byState[waiting]) > 0:
		return condition.Unknown(kind, hypershiftv1beta1.ReasonProgressing, counts+"; not yet to "+
			listed(byState[waiting], false))
	}
	return condition.True(kind, hypershiftv1beta1.ReasonApplied, counts+conflicting(alive)+". "+consequences)
}

// consequences is what the writer of a policy must know when it is in force (G23, K5).
const consequences = "Tightening the requirements replaces the nodes that no longer conform, " +
	"and a change of the root volume replaces every node, " +
	"within the disruption budgets of their pools."

// shownNames bounds the names in a message (G16).
const shownNames = 10

// listed returns the names of wrappers, with reasons if wanted.
func listed(targets []Target, reasons bool) string {
	shown := make([]string, 0, shownNames+1)
	for i, t := range targets {
		if i == shownNames {
			shown = append(shown, fmt.Sprintf("and %d more", len(targets)-i))
			break
		}
		name := t.kind + " " + t.name
		if reasons {
			name += " (" + t.reason() + ")"
		}
		shown = append(shown, name)
	}
	return strings.Join(shown, ", ")
}

// conflicting counts the pools whose users ask for what the policy excludes.
func conflicting(targets []Target) string {
	count := 0
	for _, t := range targets {
		if t.conflict {
			count++
		}
	}
	if count == 0 {
		return ""
	}
	return fmt.Sprintf(
		"; %d of the pools can launch no node, since their users ask for what the policy excludes or contradict themselves",
		count)
}
