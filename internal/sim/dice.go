package sim

import "time"

// dice is a short random stream for one occasion. It depends on the seed and the occasion, not on earlier draws. So
// leaving out one fault does not change the others, and a failing script can be reduced.
type dice struct{ state uint64 }

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// hashText continues an FNV-1a hash.
func hashText(hash uint64, parts ...string) uint64 {
	for _, part := range parts {
		for i := range len(part) {
			hash = (hash ^ uint64(part[i])) * fnvPrime
		}
		hash = (hash ^ 0xff) * fnvPrime // so that "ab","c" differs from "a","bc"
	}
	return hash
}

func newDice(seed uint64, occasion ...string) dice {
	return dice{hashText(fnvOffset^(seed*0x9e3779b97f4a7c15), occasion...)}
}

// next is splitmix64.
func (d *dice) next() uint64 {
	d.state += 0x9e3779b97f4a7c15
	z := d.state
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

// n returns a number from 0 to n-1.
func (d *dice) n(n int) int { return int(d.next() % uint64(n)) }

// chance returns true with probability p.
func (d *dice) chance(p float64) bool { return float64(d.next()>>11)/(1<<53) < p }

// between returns a duration from low to high, in whole milliseconds.
func (d *dice) between(low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(d.next()%uint64((high-low)/time.Millisecond+1))*time.Millisecond
}

// of returns one of several values.
func of[T any](d *dice, values ...T) T { return values[d.n(len(values))] }

// Uint64 makes dice a source for math/rand.
func (d *dice) Uint64() uint64 { return d.next() }
