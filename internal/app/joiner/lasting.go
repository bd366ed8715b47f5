package joiner

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/history"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

// mostLasting bounds how many conditions are open at a time. A cluster with more causes has one cause above them.
const mostLasting = 200

// lasting records in the history what lasts (U-32): pods that wait while nothing is done for them, by cause and pool,
// and a pause of disruption. Each gets a record when it begins and one when it ends, whatever happens to single pods
// in between. The check runs as often as metrics do, so shorter conditions may be missed. A new leader records again
// what began before it.
type lasting struct {
	add  func(history.Record) (id string, isNew bool)
	open map[era]begun
}

// era is a condition that lasts. text tells two pauses apart.
type era struct{ verb, cause, pool, text string }

// begun is the record that an era began with, and its time.
type begun struct {
	id string
	at time.Time
}

func newLasting(add func(history.Record) (string, bool)) *lasting {
	return &lasting{add: add, open: map[era]begun{}}
}

// found takes in the conditions that hold now. paused is what pauses disruption, "" for nothing. A nil lasting does
// nothing.
func (l *lasting) found(groups []view.PodGroup, paused string, now time.Time) {
	if l == nil {
		return
	}
	still := map[era]bool{}
	begins := func(e era, r history.Record) {
		if still[e] = true; len(l.open) >= mostLasting {
			return
		}
		if _, known := l.open[e]; !known {
			r.Verb, r.Cause, r.NodePool, r.Outcome = e.verb, e.cause, e.pool, history.OutcomeBegun
			id, _ := l.add(r)
			l.open[e] = begun{id, now}
		}
	}
	if paused != "" {
		begins(era{history.VerbPause, "Paused", "", paused}, history.Record{Why: paused})
	}
	for _, group := range groups {
		if group.Explanation.State != view.Held || group.Cause == "" {
			continue // something is done about them, or they are newer than the plan
		}
		r := history.Record{Pods: len(group.Pods), Why: group.Explanation.Cause.Text}
		for _, pod := range group.Pods[:min(len(group.Pods), history.MostPodNames)] {
			r.PodNames = append(r.PodNames, pod.Ref())
		}
		begins(era{history.VerbWait, string(group.Cause), group.Pool, ""}, r)
	}
	l.end(still, now)
}

// end records the conditions that have ended, in the order in which they began.
func (l *lasting) end(still map[era]bool, now time.Time) {
	over := slices.DeleteFunc(slices.Collect(maps.Keys(l.open)), func(e era) bool { return still[e] })
	slices.SortFunc(over, func(a, b era) int { return cmp.Compare(l.open[a].id, l.open[b].id) })
	for _, e := range over {
		from := l.open[e]
		delete(l.open, e)
		l.add(history.Record{Verb: e.verb, Cause: e.cause, NodePool: e.pool, Outcome: history.OutcomeEnded,
			Of: from.id, Why: "after " + now.Sub(from.at).Round(time.Second).String()})
	}
}
