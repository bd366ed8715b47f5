package karpenter

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
	"sigs.k8s.io/karpenter/pkg/controllers/dynamicresources/deviceallocation"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/state/virtualpods"

	"github.com/joiner-autoscaler/joiner/bench/internal/outcome"
	"github.com/joiner-autoscaler/joiner/bench/internal/rounds"
	"github.com/joiner-autoscaler/joiner/bench/internal/scenario"
)

// Disrupter is Karpenter's disruption methods with a cluster in memory. Use [NewDisrupter].
type Disrupter struct {
	*Planner
	scenario    scenario.Scenario
	cloud       *provider
	provisioner *provisioning.Provisioner
	queue       *disruption.Queue
	methods     []disruption.Method
	commands    []disruption.Command // of the last round
}

// accept is a validator that takes every command as it is: nothing changes between planning and doing.
type accept struct{}

// Validate returns the command.
func (accept) Validate(_ context.Context, command disruption.Command, _ time.Duration) (disruption.Command, error) {
	return command, nil
}

// NewDisrupter returns a disrupter that has taken in the scenario.
func NewDisrupter(s scenario.Scenario, config Config) (*Disrupter, error) {
	p, err := New(s, config)
	if err != nil {
		return nil, err
	}
	d := &Disrupter{Planner: p, scenario: s, cloud: p.cloud}
	d.scenario.Nodes = nil
	d.provisioner = provisioning.NewProvisioner(p.client, p.recorder, d.cloud, p.cluster, p.clock,
		deviceallocation.NewController(p.client), virtualpods.NewVirtualPodCache(p.client))
	d.queue = disruption.NewQueue(p.client, p.recorder, p.cluster, p.clock, d.provisioner)
	if s.Disrupt == scenario.Drift {
		d.methods = []disruption.Method{disruption.NewDrift(p.client, p.cluster, d.provisioner, p.recorder, p.clock)}
		return d, nil
	}
	c := disruption.MakeConsolidation(p.clock, p.cluster, p.client, d.provisioner, d.cloud, p.recorder, d.queue)
	d.methods = []disruption.Method{
		disruption.NewEmptiness(c, disruption.WithValidator(accept{})),
		disruption.NewMultiNodeConsolidation(c, disruption.WithValidator(accept{})),
		disruption.NewSingleNodeConsolidation(c, disruption.WithValidator(accept{})),
	}
	return d, nil
}

// Round asks one method after the other, as Karpenter's disruption controller does. The first that finds something to
// do gets the round.
func (d *Disrupter) Round(left time.Duration) (rounds.Step, error) {
	ctx, cancel := context.WithTimeout(d.ctx, left)
	defer cancel()
	d.commands = nil
	for _, method := range d.methods {
		candidates, totals, err := disruption.GetCandidatesWithTotals(ctx, d.cluster, d.client, d.recorder, d.clock,
			d.cloud, method.ShouldDisrupt, method.Class(), d.queue, nil)
		if err != nil {
			return rounds.Step{}, fmt.Errorf("listing candidates: %w", err)
		}
		if len(candidates) == 0 {
			continue
		}
		if setter, ok := method.(disruption.NodePoolTotalsSetter); ok {
			setter.SetNodePoolTotals(totals)
		}
		budgets, err := disruption.BuildDisruptionBudgetMapping(ctx, d.cluster, d.clock, d.client, d.cloud, d.recorder,
			method.Reason())
		if err != nil {
			return rounds.Step{}, fmt.Errorf("counting budgets: %w", err)
		}
		commands, err := method.ComputeCommands(ctx, budgets, candidates...)
		if ctx.Err() != nil { // cut off in the middle: what was found does not count
			return rounds.Step{}, nil
		}
		if err != nil {
			return rounds.Step{}, fmt.Errorf("%s: %w", method.Reason(), err)
		}
		for _, command := range commands {
			if command.Decision() != disruption.NoOpDecision {
				d.commands = append(d.commands, command)
			}
		}
		if len(d.commands) > 0 {
			return d.step()
		}
	}
	return rounds.Step{}, nil
}

func (d *Disrupter) step() (rounds.Step, error) {
	var step rounds.Step
	for _, command := range d.commands {
		for _, candidate := range command.Candidates {
			step.Removes = append(step.Removes, candidate.Name())
		}
		for _, replacement := range command.Replacements {
			launch, err := cheapest(replacement.InstanceTypeOptions, replacement.Requirements)
			if err != nil {
				return step, err
			}
			step.Launches = append(step.Launches, launch)
		}
	}
	return step, nil
}

// AddNode takes in a new node, initialized and not drifted.
func (d *Disrupter) AddNode(n scenario.Node) error {
	s := d.scenario
	s.Disrupt = ""
	if d.scenario.Disrupt == scenario.Consolidate {
		s.Disrupt = scenario.Consolidate
	}
	return d.addNode(s, n)
}

// RemoveNode takes in that a node, its claim and its pods have gone.
func (d *Disrupter) RemoveNode(n scenario.Node) error {
	for _, pod := range n.Pods {
		d.objects.remove(pod)
		d.cluster.DeletePod(client.ObjectKeyFromObject(pod))
	}
	delete(d.objects.nodes, n.Name)
	d.cluster.DeleteNode(n.Name)
	d.cluster.DeleteNodeClaim(n.Name)
	return nil
}

// Bind takes in that a pod runs on a node.
func (d *Disrupter) Bind(pod *corev1.Pod) error {
	d.objects.put(pod)
	return d.cluster.UpdatePod(d.ctx, pod)
}

// Place returns where the commands of the last round put the pods. Karpenter does no more planning for that.
func (d *Disrupter) Place(pods []*corev1.Pod, fresh []scenario.Node) (outcome.Outcome, error) {
	result := outcome.Outcome{Existing: map[string][]string{}}
	wanted, placed := map[types.NamespacedName]bool{}, map[types.NamespacedName]bool{}
	for _, pod := range pods {
		wanted[client.ObjectKeyFromObject(pod)] = true
	}
	put := func(node string, pods []*corev1.Pod) {
		for _, pod := range pods {
			if key := client.ObjectKeyFromObject(pod); wanted[key] && !placed[key] {
				placed[key] = true
				result.Existing[node] = append(result.Existing[node], key.String())
			}
		}
	}
	next := 0
	for _, command := range d.commands {
		for _, node := range command.Results.ExistingNodes {
			put(node.Name(), node.Pods)
		}
		for _, replacement := range command.Replacements {
			put(fresh[next].Name, replacement.Pods)
			next++
		}
	}
	for _, pod := range pods {
		if key := client.ObjectKeyFromObject(pod); !placed[key] {
			result.Unplaced = append(result.Unplaced, key.String())
		}
	}
	result.Order = queued(pods)
	return result, nil
}

func labelsOf(pod *corev1.Pod) labels.Set { return pod.Labels }

// conditions returns the conditions of the NodeClaim of a scenario's node.
func conditions(s scenario.Scenario) []string {
	list := []string{v1.ConditionTypeLaunched, v1.ConditionTypeRegistered, v1.ConditionTypeInitialized}
	switch s.Disrupt {
	case scenario.Consolidate:
		list = append(list, v1.ConditionTypeConsolidatable)
	case scenario.Drift:
		list = append(list, v1.ConditionTypeDrifted)
	}
	return list
}
