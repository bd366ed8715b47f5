package translate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Pool converts a NodePool. The caller sets Catalog, Used and FreeSlots. A pool that cannot be understood is Blocked.
func Pool(space *resources.Space, pool *karpenterv1.NodePool) (*cluster.Pool, error) {
	set, minValues, err := PoolRequirements(pool)
	limits, limitErr := limits(space, pool)
	result := &cluster.Pool{
		Name: pool.Name, UID: string(pool.UID), Requirements: set, MinValues: minValues,
		Taints: Taints(pool.Spec.Template.Spec.Taints), Limits: limits,
		ExpiresGracefully: ExpiresGracefully(pool),
	}
	if pool.Spec.Weight != nil {
		result.Weight = *pool.Spec.Weight
	}
	switch pool.Spec.Disruption.ConsolidationPolicy {
	case karpenterv1.ConsolidationPolicyWhenEmpty:
		result.Consolidates = cluster.WhenEmpty
	case karpenterv1.ConsolidationPolicyBalanced:
		result.Consolidates = cluster.Balanced
	}
	if pool.Spec.Replicas != nil {
		result.Static, result.Replicas = true, *pool.Spec.Replicas
	}
	result.MinNodes, _, _ = MinNodes(pool) // the caller reports the error; the pool works without it
	result.Gentle = gentle(pool, result)
	result.LocalVolumes, _ = LocalVolumes(pool) // its error is reported on the pool
	err = errors.Join(err, limitErr)
	result.Blocked, result.Invalid = blocked(pool, err), err != nil
	result.TerminateFirst = TerminateFirstOf(pool).On
	pause := PoolPauseOf(pool)
	result.Held = pause.Disrupt
	if pause.Launch && pool.DeletionTimestamp == nil && err == nil {
		result.Blocked, result.BlockedBy = "it is paused: "+pause.By(), cause.PoolPaused
	}
	if err != nil {
		err = fmt.Errorf("NodePool %s: %w", pool.Name, err)
	}
	return result, err
}

// gentle reports whether the pool shrinks to its soft node limit within its budgets (L-40). Only a mark for this very
// limit lets nodes go at once. So a lost mark costs time and no node.
func gentle(pool *karpenterv1.NodePool, value *cluster.Pool) bool {
	most, bound := SoftBound(value)
	return bound && pool.Annotations[karpenterv1.AboveLimitAnnotationKey] != AtOnce(most)
}

// SoftBound returns the node limit of a pool. bound reports whether the soft limit decides, and not the hard limit or
// the replicas of a static pool.
func SoftBound(pool *cluster.Pool) (most int64, bound bool) {
	most, hard := pool.Limits.Nodes()
	return most, most != limit.None && !hard && (!pool.Static || pool.Replicas > most)
}

// AtOnce returns the mark of a pool whose nodes above this limit go at once.
func AtOnce(most int64) string {
	return fmt.Sprintf("%s %d", karpenterv1.AboveLimitAtOnce, most)
}

// blocked says why the pool launches nothing for pods, "" when it may (V-12).
func blocked(pool *karpenterv1.NodePool, invalid error) string {
	switch ready, found := condition(pool.Status.Conditions, karpenterv1.ConditionTypeReady); {
	case pool.DeletionTimestamp != nil:
		return "it is being deleted"
	case invalid != nil:
		return invalid.Error()
	case !found:
		return "it is not Ready: not checked yet"
	case ready.Status != metav1.ConditionTrue:
		return "it is not Ready: " + cmp.Or(ready.Message, ready.Reason, "no reason given")
	}
	return ""
}

// PoolRequirements returns what holds for every node of the pool: the requirements of the template, its labels, the
// pool's name and the node class (see NodeClassLabel). Keys that nothing satisfies are in EmptyKeys; they are not an
// error.
func PoolRequirements(pool *karpenterv1.NodePool) (requirement.Set, []cluster.MinValues, error) {
	set, minValues, err := Requirements(pool.Spec.Template.Spec.Requirements)
	fixed := []requirement.Requirement{requirement.OneOf(cluster.LabelPool, pool.Name)}
	for label, value := range pool.Spec.Template.ObjectMeta.Labels {
		fixed = append(fixed, requirement.OneOf(Key(label), value))
	}
	if class := pool.Spec.Template.Spec.NodeClassRef; class != nil {
		fixed = append(fixed, requirement.OneOf(requirement.Key(NodeClassLabel(class)), class.Name))
	} else {
		err = errors.Join(err,
			errors.New("spec.template.spec.nodeClassRef is missing: give group, kind and name of the node class"))
	}
	return set.And(requirement.NewSet(fixed...)), minValues, err
}

// NodeClassLabel returns the label with which claims and nodes name their node class: its group, a slash and its kind
// in lower case.
func NodeClassLabel(class *karpenterv1.NodeClassReference) string {
	return class.Group + "/" + strings.ToLower(class.Kind)
}

// Slots returns the number of slots for the pool's claims, limit.None when they need none (L-14). The error says that
// its limits cannot be understood: such a pool launches nothing.
func Slots(pool *karpenterv1.NodePool) (int64, error) {
	parsed, err := limits(resources.NewSpace(), pool)
	replicas := limit.None
	if pool.Spec.Replicas != nil {
		replicas = *pool.Spec.Replicas
	}
	return parsed.Slots(replicas), err
}

// SurgeSlots returns the number of slots for claims that replace others, see limit.Limits.SurgeSlots.
func SurgeSlots(pool *karpenterv1.NodePool, count int64) int64 {
	parsed, err := limits(resources.NewSpace(), pool)
	if err != nil {
		return 0
	}
	if pool.Spec.Replicas == nil {
		return parsed.SurgeSlots(limit.None, count)
	}
	return parsed.SurgeSlots(*pool.Spec.Replicas, count)
}

// LimitsError returns an error if the pool's limits cannot be understood.
func LimitsError(pool *karpenterv1.NodePool) error {
	_, err := limits(resources.NewSpace(), pool)
	return err
}

// limits converts both lists (L-01, L-02). Fractions are rounded down, so usage above a limit by any fraction is above
// it. A negative limit is an error and is left out. This is safe: because of the error the pool launches nothing, and
// nothing is removed for the limit.
func limits(space *resources.Space, pool *karpenterv1.NodePool) (limit.Limits, error) {
	result := limit.Unlimited()
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(pool.Spec.Limits)) {
		quantity := pool.Spec.Limits[name]
		amount := amountDown(name, quantity)
		switch {
		case quantity.Sign() < 0:
			errs = append(errs, fmt.Errorf("spec.limits.%s is %s: it must not be negative", name, quantity.String()))
		case name == resources.NameNodes:
			result.SoftNodes = amount
		default:
			result = result.With(space.Index(string(name)), amount)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(pool.Spec.HardLimits)) {
		quantity := pool.Spec.HardLimits[name]
		whole := amountDown(name, quantity)
		switch {
		case name != resources.NameNodes:
			errs = append(errs, fmt.Errorf("spec.hardLimits has the key %q: only %s is allowed", name,
				resources.NameNodes))
		case quantity.Sign() < 0 || whole < maxAmount && quantity.CmpInt64(whole) != 0:
			errs = append(errs, fmt.Errorf("spec.hardLimits.%s is %s: it must be a whole number that is not negative",
				name, quantity.String()))
		default:
			result.HardNodes = whole
		}
	}
	return result, errors.Join(errs...)
}
