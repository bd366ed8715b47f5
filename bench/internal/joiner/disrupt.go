package joiner

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/bench/internal/outcome"
	"github.com/joiner-autoscaler/joiner/bench/internal/rounds"
	"github.com/joiner-autoscaler/joiner/bench/internal/scenario"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// Disrupter is Joiner with a cluster whose nodes may go. Use [NewDisrupter].
type Disrupter struct {
	*Planner
	scenario scenario.Scenario
	nodes    int // that exist now
	model    scheduled
}

// NewDisrupter returns a disrupter that has taken in the scenario, and has a first snapshot of it.
func NewDisrupter(s scenario.Scenario, costs Costs) (*Disrupter, error) {
	p, err := New(s, costs)
	if err != nil {
		return nil, err
	}
	p.Warm()
	nodes := len(s.Nodes)
	s.Nodes = nil
	return &Disrupter{Planner: p, scenario: s, nodes: nodes}, nil
}

// Round plans one round on a snapshot of the store. It ignores how much time is left. It asks for drift alone, or else
// for emptiness and, if no node is empty, for consolidation.
func (d *Disrupter) Round(time.Duration) (rounds.Step, error) {
	s := d.store.Snapshot()
	budgets := map[string][]engine.Budget{scenario.Pool: {{Max: scenario.Budget(d.nodes)}}}
	terms := engine.Terms{Now: time.Now().Unix(), Budgets: budgets, MinSavingPercent: engine.DefaultMinSavingPercent}
	var p plan.Plan
	if d.scenario.Disrupt == scenario.Drift {
		p = engine.Drift(s, terms)
	} else if p = engine.Emptiness(s, terms.Now, budgets); len(p.Removes) == 0 {
		p = engine.Consolidate(s, terms)
	}
	var step rounds.Step
	for _, remove := range p.Removes {
		step.Removes = append(step.Removes, remove.Node)
	}
	for _, l := range p.Launches {
		step.Launches = append(step.Launches, outcome.Launch{
			Type: l.Cheapest.Type, Zone: l.Cheapest.Zone, CapacityType: l.Cheapest.CapacityType,
			Price: l.Cheapest.Price,
		})
	}
	return step, nil
}

// AddNode takes in a new node, initialized and not drifted.
func (d *Disrupter) AddNode(n scenario.Node) error {
	s := d.scenario
	s.Disrupt = ""
	d.nodes++
	return d.addNode(s, n)
}

// RemoveNode takes in that a node, its claim and its pods have gone.
func (d *Disrupter) RemoveNode(n scenario.Node) error {
	for _, pod := range n.Pods {
		d.store.Remove(pod)
	}
	node, err := n.Object(d.scenario.Catalog)
	if err != nil {
		return err
	}
	d.nodes--
	d.store.Remove(node)
	d.store.Remove(&karpenterv1.NodeClaim{ObjectMeta: claimMeta(n, node)})
	return nil
}

// Bind takes in that a pod runs on a node.
func (d *Disrupter) Bind(pod *corev1.Pod) error { return d.store.Apply(pod) }

// Place plans for pods that are pending again, as the provisioning controller does. After ByScheduler it plans only
// for those that the model of kube-scheduler leaves.
func (d *Disrupter) Place(pods []*corev1.Pod, _ []scenario.Node) (outcome.Outcome, error) {
	for _, pod := range pods {
		if err := d.Add(pod); err != nil {
			return outcome.Outcome{}, err
		}
	}
	if d.model.dice != nil {
		return d.placeByScheduler()
	}
	if err := d.Plan(); err != nil {
		return outcome.Outcome{}, err
	}
	return d.Outcome()
}
