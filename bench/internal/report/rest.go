package report

import (
	"fmt"
	"io"
)

// What a controller at rest may take (B-22, docs/spec/performance.md).
const (
	restCPU      = 0.02      // of a core
	restRequests = 1.0       // a second
	restMemory   = 300 << 20 // bytes
	restReady    = 10.0      // seconds after a restart
)

// restAims prints the aims of a controller at rest, with the peer's figures if the peer ran.
func restAims(w io.Writer, l, peer Record) {
	if l.CutOff {
		aim(w, "B-22", l.Scenario, false, "the cluster was not there in its time")
		return
	}
	beside := func(of func(Record) string) string {
		if peer.Rest == nil || peer.CutOff {
			return ""
		}
		return "; the peer " + of(peer)
	}
	cpu := func(r Record) string { return fmt.Sprintf("%.2f %% of a core", 100*r.CPUSeconds/r.WallSeconds) }
	requests := func(r Record) string { return fmt.Sprintf("%.2f requests a second", perSecond(r)) }
	memory := func(r Record) string { return bytes(r.PeakRSSBytes) }
	ready := func(r Record) string { return fmt.Sprintf("%.1f s", r.Rest.ReadySeconds) }
	went := func(r Record) string {
		return fmt.Sprintf("%d nodes came or went, %v written", r.Rest.Went, r.Rest.Writes)
	}
	aim(w, "B-22", l.Scenario, l.CPUSeconds <= restCPU*l.WallSeconds, "%s at rest; aim 2 %%%s", cpu(l), beside(cpu))
	aim(w, "B-22", l.Scenario, perSecond(l) <= restRequests, "%s; aim 1%s", requests(l), beside(requests))
	aim(w, "B-22", l.Scenario, l.PeakRSSBytes <= restMemory, "%s; aim 300 MiB%s", memory(l), beside(memory))
	aim(w, "B-22", l.Scenario, l.Rest.ReadySeconds <= restReady, "ready %s after a restart; aim 10 s%s", ready(l),
		beside(ready))
	aim(w, "B-22", l.Scenario, l.Rest.Went == 0, "after a restart %s; aim no node%s", went(l), beside(went))
}

// perSecond returns how many requests a controller at rest makes in a second.
func perSecond(r Record) float64 {
	sum := 0
	for _, n := range r.Rest.Requests {
		sum += n
	}
	return float64(sum) / r.WallSeconds
}
