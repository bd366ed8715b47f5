package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/cli"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

// atRest is how long nothing changes in a cluster that has come to rest: longer than the quiet time of its pools, and
// than a fruitless round of consolidation.
const atRest = 20 * time.Second

// state is what we compare to judge a change.
type state struct {
	nodes   map[string]int // by pool
	waiting map[string]int // pods without a node, by Deployment
	price   float64        // dollars per hour
	names   []string       // of NodeClaims, which are those of their nodes
}

func (s state) String() string {
	return fmt.Sprintf("nodes %v, waiting %v, $%.4f/h", s.nodes, s.waiting, s.price)
}

// state returns the cluster's state; calm reports that nothing is on its way.
func (r *testRig) state(ctx context.Context) (s state, calm bool, err error) {
	s, calm = state{nodes: map[string]int{}, waiting: map[string]int{}}, true
	claims, err := r.claims(ctx)
	if err != nil {
		return s, false, err
	}
	for _, c := range claims {
		initialized, _, _ := conditionOf(c.Status.Conditions, karpenterv1.ConditionTypeInitialized)
		going, _, _ := conditionOf(c.Status.Conditions, karpenterv1.ConditionTypeDisruptionReason)
		calm = calm && c.DeletionTimestamp == nil && initialized == "True" && going != "True"
		s.nodes[c.Labels["karpenter.sh/nodepool"]]++
		s.names = append(s.names, c.Name)
	}
	slices.Sort(s.names)
	nodes, err := r.nodes(ctx)
	if err != nil {
		return s, false, err
	}
	for _, node := range nodes {
		price, _ := strconv.ParseFloat(node.Labels["eks-node-viewer/instance-price"], 64)
		s.price += price
	}
	pods, err := r.pods(ctx)
	for _, pod := range pods {
		calm = calm && pod.DeletionTimestamp == nil
		if pod.Spec.NodeName == "" {
			s.waiting[pod.Labels["app"]]++
		}
	}
	if err != nil {
		return s, false, err
	}
	var workloads appsv1.DeploymentList
	err = r.Client.List(ctx, &workloads)
	for _, w := range workloads.Items { // a busy controller makes pods late
		calm = calm && w.Status.ObservedGeneration == w.Generation && w.Status.Replicas == *w.Spec.Replicas
	}
	return s, calm && len(nodes) == len(claims), err
}

// rests waits until the cluster has been the same for a while, and returns its state.
func (r *testRig) rests() state {
	r.t.Helper()
	var last state
	since := time.Now() // a cluster without anything looks like the zero state
	r.eventually(later, "the cluster to rest", func(ctx context.Context) (bool, string, error) {
		now, calm, err := r.state(ctx)
		if !calm || fmt.Sprint(now, now.names) != fmt.Sprint(last, last.names) {
			since = time.Now()
		}
		last = now
		return time.Since(since) >= atRest, fmt.Sprint(now, ", calm: ", calm), err
	})
	return last
}

// foretold returns what joinerctl simulate says about a change.
func (r *testRig) foretold(args ...string) whatif.Comparison {
	r.t.Helper()
	code, out, failures := r.ask(append([]string{"simulate", "--exit-zero", "-o", "json"}, args...)...)
	var said whatif.Comparison
	if err := json.Unmarshal([]byte(out), &said); code != cli.CodeFine || err != nil || said.Quiet == nil {
		r.t.Fatalf("simulate %v: exit %d, %v, %s\n%s", args, code, err, failures, out)
	}
	return said
}

// quietly returns the final state of a comparison, without names.
func quietly(said whatif.Comparison) state {
	s := state{nodes: map[string]int{}, waiting: map[string]int{}, price: resources.Money(*said.Price.Quiet).Dollars()}
	for _, pool := range said.Quiet.Pools {
		if pool.Nodes > 0 {
			s.nodes[pool.Pool] = pool.Nodes
		}
	}
	for _, pod := range said.Pods {
		if _, name, _ := strings.Cut(pod.Workload, "/"); pod.Waiting > 0 {
			s.waiting[name] = pod.Waiting
		}
	}
	return s
}

// goers returns the nodes that go or are replaced, except empty and underutilized ones: those do not depend on luck.
// drifted is how many of them drifted.
func goers(said whatif.Comparison) (names []string, drifted int) {
	for _, node := range said.Nodes {
		if node.Fate != whatif.Goes && node.Fate != whatif.Replaced || node.Reason == "Underutilized" ||
			node.Reason == "Empty" {
			continue
		}
		names = append(names, node.Name)
		if node.Reason == "Drifted" {
			drifted++
		}
	}
	slices.Sort(names)
	return names, drifted
}

// tried is a change: the arguments of simulate for it, and how to make it.
type tried struct {
	name string
	args func() []string
	do   func()
	// goes is how many nodes go or are replaced. As many must be foretold: a case that moves nothing shows nothing.
	goes int
}

// foretoldChangesEnv names the variable with how many of the ten changes are made. The first four are the short form:
// a workload, a limit, one more pool and requirements. For two of them nodes go.
const foretoldChangesEnv = "JOINER_FORETOLD_CHANGES"

// U-03: what simulate foretells of ten changes then happens on a real control plane: how many nodes each pool has,
// which pods wait, the price within a hundredth, and which nodes drift, are trimmed or are removed.
func TestU03_WhatIsForetoldHappens(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	pool := func(name, template, spec string) string { return kwokPool(name, amd64Linux+template, spec) }
	const web = "\n- {key: team, operator: In, values: [web]}"
	const spot, batch = web + "\n- {key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}",
		"\n- {key: team, operator: In, values: [batch]}"
	r.apply("apiVersion: karpenter.kwok.sh/v1alpha1\nkind: KWOKNodeClass\nmetadata: {name: second}\n---" +
		pool("default", spot, quiet) + "\n---" + pool("batch", batch, quiet+"\nhardLimits: {nodes: 3}"))
	r.apply(deployment("web", 4, "{cpu: '1'}", oneEach("web")+"\nnodeSelector: {team: web}") +
		deployment("filler", 6, "{cpu: 500m}", "nodeSelector: {team: web}") +
		deployment("train", 3, "{cpu: '2'}", oneEach("train")+"\nnodeSelector: {team: batch}") +
		deployment("ml", 2, "{cpu: '1'}", oneEach("ml")+"\nnodeSelector: {team: ml}"))
	before := r.rests()
	if before.nodes["default"] < 4 || before.nodes["batch"] != 3 || before.waiting["ml"] != 2 {
		t.Fatalf("the beginning is %s", before)
	}
	file := func(name, manifest string) (args func() []string, apply func()) {
		path := filepath.Join(t.TempDir(), name+".yaml")
		if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
			t.Fatal(err)
		}
		return func() []string { return []string{"--change", path} }, func() { r.apply(manifest) }
	}
	changed := func(name string, goes int, manifest string) tried {
		args, apply := file(strings.ReplaceAll(name, " ", "-"), manifest)
		return tried{name, args, apply, goes}
	}
	flags := func(name string, goes int, given []string, command ...string) tried {
		return tried{name, func() []string { return given }, func() { r.run(command...) }, goes}
	}
	const onDemand = web + "\n- {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}"
	labelled := strings.Replace(pool("default", onDemand,
		"disruption:\n  consolidateAfter: 5s\n  budgets: [{nodes: \"0\"}]"),
		"template:\n", "template:\n    metadata: {labels: {generation: two}}\n", 1)
	opened := strings.Replace(labelled, `"0"`, `"100%"`, 1)
	var one string
	changes := []tried{
		flags("a workload scaled", 0, []string{"--scale", "default/web=6"}, "scale", "deployment", "web",
			"--replicas=6"),
		changed("a hard limit lowered", 1, pool("batch", batch, quiet+"\nhardLimits: {nodes: 2}")),
		changed("a pool added", 0, pool("ml", "\n- {key: team, operator: In, values: [ml]}", quiet)),
		changed("requirements narrowed", 6, pool("default", onDemand, quiet)),
		changed("a template changed while its budget is zero", 0, labelled),
		changed("a budget opened", 6, opened),
		{"a node removed", func() []string { one = r.first("ml"); return []string{"--remove-node", one} },
			func() { r.run("delete", "nodeclaim", one, "--wait=false") }, 1},
		flags("a workload deleted", 0, []string{"--delete", "Deployment/default/filler"}, "delete", "deployment",
			"filler"),
		changed("the class of a pool changed", 2, strings.ReplaceAll(pool("ml",
			"\n- {key: team, operator: In, values: [ml]}", quiet), "name: default}", "name: second}")),
		flags("a pool deleted", 2, []string{"--delete", "NodePool/batch"}, "delete", "nodepool", "batch",
			"--wait=false"),
	}
	for i, c := range changes[:min(fromEnv(t, foretoldChangesEnv, 4), len(changes))] {
		said := r.foretold(c.args()...)
		names, drifted := goers(said)
		c.do()
		after := r.rests()
		want := quietly(said)
		gone := without(before.names, after.names)
		t.Logf("%d. %s\n  foretold %s, go %d (%d drift)\n  happened %s, went %d of %d", i+1, c.name, want, len(names),
			drifted, after, len(gone), len(before.names))
		if !maps.Equal(want.nodes, after.nodes) || !maps.Equal(want.waiting, after.waiting) ||
			math.Abs(want.price-after.price) > after.price/100 {
			t.Errorf("%s: foretold %s, happened %s", c.name, want, after)
		}
		if missing := without(names, gone); len(names) != c.goes || len(missing) > 0 {
			t.Errorf("%s: foretold that %v go, want %d; %v are still there", c.name, names, c.goes, missing)
		}
		before = after
	}
}

// without returns what list has and others does not have.
func without(list, others []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(name string) bool { return slices.Contains(others, name) })
}

// first returns the first node of a pool, by name.
func (r *testRig) first(pool string) string {
	r.t.Helper()
	claims, err := r.claims(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	var names []string
	for _, c := range claims {
		if c.Labels["karpenter.sh/nodepool"] == pool {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		r.t.Fatalf("pool %s has no node", pool)
	}
	slices.Sort(names)
	return names[0]
}
