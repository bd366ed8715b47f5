package batch

import (
	"context"
	"slices"
	"strings"
)

// Deal distributes the results of a call: the first in the order of compare to the first caller, and so on. Callers
// without a result get refused, or [ErrUnanswered] if it is nil. left are the results that nobody asked for.
func Deal[R any](asked int, had []R, compare func(a, b R) int, refused error) (answers []Answer[R], left []R) {
	had = slices.Clone(had)
	slices.SortFunc(had, compare)
	if refused == nil {
		refused = ErrUnanswered
	}
	answers = make([]Answer[R], asked)
	for i := range answers {
		if i < len(had) {
			answers[i].Value = had[i]
		} else {
			answers[i].Err = refused
		}
	}
	return answers, had[min(asked, len(had)):]
}

// Call makes one call for all ids.
type Call func(ctx context.Context, ids []string) error

// Fault says what the error of a call with many ids is about.
type Fault int

// The faults.
const (
	OfTheCall Fault = iota // it is about every id: throttled, no rights, trouble of AWS
	OfAnID                 // the whole call was refused because of one of the ids
)

// Apart makes a call for many ids so that a refused id fails alone (E-39, E-54). It takes out the ids that an error
// names, and repeats the call for the others. If an error about an id names none, it makes the call for each half.
// judge classifies errors. The result has the error of each id that failed.
//
// It makes at most twice as many calls as there are ids. It needs that many only when all are refused.
func Apart(ctx context.Context, ids []string, call Call, judge func(error) Fault) map[string]error {
	a := apart{call: call, judge: judge, failed: map[string]error{}}
	a.run(ctx, ids)
	return a.failed
}

type apart struct {
	call   Call
	judge  func(error) Fault
	failed map[string]error
}

func (a apart) run(ctx context.Context, ids []string) {
	for len(ids) > 0 {
		err := a.call(ctx, ids)
		if err == nil {
			return
		}
		if len(ids) == 1 || a.judge(err) == OfTheCall {
			for _, id := range ids {
				a.failed[id] = err
			}
			return
		}
		named := Named(err.Error(), ids)
		if len(named) == 0 {
			half := len(ids) / 2
			a.run(ctx, ids[:half])
			ids = ids[half:]
			continue
		}
		for _, id := range named {
			a.failed[id] = err
		}
		ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return slices.Contains(named, id) })
	}
}

// Named returns the ids that occur in a text as whole words.
func Named(text string, ids []string) []string {
	words := map[string]bool{}
	for _, word := range strings.FieldsFunc(text, func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) {
		words[word] = true
	}
	var named []string
	for _, id := range ids {
		if words[id] {
			named = append(named, id)
		}
	}
	return named
}
