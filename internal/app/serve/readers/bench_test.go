package readers

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/readmodel"
)

// BenchmarkU08_TenReaders measures one second with ten readers while 50 pods move. It reports processor time, which
// other programs do not change, and the memory that is held once 256 seconds are remembered. Which nodes stay is
// known, and not asked again.
func BenchmarkU08_TenReaders(b *testing.B) {
	for _, size := range [][2]int{{300, 3000}, {5000, 100000}} {
		s, err := enginetest.Parse(enginetest.Fleet(size[0], size[1], 1_000_000))
		if err != nil {
			b.Fatal(err)
		}
		states := [2]*cluster.Snapshot{s, enginetest.Churn(s, 1, 50)}
		in := readmodel.Input{Snapshot: s, Plan: engine.Provision(s), Terms: engine.Terms{Now: 1_000_000}}
		b.Run(fmt.Sprintf("nodes=%d", size[0]), func(b *testing.B) {
			before, step, now := held(), 0, time.Unix(1_000_000, 0)
			r := New(Config{Input: func(context.Context) (readmodel.Input, error) {
				in.Snapshot = states[step%2]
				return in, nil
			}, Standby: func(context.Context) string { return "" }, Epoch: "e", Now: func() time.Time { return now },
				Log: logr.Discard()})
			r.staysNext = now.Add(time.Hour * 1e5)
			for range 10 {
				own := newReader(true, func() {})
				if got := r.told(b.Context(), ask{reader: own}); got.err != nil {
					b.Fatal(got.err)
				}
			}
			second := func() {
				step++
				now = now.Add(every)
				r.tick(b.Context())
				for reader := range r.streams {
					for data, counts, _ := reader.next(); data != nil; data, counts, _ = reader.next() {
						if counts {
							reader.written(len(data))
						}
					}
				}
			}
			began := used(b)
			for b.Loop() {
				second()
			}
			b.ReportMetric((used(b)-began).Seconds()*1000/float64(b.N), "cpu-ms/op")
			for len(r.changes) < remembered {
				second()
			}
			b.ReportMetric(float64(held()-before)/(1<<20), "MiB-held")
			if r.computed < remembered || len(r.streams) != 10 {
				b.Fatalf("%d models, %d readers", r.computed, len(r.streams))
			}
			runtime.KeepAlive(r)
		})
	}
}

// held is the memory that is in use after what is not was taken back, in bytes.
func held() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// used is the processor time of this process.
func used(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
