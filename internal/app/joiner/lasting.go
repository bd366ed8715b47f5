package joiner

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/history"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

// mostLasting bounds what is told of at a time: a cluster with more causes than that has one cause above them.
const mostLasting = 200

// lasting tells the history what lasts: pods that wait and that nobody is doing anything for, by cause and pool, and a
// pause of disruption (U-32). Each is a record when it begins and one when it ends, whatever becomes of single pods in
// between. It is looked for as often as metrics are, so what is shorter than that may not be there. A new leader tells
// again what has begun before it.
type lasting struct {
	add  func(history.Record) (id string, isNew bool)
	open map[era]begun
}

// era is something that lasts. text tells two pauses apart.
type era struct{ verb, cause, pool, text string }

// begun is the record that an era begins with, and when that was.
type begun struct {
	id string
	at time.Time
}

func newLasting(add func(history.Record) (string, bool)) *lasting {
	return &lasting{add: add, open: map[era]begun{}}
}

// found takes in what there is now; paused is what pauses disruption, "" when nothing does. A lasting that is nil keeps
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
			continue // something is done about them, or they came after the plan
		}
		r := history.Record{Pods: len(group.Pods), Why: group.Explanation.Cause.Text}
		for _, pod := range group.Pods[:min(len(group.Pods), history.MostPodNames)] {
			r.PodNames = append(r.PodNames, pod.Ref())
		}
		begins(era{history.VerbWait, string(group.Cause), group.Pool, ""}, r)
	}
	l.end(still, now)
}

// end tells what is not there any more, in the order in which it began.
func (l *lasting) end(still map[era]bool, now time.Time) {
	over := slices.DeleteFunc(slices.Collect(maps.Keys(l.open)), func(e era) bool { return still[e] })
	slices.SortFunc(over, func(a, b era) int { return cmp.Compare(l.open[a].id, l.open[b].id) })
	for _, e := range over {
		from := l.open[e]
		delete(l.open, e)
		l.add(history.Record{Verb: e.verb, Cause: e.cause, NodePool: e.pool, Outcome: history.OutcomeEnded, Of: from.id,
			Why: "after " + now.Sub(from.at).Round(time.Second).String()})
	}
}
