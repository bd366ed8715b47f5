// Package joiner drives Joiner as the provisioning controller does: a store that has taken in the cluster, a snapshot
// of it, and engine.Provision.
package joiner

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/bench/internal/outcome"
	"github.com/joiner-autoscaler/joiner/bench/internal/scenario"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// Planner is Joiner with one scenario's cluster in memory. Use [New].
type Planner struct {
	store    *world.Store
	snapshot *cluster.Snapshot
	plan     plan.Plan
}

// Costs are the settings of what nodes cost: PriceTolerance in percent, NodeOverheadPrice in dollars per hour.
type Costs struct {
	PriceTolerance    int
	NodeOverheadPrice float64
}

// class is the node class of every scenario.
var class = karpenterv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"}

// NewStore returns a store that has taken in the scenario's pool and catalogue.
func NewStore(s scenario.Scenario, costs Costs) (*world.Store, error) {
	overhead, err := resources.FromDollars(costs.NodeOverheadPrice)
	if err != nil {
		return nil, err
	}
	store := world.New(world.Config{PriceTolerance: costs.PriceTolerance, NodeOverheadPrice: overhead})
	if err := store.SetCatalog(world.ClassRef{Group: class.Group, Kind: class.Kind, Name: class.Name},
		s.Catalog); err != nil {
		return nil, err
	}
	if err := store.Apply(pool(s, &class)); err != nil {
		return nil, fmt.Errorf("taking in the pool: %w", err)
	}
	return store, nil
}

// New returns a planner that has taken in the scenario's pool, catalogue and nodes. Its pending pods are not in yet.
func New(s scenario.Scenario, costs Costs) (*Planner, error) {
	store, err := NewStore(s, costs)
	if err != nil {
		return nil, err
	}
	p := &Planner{store: store}
	for _, n := range s.Nodes {
		if err := p.addNode(s, n); err != nil {
			return nil, fmt.Errorf("taking in node %s: %w", n.Name, err)
		}
	}
	return p, nil
}

func pool(s scenario.Scenario, class *karpenterv1.NodeClassReference) *karpenterv1.NodePool {
	pool := &karpenterv1.NodePool{
		ObjectMeta: metav1.ObjectMeta{Name: scenario.Pool, UID: "uid-of-pool", ResourceVersion: "1"},
	}
	pool.Spec.Template.Spec.NodeClassRef = class
	if s.OnDemandOnly {
		pool.Spec.Template.Spec.Requirements = []karpenterv1.NodeSelectorRequirementWithMinValues{{
			Key: string(catalog.LabelCapacityType), Operator: corev1.NodeSelectorOpIn,
			Values: []string{catalog.OnDemand},
		}}
	}
	if s.Disrupt != "" {
		pool.Spec.Disruption = karpenterv1.Disruption{
			ConsolidateAfter:    karpenterv1.NillableDuration{Duration: new(time.Duration)},
			ConsolidationPolicy: karpenterv1.ConsolidationPolicyWhenEmptyOrUnderutilized,
		}
	}
	if s.NodeLimit > 0 {
		pool.Spec.Limits = karpenterv1.Limits{"nodes": *resource.NewQuantity(s.NodeLimit, resource.DecimalSI)}
	}
	pool.Status.Conditions = []karpenterv1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}
	return pool
}

// ObjectsOf returns the node of a scenario and its NodeClaim, as they are in a cluster with Joiner.
func ObjectsOf(s scenario.Scenario, n scenario.Node) (*corev1.Node, *karpenterv1.NodeClaim, error) {
	node, err := n.Object(s.Catalog)
	if err != nil {
		return nil, nil, err
	}
	claim := &karpenterv1.NodeClaim{ObjectMeta: claimMeta(n, node)}
	claim.Spec.NodeClassRef = &class
	claim.Status = karpenterv1.NodeClaimStatus{ProviderID: n.ProviderID(), NodeName: n.Name,
		Capacity: node.Status.Capacity, Allocatable: node.Status.Allocatable}
	conditions := []string{"Launched", "Registered", "Initialized", "Consolidatable"}
	if s.Disrupt == scenario.Drift {
		conditions = append(conditions, "Drifted")
	}
	for _, condition := range conditions {
		claim.Status.Conditions = append(claim.Status.Conditions, karpenterv1.Condition{
			Type: condition, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Unix(1, 0)),
		})
	}
	return node, claim, nil
}

func (p *Planner) addNode(s scenario.Scenario, n scenario.Node) error {
	node, claim, err := ObjectsOf(s, n)
	if err != nil {
		return err
	}
	if err := p.store.Apply(node); err != nil {
		return err
	}
	if err := p.store.Apply(claim); err != nil {
		return err
	}
	for _, pod := range n.Pods {
		if err := p.store.Apply(pod); err != nil {
			return err
		}
	}
	return nil
}

func claimMeta(n scenario.Node, node *corev1.Node) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: n.Name, UID: types.UID("uid-of-claim-" + n.Name), ResourceVersion: "1",
		Labels: node.Labels}
}

// Fresh plans for all pods of a scenario, bound ones too, as if there were no node yet.
func Fresh(s scenario.Scenario, costs Costs) (outcome.Outcome, error) {
	pods := slices.Clone(s.Pending)
	for _, n := range s.Nodes {
		for _, pod := range n.Pods {
			pods = append(pods, scenario.Bound(pod, "", 1))
		}
	}
	s.Nodes, s.Disrupt = nil, ""
	p, err := New(s, costs)
	if err != nil {
		return outcome.Outcome{}, err
	}
	for _, pod := range pods {
		if err := p.Add(pod); err != nil {
			return outcome.Outcome{}, err
		}
	}
	if err := p.Plan(); err != nil {
		return outcome.Outcome{}, err
	}
	return p.Outcome()
}

// Add takes in a pending pod, as from a watch event.
func (p *Planner) Add(pod *corev1.Pod) error { return p.store.Apply(pod) }

// Remove takes in that a pod has gone.
func (p *Planner) Remove(pod *corev1.Pod) { p.store.Remove(pod) }

// Warm takes the first snapshot, so that it is not measured: a running Joiner took it long ago.
func (p *Planner) Warm() { p.store.Snapshot() }

// Plan plans for all pending pods.
func (p *Planner) Plan() error {
	p.snapshot = p.store.Snapshot()
	p.plan = engine.Provision(p.snapshot)
	return nil
}

// Note returns a remark on the last Plan: none on this side.
func (p *Planner) Note() string { return "" }

// Outcome returns the result of the last Plan.
func (p *Planner) Outcome() (outcome.Outcome, error) {
	result := outcome.Outcome{Existing: map[string][]string{}}
	for _, l := range p.plan.Launches {
		launch := outcome.Launch{Type: l.Cheapest.Type, Zone: l.Cheapest.Zone, CapacityType: l.Cheapest.CapacityType,
			Price: l.Cheapest.Price}
		for _, pod := range l.Pods {
			launch.Pods = append(launch.Pods, pod.String())
		}
		launch.Sort()
		result.Launches = append(result.Launches, launch)
	}
	for _, n := range p.plan.Nominations {
		result.Existing[n.Node] = append(result.Existing[n.Node], n.Pod.String())
	}
	for _, u := range p.plan.Unplaced {
		result.Unplaced = append(result.Unplaced, u.Pod.String())
	}
	result.Order = p.order()
	return result, nil
}

// order returns the names of the pods as the plan placed them, which it keeps by their UIDs.
func (p *Planner) order() []string {
	names := map[string]string{}
	for _, pod := range p.snapshot.Pending {
		names[pod.UID] = pod.Namespace + "/" + pod.Name
	}
	order := make([]string, 0, len(p.plan.Order))
	for _, uid := range p.plan.Order {
		if name, found := names[uid]; found {
			order = append(order, name)
		}
	}
	return order
}

// Snapshot returns a snapshot of the store, as Plan uses it.
func (p *Planner) Snapshot() *cluster.Snapshot { return p.store.Snapshot() }
