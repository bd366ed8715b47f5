package enginetest

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// Script draws a random cluster as a script. So a failure, shrunk by rapid, is printed in the language in which it can
// be kept as a test. Lines come in the order types, pools, nodes, pods.
func Script(t *rapid.T) string {
	g := generator{T: t}
	g.types()
	g.pools()
	g.nodes()
	for i := range rapid.IntRange(1, 8).Draw(t, "workloads") {
		g.workload(i)
	}
	for i := range 2 {
		if g.pick("", "guarded") != "" {
			g.add("pdb b%d of=app=w%d at-once=%s", i, i, g.pick("1", "2"))
		}
	}
	return strings.Join(g.lines, "\n")
}

type generator struct {
	*rapid.T
	lines     []string
	nodeNames []string
	drawn     int
}

func (g *generator) add(format string, args ...any) {
	g.lines = append(g.lines, strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " "))
}

// pick draws one of the words; the first is what rapid shrinks to.
func (g *generator) pick(words ...string) string {
	g.drawn++
	return rapid.SampledFrom(words).Draw(g.T, fmt.Sprint("word", g.drawn))
}

func (g *generator) types() {
	zones := g.pick("a,b,c", "a", "a,b")
	g.add("type small cpu=2 mem=4Gi zones=%s od=0.050 spot=0.020 %s", zones,
		g.pick("", "unavailable=a", "unavailable=b/spot"))
	g.add("type medium cpu=4 mem=8Gi zones=%s od=0.095 spot=0.040 %s %s", zones, g.pick("", "pods=3"),
		g.pick("", "", "reserved=0.030 reservation=1", "reserved=0 reservation=2"))
	g.add("type large cpu=8 mem=32Gi zones=a,b od=0.210 %s", g.pick("", "gpu=1", "arch=arm64"))
	if g.pick("", "daemon") != "" {
		g.add("daemon logs cpu=%s tolerate=* %s %s %s", g.pick("100m", "500m"),
			g.pick("", "need=zone=a", "need=arch=arm64"), g.pick("", "", "port=80"),
			g.pick("", "", "seen=/:cpu=1 seen=p0/:cpu=300m seen=p0/medium:cpu=1", "learnt=p0/:cpu=700m"))
	}
}

func (g *generator) pools() {
	for i := range rapid.IntRange(1, 3).Draw(g.T, "pools") {
		g.add("pool p%d weight=%s %s %s %s %s", i, g.pick("0", "10"),
			g.pick("", "need=zone=a|b", "need=team", "need=rack=r1|r2", "need=capacity=on-demand",
				"need=capacity=reserved", "need=type!=small"),
			g.pick("", "taint=x:NoSchedule", "taint=y:PreferNoSchedule"),
			g.pick("", "nodes=2", "hard.nodes=2", "limit.cpu=8", "limit.memory=16Gi"),
			g.pick("", "blocked=not_ready", ""))
	}
	g.ceiling("5")
}

// ceiling may limit the nodes or claims of the whole cluster, to this number or to 1 (K-53).
func (g *generator) ceiling(nodes string) {
	if most := g.pick("", "", "", "1", nodes); most != "" {
		g.add("limit cluster %s=%s %s", g.pick("nodes", "claims"), most, g.pick("", "unseen=1"))
	}
}

func (g *generator) nodes() {
	for i := range rapid.IntRange(0, 4).Draw(g.T, "nodes") {
		name := fmt.Sprint("n", i)
		g.add("node %s type=%s zone=%s %s %s", name, g.pick("small", "medium"), g.pick("a", "b"),
			g.pick("", "pool=p0", "pool=p0 labels=capacity=reserved"),
			g.pick("", "deleting", "new", "taint=x:NoSchedule", "disrupting"))
		g.nodeNames = append(g.nodeNames, name)
	}
	for i := range rapid.IntRange(0, 4).Draw(g.T, "running") {
		if len(g.nodeNames) > 0 {
			g.add("pod run%d cpu=100m labels=app=%s node=%s %s", i, g.pick("w0", "w1"), g.pick(g.nodeNames...),
				g.pick("", "apart=host", "apart=zone/app=w0", "port=80", "together=zone", "spread=zone:1",
					"spread=host:1", "together=zone/app=w0"))
		}
	}
}

// workload draws pods of one kind. Kinds that share labels do not select nodes. Otherwise it may
// stay open whether a spread constraint counts the pods on a planned node (topology.Counting): counted_laws_test.go is
// about that.
func (g *generator) workload(i int) {
	labels := fmt.Sprint("app=w", i)
	needs := []string{"", "need=zone=a", "need=zone=b need=zone=c", "need=arch=arm64", "need=team=red",
		"need=team!=red", "need=type=medium", "need=host!=n0", "named=n0"}
	if i == 0 || g.pick("", "shared") != "" {
		labels, needs = "app=w0", needs[:1]
	}
	wishes := g.pick("", "", "wish=50:zone=b", "wish=10:capacity=on-demand wish=5:team=red", "wish-spread=zone:1",
		"wish-apart=9:zone", "wish-together=9:zone/app=w0")
	g.add("pod w%d-0..%s cpu=%s mem=%s labels=%s %s %s %s %s %s %s", i, g.pick("0", "2", "5"),
		g.pick("100m", "700m", "1500m", "3", "9"), g.pick("100Mi", "3Gi", "10Gi"), labels,
		g.pick(needs...),
		g.pick("", "tolerate=x", "tolerate=*"),
		g.pick("", "", "spread=zone:1", "spread=host:1", "spread=zone:2 spread=host:1", "spread=capacity:1",
			"spread=rack:1", "spread=host:1:3", "spread=zone:1/honor-taints", "spread=zone:1/ignore-affinity"),
		g.pick("", "", "apart=host", "apart=zone", "together=zone", "together=host", "together=zone/app=w0",
			"apart=host/app=w1"),
		g.pick("", "port=80", "gpu=1", "ns=other", "volume=zone=a"), wishes)
}

// PlainScript draws a random cluster whose plan is decided by price: many instance types with odd sizes, pools with
// minimum counts and limits, and lots of plain pods beside tied ones. It is larger than those of [Script].
func PlainScript(t *rapid.T) string {
	g := generator{T: t}
	for i := range rapid.IntRange(3, 24).Draw(t, "types") {
		cpu, memory := rapid.IntRange(1, 64).Draw(t, fmt.Sprint("cpu", i)),
			rapid.IntRange(1, 256).Draw(t, fmt.Sprint("memory", i))
		price := float64(cpu)*0.02 + float64(memory)*0.003
		g.add("type t%d cpu=%d mem=%dGi zones=%s od=%.4f spot=%.4f %s", i, cpu, memory, g.pick("a", "a,b", "c,b,a"),
			price, price/3, g.pick("", "arch=arm64", "gpu=2", "labels=family=x", "unavailable=a/spot"))
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "pools") {
		g.add("pool p%d weight=%s %s %s %s %s", i, g.pick("0", "7"),
			g.pick("", "need=zone=a|b", "need=team", "need=family=x|y"),
			g.pick("", "nodes=3", "hard.nodes=4", "limit.cpu=40", "limit.memory=300Gi"),
			g.pick("", "minvalues=type:2", "minvalues=type:3,zone:2", "minvalues=capacity:2"), g.pick("", "relax"))
	}
	g.ceiling("8")
	for i := range rapid.IntRange(0, 6).Draw(t, "nodes") {
		g.add("node n%d type=t0 zone=%s pool=p0 %s", i, g.pick("a", "b"), g.pick("", "deleting", "labels=team=red"))
		g.add("pod run%d cpu=100m node=n%d labels=app=%s %s", i, i, g.pick("w0", "w1"), g.pick("", "apart=host"))
	}
	for i := range rapid.IntRange(1, 12).Draw(t, "workloads") {
		g.add("pod w%d-0..%d cpu=%dm mem=%dMi labels=app=w%d %s %s %s", i,
			rapid.IntRange(0, 20).Draw(t, fmt.Sprint("pods", i)),
			rapid.IntRange(50, 6000).Draw(t, fmt.Sprint("request", i)),
			rapid.IntRange(64, 20000).Draw(t, fmt.Sprint("bytes", i)), i,
			g.pick("", "", "need=zone=a", "need=arch=arm64", "need=team=red", "need=capacity=on-demand",
				"volume=zone=b", "need=family=x need=zone=b"),
			g.pick("", "", "", "spread=zone:1", "apart=host", "wish=50:zone=b wish=10:capacity=on-demand",
				"wish-spread=zone:1", "wish-apart=9:zone", "wish-together=9:zone/app=w0"),
			g.pick("", "", "gpu=1", "priority=10"))
	}
	return strings.Join(g.lines, "\n")
}
