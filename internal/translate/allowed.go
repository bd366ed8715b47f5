package translate

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// AllowedDisruptions returns what a pool's budgets allow at now for each reason that they bound, which budget decides,
// and when a schedule next changes that (D-08). nodes is the number of the pool's initialized nodes, taken the number
// of its nodes that use up its budgets. A budget that cannot be understood allows nothing, as in [ActiveBudgets].
func AllowedDisruptions(pool *karpenterv1.NodePool, now time.Time, nodes, taken int) *karpenterv1.DisruptionStatus {
	result := &karpenterv1.DisruptionStatus{}
	for _, reason := range boundReasons(pool) {
		allowed := karpenterv1.AllowedDisruptions{Reason: reason}
		for i, budget := range pool.Spec.Disruption.Budgets {
			most, inForce, _ := budgetInForce(budget, now, nodes) // whoever acts on budgets reports the error
			if !inForce || !holdsFor(budget, reason) {
				continue
			}
			if left := int64(max(0, most-taken)); allowed.Nodes == nil || left < *allowed.Nodes {
				allowed.Nodes, allowed.Budget = &left,
					fmt.Sprintf("spec.disruption.budgets[%d]: %s", i, budget.Nodes.String())
			}
		}
		result.Allowed = append(result.Allowed, allowed)
	}
	if next := nextChange(pool, now); !next.IsZero() {
		result.NextChange = new(metav1.NewTime(next))
	}
	return result
}

// boundReasons lists the reasons that the pool's budgets bound, sorted.
func boundReasons(pool *karpenterv1.NodePool) []karpenterv1.DisruptionReason {
	reasons := []karpenterv1.DisruptionReason{karpenterv1.DisruptionReasonDrifted, karpenterv1.DisruptionReasonEmpty,
		karpenterv1.DisruptionReasonUnderutilized}
	if ExpiresGracefully(pool) {
		reasons = slices.Insert(reasons, 2, karpenterv1.DisruptionReasonExpired)
	}
	return reasons
}

// ExpiresGracefully reports whether the pool asks for its expired nodes to be replaced within its budgets (D-07).
func ExpiresGracefully(pool *karpenterv1.NodePool) bool {
	return pool.Annotations[karpenterv1.GracefulExpirationAnnotationKey] == "true"
}

func holdsFor(budget karpenterv1.Budget, reason karpenterv1.DisruptionReason) bool {
	return len(budget.Reasons) == 0 || slices.Contains(budget.Reasons, reason)
}

// maxHits bounds how many overlapping windows of a schedule nextChange follows.
const maxHits = 100

// nextChange returns when a budget of the pool next becomes active or inactive; zero for never.
func nextChange(pool *karpenterv1.NodePool, now time.Time) time.Time {
	var first time.Time
	for _, budget := range pool.Spec.Disruption.Budgets {
		if budget.Schedule == nil || budget.Duration == nil {
			continue
		}
		schedule, err := scheduleOf(budget)
		if err != nil {
			continue
		}
		change := schedule.Next(now.UTC().Add(-budget.Duration.Duration))
		// it is active, until the last of the overlapping windows ends
		if !change.IsZero() && !change.After(now) {
			for range maxHits {
				next := schedule.Next(change)
				if next.IsZero() || next.After(change.Add(budget.Duration.Duration)) {
					break
				}
				change = next
			}
			change = change.Add(budget.Duration.Duration)
		}
		if !change.IsZero() && (first.IsZero() || change.Before(first)) {
			first = change
		}
	}
	return first
}
