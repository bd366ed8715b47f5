package dump

import (
	"strconv"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
)

// shapeOf writes a shape without its pods.
func shapeOf(s *cluster.Shape) shapeRecord {
	record := shapeRecord{
		Namespace: s.Namespace, Labels: some(s.Labels), Requests: s.Requests,
		Alternatives: each(s.Alternatives, alternative), Blocked: s.Blocked, BlockedBy: string(s.BlockedBy),
		Buffer:  s.Buffer,
		Volumes: each(s.Volumes, volumeRef), NewVolumes: each(s.NewVolumes, newVolume), Drivers: s.Drivers,
		Tolerations: each(s.Tolerations, func(t cluster.Toleration) tolerationRecord { return tolerationRecord(t) }),
		HostPorts:   each(s.HostPorts, port), Spread: each(s.Spread, spread), Affinity: each(s.Affinity, term),
		AntiAffinity: each(s.AntiAffinity, term), Wishes: each(s.Wishes, wish), SoftSpread: each(s.SoftSpread, spread),
	}
	if own := s.Selecting(); own != s {
		record.Narrowed, record.Own = true, each(own.Alternatives, alternative)
	}
	return record
}

func podOf(p *cluster.Pod) podRecord {
	return podRecord{
		UID: p.UID, Namespace: p.Namespace, Name: p.Name, Priority: p.Priority, DeletionCost: p.DeletionCost,
		Created: p.Created, Node: p.Node, Promised: p.Promised, PassedOver: p.PassedOver, Daemon: p.Daemon,
		Fixed: p.Fixed, DoNotDisrupt: p.DoNotDisrupt, Terminating: p.Terminating, Returns: p.Returns,
	}
}

func alternative(a cluster.Alternative) alternativeRecord {
	return alternativeRecord{Labels: set(a.Labels), Names: allowed(a.Names)}
}

func taint(t cluster.Taint) taintRecord { return taintRecord(t) }

func port(p cluster.HostPort) portRecord { return portRecord(p) }

func selector(s cluster.Selector) selectorRecord { return selectorRecord{s.Enabled, set(s.Labels)} }

func spread(s cluster.Spread) spreadRecord {
	return spreadRecord{s.Key, selector(s.Pods), s.MaxSkew, s.MinDomains, s.IgnoreAffinity, s.HonorTaints}
}

func term(t cluster.AffinityTerm) termRecord {
	return termRecord{t.Key, selector(t.Pods), t.Namespaces, selector(t.NamespaceSelector)}
}

func wish(w cluster.Wish) wishRecord {
	return wishRecord{w.Weight, set(w.Labels), term(w.Term), w.Apart}
}

// set writes a set of requirements in the order of its keys.
func set(s requirement.Set) []requirementRecord {
	var list []requirementRecord
	for r := range s.All() {
		list = append(list, allowed(r))
	}
	return list
}

// allowed writes a requirement as a set of values.
func allowed(r requirement.Requirement) requirementRecord {
	record := requirementRecord{Key: string(r.Key()), Absent: r.AllowsAbsent()}
	values, finite := r.Values()
	if finite {
		record.In = values
		return record
	}
	record.Open = true
	for _, t := range r.Terms() {
		switch t.Operator {
		case requirement.NotIn:
			record.NotIn = t.Values
		case requirement.Gte:
			record.Gte = bound(t.Values)
		case requirement.Lte:
			record.Lte = bound(t.Values)
		}
	}
	return record
}

// bound returns the integer of a term that a requirement has made.
func bound(values []string) *int64 {
	if len(values) != 1 {
		return nil
	}
	number, err := strconv.ParseInt(values[0], 10, 64)
	if err != nil {
		return nil
	}
	return &number
}
