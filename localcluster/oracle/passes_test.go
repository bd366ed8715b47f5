package oracle_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-autoscaler/joiner/localcluster/oracle"
)

// largePlan spreads 600 pods over three zones, four to a node. The stated order takes two pods of one zone after each
// other, so half of them must wait for a later pass. moved of the pods are in zone a instead of b.
func largePlan(moved int) (oracle.Cluster, oracle.Plan) {
	var before oracle.Cluster
	p := oracle.Plan{Placed: map[types.NamespacedName]string{}}
	for i := range 200 {
		for _, zone := range []string{"a", "b", "c"} {
			home := zone
			if zone == "b" && i < moved {
				home = "a"
			}
			node := fmt.Sprintf("%s%d", zone, i/4)
			if i%4 == 0 {
				p.Launched = append(p.Launched, testNode(node, home))
			}
			pod := testPod(fmt.Sprintf("web-%03d-%s", i, zone), spread)
			before.Pods = append(before.Pods, pod)
			name := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
			p.Placed[name], p.Order = node, append(p.Order, name)
		}
	}
	for i := 0; i+5 < len(p.Order); i += 6 { // a b c a b c: a a b b c c
		o := p.Order[i : i+6]
		copy(o, []types.NamespacedName{o[0], o[3], o[1], o[4], o[2], o[5]})
	}
	return before, p
}

// P-21: plans with too many pods for a search of orders are bound in passes: all pods of a right plan, and none of
// those that make a zone fuller than maxSkew allows.
func TestLargePlansAreBoundInPasses(t *testing.T) {
	t.Parallel()
	o := newOracle(t)
	for _, moved := range []int{0, 4} {
		before, p := largePlan(moved)
		violations, err := o.Check(t.Context(), before, p)
		if err != nil {
			t.Fatal(err)
		}
		// Then zone b has 196 of its 200 pods, and a and c may have one more each: 7 of a and 3 of c are left.
		if want := map[int]int{0: 0, 4: 10}[moved]; len(violations) != want {
			t.Errorf("%d pods moved: %d violations; want %d", moved, len(violations), want)
		}
	}
	before, p := largePlan(0)
	before.Pods[0].Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "b"}
	if violations, err := o.Check(t.Context(), before, p); err != nil || len(violations) == 0 {
		t.Errorf("a pod in the wrong zone: %v, %v; want a violation", violations, err)
	}
}
