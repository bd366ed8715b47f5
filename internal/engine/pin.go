package engine

import (
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/pack"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
)

// This file narrows launches to what was tried out. A launch allows all offerings that are right for the pods that it
// was planned for, and is tried out as the cheapest of them. Then other pods may get places on it as well: those whose
// own node is not launched, or that would have stayed where they are. If one of them needs the zone of that offering,
// or another of its labels, the launch must keep that label (P-07, D-04).

// pin narrows the launches for a group, and those that were chosen before. It is false, and nothing changes, if a pool
// insists on more values of a label than that leaves (P-09).
func (d *disruption) pin(group []*cluster.Node, launches []plan.Launch) bool {
	s := d.with(group, launches, newLast)
	if !slices.ContainsFunc(s.Pending, func(pod *cluster.Pod) bool { return len(keysOf(pod.Shape)) > 0 }) {
		return true
	}
	pods := map[string]*cluster.Pod{}
	for _, pod := range s.Pending {
		pods[pod.UID] = pod
	}
	all := map[string]*plan.Launch{}
	for i := range d.chosen {
		for j := range d.chosen[i].launches {
			all[newLast.of(len(all))] = &d.chosen[i].launches[j]
		}
	}
	for i := range launches {
		all[newLast.of(len(all))] = &launches[i]
	}
	narrowed := map[*plan.Launch]plan.Launch{}
	for _, n := range pack.Sketch(s, s.Pending).Nominations {
		l, pod := all[n.Node], pods[n.Pod.UID]
		if l == nil || pod == nil {
			continue
		}
		pool := s.Pool(l.Pool)
		now, begun := narrowed[l]
		if !begun {
			now = *l
		}
		for _, key := range keysOf(pod.Shape) {
			now = pinned(pool, now, key)
		}
		narrowed[l] = now
	}
	for l, now := range narrowed {
		enough := true
		if now, enough = withTypes(s.Pool(l.Pool), now, now.Types); !enough {
			return false
		}
		narrowed[l] = now
	}
	for l, now := range narrowed {
		*l = now
	}
	return true
}

// keysOf returns the node labels that decide where pods of the shape may run, sorted, without hostname and pool.
func keysOf(shape *cluster.Shape) []requirement.Key {
	var keys []requirement.Key
	for _, alternative := range shape.Alternatives {
		for r := range alternative.Labels.All() {
			keys = append(keys, r.Key())
		}
	}
	for _, spread := range shape.Spread {
		keys = append(keys, requirement.Key(spread.Key))
	}
	for _, term := range slices.Concat(shape.Affinity, shape.AntiAffinity) {
		keys = append(keys, requirement.Key(term.Key))
	}
	slices.SortFunc(keys, func(a, b requirement.Key) int { return strings.Compare(string(a), string(b)) })
	keys = slices.Compact(keys)
	return slices.DeleteFunc(keys, func(key requirement.Key) bool {
		return key == cluster.LabelHostname || key == cluster.LabelPool
	})
}

// pinned returns the launch, narrowed to the value that its cheapest offering has for a label, if offerings decide on
// it.
func pinned(pool *cluster.Pool, l plan.Launch, key requirement.Key) plan.Launch {
	value := virtual(pool, l, "").Labels[string(key)]
	if !pool.Catalog.Known(key) || value == "" {
		return l
	}
	if key == catalog.LabelInstanceType { // Requirements say nothing of it
		l.Types = []string{value}
		return l
	}
	l.Requirements = l.Requirements.With(requirement.OneOf(key, value))
	switch key {
	case catalog.LabelZone:
		l.Zones = []string{value}
	case catalog.LabelCapacityType:
		l.CapacityTypes = []string{value}
	}
	allowed := pool.Catalog.Available.Clone()
	pool.Catalog.Narrow(allowed, l.Requirements)
	l.Types = slices.DeleteFunc(slices.Clone(l.Types),
		func(name string) bool { return pool.Catalog.OfType(name).And(allowed).Empty() })
	return l
}
