package dump

import (
	"strconv"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
)

// shape reads a shape and its pods.
func (r *reader) shape(s shapeRecord, table *cluster.Shapes) {
	shape := &cluster.Shape{
		Namespace: s.Namespace, Labels: s.Labels, Requests: r.positive("requests", s.Requests), Blocked: s.Blocked,
		BlockedBy: cause.Code(s.BlockedBy), Buffer: s.Buffer, Volumes: each(s.Volumes, r.volumeRef),
		NewVolumes: each(s.NewVolumes, r.newVolume), Drivers: s.Drivers, HostPorts: each(s.HostPorts, readPort),
		Tolerations: each(s.Tolerations, func(t tolerationRecord) cluster.Toleration { return cluster.Toleration(t) }),
		Spread:      each(s.Spread, r.spread), Affinity: each(s.Affinity, r.term),
		AntiAffinity: each(s.AntiAffinity, r.term), SoftSpread: each(s.SoftSpread, r.spread),
		Wishes: each(s.Wishes, func(w wishRecord) cluster.Wish {
			return cluster.Wish{Weight: w.Weight, Labels: r.set(w.Labels), Term: r.term(w.Term), Apart: w.Apart}
		}),
	}
	alternatives := each(s.Alternatives, r.alternative)
	if s.Narrowed {
		shape.Alternatives = each(s.Own, r.alternative)
		shape.Narrow(alternatives)
	} else {
		r.need(len(s.Own) == 0, "own has alternatives; want none where narrowed is not set")
		shape.Alternatives = alternatives
	}
	shape = table.Intern(shape)
	r.shapes = append(r.shapes, shape)
	for _, p := range s.Pods {
		r.pods = append(r.pods, &cluster.Pod{
			UID: p.UID, Namespace: p.Namespace, Name: p.Name, Shape: shape, Priority: p.Priority,
			DeletionCost: p.DeletionCost, Created: p.Created, Node: p.Node, Promised: p.Promised,
			PassedOver: p.PassedOver,
			Daemon:     p.Daemon, Fixed: p.Fixed, DoNotDisrupt: p.DoNotDisrupt, Terminating: p.Terminating,
			Returns: p.Returns,
		})
	}
}

func (r *reader) alternative(a alternativeRecord) cluster.Alternative {
	r.set([]requirementRecord{a.Names})
	return cluster.Alternative{Labels: r.set(a.Labels), Names: readAllowed(a.Names)}
}

func (r *reader) selector(s selectorRecord) cluster.Selector {
	return cluster.Selector{Enabled: s.Enabled, Labels: r.set(s.Labels)}
}

func (r *reader) spread(s spreadRecord) cluster.Spread {
	return cluster.Spread{Key: s.Key, Pods: r.selector(s.Pods), MaxSkew: s.MaxSkew, MinDomains: s.MinDomains,
		IgnoreAffinity: s.IgnoreAffinity, HonorTaints: s.HonorTaints}
}

func (r *reader) term(t termRecord) cluster.AffinityTerm {
	return cluster.AffinityTerm{Key: t.Key, Pods: r.selector(t.Pods), Namespaces: t.Namespaces,
		NamespaceSelector: r.selector(t.NamespaceSelector)}
}

func readSet(records []requirementRecord) requirement.Set {
	return requirement.NewSet(each(records, readAllowed)...)
}

// readAllowed reads a set of values. For an impossible one it returns nothing; the reader has noted the fault by then.
func readAllowed(record requirementRecord) requirement.Requirement {
	key := requirement.Key(record.Key)
	switch {
	case !record.Open && record.Absent:
		return requirement.Absent(key)
	case !record.Open:
		return requirement.OneOf(key, record.In...)
	}
	result := requirement.Present(key)
	if record.Absent {
		result = requirement.Any(key)
	}
	and := func(op requirement.Operator, values ...string) {
		more, err := requirement.New(key, op, values...)
		if err != nil {
			more = requirement.Nothing(key)
		}
		result = result.And(more)
	}
	if record.Gte != nil {
		and(requirement.Gte, strconv.FormatInt(*record.Gte, 10))
	}
	if record.Lte != nil {
		and(requirement.Lte, strconv.FormatInt(*record.Lte, 10))
	}
	if len(record.NotIn) > 0 {
		and(requirement.NotIn, record.NotIn...)
	}
	return result
}
