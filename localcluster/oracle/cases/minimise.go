package cases

import (
	"context"
	"iter"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/localcluster/oracle"
)

// maxTrials bounds the runs of a minimisation.
const maxTrials = 3000

// Minimise makes a case as small as possible. It drops objects and constraints one at a time, as long as the case
// fails with the same plugin and reason. A case without violations is returned unchanged.
func (j *Judge) Minimise(ctx context.Context, c *Case) *Case {
	out, err := j.Run(ctx, c)
	if err != nil || len(out.Violations) == 0 {
		return c
	}
	first := out.Violations[0]
	trials := 0
	fails := func(candidate *Case) bool {
		trials++
		out, err := j.Run(ctx, candidate)
		return err == nil && slices.ContainsFunc(out.Violations, func(v oracle.Violation) bool {
			return v.Plugin == first.Plugin && v.Reason == first.Reason
		})
	}
	for progress := true; progress && trials < maxTrials; {
		progress = false
		for candidate := range c.smaller() {
			if trials >= maxTrials {
				break
			}
			if fails(candidate) {
				c, progress = candidate, true
				break
			}
		}
	}
	return c
}

// smaller yields cases with one thing less, large things first.
func (c *Case) smaller() iter.Seq[*Case] {
	return func(yield func(*Case) bool) {
		for _, source := range []iter.Seq[*Case]{c.withoutPods(), c.withoutObjects(), c.withSimplerPods(),
			c.withSimplerPools(), c.withSimplerMachines()} {
			for candidate := range source {
				if !yield(candidate) {
					return
				}
			}
		}
	}
}

func workloadOf(pod *corev1.Pod) string {
	stem, _, _ := strings.Cut(pod.Name, "-")
	return pod.Namespace + "/" + stem
}

// workloads lists the pods by workload, in order.
func (c *Case) workloads() [][]int {
	var groups [][]int
	position := map[string]int{}
	for i, pod := range c.Pods {
		at, known := position[workloadOf(pod)]
		if !known {
			at = len(groups)
			position[workloadOf(pod)] = at
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], i)
	}
	return groups
}

func (c *Case) withoutPods() iter.Seq[*Case] {
	return func(yield func(*Case) bool) {
		var drops [][]int
		drops = append(drops, c.workloads()...)
		for i := range c.Pods {
			drops = append(drops, []int{i})
		}
		for _, drop := range drops {
			own := c.clone()
			own.Pods = nil
			for i, pod := range c.Pods {
				if !slices.Contains(drop, i) {
					own.Pods = append(own.Pods, pod)
				}
			}
			if !yield(own) {
				return
			}
		}
	}
}

// drop yields, for each element, the element and a copy of the list without it.
func drop[T any](list []T) iter.Seq2[T, []T] {
	return func(yield func(T, []T) bool) {
		for i, item := range list {
			if !yield(item, slices.Delete(slices.Clone(list), i, i+1)) {
				return
			}
		}
	}
}

func (c *Case) withoutObjects() iter.Seq[*Case] {
	return func(yield func(*Case) bool) {
		for m, rest := range drop(c.Machines) {
			own := c.clone()
			own.Machines = rest
			own.Pods = slices.DeleteFunc(own.Pods, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == m.name() })
			if !yield(own) {
				return
			}
		}
		for _, rest := range drop(c.Daemons) {
			own := c.clone()
			if own.Daemons = rest; !yield(own) {
				return
			}
		}
		for _, rest := range drop(c.Pools) {
			own := c.clone()
			if own.Pools = rest; !yield(own) {
				return
			}
		}
		for _, rest := range drop(c.Types) {
			own := c.clone()
			if own.Types = rest; !yield(own) {
				return
			}
		}
		for i, t := range c.Types {
			for _, rest := range drop(t.Offerings) {
				own := c.clone()
				if own.Types[i].Offerings = rest; len(rest) > 0 && !yield(own) {
					return
				}
			}
		}
		for namespace, rest := range drop(c.Namespaces) {
			own := c.clone()
			if own.Namespaces = rest; namespace.Name != "default" && !yield(own) {
				return
			}
		}
	}
}

// withSimplerPods applies each simplification to all pods of a workload, then to single ones.
func (c *Case) withSimplerPods() iter.Seq[*Case] {
	return func(yield func(*Case) bool) {
		groups := c.workloads()
		for i := range c.Pods {
			groups = append(groups, []int{i})
		}
		for _, group := range groups {
			for number := range simplifications(c.Pods[group[0]]) {
				own, changed := c.clone(), false
				for _, i := range group {
					pod := c.Pods[i].DeepCopy()
					if list := simplifications(pod); number < len(list) {
						changed = list[number]() || changed
					}
					own.Pods[i] = pod
				}
				if changed && !yield(own) {
					return
				}
			}
		}
	}
}

func (c *Case) withSimplerPools() iter.Seq[*Case] {
	return func(yield func(*Case) bool) {
		for i, pool := range c.Pools {
			changes := []func(*karpenterv1.NodePool) bool{
				func(p *karpenterv1.NodePool) bool {
					return clearTo(&p.Spec.Template.ObjectMeta.Labels, nil, len(p.Spec.Template.ObjectMeta.Labels))
				},
				func(p *karpenterv1.NodePool) bool {
					return clearTo(&p.Spec.Template.Spec.Taints, nil, len(p.Spec.Template.Spec.Taints))
				},
				func(p *karpenterv1.NodePool) bool {
					return clearTo(&p.Spec.Template.Spec.StartupTaints, nil, len(p.Spec.Template.Spec.StartupTaints))
				},
				func(p *karpenterv1.NodePool) bool { return clearTo(&p.Spec.Limits, nil, len(p.Spec.Limits)) },
				func(p *karpenterv1.NodePool) bool { return clearTo(&p.Spec.HardLimits, nil, len(p.Spec.HardLimits)) },
			}
			for at := range pool.Spec.Template.Spec.Requirements {
				changes = append(changes, func(p *karpenterv1.NodePool) bool {
					p.Spec.Template.Spec.Requirements = slices.Delete(p.Spec.Template.Spec.Requirements, at, at+1)
					return true
				})
			}
			for _, change := range changes {
				own, copied := c.clone(), pool.DeepCopy()
				own.Pools[i] = copied
				if change(copied) && !yield(own) {
					return
				}
			}
		}
	}
}

// withSimplerMachines removes taints from nodes that we do not manage, and labels that constraints do not use.
func (c *Case) withSimplerMachines() iter.Seq[*Case] {
	return func(yield func(*Case) bool) {
		for i, m := range c.Machines {
			if m.Claim != nil || m.Node == nil {
				continue
			}
			own, node := c.clone(), m.Node.DeepCopy()
			node.Spec.Taints, node.Spec.Unschedulable = nil, false
			own.Machines[i] = Machine{Node: node, Becomes: node}
			if len(m.Node.Spec.Taints) > 0 && !yield(own) {
				return
			}
			for label := range m.Node.Labels {
				own, node := c.clone(), m.Node.DeepCopy()
				delete(node.Labels, label)
				own.Machines[i] = Machine{Node: node, Becomes: node}
				if label != corev1.LabelHostname && !yield(own) {
					return
				}
			}
		}
	}
}

// clearTo sets a field to empty, and reports whether that changed it; n is the size of its content.
func clearTo[T any](field *T, empty T, n int) bool {
	*field = empty
	return n > 0
}
