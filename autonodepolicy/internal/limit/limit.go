// Package limit computes what a policy's requirements ask of a NodeClaim, one label at a time. The form can be judged
// here, or written as an expression for an API server.
//
// A claim is judged by its entries, not by what they fold to, since an expression cannot fold. The rule accepts
// entries as Karpenter and Joiner write them. It may refuse harmless entries that others write by hand. It never
// accepts a claim outside of the policy, with one exception (see [Limit.Allows]).
package limit

import (
	"slices"
	"strconv"

	"github.com/joiner-autoscaler/joiner/autonodepolicy/fold"
)

// Limit is what a policy asks of a claim for one label.
type Limit struct {
	Key fold.Key
	// Names are all names of the label, the current one first. The claim's labels count by each of them, its entries
	// by the current one only: that is how Karpenter and Joiner write claims, and it depends on the provider which
	// other names Karpenter reads. Entries by a name that it reads narrow further, others do nothing. Labels with more
	// than one name are well known: no instance type fits a contradiction of such a label (K2).
	Names []string
	// Finite says that Values are all that is allowed.
	Finite bool
	Values []string
	// Absent says that only a node without the label is allowed.
	Absent bool
	// With neither, anything except Except is allowed. Low and High allow only integers from Low to High, both
	// included.
	Except    []string
	Low, High *int64
	// Present says that a node must have the label.
	Present bool
}

// Of returns the limits of a policy, ordered by key. The policy must pass its check. Labels that it leaves open have
// no limit.
func Of(entries []fold.Requirement) []Limit {
	set, _, _ := fold.Of(entries)
	var limits []Limit
	for allowed := range set.All() {
		if allowed.IsAny() {
			continue
		}
		limit := Limit{Key: allowed.Key(), Names: fold.Names(allowed.Key())}
		listed := false
		for _, entry := range entries {
			if fold.Canonical(entry.Key) == limit.Key {
				listed = limit.add(entry) || listed
			}
		}
		switch values, finite := allowed.Values(); {
		case listed:
			limit = Limit{Key: limit.Key, Names: limit.Names, Finite: true, Values: values}
		case finite && len(values) == 0 && allowed.AllowsAbsent():
			limit = Limit{Key: limit.Key, Names: limit.Names, Absent: true}
		}
		slices.Sort(limit.Except)
		limit.Except = slices.Compact(limit.Except)
		limits = append(limits, limit)
	}
	return limits
}

// add narrows the limit by an entry, and reports whether the entry lists what is allowed.
func (l *Limit) add(entry fold.Requirement) (lists bool) {
	switch entry.Operator {
	case fold.In:
		return true
	case fold.NotIn:
		l.Except = append(l.Except, entry.Values...)
	case fold.Exists:
		l.Present = true
	case fold.Gt, fold.Gte, fold.Lt, fold.Lte:
		l.Present = true
		if low, high, ok := bound(entry); ok {
			l.Low, l.High = larger(l.Low, low), smaller(l.High, high)
		}
	}
	return false
}

// bound returns the smallest and the largest integer that an entry allows, nil for no bound on that side. ok is false
// if the entry is no valid bound.
func bound(entry fold.Requirement) (low, high *int64, ok bool) {
	if len(entry.Values) != 1 {
		return nil, nil, false
	}
	number, err := strconv.ParseInt(entry.Values[0], 10, 64)
	if err != nil || number < 0 || number > maxNumber {
		return nil, nil, false
	}
	switch entry.Operator {
	case fold.Gt:
		return new(number + 1), nil, true
	case fold.Gte:
		return new(number), nil, true
	case fold.Lt:
		return nil, new(number - 1), true
	case fold.Lte:
		return nil, new(number), true
	}
	return nil, nil, false
}

// maxNumber is the largest number that the API takes as a bound: 18 digits.
const maxNumber = 999_999_999_999_999_999

func larger(a, b *int64) *int64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

func smaller(a, b *int64) *int64 {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}

// Allows reports whether a claim's entries and label lie within the limit. entries are all requirements of the claim,
// labels all its labels.
//
// There is one exception: if a claim has bounds for a label, Allows does not ask for excluded numbers. Karpenter then
// leaves them out of its claims, and could launch nothing otherwise. Nodes outside of the policy are found afterwards
//
func (l Limit) Allows(entries []fold.Requirement, labels map[string]string) bool {
	for _, name := range l.Names {
		if value, found := labels[name]; found && !l.takes(value) {
			return false
		}
	}
	own := slices.DeleteFunc(slices.Clone(entries), func(r fold.Requirement) bool {
		return r.Key != l.Names[0]
	})
	has := func(operators ...fold.Operator) bool {
		return slices.ContainsFunc(own, func(r fold.Requirement) bool {
			return slices.Contains(operators, r.Operator)
		})
	}
	lists := func() bool {
		return (len(own) == 1 || len(l.Names) > 1) && slices.ContainsFunc(own, func(r fold.Requirement) bool {
			return r.Operator == fold.In && !slices.ContainsFunc(r.Values, func(v string) bool { return !l.takes(v) })
		})
	}
	switch {
	case l.Absent:
		return has(fold.DoesNotExist)
	case l.Finite:
		return lists() && !has(fold.DoesNotExist)
	case has(fold.DoesNotExist):
		return !l.Present
	case has(fold.In):
		return lists()
	}
	return len(own) > 0 && l.withinBounds(own) && (has(fold.Gt, fold.Gte, fold.Lt, fold.Lte) || l.excludedBy(own))
}

// takes reports whether a node may have this value.
func (l Limit) takes(value string) bool {
	switch {
	case l.Absent:
		return false
	case l.Finite:
		return slices.Contains(l.Values, value)
	case slices.Contains(l.Except, value):
		return false
	case l.Low == nil && l.High == nil:
		return true
	}
	number, err := strconv.ParseInt(value, 10, 64)
	return err == nil && number >= 0 && number <= maxNumber && strconv.FormatInt(number, 10) == value &&
		(l.Low == nil || number >= *l.Low) && (l.High == nil || number <= *l.High)
}

// withinBounds reports whether the entries have the limit's bounds or narrower ones, and leave something between them.
func (l Limit) withinBounds(own []fold.Requirement) bool {
	var low, high *int64
	for _, entry := range own {
		if least, most, ok := bound(entry); ok {
			low, high = larger(low, least), smaller(high, most)
		} else if !slices.Contains([]fold.Operator{fold.NotIn, fold.Exists}, entry.Operator) {
			return false // the API refuses it
		}
	}
	return (l.Low == nil || low != nil && *low >= *l.Low) && (l.High == nil || high != nil && *high <= *l.High) &&
		(low == nil || high == nil || *low <= *high) && (high == nil || *high >= 0)
}

// excludedBy reports whether the entries exclude all that the limit excludes.
func (l Limit) excludedBy(own []fold.Requirement) bool {
	return !slices.ContainsFunc(l.Except, func(value string) bool {
		return !slices.ContainsFunc(own, func(r fold.Requirement) bool {
			return r.Operator == fold.NotIn && slices.Contains(r.Values, value)
		})
	})
}
