package engine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
)

// large is a cluster of n nodes with 20 pods each, nearly full, in which some pods are spread.
func large(b *testing.B, n int, tied bool) *cluster.Snapshot {
	b.Helper()
	script :=
		"type m cpu=16 mem=64Gi zones=a,b,c od=0.8 spot=0.3\ntype s cpu=4 mem=16Gi zones=a,b,c od=0.2 spot=0.08\npool default\n"
	script += "daemon logs cpu=100m mem=100Mi tolerate=*\n"
	for i := range n {
		script += fmt.Sprintf("node n%d type=m zone=%c pool=default\n", i, 'a'+i%3)
		script += fmt.Sprintf("pod logs-%d cpu=100m mem=100Mi node=n%d daemon=default/logs\n", i, i)
		for k := range 4 {
			more := ""
			if tied && k == 0 {
				more = []string{"spread=zone:5", "apart=host", "spread=host:3", "together=zone"}[i%4]
			}
			script += fmt.Sprintf("pod w%d-%d..%d cpu=%dm mem=2Gi node=n%d labels=app=w%d %s\n", i, k*5,
				k*5+4-4*min(1, len(more)), 600+i*7%150, i, (i*4+k)%200, more)
		}
	}
	snapshot, err := enginetest.Parse(script)
	if err != nil {
		b.Fatal(err)
	}
	return snapshot
}

// BenchmarkWhatIf measures the question "would these nodes' pods fit elsewhere?" at 2,000 nodes and 40,000 pods.
func BenchmarkWhatIf(b *testing.B) {
	for _, tied := range []bool{false, true} {
		snapshot := large(b, 2000, tied)
		for _, gone := range []int{1, 3} {
			name := fmt.Sprintf("tied=%t/gone=%d", tied, gone)
			pick := func() []*cluster.Node {
				source := rand.New(rand.NewPCG(1, 2))
				var nodes []*cluster.Node
				for _, i := range source.Perm(len(snapshot.Nodes))[:gone] {
					nodes = append(nodes, snapshot.Nodes[i])
				}
				return nodes
			}
			nodes := pick()
			b.Run("overlay/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					snapshot.Without(nodes...)
				}
			})
			b.Run("provision/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					engine.Provision(snapshot.Without(nodes...))
				}
			})
		}
	}
}

// D-04: a what-if equals the snapshot that would be made of the changed parts, plans like it, and leaves the original
// alone.
func TestWhatIfsAreLikeRebuiltSnapshots(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		script := enginetest.Script(t)
		snapshot, before := parse(t, script), parse(t, script)
		var gone []*cluster.Node
		for i, node := range snapshot.Nodes {
			if rapid.Bool().Draw(t, fmt.Sprint("gone", i)) {
				gone = append(gone, node)
			}
		}
		want := rebuilt(snapshot, gone)
		got := snapshot.Without(gone...)
		if !slices.Equal(got.Nodes, want.Nodes) || !slices.Equal(got.Pending, want.Pending) ||
			!slices.Equal(got.Repelling, want.Repelling) {
			t.Fatalf("%s\nwithout %d nodes: the lists differ from rebuilt ones", script, len(gone))
		}
		stepwise := snapshot
		for _, node := range gone {
			stepwise = stepwise.Without(node)
		}
		for _, other := range []*cluster.Snapshot{want, stepwise} {
			if a, b := dump(engine.Provision(got)), dump(engine.Provision(other)); a != b {
				t.Fatalf("%s\nwithout %d nodes:\n%s\nrebuilt or step by step:\n%s", script, len(gone), a, b)
			}
		}
		if c := got.Change(); len(gone) > 0 && (c.Of != snapshot || !slices.Equal(c.Gone, gone)) {
			t.Fatalf("the change is %+v", c)
		}
		back := got.With(gone)
		if !slices.Equal(back.Nodes, snapshot.Nodes) || !slices.Equal(back.Repelling, snapshot.Repelling) {
			t.Fatalf("%s\nwith the nodes again: the lists differ from the original's", script)
		}
		if a, b := dump(engine.Provision(snapshot)), dump(engine.Provision(before)); a != b {
			t.Fatalf("%s\nthe original has changed:\n%s\n%s", script, a, b)
		}
	})
}

// rebuilt makes the what-if the slow way.
func rebuilt(s *cluster.Snapshot, gone []*cluster.Node) *cluster.Snapshot {
	parts := *s
	parts.Nodes, parts.Repelling, parts.Pending, parts.Pools = nil, nil, slices.Clone(s.Pending), nil
	used := map[string]int64{}
	if s.MaxNodes != 0 && len(gone) > 0 { // above the limit of the cluster as many come as go
		parts.MaxNodes = max(s.MaxNodes, s.Ceiling().Used)
	}
	for _, node := range s.Nodes {
		if !slices.Contains(gone, node) {
			parts.Nodes = append(parts.Nodes, node)
			for _, pod := range node.Pods {
				if len(pod.Shape.AntiAffinity) > 0 {
					parts.Repelling = append(parts.Repelling, pod)
				}
			}
			continue
		}
		parts.Leaving = append(parts.Leaving, node)
		if node.Labels[string(catalog.LabelCapacityType)] == catalog.Reserved { // P-11: until it is gone
			parts.Reserving = append(parts.Reserving, node)
		}
		used[node.Pool]++
		for _, pod := range node.Pods {
			if !pod.Fixed && !slices.Contains(parts.Pending, pod) {
				parts.Pending = append(parts.Pending, pod)
			}
		}
	}
	for _, pool := range s.Pools {
		own := *pool
		if pool.Limits.HardNodes < 0 { // L-30: at a hard limit the replacement comes first
			own.Used.Nodes -= used[pool.Name]
		}
		own.Used.Capacity = nil
		for _, node := range parts.Nodes {
			if node.Pool == pool.Name {
				own.Used.Capacity = own.Used.Capacity.Plus(node.Allocatable)
			}
		}
		parts.Pools = append(parts.Pools, &own)
	}
	return cluster.New(parts)
}

// L-30, L-31: a node that goes makes room under a soft limit and none under a hard one.
func TestWhatIfsCountLimitsAsReplacements(t *testing.T) {
	t.Parallel()
	for limit, launches := range map[string]int{"nodes=1": 1, "hard.nodes=1": 0, "hard.nodes=2": 1, "limit.cpu=2": 1} {
		snapshot, err := enginetest.Parse("type m cpu=2 mem=8Gi zones=a od=0.1\npool default " + limit +
			"\nnode n1 type=m zone=a pool=default\npod web cpu=1 node=n1\npod logs cpu=100m node=n1 daemon=default/logs")
		if err != nil {
			t.Fatal(err)
		}
		p := engine.Provision(snapshot.Without(snapshot.Nodes[0]))
		if len(p.Launches) != launches || len(p.Launches)+len(p.Unplaced) != 1 {
			t.Errorf("%s: want %d launches and the daemon left out:\n%s", limit, launches, p)
		}
	}
}
