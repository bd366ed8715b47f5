package pack

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// chunk is the part of what would fit that is placed at a time: small enough to mix lots, large enough to be quick.
const chunk = 4

// noSeed lets fill begin with any lot.
const noSeed = -1

// fill mixes lots on a node of the candidate, beginning with a pod of the lot seed: again and again the lot whose requests lie best in what is left, so that
// all resources run out together. The ratio of the result is 0 when nothing fits.
func (s *solver) fill(p *pool, c *candidate, lots []*lot, worth []float64, seed int) pattern {
	result := pattern{counts: make([]int, len(lots)), used: make(resources.Vector, len(c.room)), price: c.price}
	left := slices.Clone(c.room)
	weights := make([]float64, len(c.room))
	for r, room := range c.room {
		if room > 0 {
			weights[r] = worth[r] / float64(room)
		}
	}
	custom := p.custom
	sum := 0.0
	for {
		best, bestScore, bestFit := -1, 0.0, 0
		for n, l := range lots {
			if !c.takes[n] || l.left <= result.counts[n] || seed != noSeed && n != seed {
				continue
			}
			fits := count(left, l.info.Requests)
			if fits == 0 {
				continue
			}
			if score := likeness(l.info.Requests, left, weights); best < 0 || score > bestScore {
				best, bestScore, bestFit = n, score, fits
			}
		}
		if best < 0 {
			break
		}
		l := lots[best]
		merged, ok := mergeCustom(custom, l.info.wayFor(p, c.offer).custom)
		if !ok {
			c = c.without(best)
			continue
		}
		custom = merged
		n := max(1, min(bestFit, l.left-result.counts[best])/chunk)
		if seed != noSeed {
			n, seed = 1, noSeed
		}
		result.counts[best] += n
		for r, amount := range l.info.Requests {
			left[r] -= amount * int64(n)
			result.used[r] += amount * int64(n)
		}
		sum += float64(l.value * float64(n))
	}
	result.ratio = sum / c.price
	return result
}

// without returns the candidate closed to one lot.
func (c *candidate) without(lot int) *candidate {
	own := *c
	own.takes = slices.Clone(c.takes)
	own.takes[lot] = false
	return &own
}

// count returns how many times requests fit in left.
func count(left, requests resources.Vector) int {
	n := int64(1) << 30
	for r, amount := range requests {
		if amount > 0 {
			n = min(n, left.At(r)/amount)
		}
	}
	return int(max(n, 0))
}

// likeness is the dot product of requests and what is left, each resource weighted by its worth per size of the node:
// high for large pods that use what there is most of.
func likeness(requests, left resources.Vector, weights []float64) float64 {
	sum := 0.0
	for r, amount := range requests {
		if r < len(weights) {
			sum += float64(float64(amount)*weights[r]) * float64(left[r])
		}
	}
	return sum
}

// mergeCustom joins a pod's demands on the pool's custom labels to those of a node; false when nothing would be left.
func mergeCustom(custom, demands requirement.Set) (requirement.Set, bool) {
	if demands.Len() == 0 {
		return custom, true
	}
	merged := custom.And(demands)
	return merged, len(merged.EmptyKeys()) == 0
}
