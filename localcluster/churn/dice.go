package churn

import (
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"time"
)

// dice is a random stream for one purpose. It depends on the seed and the purpose, not on other draws. So changing or
// leaving out a step does not change the others.
type dice struct{ *rand.Rand }

func newDice(seed uint64, purpose string, number int) dice {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(purpose + " " + strconv.Itoa(number))) // a hash never fails to write
	return dice{rand.New(rand.NewPCG(seed, hash.Sum64()))}
}

// chance returns true with probability p.
func (d dice) chance(p float64) bool { return d.Float64() < p }

// from returns a number from low to high.
func (d dice) from(low, high int) int { return low + d.IntN(high-low+1) }

// between returns a duration from low to high.
func (d dice) between(low, high time.Duration) time.Duration {
	return low + time.Duration(d.Int64N(int64((high-low)/time.Millisecond)+1))*time.Millisecond
}

// of returns one of several values.
func of[T any](d dice, values ...T) T { return values[d.IntN(len(values))] }

// weighted is a value with its weight.
type weighted[T any] struct {
	weight int
	value  T
}

// draw returns one of the values at random, by weight. At least one weight must not be 0.
func draw[T any](d dice, values []weighted[T]) T {
	sum := 0
	for _, v := range values {
		sum += v.weight
	}
	n := d.IntN(sum)
	for _, v := range values {
		if n < v.weight {
			return v.value
		}
		n -= v.weight
	}
	panic("the weights do not add up")
}
