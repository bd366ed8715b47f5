package oracle

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// maxSearched is the number of pods up to which orders of a plan are searched one by one. Larger plans are bound in
// passes.
const maxSearched = 500

// bindInPasses is bindAll for large plans. It tries few orders. In each one every refused pod waits for the next pass,
// as in the scheduler's queue, until a pass binds none.
func (o *Oracle) bindInPasses(ctx context.Context, waiting []placement,
	stated []types.NamespacedName) ([]Violation, error) {
	slices.SortStableFunc(waiting, byName)
	ways := []func(a, b placement) int{lookersFirst, orders()[0]}
	if len(stated) > 0 {
		ways = slices.Insert(ways, 0, asStated(stated, 0))
	}
	tries := leaps
	if len(waiting) > maxLeaping {
		tries = 1
	}
	var fewest []Violation
	for _, way := range ways {
		order := slices.Clone(waiting)
		slices.SortStableFunc(order, way)
		for range tries {
			left, refused, err := o.passes(ctx, order)
			if err != nil || len(left) == 0 {
				return nil, err
			}
			if fewest == nil || len(refused) < len(fewest) {
				fewest = refused
			}
			if !slices.ContainsFunc(fewest, orderMatters) {
				return fewest, nil
			}
			order = front(order, left)
		}
	}
	return fewest, nil
}

// leaps is how often an order is retried with the left-over pods first. maxLeaping is the number of pods up to which
// that is done. More leaps find nothing more in practice, and one try with 20,000 tied pods takes minutes.
const (
	leaps      = 4
	maxLeaping = 5000
)

// front returns the order with some of its pods first.
func front(order, first []placement) []placement {
	moved := map[*corev1.Pod]bool{}
	for _, p := range first {
		moved[p.pod] = true
	}
	rest := slices.DeleteFunc(slices.Clone(order), func(p placement) bool { return moved[p.pod] })
	return slices.Concat(first, rest)
}

// lookersFirst puts pods first that depend on others: while nothing is bound, nothing is in their way.
func lookersFirst(a, b placement) int { return cmp.Compare(followers(b.pod), followers(a.pod)) }

// passes binds the pods in an order, again and again, and returns the pods left and why they are refused.
func (o *Oracle) passes(ctx context.Context, order []placement) ([]placement, []Violation, error) {
	o.state.restart()
	for {
		var left []placement
		var refused []Violation
		for _, p := range order {
			violation, err := o.refusal(ctx, p)
			switch {
			case err != nil:
				return nil, nil, err
			case violation == nil:
				o.state.bind(p)
			default:
				left, refused = append(left, p), append(refused, *violation)
			}
		}
		if len(left) == 0 || len(left) == len(order) || !slices.ContainsFunc(refused, orderMatters) {
			return left, refused, nil
		}
		order = left
	}
}
