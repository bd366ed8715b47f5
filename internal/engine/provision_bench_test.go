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
	benchProvision(b, script)
}

// BenchmarkProvisionPools measures a plan for one pod at 50 pools and 5,400 offerings: it shows what preparing the
// pools costs. A daemon that runs on some instance types only has other room left on these.
func BenchmarkProvisionPools(b *testing.B) {
	for _, daemon := range []string{"none", "partial"} {
		script := ""
		for i := range 50 {
			script += fmt.Sprintf("pool p%d\n", i)
		}
		for i := range 600 {
			script += fmt.Sprintf("type t%d cpu=%d mem=%dGi pods=110 zones=a,b,c,d,e,f,g,h,i od=%.3f arch=%s\n", i,
				1+i%96, 1+i*7%768, 0.04*float64(1+i%96)+0.001*float64(i), []string{"amd64", "arm64"}[i%2])
		}
		if daemon == "partial" {
			script += "daemon plugin cpu=100m mem=100Mi need=arch=arm64\n"
		}
		script += "daemon logs cpu=100m mem=100Mi\npod w cpu=3 mem=3Gi\n"
		b.Run("daemon="+daemon, func(b *testing.B) { benchProvision(b, script) })
	}
}

func benchProvision(b *testing.B, script string) {
	b.Helper()
	snapshot, err := enginetest.Parse(script)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		engine.Provision(snapshot)
	}
}
