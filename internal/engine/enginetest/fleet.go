package enginetest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// The part of a Fleet that clusters of every size have.
const (
	fleetNodes = 300
	fleetPods  = 3000
	fleetPool  = 235 // nodes of each further pool
)

// Fleet returns the script of a cluster with something of everything: nodes that come, go, stay and are not ready, a
// pool at its hard limit, one that is not ready, and pods that wait for each of these. It has at least 300 nodes and
// 3,000 pods; any more are spread over further pools of plain nodes. now is in Unix seconds.
func Fleet(nodes, pods int, now int64) string {
	var b strings.Builder
	b.WriteString("type m5.large cpu=2 mem=8Gi zones=a,b,c od=0.096 spot=0.035\n" +
		"type m5.2xlarge cpu=8 mem=32Gi zones=a,b,c od=0.384 spot=0.14\n" +
		"type p3.2xlarge cpu=8 mem=61Gi zones=a od=3.06\n" +
		"type own.large cpu=4 mem=16Gi zones=a od=1000000\n" +
		"pool default nodes=260 need=type=m5.large|m5.2xlarge\n" +
		"pool gpu hard.nodes=12 need=type=p3.2xlarge\n" +
		"pool batch limit.cpu=100 need=type=m5.2xlarge,team=red blocked=NodeClassNotReady:subnet-selector-matches-nothing\n" +
		"pool own need=type=own.large\n")
	old := now - 3*86400
	for i := range 260 {
		kind, capacity, more := "m5.large", "on-demand", ""
		if i%3 == 0 {
			kind = "m5.2xlarge"
		}
		if i%4 == 0 {
			capacity = "spot"
		}
		switch i {
		case 17, 18:
			more = " not-ready"
		case 30, 31, 32, 33:
			more = " drifted do-not-disrupt"
		case 40, 41, 42:
			more = " deleting"
		case 50:
			more = " disrupting"
		}
		fmt.Fprintf(&b, "node ip-10-0-%d-%d type=%s zone=%c pool=default capacity=%s created=%d%s\n", i/100, i%100,
			kind, "abc"[i%3], capacity, old+100*int64(i), more)
	}
	for i := range 12 {
		fmt.Fprintf(&b, "node gpu-%d type=p3.2xlarge zone=a pool=gpu capacity=on-demand created=%d\n", i, old)
	}
	for i := range 20 {
		fmt.Fprintf(&b, "node own-%d type=own.large zone=a pool=own capacity=on-demand created=%d\n", i, old)
	}
	b.WriteString("node bastion-0..2 cpu=4 mem=16Gi\nclaim default-new-0..2 type=m5.large zone=b pool=default\n" +
		"claim default-asked-0..1 type=m5.large zone=b pool=default unlaunched\n")
	for i := range fleetPods - 50 {
		fmt.Fprintf(&b, "pod app-%d ns=team-%d cpu=150m mem=256Mi node=%s\n", i, i%9, fleetHost(i))
	}
	b.WriteString(
		"pod train-0..6 ns=ml cpu=7 mem=40Gi\npod report-0..29 ns=shop cpu=1 need=team=red\npod huge ns=shop cpu=96\n" +
			"pod web-0..11 ns=shop cpu=500m\n")
	fleetMore(&b, nodes-fleetNodes, pods-fleetPods, old)
	return b.String()
}

// fleetHost is the node of the i-th pod: those that are being removed have none.
func fleetHost(i int) string {
	switch n := i % 289; {
	case n < 257:
		if n >= 40 {
			n += 3
		}
		return fmt.Sprintf("ip-10-0-%d-%d", n/100, n%100)
	case n < 269:
		return fmt.Sprintf("gpu-%d", n-257)
	default:
		return fmt.Sprintf("own-%d", n-269)
	}
}

// fleetMore adds plain nodes, a few of which stay, and their pods.
func fleetMore(b *strings.Builder, nodes, pods int, old int64) {
	if nodes <= 0 {
		return
	}
	kinds := []string{"m5.4xlarge", "c5.4xlarge", "r5.2xlarge"}
	b.WriteString("type m5.4xlarge cpu=16 mem=64Gi zones=a,b,c od=0.768 spot=0.28\n" +
		"type c5.4xlarge cpu=16 mem=32Gi zones=a,b,c od=0.68 spot=0.26\n" +
		"type r5.2xlarge cpu=8 mem=64Gi zones=a,b,c od=0.504 spot=0.2\n")
	for pool := range (nodes + fleetPool - 1) / fleetPool {
		fmt.Fprintf(b, "pool team-%02d nodes=%d need=type=%s\n", pool, fleetPool+20, strings.Join(kinds, "|"))
	}
	for i := range nodes {
		more := ""
		switch {
		case i%97 == 96:
			more = " drifted do-not-disrupt"
		case i%211 == 210:
			more = " not-ready"
		}
		// as hard to pack as names that are drawn
		name := fmt.Sprintf("team-%02d-%08x", i/fleetPool, uint32(i+1)*2654435761)
		fmt.Fprintf(b, "node %s type=%s zone=%c pool=team-%02d capacity=%s created=%d%s\n", name,
			kinds[i/3%len(kinds)],
			"abc"[i%3], i/fleetPool, []string{"on-demand", "spot"}[i/9%2], old+10*int64(i), more)
		of := pods/nodes + min(1, max(0, pods%nodes-i))
		if of > 0 {
			fmt.Fprintf(b, "pod load-%d-0..%d ns=team-%d cpu=%dm mem=1Gi node=%s\n", i, of-1, i%40, 150+50*(i%4), name)
		}
	}
}

// Churn returns the cluster some moments later, with this many running pods on another node. step tells one such
// change from another.
func Churn(s *cluster.Snapshot, step, pods int) *cluster.Snapshot {
	next := *s
	next.Version++
	next.Nodes = slices.Clone(s.Nodes)
	var hosts []int
	for i, node := range s.Nodes {
		if node.Initialized && !node.Deleting && !node.Disrupting && len(node.Pods) > 0 {
			hosts = append(hosts, i)
		}
	}
	for k := range min(pods, len(hosts)/2) {
		from := hosts[(step*7919+2*k)%len(hosts)]
		to := hosts[(step*7919+2*k+1)%len(hosts)]
		giver, taker := *next.Nodes[from], *next.Nodes[to]
		if from == to || len(giver.Pods) == 0 {
			continue
		}
		pod := *giver.Pods[0]
		pod.Node = taker.Name
		giver.Pods, giver.Used = giver.Pods[1:], giver.Used.Minus(pod.Shape.Requests)
		taker.Pods, taker.Used = append(slices.Clip(taker.Pods), &pod), taker.Used.Plus(pod.Shape.Requests)
		next.Nodes[from], next.Nodes[to] = &giver, &taker
	}
	return &next
}
