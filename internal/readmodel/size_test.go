package readmodel_test

import (
	"bytes"
	"compress/flate"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/readmodel"
)

// moved is how many pods come or go in a second of churn (U-08).
const moved = 50

// sizes are the clusters for which U-08 has budgets, in KiB as they go over the wire: of the whole, and of a second.
func sizes() []struct{ nodes, pods, whole, second int } {
	return []struct{ nodes, pods, whole, second int }{{300, 3000, 60, 5}, {5000, 100000, 700, 50}}
}

func fleet(tb testing.TB, nodes, pods int) readmodel.Input {
	tb.Helper()
	s, err := enginetest.Parse(enginetest.Fleet(nodes, pods, 1_000_000))
	if err != nil {
		tb.Fatal(err)
	}
	return readmodel.Input{Snapshot: s, Plan: engine.Provision(s), Terms: engine.Terms{Now: 1_000_000}}
}

func written(tb testing.TB, in readmodel.Input, s *cluster.Snapshot) *readmodel.Sheet {
	tb.Helper()
	in.Snapshot = s
	sheet, err := readmodel.Write(readmodel.Of(in))
	if err != nil {
		tb.Fatal(err)
	}
	return sheet
}

// packed is how many bytes data has on the wire.
func packed(tb testing.TB, data []byte) int {
	tb.Helper()
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.DefaultCompression)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err = w.Write(data); err == nil {
		err = w.Flush()
	}
	if err != nil {
		tb.Fatal(err)
	}
	return b.Len()
}

// cpuTime is what this process has used of processors: unlike time it does not depend on what else the machine does.
func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// TestU08_WhatIsSentIsBounded: the whole and a second of churn are within the budgets, at 300 nodes and at 5,000.
func TestU08_WhatIsSentIsBounded(t *testing.T) {
	t.Parallel()
	for _, size := range sizes() {
		in := fleet(t, size.nodes, size.pods)
		if m := readmodel.Of(in); m.Totals.Nodes != size.nodes || m.Totals.Running+m.Totals.Waiting != size.pods {
			t.Fatalf("%d nodes, %d pods: want %v", m.Totals.Nodes, m.Totals.Running+m.Totals.Waiting, size)
		}
		now := written(t, in, in.Snapshot)
		whole, err := now.Snapshot("e.1")
		if err != nil {
			t.Fatal(err)
		}
		second, different, err := written(t, in, enginetest.Churn(in.Snapshot, 1, moved)).Delta(now, "e.1", "e.2")
		if err != nil || !different {
			t.Fatal("nothing moves", err)
		}
		if got := packed(t, whole); got > size.whole<<10 {
			t.Errorf("%d nodes: the whole has %d bytes, at most %d KiB", size.nodes, got, size.whole)
		}
		if got := packed(t, second); got > size.second<<10 || got < 200 {
			t.Errorf("%d nodes: a second has %d bytes, at most %d KiB", size.nodes, got, size.second)
		}
	}
}

// BenchmarkU08_Model measures one update of the read model after 50 pods moved: time, and bytes as JSON and
// compressed.
func BenchmarkU08_Model(b *testing.B) {
	for _, size := range sizes() {
		in := fleet(b, size.nodes, size.pods)
		states := [2]*cluster.Snapshot{in.Snapshot, enginetest.Churn(in.Snapshot, 1, moved)}
		b.Run(fmt.Sprintf("nodes=%d", size.nodes), func(b *testing.B) {
			b.ReportAllocs()
			before := written(b, in, states[0])
			var second []byte
			step, began := 0, cpuTime(b)
			for b.Loop() {
				step++
				next := written(b, in, states[step%2])
				data, _, err := next.Delta(before, "e.1", "e.2")
				if err != nil {
					b.Fatal(err)
				}
				second, before = data, next
			}
			b.ReportMetric((cpuTime(b)-began).Seconds()*1000/float64(b.N), "cpu-ms/op")
			whole, err := before.Snapshot("e.1")
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(len(whole)), "B/whole")
			b.ReportMetric(float64(packed(b, whole)), "B/whole-packed")
			b.ReportMetric(float64(len(second)), "B/second")
			b.ReportMetric(float64(packed(b, second)), "B/second-packed")
		})
	}
}
