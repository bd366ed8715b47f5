package catalog

import (
	"encoding/binary"
	"iter"
	"math/bits"
)

// Bits is a set of offerings of one Index, by their position in Index.Offers; the lowest bit is the first offering.
// All sets of an Index have the same length, which is the only length its operations accept.
type Bits []uint64

// NewBits returns the empty set for n offerings.
func NewBits(n int) Bits { return make(Bits, (n+63)/64) }

// Add puts i into the set, in place.
func (b Bits) Add(i int) { b[i/64] |= 1 << (i % 64) }

// Remove takes i out of the set, in place.
func (b Bits) Remove(i int) { b[i/64] &^= 1 << (i % 64) }

// Has reports whether i is in the set.
func (b Bits) Has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }

// Clone returns a copy.
func (b Bits) Clone() Bits { return append(Bits(nil), b...) }

// AndTo intersects into, in place, with b.
func (b Bits) AndTo(into Bits) {
	for i := range into {
		into[i] &= b[i]
	}
}

// OrTo unites into, in place, with b.
func (b Bits) OrTo(into Bits) {
	for i := range into {
		into[i] |= b[i]
	}
}

// And returns the intersection.
func (b Bits) And(other Bits) Bits {
	own := b.Clone()
	other.AndTo(own)
	return own
}

// Minus returns b without the members of other.
func (b Bits) Minus(other Bits) Bits {
	own := b.Clone()
	for i := range own {
		own[i] &^= other[i]
	}
	return own
}

// Empty reports whether the set has no member.
func (b Bits) Empty() bool { return b.First() < 0 }

// Intersects reports whether the sets have a member in common.
func (b Bits) Intersects(other Bits) bool {
	for i := range b {
		if b[i]&other[i] != 0 {
			return true
		}
	}
	return false
}

// First returns the lowest member, the first offering in the Index's order, or -1.
func (b Bits) First() int {
	for i, word := range b {
		if word != 0 {
			return i*64 + bits.TrailingZeros64(word)
		}
	}
	return -1
}

// Count returns the number of members.
func (b Bits) Count() int {
	n := 0
	for _, word := range b {
		n += bits.OnesCount64(word)
	}
	return n
}

// All yields the members in ascending order.
func (b Bits) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, word := range b {
			for ; word != 0; word &= word - 1 {
				if !yield(i*64 + bits.TrailingZeros64(word)) {
					return
				}
			}
		}
	}
}

// Key returns a text that is equal for equal sets of one Index.
func (b Bits) Key() string {
	key := make([]byte, 0, 8*len(b))
	for _, word := range b {
		key = binary.LittleEndian.AppendUint64(key, word)
	}
	return string(key)
}
