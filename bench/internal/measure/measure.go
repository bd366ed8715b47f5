// Package measure measures what a piece of work costs this process: time, CPU, allocations and the peak of memory.
package measure

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"
)

// Cost is what a piece of work took.
type Cost struct {
	WallSeconds float64 `json:"wall_seconds"`
	// CPUSeconds is that of all threads, the garbage collector's included.
	CPUSeconds     float64 `json:"cpu_seconds"`
	AllocatedBytes uint64  `json:"allocated_bytes"`
	// PeakRSSBytes is the largest resident set since Settle, with all that was in memory then.
	PeakRSSBytes uint64 `json:"peak_rss_bytes"`
}

// Settle prepares for measuring. It collects the heap and gives memory back. Then it resets the peak of memory, so
// that the peak covers only the work to come and its input. If the kernel cannot reset it, it covers the process so
// far.
func Settle() {
	debug.FreeOSMemory()
	_ = ForgetPeakOf(os.Getpid())
}

// Of runs work and returns its cost. The peak of memory is that since Settle.
func Of(work func() error) (Cost, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, err := cpuTime()
	if err != nil {
		return Cost{}, err
	}
	start := time.Now()
	if err := work(); err != nil {
		return Cost{}, err
	}
	cost := Cost{WallSeconds: time.Since(start).Seconds()}
	cpuAfter, err := cpuTime()
	if err != nil {
		return Cost{}, err
	}
	runtime.ReadMemStats(&after)
	cost.CPUSeconds = (cpuAfter - cpu).Seconds()
	cost.AllocatedBytes = after.TotalAlloc - before.TotalAlloc
	cost.PeakRSSBytes, err = PeakRSSOf(os.Getpid())
	return cost, err
}

func cpuTime() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, fmt.Errorf("reading CPU time: %w", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}

// Plus returns the cost of two pieces of work.
func (c Cost) Plus(other Cost) Cost {
	return Cost{
		WallSeconds: c.WallSeconds + other.WallSeconds, CPUSeconds: c.CPUSeconds + other.CPUSeconds,
		AllocatedBytes: c.AllocatedBytes + other.AllocatedBytes, PeakRSSBytes: max(c.PeakRSSBytes, other.PeakRSSBytes),
	}
}
