package nodescheduling

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/placing"
	"github.com/joiner-autoscaler/joiner/localcluster/placing/placingtest"
	"github.com/joiner-autoscaler/joiner/localcluster/shared"
)

const (
	// defaultNodes is the number of B-14. JOINER_PLACEMENT_NODES overrides it.
	defaultNodes = 5000
	// askedOften is how often each request is sent: the 99th percentile is the fifth slowest. With fewer nodes than
	// many it is askedSeldom: such a cluster says nothing about the bound.
	askedOften, askedSeldom, many = 500, 50, 1000
	// rounds is how often that is tried, on a machine with other work, before a bound counts as not met.
	rounds = 3
	// share is the part of the requests that must meet the bounds.
	share = 0.99
)

// bound returns the bound of B-14, in seconds: how long the API server waits for a verdict.
func bound(door placingtest.Door) float64 {
	return map[placingtest.Door]float64{placingtest.Plugin: 0.001, placingtest.Webhook: 0.005}[door]
}

// B-14, N68: what a verdict costs the API server in a cluster of 5,000 nodes, by its own histograms and by the door's.
// Each kind of request is sent again and again as a dry run, one at a time. A missed bound is printed. The test fails
// if, in a cluster of many nodes, even the mean misses it, as it did while each verdict looked at all nodes.
func TestB14_WhatAdmissionCosts(t *testing.T) {
	nodes := defaultNodes
	if text := os.Getenv("JOINER_PLACEMENT_NODES"); text != "" {
		var err error
		if nodes, err = strconv.Atoi(text); err != nil || nodes < 20 {
			t.Fatalf("JOINER_PLACEMENT_NODES is %q: want a number of at least 20", text)
		}
	}
	for _, door := range placingtest.Doors() { // one after the other: they would wait for each other's CPU
		t.Run(string(door), func(t *testing.T) {
			g, often := crowded(t, door, nodes), askedOften
			if nodes < many {
				often = askedSeldom
			}
			for _, c := range []struct{ name, want, line string }{
				{"ordinary pod", "allow", "alice create pod app/- dry-run"},
				{"pod of a zone", "allow", "alice create pod app/- select=topology.kubernetes.io/zone=b dry-run"},
				{"pod with an own toleration", "allow", "alice create pod app/- tolerate=dedicated dry-run"},
				{"tolerates everything, denied", "deny ControlPlane/Toleration",
					"alice create pod app/- tolerate=* dry-run"},
				{"daemon on a worker", "allow", "alice create pod app/- tolerate=* need=name=node-19 dry-run"},
				{"chooses the control plane, denied", "deny ControlPlane/Selector",
					"alice create pod app/- select=node-role.kubernetes.io/control-plane= dry-run"},
				{"named node, denied", "deny ControlPlane/NodeName", "alice create pod app/- node=node-0 dry-run"},
				{"binding to a worker", "allow", "system:kube-scheduler bind app/waits to=node-19 dry-run"},
				{"binding to the control plane, denied", "deny ControlPlane/Binding",
					"system:kube-scheduler bind app/waits to=node-0 dry-run"},
			} {
				g.cost(t, often, c.name, placing.Case{Want: c.want, Line: c.line})
			}
		})
	}
}

// cost sends a request many times and prints how long the verdicts took, beside the bound. The figures are from the
// first round that meets the bound, or from the last round.
func (g guarded) cost(t *testing.T, often int, name string, c placing.Case) {
	t.Helper()
	for range 10 { // the first ones open connections
		g.Expect(t, c.Want, c.Line)
	}
	limit := bound(g.Door)
	for round := 1; ; round++ {
		server, own, waits := g.measure(t, often, c)
		judged := own // the API server's histogram of plugins begins at 5 ms
		if g.Door == placingtest.Webhook {
			judged = server
		}
		met := judged.quantile(share) <= limit
		if !met && round < rounds {
			continue
		}
		t.Logf(
			"%-36s bound %s, p99 %s, met: %t (round %d: %d calls, mean %s); within the door p50 %s p99 %s; "+
				"the API server's mean %s p99 %s; the client's p50 %s p99 %s",
			name, milliseconds(limit), milliseconds(judged.quantile(share)), met, round, int(judged.count),
			milliseconds(judged.mean()), milliseconds(own.quantile(0.5)), milliseconds(own.quantile(share)),
			milliseconds(server.mean()), milliseconds(server.quantile(share)),
			milliseconds(waits[len(waits)/2]), milliseconds(waits[int(float64(len(waits))*share)]))
		if often == askedOften && judged.mean() > limit {
			t.Errorf("%s: a verdict takes %s on average, the bound is %s", name, milliseconds(judged.mean()),
				milliseconds(limit))
		}
		return
	}
}

// measure sends a request again and again. It returns what the API server and the door counted meanwhile, and the
// client's waits in seconds, sorted, the shortest first.
func (g guarded) measure(t *testing.T, often int, c placing.Case) (server, own histogram, waits []float64) {
	t.Helper()
	serverBefore, ownBefore := g.histograms(t)
	for range often {
		began := time.Now()
		g.Expect(t, c.Want, c.Line)
		waits = append(waits, time.Since(began).Seconds())
	}
	server, own = g.histograms(t)
	slices.Sort(waits)
	return server.minus(serverBefore), own.minus(ownBefore), waits
}

func milliseconds(seconds float64) string { return fmt.Sprintf("%.3g ms", seconds*1000) }

// crowded starts a cluster of many nodes, three of them protected, in three zones. The emergency override is off, as
// by default: with it, a denied binding costs a read of its pod.
func crowded(t *testing.T, door placingtest.Door, nodes int) guarded {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), shared.StartTimeout)
	defer cancel()
	started, err := placingtest.Start(ctx,
		placingtest.Options{Door: door, Policy: strings.Replace(placing.Policy, "emergencyOverride: Enable",
			"emergencyOverride: Disable", 1), Components: []cluster.Component{cluster.Etcd, cluster.APIServer}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := started.Stop(); err != nil {
			t.Error(err)
		}
	})
	g := guarded{started}
	for i := range nodes {
		name := fmt.Sprintf("node-%d", i)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname: name, corev1.LabelTopologyZone: string(rune('a' + i%3)),
			corev1.LabelArchStable: "amd64",
			corev1.LabelOSStable:   "linux", corev1.LabelInstanceTypeStable: "m5.large", "team": fmt.Sprint(i % 20),
		}}}
		if i < 3 {
			node.Labels["node-role.kubernetes.io/control-plane"] = ""
			node.Spec.Taints = []corev1.Taint{
				{Key: "node-role.kubernetes.io/master", Effect: corev1.TaintEffectNoSchedule},
			}
		}
		if _, err := g.Clients.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	g.Eventually(t, "deny ControlPlane/NodeName", "alice create pod app/- node=node-0 dry-run")
	g.Expect(t, "allow", "alice create pod app/waits")
	return g
}

// histogram is one of Prometheus: how many requests took at most so many seconds.
type histogram struct {
	upTo       map[float64]float64
	count, sum float64
}

func (h histogram) minus(before histogram) histogram {
	left := histogram{upTo: map[float64]float64{}, count: h.count - before.count, sum: h.sum - before.sum}
	for le, count := range h.upTo {
		left.upTo[le] = count - before.upTo[le]
	}
	return left
}

func (h histogram) mean() float64 {
	if h.count == 0 {
		return 0
	}
	return h.sum / h.count
}

// quantile returns the bucket's bound that a share q did not exceed. It is 0 if nothing was counted: then there was
// nothing to wait for.
func (h histogram) quantile(q float64) float64 {
	best := math.Inf(1)
	for le, count := range h.upTo {
		if h.count > 0 && count >= q*h.count {
			best = min(best, le)
		}
	}
	if h.count == 0 {
		return 0
	}
	return best
}

// histograms returns the API server's about its calls of the door, and the door's about its verdicts.
func (g guarded) histograms(t *testing.T) (server, own histogram) {
	t.Helper()
	fromServer, err := g.Kubectl(t.Context(), "", "get", "--raw", "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	fromDoor, err := g.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	name, label := "apiserver_admission_controller_admission_duration_seconds",
		`name="scheduling.openshift.io/NodeSchedulingPolicy"`
	if g.Door == placingtest.Webhook {
		name, label = "apiserver_admission_webhook_admission_duration_seconds",
			`name="nodeschedulingpolicy.scheduling.openshift.io"`
	}
	return read(t, fromServer, name, label), read(t, fromDoor, "node_scheduling_policy_verdict_duration_seconds", "")
}

// read adds up the series of a histogram that have a label.
func read(t *testing.T, metrics, name, label string) histogram {
	t.Helper()
	h := histogram{upTo: map[float64]float64{}}
	lines := bufio.NewScanner(strings.NewReader(metrics))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		series, text, _ := strings.Cut(lines.Text(), "} ")
		kind, labels, found := strings.Cut(series, "{")
		if !found || !strings.HasPrefix(kind, name) || !strings.Contains(labels, label) {
			continue
		}
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		switch kind {
		case name + "_sum":
			h.sum += value
		case name + "_count":
			h.count += value
		case name + "_bucket":
			_, le, _ := strings.Cut(labels, `le="`)
			le, _, _ = strings.Cut(le, `"`)
			limit, err := strconv.ParseFloat(le, 64)
			if err != nil {
				t.Fatalf("%s: %v", lines.Text(), err)
			}
			h.upTo[limit] += value
		}
	}
	return h
}
