package fold

import (
	"math"
	"slices"
	"strconv"
)

// Term is a requirement as the API writes it: an operator and its values in canonical order.
type Term struct {
	Operator Operator
	Values   []string
}

// Terms returns terms whose conjunction is r, as few as the API's operators allow (V-05); nil for Any. The API cannot
// spell the empty set. For it, Terms returns the pair Exists and DoesNotExist, which no node satisfies.
func (r Allowed) Terms() []Term {
	switch {
	case r.Empty():
		return []Term{{Operator: Exists}, {Operator: DoesNotExist}}
	case !r.except && len(r.values) == 0:
		return []Term{{Operator: DoesNotExist}}
	case !r.except:
		return []Term{{Operator: In, Values: slices.Clone(r.values)}}
	}
	var terms []Term
	if r.bounded {
		if r.low > 0 || r.high == math.MaxInt64 {
			terms = append(terms, Term{Operator: Gte, Values: []string{strconv.FormatInt(r.low, 10)}})
		}
		if r.high < math.MaxInt64 {
			terms = append(terms, Term{Operator: Lte, Values: []string{strconv.FormatInt(r.high, 10)}})
		}
	}
	if len(r.values) > 0 {
		terms = append(terms, Term{Operator: NotIn, Values: slices.Clone(r.values)})
	}
	if !r.absent && !r.bounded {
		terms = append(terms, Term{Operator: Exists})
	}
	return terms
}
