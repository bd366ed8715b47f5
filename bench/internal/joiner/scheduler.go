package joiner

import (
	"math/rand/v2"
	"slices"

	"github.com/joiner-autoscaler/joiner/bench/internal/outcome"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest/waves"
)

// In this file, a model of kube-scheduler places the pods that have moved. It spreads them over nodes, while a plan
// packs them. So the plan that looks best if all goes as planned may turn out to be the worst.

// scheduled is the model's part of a run.
type scheduled struct {
	dice *rand.Rand // nil: pods go where Joiner expects them
	// displaced is how many pods found no existing node, launched how many nodes came for them.
	displaced, launched int
}

// ByScheduler has the model place pods from now on. The dice draw the order in which pods come, and decide among equal
// nodes.
func (d *Disrupter) ByScheduler(dice *rand.Rand) { d.model.dice = dice }

// Displaced returns for how many pods the model found no existing node, and how many nodes were launched for them.
func (d *Disrupter) Displaced() (pods, launched int) { return d.model.displaced, d.model.launched }

// placeByScheduler has the model bind pending pods, and plans for those that find no node.
func (d *Disrupter) placeByScheduler() (outcome.Outcome, error) {
	s := d.store.Snapshot()
	scheduler, nodes := waves.NewScheduler(d.model.dice, s.Namespaces), map[string]*cluster.Node{}
	for _, node := range s.Nodes {
		scheduler.Open(node)
		nodes[node.Name] = node
	}
	waiting := slices.Clone(s.Pending)
	d.model.dice.Shuffle(len(waiting), func(i, j int) { waiting[i], waiting[j] = waiting[j], waiting[i] })
	placed, existing, order := map[*cluster.Node][]*cluster.Pod{}, map[string][]string{}, []string(nil)
	for bound := true; bound; { // a pod may wait for another one to be there
		bound = false
		waiting = slices.DeleteFunc(waiting, func(pod *cluster.Pod) bool {
			name := scheduler.Place(pod.Shape)
			if name == "" {
				return false
			}
			scheduler.Bind(pod.Shape, name)
			placed[nodes[name]] = append(placed[nodes[name]], pod)
			existing[name] = append(existing[name], pod.Namespace+"/"+pod.Name)
			order = append(order, pod.Namespace+"/"+pod.Name)
			bound = true
			return true
		})
	}
	d.snapshot = s.Bind(placed)
	d.snapshot.Pending = waiting
	d.plan = engine.Provision(d.snapshot)
	d.model.displaced += len(waiting)
	d.model.launched += len(d.plan.Launches)
	result, err := d.Outcome()
	for name, pods := range existing {
		result.Existing[name] = append(result.Existing[name], pods...)
	}
	result.Order = append(order, result.Order...)
	return result, err
}
