// Package rounds carries out disruptions in memory: a side plans a round, what it plans is done, and so on until
// nothing more is planned. Only the planning is measured. It is the same for both sides; see docs/benchmarks.md.
package rounds

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-autoscaler/joiner/bench/internal/measure"
	"github.com/joiner-autoscaler/joiner/bench/internal/outcome"
	"github.com/joiner-autoscaler/joiner/bench/internal/scenario"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Side plans disruptions of a cluster that it has in memory.
type Side interface {
	// Round plans one round. Only this is measured.
	Round(left time.Duration) (Step, error)
	// AddNode, RemoveNode and Bind tell the side what happens. The pods of a removed node go with it.
	AddNode(scenario.Node) error
	RemoveNode(scenario.Node) error
	Bind(*corev1.Pod) error
	// Place says where the pods of removed nodes go; fresh are the nodes of the step's launches, in their order.
	Place(pods []*corev1.Pod, fresh []scenario.Node) (outcome.Outcome, error)
}

// Step is what a side plans in one round: nodes to go, and the cheapest nodes that its launches allow.
type Step struct {
	Removes  []string
	Launches []outcome.Launch
}

// Run is a cluster that a side works on.
type Run struct {
	Side     Side
	Scenario scenario.Scenario
	// Limit bounds the planning time; 0 for none.
	Limit time.Duration
	// Check judges where the pods of a round go, and returns what is wrong with it in words; nil for no judgement.
	Check func(scenario.Scenario, outcome.Outcome) ([]string, error)
	// Trace gets a line for each round; nil for none.
	Trace func(string)

	nodes   []scenario.Node // at present
	pending []*corev1.Pod
	version int
}

// Result is the result of all rounds.
type Result struct {
	Cost          measure.Cost // of all planning
	Rounds        int          // that did something
	Removed       int          // nodes
	FirstRemoved  int          // in the first round
	Launched      int
	Moved         int // times that a pod went elsewhere
	Nodes         int // at the end
	Placed        int // pods at the end
	Unplaced      int
	Before, After resources.Money // per hour
	CutOff        bool
	Violations    []string
}

// Do plans and carries out until nothing more is planned. Drift ends when as many nodes have gone as the budget allows
// at the beginning.
func (r *Run) Do() (Result, error) {
	r.nodes, r.version = slices.Clone(r.Scenario.Nodes), 1_000_000_000
	quota := scenario.Budget(len(r.nodes))
	var result Result
	var err error
	if result.Before, err = r.price(); err != nil {
		return result, err
	}
	measure.Settle()
	for {
		var step Step
		cost, err := measure.Of(func() (err error) {
			step, err = r.Side.Round(r.Limit - seconds(result.Cost.WallSeconds))
			return err
		})
		if err != nil {
			return result, fmt.Errorf("round %d: %w", result.Rounds+1, err)
		}
		result.Cost = result.Cost.Plus(cost)
		if len(step.Removes) > 0 {
			if err := r.carryOut(step, &result); err != nil {
				return result, fmt.Errorf("round %d: %w", result.Rounds, err)
			}
		}
		price, err := r.price()
		if err != nil {
			return result, err
		}
		if r.Trace != nil {
			r.Trace(fmt.Sprintf("round %d: %.3f s, %d nodes go, %d come; %d nodes, %.3f $/h", result.Rounds,
				cost.WallSeconds, len(step.Removes), len(step.Launches), len(r.nodes), price.Dollars()))
		}
		result.CutOff = r.Limit > 0 && seconds(result.Cost.WallSeconds) >= r.Limit
		if result.CutOff || len(step.Removes) == 0 || r.Scenario.Disrupt == scenario.Drift && result.Removed >= quota {
			return r.ended(result, price), nil
		}
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func (r *Run) ended(result Result, price resources.Money) Result {
	result.Nodes, result.After, result.Unplaced = len(r.nodes), price, len(r.pending)
	for _, n := range r.nodes {
		result.Placed += len(n.Pods)
	}
	return result
}

// carryOut adds a step's new nodes, removes its old ones, and has their pods placed.
func (r *Run) carryOut(step Step, result *Result) error {
	result.Rounds++
	result.Removed, result.Launched = result.Removed+len(step.Removes), result.Launched+len(step.Launches)
	if result.Rounds == 1 {
		result.FirstRemoved = len(step.Removes)
	}
	fresh, err := r.launch(step.Launches, result.Rounds, "new")
	if err != nil {
		return err
	}
	for _, name := range step.Removes {
		at := slices.IndexFunc(r.nodes, func(n scenario.Node) bool { return n.Name == name })
		if at < 0 {
			return fmt.Errorf("node %q, which is to go, does not exist", name)
		}
		r.pending = append(r.pending, r.nodes[at].Pods...)
		if err := r.Side.RemoveNode(r.nodes[at]); err != nil {
			return err
		}
		r.nodes = slices.Delete(r.nodes, at, at+1)
	}
	for i, pod := range r.pending {
		r.version++
		r.pending[i] = scenario.Bound(pod, "", r.version)
	}
	if len(r.pending) == 0 {
		return nil
	}
	placed, err := r.Side.Place(r.pending, fresh)
	if err != nil {
		return err
	}
	if placed.Placed()+len(placed.Unplaced) != len(r.pending) {
		return fmt.Errorf("%d pods were to be placed; %d were, and %d not", len(r.pending), placed.Placed(),
			len(placed.Unplaced))
	}
	if r.Check != nil {
		violations, err := r.Check(scenario.Scenario{Catalog: r.Scenario.Catalog, Nodes: r.nodes, Pending: r.pending},
			placed)
		if err != nil {
			return err
		}
		result.Violations = append(result.Violations, violations...)
	}
	result.Moved += placed.Placed()
	return r.bind(placed, result)
}

// launch makes the nodes and tells the side.
func (r *Run) launch(launches []outcome.Launch, round int, kind string) ([]scenario.Node, error) {
	var fresh []scenario.Node
	for i, l := range launches {
		n := scenario.Node{Name: fmt.Sprintf("%s-%05d-%04d", kind, round, i), Type: l.Type, Zone: l.Zone,
			CapacityType: l.CapacityType}
		if err := r.Side.AddNode(n); err != nil {
			return nil, err
		}
		fresh, r.nodes = append(fresh, n), append(r.nodes, n)
	}
	return fresh, nil
}

// bind binds each pod to the node on which it was placed.
func (r *Run) bind(placed outcome.Outcome, result *Result) error {
	target := map[string]string{}
	for node, pods := range placed.Existing {
		for _, pod := range pods {
			target[pod] = node
		}
	}
	more, err := r.launch(placed.Launches, result.Rounds, "more")
	if err != nil {
		return err
	}
	result.Launched += len(more)
	for i, l := range placed.Launches {
		for _, pod := range l.Pods {
			target[pod] = more[i].Name
		}
	}
	at := map[string]int{}
	for i, n := range r.nodes {
		at[n.Name] = i
	}
	var rest []*corev1.Pod
	slices.SortFunc(r.pending, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	for _, pod := range r.pending {
		name, found := target[pod.Namespace+"/"+pod.Name]
		if !found {
			rest = append(rest, pod)
			continue
		}
		i, exists := at[name]
		if !exists {
			return fmt.Errorf("pod %s is placed on %q, which does not exist", pod.Name, name)
		}
		r.version++
		bound := scenario.Bound(pod, name, r.version)
		r.nodes[i].Pods = append(slices.Clip(r.nodes[i].Pods), bound)
		if err := r.Side.Bind(bound); err != nil {
			return err
		}
	}
	r.pending = rest
	return nil
}

func (r *Run) price() (resources.Money, error) {
	sum := resources.Money(0)
	for _, n := range r.nodes {
		price, err := n.Price(r.Scenario.Catalog)
		if err != nil {
			return 0, err
		}
		sum += price
	}
	return sum, nil
}
