package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/pack"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
)

// PoolStanding is how a pool stands: what it launches, or why it launches nothing (U-04).
type PoolStanding struct {
	// Launches are what it launches for the pods that wait, or for its replicas.
	Launches []plan.Launch
	// Causes are why it launches nothing, or no more: the one to act on first comes first. Key is the label that a
	// cause is about. A pool that launches nothing has one at least.
	Causes []plan.Step
	// Demand says where the pods that wait go, most pods first. The pods of Launches are left out.
	Demand []Demand
}

// Demand is a number of pods that wait, and what becomes of them.
type Demand struct {
	Pods int
	// Pool is the other pool that launches for them. It is "" when they go onto existing nodes, or when Waits is set.
	Pool string
	// Waits is set where no pool takes them. Refuses is then why this one does not.
	Waits   bool
	Refuses cause.Code
}

// WhyPool says how a pool of s stands. It cannot say what makes a pool not Ready: the plan tells only that it is so.
func WhyPool(s *cluster.Snapshot, pool *cluster.Pool) PoolStanding {
	p := Launches(s)
	var found PoolStanding
	for _, l := range p.Launches {
		if l.Pool == pool.Name {
			found.Launches = append(found.Launches, l)
		}
	}
	for _, look := range []func(*cluster.Pool) (plan.Step, bool){noTypes, fewValues} {
		if step, so := look(pool); so {
			found.Causes = append(found.Causes, step)
		}
	}
	found.Demand = demands(p, pool)
	if pool.Static {
		if step, so := lacksReplicas(s, pool, len(found.Launches)); so {
			found.Causes = append(found.Causes, step)
		}
		return found
	}
	if lacks, step := WhyFloor(s, pool); lacks > 0 && step.Cause != "" {
		step.Cause, step.Detail = cause.MinNodesBelow, fmt.Sprintf("min-nodes %d, nodes %d: %s", pool.MinNodes,
			pool.MinNodes-int64(lacks), step.Detail)
		found.Causes = append(found.Causes, step)
	}
	refused, outweighed := alone(s, p, pool)
	found.Causes = append(append(found.Causes, refused...), outweighed...)
	if len(found.Launches) == 0 && len(found.Causes) == 0 {
		found.Causes = append(found.Causes, plan.Step{Cause: cause.NoDemand, Detail: idle(found.Demand)})
	}
	return found
}

// noTypes is about a pool whose own requirements leave no instance type: which of them are in conflict, and how many
// types each leaves.
func noTypes(pool *cluster.Pool) (plan.Step, bool) {
	step := plan.Step{Cause: cause.NoInstanceTypes}
	if pool.Catalog == nil {
		return step, false // the catalogue of its node class is not known
	}
	if keys := pool.Requirements.EmptyKeys(); len(keys) > 0 {
		step.Key = string(keys[0])
		step.Detail = fmt.Sprintf("its requirements on %s contradict each other: no value is allowed", step.Key)
		return step, true
	}
	var rules []requirement.Requirement
	for r := range pool.Requirements.All() {
		if pool.Catalog.Known(r.Key()) {
			rules = append(rules, r)
		}
	}
	left := func(rules ...requirement.Requirement) catalog.Bits { return allowedBy(pool.Catalog, rules) }
	if !left(rules...).Empty() {
		return step, false
	}
	needed := requirement.Conflict(rules, func(part []requirement.Requirement) bool { return !left(part...).Empty() })
	if len(needed) == 0 {
		step.Detail = "its node class offers nothing"
		return step, true
	}
	var keys, texts []string
	for i, r := range needed {
		keys = append(keys, string(r.Key()))
		text := fmt.Sprintf("%s (%d of %d", shortly(r), pool.Catalog.CountTypes(left(r)), len(pool.Catalog.Types))
		if len(needed) > 2 {
			others := slices.Delete(slices.Clone(needed), i, i+1)
			text += fmt.Sprintf(", %d without it", pool.Catalog.CountTypes(left(others...)))
		}
		texts = append(texts, text+")")
	}
	step.Key = strings.Join(keys, " or ")
	step.Detail = "its requirements leave no instance type: " + strings.Join(texts, " with ")
	return step, true
}

// valuesTold is how many values of a requirement are told; the rest is counted.
const valuesTold = 3

// shortly prints a requirement with its first values.
func shortly(r requirement.Requirement) string {
	values, finite := r.Values()
	more := len(values) - valuesTold
	if !finite || more <= 0 {
		return r.String()
	}
	return fmt.Sprintf("%s|+%d", requirement.OneOf(r.Key(), values[:valuesTold]...), more)
}

// allowedBy returns the offers that all rules allow.
func allowedBy(index *catalog.Index, rules []requirement.Requirement) catalog.Bits {
	left := index.All()
	for _, r := range rules {
		index.Compatible(r).AndTo(left)
	}
	return left
}

// fewValues is about a pool that demands more different values of a label than its requirements leave (P-09).
func fewValues(pool *cluster.Pool) (plan.Step, bool) {
	if pool.Catalog == nil || pool.RelaxMinValues {
		return plan.Step{}, false
	}
	var rules []requirement.Requirement
	for r := range pool.Requirements.All() {
		if pool.Catalog.Known(r.Key()) {
			rules = append(rules, r)
		}
	}
	left := allowedBy(pool.Catalog, rules)
	if left.Empty() {
		return plan.Step{}, false // the greater fault
	}
	for _, demand := range pool.MinValues {
		if !pool.Catalog.Known(demand.Key) {
			continue
		}
		if n := len(pool.Catalog.Values(demand.Key, left)); n < demand.Count {
			return plan.Step{Cause: cause.MinValuesUnmet, Key: string(demand.Key), Detail: fmt.Sprintf(
				"minValues demands %d values of %s, and its requirements leave %d", demand.Count, demand.Key, n)}, true
		}
	}
	return plan.Step{}, false
}

// lacksReplicas says why a static pool launches no more nodes than launches; false when nothing is to be said.
func lacksReplicas(s *cluster.Snapshot, pool *cluster.Pool, launches int) (plan.Step, bool) {
	target, exceeded := pool.Limits.Target(pool.Replicas)
	has, ceiling := pool.Used.Nodes+int64(launches), s.Ceiling()
	counts := fmt.Sprintf("replicas %d, nodes %d", pool.Replicas, pool.Used.Nodes)
	switch {
	case exceeded != nil && has >= target:
		full := *exceeded
		full.Used = pool.Used.Nodes
		return plan.Step{Cause: cause.ReplicasBelow, Detail: counts + ": " + full.Text(s.Names)}, true
	case launches > 0:
		return plan.Step{}, false
	case has >= target:
		return plan.Step{Cause: cause.StaticFull, Detail: counts}, true
	case ceiling.Left() == 0:
		return plan.Step{Cause: cause.ReplicasBelow, Detail: counts + ": " + ceiling.Text()}, true
	case pool.Catalog != nil && !pool.Catalog.Available.Intersects(pool.Catalog.All()):
		return plan.Step{Cause: cause.NoCapacity, Detail: "availability"}, true
	}
	return plan.Step{Cause: cause.ReplicasBelow, Detail: counts}, true
}

// demands says where the pods of a plan go, apart from those that the pool launches for.
func demands(p plan.Plan, pool *cluster.Pool) []Demand {
	counts := map[Demand]int{} // Pods is 0 in its keys
	for _, l := range p.Launches {
		if l.Pool != pool.Name && len(l.Pods) > 0 {
			counts[Demand{Pool: l.Pool}] += len(l.Pods)
		}
	}
	if len(p.Nominations) > 0 {
		counts[Demand{}] = len(p.Nominations)
	}
	for _, u := range p.Unplaced {
		counts[Demand{Waits: true, Refuses: refusalOf(u, pool.Name).Cause}]++
	}
	list := make([]Demand, 0, len(counts))
	for d, pods := range counts {
		d.Pods = pods
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b Demand) int {
		return cmp.Or(b.Pods-a.Pods, strings.Compare(a.Pool, b.Pool), cmp.Compare(a.Refuses, b.Refuses),
			cmp.Compare(fmt.Sprint(a.Waits), fmt.Sprint(b.Waits)))
	})
	return list
}

// refusalOf returns why a pool does not take a pod.
func refusalOf(u plan.Unplaced, pool string) plan.Step {
	for _, refusal := range u.Pools {
		if refusal.Pool == pool {
			return refusal.Last()
		}
	}
	return plan.Step{}
}

// alone plans as if a pool were the only one, to learn what it would do with pods that others take. refused is what in
// the pool keeps pods from it. outweighed are the other pools that take pods which this one would take.
func alone(s *cluster.Snapshot, p plan.Plan, pool *cluster.Pool) (refused, outweighed []plan.Step) {
	only := *s.With(virtuals(s, Replicas(s).Launches, newLast))
	only.Pools = slices.Clone(only.Pools)
	for i, other := range only.Pools {
		if other.Name != pool.Name {
			shut := *other
			shut.Blocked = "left out"
			only.Pools[i] = &shut
		}
	}
	could := map[string]bool{}
	counts, first := map[cause.Code]int{}, map[cause.Code]plan.Step{}
	with := pack.Solve(&only, only.Pending)
	for _, l := range with.Launches {
		for _, pod := range l.Pods {
			could[pod.UID] = true
		}
	}
	for _, u := range with.Unplaced {
		step := refusalOf(u, pool.Name)
		if counts[step.Cause]++; counts[step.Cause] == 1 {
			first[step.Cause] = step
		}
	}
	for _, code := range cause.LimitCodes() {
		if counts[code] > 0 {
			refused = append(refused, Limited(first[code]))
		}
	}
	for _, code := range []cause.Code{cause.LaunchesInVain, cause.NoCapacity, cause.ReservationsUsedUp} {
		if counts[code] > 0 {
			refused = append(refused, first[code])
		}
	}
	for _, l := range p.Launches {
		other := s.Pool(l.Pool)
		n := 0
		for _, pod := range l.Pods {
			if could[pod.UID] {
				n++
			}
		}
		if n == 0 || other.Name == pool.Name || other.Static {
			continue
		}
		i := slices.IndexFunc(outweighed, func(step plan.Step) bool { return step.Key == other.Name })
		if i < 0 {
			i = len(outweighed)
			outweighed = append(outweighed, plan.Step{Cause: cause.Outweighed, Key: other.Name})
		}
		outweighed[i].Before += n
	}
	for i, step := range outweighed {
		other := s.Pool(step.Key)
		how := fmt.Sprintf("weight %d over %d", other.Weight, pool.Weight)
		if other.Weight == pool.Weight {
			how = fmt.Sprintf("of two pools of weight %d the first by name", pool.Weight)
		}
		outweighed[i].Detail = fmt.Sprintf("%s to NodePool %s (%s)", podsCould(step.Before), other.Name, how)
		outweighed[i].Before = 0
	}
	return refused, outweighed
}

// What a limit says of replacements.
const (
	someAbove = ", which a replacement may go above"
	noneAbove = ", and no replacement goes above it"
)

// Limited turns a limit's refusal of one pod into what its pool says of that limit. The Key of the result is the field
// or flag of the limit.
func Limited(step plan.Step) plan.Step {
	field, aside := "spec.limits.", ""
	switch step.Cause {
	case cause.HardLimitNodes:
		field, aside = "spec.hardLimits.", noneAbove
	case cause.SoftLimitNodes:
		aside = someAbove
	case cause.ClusterLimitUnknown:
		return step
	case cause.ClusterLimitNodes:
		step.Cause = cause.ClusterLimitReached
		if step.Key == limit.FlagMaxClaimsHard {
			step.Detail += noneAbove
		} else {
			step.Detail += someAbove
		}
		return step
	}
	step.Cause, step.Key = cause.LimitReached, field+step.Key
	step.Detail += aside
	return step
}

func podsCould(n int) string {
	if n == 1 {
		return "1 pod could use it, and goes"
	}
	return fmt.Sprintf("%d pods could use it, and go", n)
}

// idle says why nobody asks for the pool.
func idle(list []Demand) string {
	if len(list) == 0 {
		return "no pod waits"
	}
	return "no waiting pod is planned onto it"
}
