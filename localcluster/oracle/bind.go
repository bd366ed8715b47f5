package oracle

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread"
)

// maxTries bounds the orders that are tried for a plan. shuffles is how many random orders a search starts from. With
// both affinity and spread in play the order decides; a plan that fails in all of them deserves a look.
const (
	maxTries = 300
	shuffles = 4
)

// shuffleSeed makes every check repeatable.
const shuffleSeed = 1

// search looks for an order in which all pods can be bound.
type search struct {
	oracle *Oracle
	tries  int
	fewest []Violation // of the best order so far; nil before the first one
}

// bindAll binds the pods in the first order that admits them all, or returns the violations of the best order.
func (o *Oracle) bindAll(ctx context.Context, waiting []placement,
	stated []types.NamespacedName) ([]Violation, error) {
	if len(waiting) > maxSearched {
		return o.bindInPasses(ctx, waiting, stated)
	}
	s := search{oracle: o}
	source := rand.New(rand.NewPCG(shuffleSeed, shuffleSeed))
	slices.SortStableFunc(waiting, byName)
	sensible := orders()
	if len(stated) > 0 {
		sensible = slices.Insert(sensible, 0, asStated(stated, 0), asStated(stated, len(stated)+1))
	}
	for attempt := range len(sensible) + shuffles {
		order := slices.Clone(waiting)
		if attempt < len(sensible) {
			slices.SortStableFunc(order, sensible[attempt])
		} else {
			source.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		if found, err := s.climb(ctx, order); found || err != nil {
			return nil, err
		}
		if hopeless := slices.DeleteFunc(slices.Clone(s.fewest), orderMatters); len(hopeless) > 0 {
			return hopeless, nil
		}
	}
	return s.fewest, nil
}

// orderMatters reports whether another order might avoid the refusal. Bound pods can help spread and affinity only;
// for all other plugins, more bound pods mean more refusals.
func orderMatters(v Violation) bool {
	return v.Reason == podtopologyspread.ErrReasonConstraintsNotMatch ||
		v.Reason == interpodaffinity.ErrReasonAffinityRulesNotMatch
}

// climb starts with an order, and moves to neighbours that leave fewer pods unbound as long as there are any. It
// reports whether it found an order that binds all pods.
func (s *search) climb(ctx context.Context, order []placement) (bool, error) {
	left, err := s.try(ctx, order)
	for len(left) > 0 && err == nil &&
		!slices.ContainsFunc(s.fewest, func(v Violation) bool { return !orderMatters(v) }) {
		better := false
		for neighbour := range neighbours(order, left) {
			if s.tries >= maxTries {
				return false, nil
			}
			rest, tryErr := s.try(ctx, neighbour)
			if err = tryErr; err != nil || len(rest) < len(left) {
				order, left, better = neighbour, rest, true
				break
			}
		}
		if !better {
			return false, nil
		}
	}
	return err == nil && len(left) == 0, err
}

// neighbours yields orders that may do better: with the left-over pods first, with one of the others last, and with
// both.
func neighbours(order, left []placement) iter.Seq[[]placement] {
	return func(yield func([]placement) bool) {
		rest := slices.DeleteFunc(slices.Clone(order), func(p placement) bool {
			return slices.ContainsFunc(left, func(l placement) bool { return l.pod == p.pod })
		})
		if !yield(slices.Concat(left, rest)) {
			return
		}
		for i := range order {
			if !yield(slices.Concat(order[:i], order[i+1:], order[i:i+1])) {
				return
			}
		}
		for i := range rest {
			if !yield(slices.Concat(left, rest[:i], rest[i+1:], rest[i:i+1])) {
				return
			}
		}
	}
}

// try binds the pods in an order and returns those left over.
func (s *search) try(ctx context.Context, order []placement) ([]placement, error) {
	s.tries++
	s.oracle.state.restart()
	left, refused, err := s.oracle.bindInOrder(ctx, order)
	if s.fewest == nil || len(refused) < len(s.fewest) {
		s.fewest = refused
	}
	return left, err
}

func byName(a, b placement) int {
	return cmp.Or(strings.Compare(a.pod.Namespace, b.pod.Namespace), strings.Compare(a.pod.Name, b.pod.Name))
}

// orders returns the sensible orders. The first is by priority, like the scheduler's queue; among equals, pods that
// depend on others come later. The second ignores priority, since a pod that waits long enough finds its place in the
// end.
func orders() []func(a, b placement) int {
	return []func(a, b placement) int{
		func(a, b placement) int {
			return cmp.Or(cmp.Compare(priority(b.pod), priority(a.pod)), followers(a.pod)-followers(b.pod))
		},
		func(a, b placement) int { return followers(a.pod) - followers(b.pod) },
	}
}

// asStated returns the order that the plan states. Pods that it does not mention, mostly daemons, come before or after
// all others, as others says.
func asStated(stated []types.NamespacedName, others int) func(a, b placement) int {
	position := map[types.NamespacedName]int{}
	for i, name := range stated {
		position[name] = i + 1
	}
	at := func(p placement) int {
		if known, found := position[p.name()]; found {
			return known
		}
		return others
	}
	return func(a, b placement) int { return at(a) - at(b) }
}

func priority(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

// followers orders pods by how much they depend on others: none, affinity, spread, spread over hostnames.
func followers(pod *corev1.Pod) int {
	order := 0
	if a := pod.Spec.Affinity; a != nil && a.PodAffinity != nil &&
		len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
		order = 1
	}
	for _, c := range pod.Spec.TopologySpreadConstraints {
		switch {
		case c.WhenUnsatisfiable != corev1.DoNotSchedule:
		case c.TopologyKey == corev1.LabelHostname:
			return 3
		default:
			order = 2
		}
	}
	return order
}

// bindInOrder binds the first admitted pod, again and again, until none is left or admitted. It returns the pods left,
// nil for none, and why each is refused.
func (o *Oracle) bindInOrder(ctx context.Context,
	order []placement) (left []placement, refused []Violation, err error) {
	left = slices.Clone(order)
	for i := 0; i < len(left); {
		violation, err := o.refusal(ctx, left[i])
		if err != nil {
			return nil, nil, err
		}
		if violation != nil {
			refused = append(refused, *violation)
			i++
			continue
		}
		o.state.bind(left[i])
		left, refused, i = slices.Delete(left, i, i+1), nil, 0
	}
	return left, refused, nil
}

// refusal asks the plugins about one binding now; nil means that they admit it.
func (o *Oracle) refusal(ctx context.Context, p placement) (*Violation, error) {
	node := o.state.now[p.node]
	violation := &Violation{Pod: p.name(), Node: node.Node().Name}
	cycle := framework.NewCycleState()
	result, status, narrowed := o.framework.RunPreFilterPlugins(ctx, cycle, p.pod)
	switch {
	case status.IsSuccess() && !result.AllNodes() && !result.NodeNames.Has(violation.Node):
		violation.Plugin, violation.Reason = strings.Join(sets.List(narrowed), ","),
			"the pod's node selection leaves other nodes only"
		return violation, nil
	case status.IsSuccess():
		status = o.framework.RunFilterPlugins(ctx, cycle, p.pod, node)
	}
	if status.IsSuccess() {
		return nil, nil
	}
	if !status.IsRejected() {
		return nil, fmt.Errorf("judging pod %s on node %s: %w", violation.Pod, violation.Node, status.AsError())
	}
	violation.Plugin, violation.Reason = status.Plugin(), strings.Join(status.Reasons(), "; ")
	if violation.Plugin == "" { // two node selections without a common node
		violation.Plugin = strings.Join(sets.List(narrowed), ",")
	}
	return violation, nil
}
