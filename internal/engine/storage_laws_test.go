package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
)

// storageScript draws nodes with volumes and capacities of their own, and pods that want some.
func storageScript(t *rapid.T) string {
	var b strings.Builder
	number := func(most int, what string) int { return rapid.IntRange(0, most).Draw(t, what) }
	b.WriteString("type m cpu=2 mem=8Gi zones=a,b od=0.1 volumes=3\npool p nodes=4\n")
	if number(1, "a pool with local volumes") == 1 {
		b.WriteString("pool q local-volumes\n")
	}
	nodes := 1 + number(3, "nodes")
	for n := range nodes {
		more := []string{"", "", " fresh", " new"}[number(3, "stage")]
		for v := range number(2, "attached") {
			more += map[int]string{0: " attached=", 1: ","}[v] + fmt.Sprintf("v%d", number(3, "volume")+4*v)
		}
		fmt.Fprintf(&b, "node n%d type=m zone=%s pool=p%s%s\n", n, []string{"a", "b"}[n%2], more,
			[]string{"", " drivers=d"}[number(1, "driver")])
		for v := range number(3, "free volumes") {
			fmt.Fprintf(&b, "volume f%d-%d class=local size=%dGi on=host=n%d%s\n", n, v, 1+number(3, "size"), n,
				[]string{"", "", " block"}[number(2, "block")])
		}
		for c := range number(2, "capacities") {
			fmt.Fprintf(&b, "capacity c%d-%d class=fast nodes=host=n%d left=%dGi\n", n, c, n, number(9, "left"))
		}
	}
	if number(2, "zonal") == 0 {
		fmt.Fprintf(&b, "capacity zonal class=fast nodes=zone=b left=%dGi\n", number(9, "left"))
	}
	for p := range 1 + number(9, "pods") {
		fmt.Fprintf(&b, "pod w%d cpu=%d00m", p, 1+number(8, "cpu"))
		for range number(2, "claims") {
			fmt.Fprintf(&b, " %s:%dGi", []string{"make=fast", "find=local"}[number(1, "kind")], 1+number(3, "size"))
		}
		if number(2, "shares") == 0 {
			fmt.Fprintf(&b, " shares=v%d", number(7, "volume"))
		}
		if number(4, "needs a driver") == 0 {
			b.WriteString(" drivers=d")
		}
		fmt.Fprintf(&b, " volumes=%d\n", number(1, "volumes"))
	}
	return b.String()
}

// K-58, K-59. No free volume is given twice, and no more is made on a node than is left there. A shared volume counts
// once, and a node without a needed driver gets no such pod.
func TestK58_StorageIsGivenOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		script := storageScript(t)
		s := parse(t, script)
		p := engine.Provision(s)
		if broken := enginetest.Check(s, p, rapid.IntRange(0, 3).Draw(t, "choice")); broken != nil {
			t.Fatalf("%s\n----\n%s\nbreaks:\n%s", script, p, strings.Join(broken, "\n"))
		}
		for _, l := range p.Launches {
			for _, pod := range l.Pods {
				at := slices.IndexFunc(s.Pending, func(other *cluster.Pod) bool { return other.UID == pod.UID })
				for _, v := range s.Pending[at].Shape.NewVolumes {
					if !v.Made && !s.Pool(l.Pool).LocalVolumes {
						t.Fatalf("%s\n----\n%s\n%s gets a node of a pool whose nodes bring no volumes", script, p, pod)
					}
				}
			}
		}
	})
}
