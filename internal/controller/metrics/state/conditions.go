package state

import (
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
)

// conditionFamilies are the gauges of conditions (K-10), by kind, and by their old names where those are served.
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
		of("status_condition_count", "1 for each condition of an object.", "namespace", "name", "type", "status", "reason"),
		of("status_condition_current_status_seconds", "For how long a condition has had its status.",
			"namespace", "name", "type", "status", "reason"),
		of("termination_current_time_seconds", "For how long an object has been going.", "namespace", "name"),
	}
}

// conditions adds the series of conditions.
func (b *builder) conditions(in Input, o Options) {
	if o.Unobserved {
		return
	}
	for _, kind := range metrics.ConditionKinds(o.ClassLabels) {
		switch kind.Name {
		case metrics.KindNodeClaim:
			for _, claim := range in.Claims {
				b.object(in.Now, kind, claim, claim.Status.Conditions)
			}
		case metrics.KindNodePool:
			for _, pool := range in.Pools {
				b.object(in.Now, kind, pool, pool.Status.Conditions)
			}
		case metrics.KindNode:
			for _, node := range in.Nodes {
				b.object(in.Now, kind, node, metrics.ConditionsOf(node))
			}
		}
	}
}

// object adds the series of the conditions of one object.
func (b *builder) object(now time.Time, kind metrics.ConditionKind, object client.Object,
	conditions []karpenterv1.Condition) {
	copied := make([]*dto.LabelPair, 0, len(kind.Copied)+2)
	for _, key := range kind.Copied {
		copied = append(copied, pair(metrics.PromLabel(key), object.GetLabels()[key]))
	}
	named := []*dto.LabelPair{pair("namespace", object.GetNamespace()), pair("name", object.GetName())}
	add := func(name string, value float64, labels ...*dto.LabelPair) {
		labels = append(labels, named...)
		b.add(kind.Prefix()+name, value, sorted(slices.Concat(labels, copied)...)...)
		if kind.Deprecated {
			old := []*dto.LabelPair{pair("group", karpenterv1.Group), pair("kind", kind.Name)}
			b.add(metrics.DeprecatedPrefix+name, value, sorted(slices.Concat(labels, old)...)...)
		}
	}
	for i := range conditions {
		c := &conditions[i]
		labels := []*dto.LabelPair{pair("type", c.Type), pair("status", string(c.Status)), pair("reason", c.Reason)}
		add("status_condition_count", 1, labels...)
		add("status_condition_current_status_seconds", max(0, now.Sub(c.LastTransitionTime.Time).Seconds()), labels...)
	}
	if at := object.GetDeletionTimestamp(); at != nil {
		add("termination_current_time_seconds", max(0, now.Sub(at.Time).Seconds()))
	}
}
