package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// mixed returns a workload of 500 pods: sizes, node selectors, zone spread and hostname anti-affinity.
func mixed() (manifests string, pods int) {
	spread := func(app string) string {
		return "topologySpreadConstraints:\n- {topologyKey: topology.kubernetes.io/zone, maxSkew: 1, " +
			"whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: " +
			app + "}}}"
	}
	apart := func(app string) string {
		return "affinity:\n  podAntiAffinity:\n    requiredDuringSchedulingIgnoredDuringExecution:\n" +
			"    - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: " +
			app + "}}}"
	}
	for _, d := range []struct {
		name     string
		replicas int
		requests string
		spec     string
	}{
		{"small", 120, "{cpu: 250m, memory: 256Mi}", ""},
		{"medium", 80, "{cpu: '1', memory: 2Gi}", ""},
		{"large", 30, "{cpu: '4', memory: 8Gi}", ""},
		{"memory", 40, "{cpu: 500m, memory: 6Gi}", ""},
		{"spread", 90, "{cpu: 500m, memory: 1Gi}", spread("spread")},
		{"apart", 20, "{cpu: 200m, memory: 512Mi}", apart("apart")},
		{"zonal", 60, "{cpu: 750m, memory: 1Gi}", "nodeSelector: {topology.kubernetes.io/zone: test-zone-b}"},
		{"steady", 60, "{cpu: 500m, memory: 512Mi}", "nodeSelector: {karpenter.sh/capacity-type: on-demand}"},
	} {
		manifests += deployment(d.name, d.replicas, d.requests, d.spec)
		pods += d.replicas
	}
	return manifests, pods
}

// P-01 to P-04, P-23 to P-25, P-30, P-40, D-01: five hundred mixed pods from pending to running, and back to nothing.
// The real scheduler is the judge of every placement; the figures are printed.
func TestFiveHundredMixedPods(t *testing.T) {
	r := newRig(t, func(o *rig.Options) { o.Audit = true })
	// Empty nodes go, but none is replaced: this is about launching.
	r.apply(kwokPool("default", amd64Linux, quick+"\n  consolidationPolicy: WhenEmpty"))
	manifests, pods := mixed()
	if pods != 500 {
		t.Fatalf("the workload has %d pods", pods)
	}
	start := time.Now()
	r.apply(manifests)
	r.allRunning(pods, later)
	up := time.Since(start)
	r.checkMixed()
	r.oneNodePerClaim()
	claims, err := r.claims(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	nodes, price := len(claims), r.price()
	requestsUp, err := r.Requests()
	if err != nil {
		t.Fatal(err)
	}

	start = time.Now()
	r.run("scale", "deployment", "--all", "--replicas=0")
	r.nothingLeft(later)
	down := time.Since(start)
	requestsAll, err := r.Requests()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf(
		"500 mixed pods: all Running after %.1f s on %d nodes, $%.3f/h; all nodes gone %.1f s after the scale to zero",
		up.Seconds(), nodes, price, down.Seconds())
	t.Logf("Joiner's API requests, watches aside: %d up (%.1f a node), %d in all\n%s", changes(requestsUp),
		float64(changes(requestsUp))/float64(nodes), changes(requestsAll), table(requestsAll))
}

// checkMixed checks where the pods of mixed run.
func (r *testRig) checkMixed() {
	r.t.Helper()
	nodes, err := r.nodes(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	in := func(app string) []corev1.Node {
		pods, err := r.pods(r.t.Context(), client.MatchingLabels{"app": app})
		if err != nil {
			r.t.Fatal(err)
		}
		var list []corev1.Node
		for _, pod := range pods {
			list = append(list, nodes[pod.Spec.NodeName])
		}
		return list
	}
	for _, node := range in("zonal") {
		if zone := node.Labels[corev1.LabelTopologyZone]; zone != "test-zone-b" {
			r.t.Errorf("a zonal pod stands in %s", zone)
		}
	}
	for _, node := range in("steady") {
		if kind := node.Labels["karpenter.sh/capacity-type"]; kind != "on-demand" {
			r.t.Errorf("a steady pod stands on %s capacity", kind)
		}
	}
	hosts, zones := map[string]int{}, map[string]int{}
	for _, node := range in("apart") {
		if hosts[node.Name]++; hosts[node.Name] > 1 {
			r.t.Errorf("two apart pods share %s", node.Name)
		}
	}
	for _, node := range in("spread") {
		zones[node.Labels[corev1.LabelTopologyZone]]++
	}
	low, high := 1<<30, 0
	for _, n := range zones {
		low, high = min(low, n), max(high, n)
	}
	if high-low > 1 || len(zones) != 4 {
		r.t.Errorf("90 spread pods stand %v over zones; want four zones, at most one apart", zones)
	}
}

// changes counts requests that are not watches or health checks.
func changes(requests cluster.Requests) int {
	return requests.Total(func(k cluster.RequestKind) bool { return k.Verb != "watch" && k.Resource != "" })
}

func table(requests cluster.Requests) string {
	sums := map[string]int{}
	for kind, n := range requests {
		sums[fmt.Sprintf("%-7s %s", kind.Verb, kind.Resource)] += n
	}
	var lines []string
	for what, n := range sums {
		lines = append(lines, fmt.Sprintf("%6d  %s", n, what))
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(b, a) })
	return strings.Join(lines, "\n")
}
