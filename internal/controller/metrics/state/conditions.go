package state

import (
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
)

// conditionFamilies returns the gauges of conditions (K-10), by kind, and under their old names if those are served.
func conditionFamilies(o Options) (all []Family) {
	for _, kind := range metrics.ConditionKinds(o.ClassLabels) {
		all = append(all, familiesOf(kind.Prefix(), metrics.PromLabels(kind.Copied))...)
	}
	if o.Deprecated {
		all = append(all, familiesOf(metrics.DeprecatedPrefix, []string{"group", "kind"})...)
	}
	return all
}

func familiesOf(prefix string, copied []string) []Family {
	of := func(name, help string, labels ...string) Family {
		return Family{Name: prefix + name, Help: help, Labels: sortedNames(append(labels, copied...)), Named: true,
			observed: true}
	}
	return []Family{
		of("status_condition_count", "1 for each condition of an object.", "namespace", "name", "type", "status",
			"reason"),
		of("status_condition_current_status_seconds", "For how long a condition has had its status.",
			"namespace", "name", "type", "status", "reason"),
		of("termination_current_time_seconds", "For how long an object has been going.", "namespace", "name"),
	}
}

// told are the families of a kind: those with its own names and, if it has them, with the old names.
type told struct {
	kind                           metrics.ConditionKind
	counts, statuses, terminations [2]*Text
}

func (b *builder) told(kind metrics.ConditionKind) told {
	of := func(name string) (both [2]*Text) {
		both[0] = b.family(kind.Prefix() + name)
		if kind.Deprecated {
			both[1] = b.family(metrics.DeprecatedPrefix + name)
		}
		return both
	}
	return told{kind, of("status_condition_count"), of("status_condition_current_status_seconds"),
		of("termination_current_time_seconds")}
}

// conditions adds the series of conditions.
func (b *builder) conditions(in Input, o Options) {
	if o.Unobserved {
		return
	}
	for _, kind := range metrics.ConditionKinds(o.ClassLabels) {
		of := b.told(kind)
		switch kind.Name {
		case metrics.KindNodeClaim:
			for _, claim := range in.Claims {
				of.object(in.Now, claim, claim.Status.Conditions)
			}
		case metrics.KindNodePool:
			for _, pool := range in.Pools {
				of.object(in.Now, pool, pool.Status.Conditions)
			}
		case metrics.KindNode:
			for _, node := range in.Nodes {
				of.object(in.Now, node, metrics.ConditionsOf(node))
			}
		case metrics.KindCapacityBuffer:
			for _, buffer := range in.Buffers {
				of.object(in.Now, buffer, metrics.ConditionsOf(buffer))
			}
		}
	}
}

// object adds the series of the conditions of one object.
func (t told) object(now time.Time, object client.Object, conditions []karpenterv1.Condition) {
	named := []label{{"namespace", object.GetNamespace()}, {"name", object.GetName()}}
	old := written(sorted(append(slices.Clone(named), label{"group", t.kind.Group}, label{"kind", t.kind.Name})...)...)
	for _, key := range t.kind.Copied {
		named = append(named, label{metrics.PromLabel(key), object.GetLabels()[key]})
	}
	of := written(sorted(named...)...)
	add := func(to [2]*Text, value float64, labels label) {
		to[0].add(value, of, labels)
		to[1].add(value, old, labels)
	}
	for i := range conditions {
		c := &conditions[i]
		labels := written(label{"reason", c.Reason}, label{"status", string(c.Status)}, label{"type", c.Type})
		add(t.counts, 1, labels)
		add(t.statuses, max(0, now.Sub(c.LastTransitionTime.Time).Seconds()), labels)
	}
	if at := object.GetDeletionTimestamp(); at != nil {
		add(t.terminations, max(0, now.Sub(at.Time).Seconds()), label{})
	}
}
