package engine_test

import (
	"fmt"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
)

// BenchmarkProvision measures a plan for 2,000 pods. Four fifths of them are tied to others and placed one by one:
// that is the way through the rules that is used most.
func BenchmarkProvision(b *testing.B) {
	script := "pool default\n"
	for i := 1; i <= 64; i++ {
		script += fmt.Sprintf("type t%d cpu=%d mem=%dGi pods=%d zones=a,b,c od=%.3f spot=%.3f\n", i, i, 2*i, 10*i,
			0.04*float64(i), 0.02*float64(i))
	}
	for i := range 200 {
		kind := []string{"", "spread=zone:1", "spread=host:1", "together=zone", "apart=host"}[i%5]
		script += fmt.Sprintf("pod w%d-0..9 cpu=%dm mem=%dMi labels=app=w%d %s\n", i, 100+i*37%900, 100+i*53%2000, i%7,
			kind)
	}
	snapshot, err := enginetest.Parse(script)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		engine.Provision(snapshot)
	}
}
