package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// durationBuckets returns Karpenter's buckets for durations, from a cached answer (5 ms) to a stuck one (10 min)
// (K-08).
func durationBuckets() []float64 {
	buckets := steps(.005, .005, .01) // 5, 10 ms
	buckets = append(buckets, .025)
	buckets = append(buckets, steps(.05, .05, .5)...) // to 500 ms
	buckets = append(buckets, steps(.6, .1, 1)...)    // to 1 s
	buckets = append(buckets, steps(1.25, .25, 2)...) // to 2 s
	buckets = append(buckets, steps(2.5, .5, 5)...)   // to 5 s
	buckets = append(buckets, steps(6, 1, 10)...)     // to 10 s
	buckets = append(buckets, steps(15, 5, 30)...)    // to 30 s
	return append(buckets, 40, 50, 60, 120, 150, 300, 450, 600)
}

// steps returns the numbers from first to last, rounded to thousandths.
func steps(first, by, last float64) (all []float64) {
	for i := range int((last-first)/by + 1.5) {
		all = append(all, float64(int((first+float64(i)*by)*1000+.5))/1000)
	}
	return all
}

// lifetimeBuckets returns Karpenter's buckets for node lifetimes, from a quarter of an hour to 30 days.
func lifetimeBuckets() (seconds []float64) {
	const day = 24 * time.Hour
	for _, life := range []time.Duration{15 * time.Minute, 30 * time.Minute, 45 * time.Minute, time.Hour,
		2 * time.Hour, 4 * time.Hour,
		6 * time.Hour, 8 * time.Hour, 10 * time.Hour, 12 * time.Hour, 16 * time.Hour, 20 * time.Hour, day,
		2 * day, 3 * day, 5 * day,
		10 * day, 15 * day, 20 * day, 25 * day, 30 * day} {
		seconds = append(seconds, life.Seconds())
	}
	return seconds
}

// rebootBuckets returns Karpenter's buckets for reboots, from 10 s to 21 min.
func rebootBuckets() []float64 { return prometheus.ExponentialBuckets(10, 2, 8) }
