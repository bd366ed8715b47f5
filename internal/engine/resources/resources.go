// Package resources is the arithmetic of what pods ask for and nodes have: vectors of integers in base units,
// and money in integer micro-dollars. Nothing here is a float, so that sums are exact and their order never
// matters (P-20).
//
// A [Vector] has one component for each name of a [Space]. A Space is made once for each picture of the cluster
// and only grows, so the components of the four common resources are constants and the hot path is an array
// access. Vectors of one Space may differ in length: a missing component is 0.
//
// The package imports the standard library only.
package resources

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// The components that every Space has, in this order. Units: CPU in milli-cores; Memory and EphemeralStorage in
// bytes; Pods and all extended resources in units.
const (
	CPU = iota
	Memory
	EphemeralStorage
	Pods
)

// The names of the common components, as Kubernetes spells them.
const (
	NameCPU              = "cpu"
	NameMemory           = "memory"
	NameEphemeralStorage = "ephemeral-storage"
	NamePods             = "pods"
	NameNodes            = "nodes" // counted by limits, never a component: a node is 1 whatever its size (L-11)
)

// MemoryPerCore is about how many bytes of memory count as much as a core where sizes are compared: clouds sell 2 to 8
// GiB with one.
const MemoryPerCore = 8 << 30

// Space maps resource names to components. It is not safe for concurrent change; a reader may keep using the
// components it knows while others are added.
type Space struct {
	names []string
	index map[string]int
}

// NewSpace returns a space of the common resources.
func NewSpace() *Space {
	s := &Space{index: map[string]int{}}
	for _, name := range []string{NameCPU, NameMemory, NameEphemeralStorage, NamePods} {
		s.Index(name)
	}
	return s
}

// Index returns the component of name, adding it when it is new.
func (s *Space) Index(name string) int {
	if i, found := s.index[name]; found {
		return i
	}
	s.names = append(s.names, name)
	s.index[name] = len(s.names) - 1
	return len(s.names) - 1
}

// Names returns the names of all components so far. The result does not change when the space grows.
func (s *Space) Names() Names { return Names(s.names[:len(s.names):len(s.names)]) }

// Vector converts named amounts, adding names that are new.
func (s *Space) Vector(amounts Amounts) Vector {
	var v Vector
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		if name == NameNodes {
			continue
		}
		v = v.With(s.Index(name), amounts[name])
	}
	return v
}

// Amounts maps resource names to amounts in base units (see the components). It is how amounts cross the border of
// the engine; inside they are vectors.
type Amounts map[string]int64

// Names are the resource names of a space's components, by component.
type Names []string

// Vector is an amount for each component of a Space, in base units. A Vector is a value: functions of this
// package return new vectors and leave their arguments alone, except those whose name ends in To.
type Vector []int64

// At returns a component; 0 beyond the vector's length.
func (v Vector) At(component int) int64 {
	if component >= len(v) {
		return 0
	}
	return v[component]
}

// With returns v with one component set.
func (v Vector) With(component int, amount int64) Vector {
	own := make(Vector, max(len(v), component+1))
	copy(own, v)
	own[component] = amount
	return own
}

// Plus returns v + other.
func (v Vector) Plus(other Vector) Vector {
	return other.AddTo(slices.Clone(v))
}

// Minus returns v - other; components may become negative.
func (v Vector) Minus(other Vector) Vector {
	own := make(Vector, max(len(v), len(other)))
	copy(own, v)
	for i, amount := range other {
		own[i] = Sum(own[i], -max(amount, -math.MaxInt64))
	}
	return own
}

// Times returns n times v, n being 0 or more; v itself when n is 1.
func (v Vector) Times(n int) Vector {
	if n == 1 {
		return v
	}
	own := slices.Clone(v)
	for i := range own {
		own[i] = product(own[i], int64(n))
	}
	return own
}

// AddTo adds v to sum, in place where its capacity allows, and returns it.
func (v Vector) AddTo(sum Vector) Vector {
	for len(sum) < len(v) {
		sum = append(sum, 0)
	}
	for i, amount := range v {
		sum[i] = Sum(sum[i], amount)
	}
	return sum
}

// Sum returns a + b, or the largest or smallest number where the sum is beyond it: what is absurdly large must not
// come out as small.
func Sum(a, b int64) int64 {
	sum := a + b
	if (sum^a)&(sum^b) >= 0 {
		return sum
	}
	if a < 0 {
		return math.MinInt64
	}
	return math.MaxInt64
}

// product is Sum for multiplication by n, which is 0 or more.
func product(a, n int64) int64 {
	if n == 0 || a == 0 {
		return 0
	}
	if p := a * n; p/n == a {
		return p
	}
	if a < 0 {
		return math.MinInt64
	}
	return math.MaxInt64
}

// Max returns the larger of each component.
func (v Vector) Max(other Vector) Vector {
	own := make(Vector, max(len(v), len(other)))
	for i := range own {
		own[i] = max(v.At(i), other.At(i))
	}
	return own
}

// Fits reports whether v is at most room in every component in which v is above 0.
func (v Vector) Fits(room Vector) bool { return v.Short(room) < 0 }

// Short returns the first component in which v is above 0 and above room, or -1 when v fits.
func (v Vector) Short(room Vector) int {
	for i, amount := range v {
		if amount > 0 && amount > room.At(i) {
			return i
		}
	}
	return -1
}

// IsZero reports whether every component is 0.
func (v Vector) IsZero() bool {
	return !slices.ContainsFunc(v, func(amount int64) bool { return amount != 0 })
}

// Equal reports whether all components are equal, missing ones being 0.
func (v Vector) Equal(other Vector) bool {
	for i := range max(len(v), len(other)) {
		if v.At(i) != other.At(i) {
			return false
		}
	}
	return true
}

// Format prints the components above or below 0, in the order of the space: cpu=1500m memory=2Gi.
func (n Names) Format(v Vector) string {
	var parts []string
	for i, amount := range v {
		if amount != 0 {
			parts = append(parts, n[i]+"="+n.FormatOne(i, amount))
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, " ")
}

// FormatOne prints one component in the unit that a user writes: 1500m, 2Gi, 3.
func (n Names) FormatOne(component int, amount int64) string {
	switch component {
	case CPU:
		if amount%1000 != 0 {
			return fmt.Sprintf("%dm", amount)
		}
		return fmt.Sprintf("%d", amount/1000)
	case Memory, EphemeralStorage:
		return FormatBytes(amount)
	}
	return fmt.Sprintf("%d", amount)
}

// FormatBytes prints bytes in the largest binary unit that divides them, else with one decimal above 1 Mi.
func FormatBytes(amount int64) string {
	units := []struct {
		suffix string
		size   int64
	}{{"Ti", 1 << 40}, {"Gi", 1 << 30}, {"Mi", 1 << 20}, {"Ki", 1 << 10}}
	for _, unit := range units {
		if amount != 0 && amount%unit.size == 0 {
			return fmt.Sprintf("%d%s", amount/unit.size, unit.suffix)
		}
	}
	for _, unit := range units[:3] {
		if amount >= unit.size {
			return fmt.Sprintf("%.1f%s", float64(amount)/float64(unit.size), unit.suffix)
		}
	}
	return fmt.Sprintf("%d", amount)
}
