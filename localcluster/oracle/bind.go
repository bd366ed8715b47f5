package oracle

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// shuffles is how many orders by chance are tried when the sensible ones fail. With affinity and spread both in play the
// order decides; what thirty orders do not find is worth a look.
const shuffles = 30

// shuffleSeed makes every check give the same answer each time.
const shuffleSeed = 1

// bindAll binds the pods in the first order that admits them all, or returns what is left over in the best one.
func (o *Oracle) bindAll(ctx context.Context, waiting []placement) ([]Violation, error) {
	var fewest []Violation
	source := rand.New(rand.NewPCG(shuffleSeed, shuffleSeed))
	slices.SortStableFunc(waiting, byName)
	for attempt := range shuffles + len(orders()) {
		if attempt < len(orders()) {
			slices.SortStableFunc(waiting, orders()[attempt])
		} else {
			source.Shuffle(len(waiting), func(i, j int) { waiting[i], waiting[j] = waiting[j], waiting[i] })
		}
		o.state.restart()
		stuck, err := o.bindInOrder(ctx, waiting)
		if err != nil || stuck == nil {
			return nil, err
		}
		if fewest == nil || len(stuck) < len(fewest) {
			fewest = stuck
		}
	}
	return fewest, nil
}

func byName(a, b placement) int {
	return cmp.Or(strings.Compare(a.pod.Namespace, b.pod.Namespace), strings.Compare(a.pod.Name, b.pod.Name))
}

// orders are the sensible ones: by priority, as the scheduler's queue has it, and among equals those that look at others
// after the others; then the same without priority, because a pod that waits long enough finds its place in the end.
func orders() []func(a, b placement) int {
	return []func(a, b placement) int{
		func(a, b placement) int {
			return cmp.Or(cmp.Compare(priority(b.pod), priority(a.pod)), followers(a.pod)-followers(b.pod))
		},
		func(a, b placement) int { return followers(a.pod) - followers(b.pod) },
	}
}

func priority(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

// followers orders pods by how much their constraints look at others: none, affinity, spread, spread over hostnames.
func followers(pod *corev1.Pod) int {
	order := 0
	if a := pod.Spec.Affinity; a != nil && a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
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

// bindInOrder goes through the pods again and again and binds each that the filters admit, until none is left, for which
// it returns nil, or a pass binds nothing.
func (o *Oracle) bindInOrder(ctx context.Context, order []placement) ([]Violation, error) {
	waiting := slices.Clone(order)
	for {
		var left []placement
		var refused []Violation
		for _, p := range waiting {
			violation, err := o.refusal(ctx, p)
			if err != nil {
				return nil, err
			}
			if violation == nil {
				o.state.bind(p)
				continue
			}
			left, refused = append(left, p), append(refused, *violation)
		}
		if len(left) == 0 {
			return nil, nil
		}
		if len(left) == len(waiting) {
			return refused, nil
		}
		waiting = left
	}
}

// refusal asks the plugins about one binding at this moment; nil means that they admit it.
func (o *Oracle) refusal(ctx context.Context, p placement) (*Violation, error) {
	node := o.state.now[p.node]
	violation := &Violation{Pod: p.name(), Node: node.Node().Name}
	cycle := framework.NewCycleState()
	result, status, narrowed := o.framework.RunPreFilterPlugins(ctx, cycle, p.pod)
	switch {
	case status.IsSuccess() && !result.AllNodes() && !result.NodeNames.Has(violation.Node):
		violation.Plugin, violation.Reason = strings.Join(sets.List(narrowed), ","), "the pod's node selection leaves other nodes only"
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
	if violation.Plugin == "" { // two node selections that leave nothing together
		violation.Plugin = strings.Join(sets.List(narrowed), ",")
	}
	return violation, nil
}
