package fold

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Key is the name of a node label, such as topology.kubernetes.io/zone.
type Key string

// Operator says how a requirement's values are meant. It is spelled as in the Kubernetes and Karpenter APIs.
type Operator string

// The operators that requirements have (R4, G26). Gte and Lte exist on pools only, not on pods.
const (
	In           Operator = "In"
	NotIn        Operator = "NotIn"
	Exists       Operator = "Exists"
	DoesNotExist Operator = "DoesNotExist"
	Gt           Operator = "Gt"
	Lt           Operator = "Lt"
	Gte          Operator = "Gte"
	Lte          Operator = "Lte"
)

// maxExpandedRange is the size up to which a range of integers is kept as a plain list. Up to it, a range and the list
// of its members are the same value. Above it, a list would cost too much.
const maxExpandedRange = 256

// Allowed is the set of values that the label Key may have. The zero value allows nothing for the key "".
type Allowed struct {
	key    Key
	absent bool // a node without the label is a member
	// With except false, values are the members (sorted, unique). With except true, all other values are members; with
	// bounded, only the integers from low to high, both included.
	except    bool
	values    []string
	bounded   bool
	low, high int64
}

// New returns the set that an operator and its values allow for key. values may come in any order and may repeat. In
// takes one or more values, NotIn any number, Exists and DoesNotExist none, the others exactly one integer. New
// returns an error if the values do not fit, the operator is unknown or key is empty.
func New(key Key, op Operator, values ...string) (Allowed, error) {
	if key == "" {
		return Allowed{}, fmt.Errorf("requirement %q: the key is empty; want the name of a label", key)
	}
	switch op {
	case In:
		if len(values) == 0 {
			return Allowed{}, fmt.Errorf("requirement %q: operator In needs at least one value", key)
		}
		return OneOf(key, values...), nil
	case NotIn:
		return Allowed{key: key, absent: true, except: true, values: sorted(values)}, nil
	case Exists, DoesNotExist:
		if len(values) != 0 {
			return Allowed{}, fmt.Errorf("requirement %q: operator %s takes no values, got %q", key, op, values)
		}
		if op == Exists {
			return Present(key), nil
		}
		return Absent(key), nil
	case Gt, Lt, Gte, Lte:
		if len(values) != 1 {
			return Allowed{}, fmt.Errorf("requirement %q: operator %s needs exactly one integer, got %q", key, op,
				values)
		}
		number, err := strconv.ParseInt(values[0], 10, 64)
		if err != nil {
			return Allowed{}, fmt.Errorf("requirement %q: operator %s needs an integer, got %q", key, op, values[0])
		}
		return compared(key, op, number), nil
	}
	return Allowed{},
		fmt.Errorf("requirement %q: operator %q is none of In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte", key, op)
}

func compared(key Key, op Operator, number int64) Allowed {
	low, high := int64(0), int64(math.MaxInt64)
	switch {
	case op == Gt && number == math.MaxInt64, op == Lt && number == math.MinInt64:
		return Nothing(key)
	case op == Gt:
		low = number + 1
	case op == Gte:
		low = number
	case op == Lt:
		high = number - 1
	case op == Lte:
		high = number
	}
	return normal(Allowed{key: key, except: true, bounded: true, low: max(low, 0), high: high})
}

// Any returns the whole universe for key: every value, and absent.
func Any(key Key) Allowed { return Allowed{key: key, absent: true, except: true} }

// Present returns the set of every value for key, without absent.
func Present(key Key) Allowed { return Allowed{key: key, except: true} }

// Absent returns the set whose only member is a node without the label.
func Absent(key Key) Allowed { return Allowed{key: key, absent: true} }

// Nothing returns the empty set for key.
func Nothing(key Key) Allowed { return Allowed{key: key} }

// OneOf returns the set of exactly these values. They may come in any order and may repeat; without values it equals
// Nothing.
func OneOf(key Key, values ...string) Allowed {
	return Allowed{key: key, values: sorted(values)}
}

func sorted(values []string) []string {
	if len(values) == 0 {
		return nil
	}
	own := slices.Clone(values)
	slices.Sort(own)
	return slices.Compact(own)
}

// Key returns the label that the requirement is about.
func (r Allowed) Key() Key { return r.key }

// Empty reports whether no node can satisfy r.
func (r Allowed) Empty() bool { return !r.absent && !r.except && len(r.values) == 0 }

// IsAny reports whether every node satisfies r.
func (r Allowed) IsAny() bool { return r.absent && r.except && !r.bounded && len(r.values) == 0 }

// AllowsAbsent reports whether a node without the label satisfies r.
func (r Allowed) AllowsAbsent() bool { return r.absent }

// AllowsPresent reports whether some node with the label satisfies r.
func (r Allowed) AllowsPresent() bool { return r.except || len(r.values) > 0 }

// Has reports whether a node whose label has this value satisfies r.
func (r Allowed) Has(value string) bool {
	_, listed := slices.BinarySearch(r.values, value)
	if !r.except {
		return listed
	}
	if listed {
		return false
	}
	if !r.bounded {
		return true
	}
	number, ok := integer(value)
	return ok && number >= r.low && number <= r.high
}

// Values returns a copy of the values that r allows, sorted, and true if r is a finite list. It ignores absent.
func (r Allowed) Values() ([]string, bool) {
	if r.except {
		return nil, false
	}
	return slices.Clone(r.values), true
}

// Single returns the only value that r allows. It returns false if there is not exactly one, or absent is allowed.
func (r Allowed) Single() (string, bool) {
	if r.except || r.absent || len(r.values) != 1 {
		return "", false
	}
	return r.values[0], true
}

// Example returns a value that r allows, always the same one: the first of a list, otherwise the smallest integer. It
// returns false if r allows no value. A label that a pool leaves open (Exists) and no pod decides gets this value, so
// that plans are deterministic (P-20).
func (r Allowed) Example() (string, bool) {
	if !r.except {
		if len(r.values) == 0 {
			return "", false
		}
		return r.values[0], true
	}
	for number := r.low; ; number++ { // ends: fewer values are excluded than there are integers
		value := strconv.FormatInt(number, 10)
		if r.Has(value) {
			return value, true
		}
	}
}

// And returns the intersection of r and other, which must be about the same key.
func (r Allowed) And(other Allowed) Allowed {
	result := Allowed{key: r.key, absent: r.absent && other.absent}
	switch {
	case !r.except:
		result.values = keep(r.values, other.Has)
	case !other.except:
		result.values = keep(other.values, r.Has)
	default:
		result.except = true
		result.values = sorted(slices.Concat(r.values, other.values))
		result.bounded = r.bounded || other.bounded
		result.low, result.high = r.low, r.high
		if !r.bounded {
			result.low, result.high = other.low, other.high
		} else if other.bounded {
			result.low, result.high = max(r.low, other.low), min(r.high, other.high)
		}
	}
	return normal(result)
}

// Intersects reports whether some node satisfies both r and other: the same as !r.And(other).Empty().
func (r Allowed) Intersects(other Allowed) bool {
	if r.absent && other.absent {
		return true
	}
	switch {
	case !r.except:
		return slices.ContainsFunc(r.values, other.Has)
	case !other.except:
		return slices.ContainsFunc(other.values, r.Has)
	case !r.bounded && !other.bounded:
		return true
	}
	return !r.And(other).Empty()
}

// Equal reports whether r and other allow the same for the same key.
func (r Allowed) Equal(other Allowed) bool {
	return r.key == other.key && r.absent == other.absent && r.except == other.except && r.bounded == other.bounded &&
		r.low == other.low && r.high == other.high && slices.Equal(r.values, other.values)
}

// String prints r canonically: zone=a|b, zone!=a, zone, !zone, cpu>=4, or "zone: nothing".
func (r Allowed) String() string {
	switch {
	case r.Empty():
		return string(r.key) + ": nothing"
	case !r.except && len(r.values) == 0:
		return "!" + string(r.key)
	case !r.except && r.absent:
		return "!" + string(r.key) + " or " + string(r.key) + "=" + strings.Join(r.values, "|")
	case !r.except:
		return string(r.key) + "=" + strings.Join(r.values, "|")
	}
	var parts []string
	if r.bounded {
		parts = append(parts, r.bounds())
	}
	if len(r.values) > 0 {
		parts = append(parts, string(r.key)+"!="+strings.Join(r.values, "|"))
	}
	switch {
	case r.IsAny():
		return string(r.key) + ": any"
	case len(parts) == 0 || (!r.absent && !r.bounded):
		parts = append([]string{string(r.key)}, parts...)
	}
	return strings.Join(parts, ",")
}

func (r Allowed) bounds() string {
	if r.high == math.MaxInt64 {
		return fmt.Sprintf("%s>=%d", r.key, r.low)
	}
	return fmt.Sprintf("%d<=%s<=%d", r.low, r.key, r.high)
}

func keep(values []string, has func(string) bool) []string {
	var kept []string
	for _, value := range values {
		if has(value) {
			kept = append(kept, value)
		}
	}
	return kept
}

// normal gives equal sets equal fields. It drops exclusions outside a range, moves the ends of the range to members,
// and turns a short range into the list of its members. r owns its values.
func normal(r Allowed) Allowed {
	if !r.except || !r.bounded {
		return r
	}
	r.values = keep(r.values, func(value string) bool {
		number, ok := integer(value)
		return ok && number >= r.low && number <= r.high
	})
	excluded := func(number int64) bool {
		_, found := slices.BinarySearch(r.values, strconv.FormatInt(number, 10))
		return found
	}
	for r.low < r.high && excluded(r.low) {
		r.low++
	}
	for r.low < r.high && excluded(r.high) {
		r.high--
	}
	if r.low <= r.high && r.high-r.low >= maxExpandedRange {
		r.values = keep(r.values, func(value string) bool {
			number, _ := integer(value)
			return number > r.low && number < r.high
		})
		return r
	}
	var members []string
	for number := r.low; number <= r.high; number++ {
		if !excluded(number) {
			members = append(members, strconv.FormatInt(number, 10))
		}
		if number == math.MaxInt64 {
			break
		}
	}
	return Allowed{key: r.key, absent: r.absent, values: sorted(members)}
}

// integer returns the number that value spells, and whether it is a non-negative integer in the usual spelling.
func integer(value string) (int64, bool) {
	number, err := strconv.ParseInt(value, 10, 64)
	if err != nil || number < 0 || strconv.FormatInt(number, 10) != value {
		return 0, false
	}
	return number, true
}
