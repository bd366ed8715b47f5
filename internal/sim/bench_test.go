package sim_test

import (
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/sim"
)

func BenchmarkSeeds(b *testing.B) {
	g, err := sim.NewGround()
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; b.Loop(); i++ {
		sim.Run(g, sim.Generate(uint64(i)), nil)
	}
}
