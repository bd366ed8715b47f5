package dump

import (
	"maps"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// plannedRecord returns the record of an answer. Resource names are those of the snapshot.
func plannedRecord(d Planned) planRecord {
	p := d.Plan
	return planRecord{
		Question: string(d.Question), BasedOn: p.BasedOn, Launches: each(p.Launches, launchOf),
		Nominations: each(p.Nominations, nominateOf), Unplaced: each(p.Unplaced, unplacedOf),
		Room: each(p.Buffers.Places, nominateOf), NoRoom: each(p.Buffers.Unplaced, unplacedOf),
		Removes: each(p.Removes, func(r plan.Remove) removeRecord {
			return removeRecord{r.Claim, r.ClaimUID, r.Node, r.Pool, string(r.Reason), price(r.Price), string(r.First),
				r.Why}
		}),
		Stays: each(p.Stays, stayOf), Held: p.Held, Order: p.Order,
	}
}

func ref(r plan.PodRef) refRecord { return refRecord(r) }

func readRef(r refRecord) plan.PodRef { return plan.PodRef(r) }

func nominateOf(n plan.Nominate) nominateRecord { return nominateRecord{ref(n.Pod), n.Node} }

func readNominate(n nominateRecord) plan.Nominate {
	return plan.Nominate{Pod: plan.PodRef(n.Pod), Node: n.Node}
}

func launchOf(l plan.Launch) launchRecord {
	record := launchRecord{
		Pool: l.Pool, PoolUID: l.PoolUID, Slot: l.Slot, Requirements: set(l.Requirements), Types: l.Types,
		Labels: some(l.Labels), Requests: l.Requests, Reserve: l.Reserve, Pods: each(l.Pods,
			ref), Room: each(l.Buffers, ref), For: l.For, Drivers: l.Drivers,
		Replaces: l.Replaces, Together: l.Together, Zones: l.Zones, CapacityTypes: l.CapacityTypes,
		Cheapest: choiceRecord{l.Cheapest.Type, l.Cheapest.Zone, l.Cheapest.CapacityType, int64(l.Cheapest.Price),
			l.Cheapest.Commitment.Name, int64(l.Cheapest.Commitment.Pays)},
	}
	for key, count := range l.Relaxed {
		if record.Relaxed == nil {
			record.Relaxed = map[string]int{}
		}
		record.Relaxed[string(key)] = count
	}
	return record
}

func unplacedOf(u plan.Unplaced) unplacedRecord {
	return unplacedRecord{Pod: ref(u.Pod), Nodes: u.Nodes,
		Pools: each(u.Pools, func(r plan.PoolRefusal) refusalRecord {
			return refusalRecord{Pool: r.Pool, Beyond: string(r.Beyond),
				Steps: each(r.Steps, func(s plan.Step) stepRecord {
					return stepRecord{string(s.Demand), string(s.Cause), s.Key, s.Detail, s.Before, s.Left, s.Never}
				})}
		})}
}

func stayOf(s plan.Stay) stayRecord {
	record := stayRecord{Claim: s.Claim, ClaimUID: s.ClaimUID, Why: s.Why, Lead: s.Lead}
	if s.Homeless.Pod != (plan.PodRef{}) {
		record.Homeless = new(unplacedOf(s.Homeless))
	}
	return record
}

// readPlan returns the plan of a record.
func readPlan(r planRecord, names resources.Names) plan.Plan {
	return plan.Plan{
		BasedOn: r.BasedOn, Names: names, Launches: each(r.Launches, readLaunch),
		Nominations: each(r.Nominations, readNominate), Unplaced: each(r.Unplaced, readUnplaced),
		Buffers: plan.Buffers{Places: each(r.Room, readNominate), Unplaced: each(r.NoRoom, readUnplaced)},
		Removes: each(r.Removes, func(r removeRecord) plan.Remove {
			return plan.Remove{Claim: r.Claim, ClaimUID: r.ClaimUID, Node: r.Node, Pool: r.Pool,
				Reason: plan.DisruptionReason(r.Reason), Price: readPrice(r.Price), First: plan.First(r.First),
				Why: r.Why}
		}),
		Stays: each(r.Stays, readStay), Held: emptied(r.Held), Order: r.Order,
	}
}

func emptied(m map[string]int) map[string]int {
	if len(m) == 0 {
		return nil
	}
	return m
}

func readLaunch(l launchRecord) plan.Launch {
	launch := plan.Launch{
		Pool: l.Pool, PoolUID: l.PoolUID, Slot: l.Slot, Requirements: readSet(l.Requirements), Types: l.Types,
		Labels: some(l.Labels), Requests: l.Requests, Reserve: l.Reserve,
		Pods: each(l.Pods, readRef), Buffers: each(l.Room, readRef), For: l.For, Drivers: l.Drivers,
		Replaces: l.Replaces, Together: l.Together, Zones: l.Zones, CapacityTypes: l.CapacityTypes,
		Cheapest: plan.Choice{Type: l.Cheapest.Type, Zone: l.Cheapest.Zone, CapacityType: l.Cheapest.CapacityType,
			Price:      resources.Money(l.Cheapest.Price),
			Commitment: plan.Commitment{Name: l.Cheapest.Commitment, Pays: resources.Money(l.Cheapest.Pays)}},
	}
	for _, key := range slices.Sorted(maps.Keys(l.Relaxed)) {
		if launch.Relaxed == nil {
			launch.Relaxed = map[requirement.Key]int{}
		}
		launch.Relaxed[requirement.Key(key)] = l.Relaxed[key]
	}
	return launch
}

func readUnplaced(u unplacedRecord) plan.Unplaced {
	return plan.Unplaced{Pod: plan.PodRef(u.Pod), Nodes: u.Nodes, Pools: each(u.Pools, readRefusal)}
}

func readStay(s stayRecord) plan.Stay {
	stay := plan.Stay{Claim: s.Claim, ClaimUID: s.ClaimUID, Why: s.Why, Lead: s.Lead}
	if s.Homeless != nil {
		stay.Homeless = readUnplaced(*s.Homeless)
	}
	return stay
}

func readRefusal(r refusalRecord) plan.PoolRefusal {
	return plan.PoolRefusal{Pool: r.Pool, Beyond: cause.Code(r.Beyond),
		Steps: each(r.Steps, func(s stepRecord) plan.Step {
			return plan.Step{Demand: plan.Demand(s.Demand), Cause: cause.Code(s.Cause), Key: s.Key, Detail: s.Detail,
				Before: s.Before, Left: s.Left, Never: s.Never}
		})}
}

func readPrice(p *int64) resources.Money {
	if p == nil {
		return resources.Unpriced
	}
	return resources.Money(*p)
}
