package readmodel_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/readmodel"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

const somePools = `
type m cpu=4 mem=16Gi zones=a,b od=0.2 spot=0.1
type odd cpu=4 mem=16Gi zones=a od=1000000
pool default nodes=5
pool hard    hard.nodes=1 limit.cpu=100 need=zone=a taint=only=hard:NoSchedule
pool shut    blocked=its-class-is-missing
node n1  type=m zone=a pool=default capacity=on-demand
node n2  type=m zone=b pool=default capacity=spot not-ready
node n3  cpu=4 mem=16Gi
node n4  type=m zone=a pool=default capacity=on-demand drifted do-not-disrupt
node n5  type=odd zone=a pool=default capacity=on-demand deleting
claim c1 type=m zone=a pool=hard
pod on-0..2 cpu=1 node=n1
pod lost     cpu=1 node=n2
pod web-0..3 cpu=3
pod huge     cpu=64
pod picky    cpu=3 tolerate=only=hard
`

func input(t *testing.T, script string) readmodel.Input {
	t.Helper()
	s, err := enginetest.Parse(script)
	if err != nil {
		t.Fatal(err)
	}
	terms := engine.Terms{Now: 1_000_000, Budgets: map[string][]engine.Budget{"default": {{Max: 3}}}}
	return readmodel.Input{Snapshot: s, Plan: engine.Provision(s), Terms: terms, Stays: readmodel.StaysOf(s, terms)}
}

// TestU15_TheReadModelCountsAndSaysWhatOtherFacesDo: it has the metrics' groups of pods, and package view's sentences.
func TestU15_TheReadModelCountsAndSaysWhatOtherFacesDo(t *testing.T) {
	t.Parallel()
	in := input(t, somePools)
	m, numbers := readmodel.Of(in), view.NumbersOf(in.Snapshot, in.Plan)
	got := map[view.CauseOfPool]int{}
	for _, w := range m.Waiting {
		got[view.CauseOfPool{Cause: w.Code, Pool: w.Pool}] = w.Pods
		if len(w.Examples) == 0 || w.Cause.Text == "" || w.Cause.Code != w.Code {
			t.Errorf("%+v says too little", w)
		}
	}
	if !maps.Equal(got, numbers.Waiting) || m.Totals.Waiting != len(in.Snapshot.Pending) {
		t.Errorf("waiting %v, metrics have %v", got, numbers.Waiting)
	}
	states := map[view.NodeState]int{}
	for which, nodes := range numbers.Nodes {
		if nodes > 0 {
			states[which.State] += nodes
		}
	}
	if !maps.Equal(m.Totals.States, states) || m.Totals.Running != 4 || m.Totals.Nodes != 6 {
		t.Errorf("%+v, metrics have %v", m.Totals, states)
	}
	for _, u := range in.Plan.Unplaced {
		if u.Pod.Name != "huge" {
			continue
		}
		want := view.Waits(u).Cause
		at := slices.IndexFunc(m.Waiting, func(w readmodel.Waiting) bool { return w.Code == want.Code })
		if at < 0 || m.Waiting[at].Cause.Text != want.Text {
			t.Errorf("%s: %q is not said: %+v", want.Code, want.Text, m.Waiting)
		}
	}
}

// TestU21_APriceThatIsNotKnownIsNoNumber: it is null, counted, and in no sum.
func TestU21_APriceThatIsNotKnownIsNoNumber(t *testing.T) {
	t.Parallel()
	m := readmodel.Of(input(t, somePools))
	prices := map[string]string{}
	for _, n := range m.Nodes {
		data, err := json.Marshal(n.PricePerHour)
		if err != nil {
			t.Fatal(err)
		}
		prices[n.ID] = string(data)
	}
	want := map[string]string{"n1": "0.2", "n2": "0.1", "n3": "null", "n4": "0.2", "n5": "null", "c1": "0.2"}
	if !maps.Equal(prices, want) {
		t.Errorf("%v, want %v", prices, want)
	}
	if m.Totals.Unpriced != 1 || m.Totals.PricePerHour != 0.7 {
		t.Errorf("%+v", m.Totals)
	}
}

// TestU41_WhatNeedsAttentionComesMostUrgentFirst: pods that are held, pools that may launch nothing, nodes that are
// not Ready, nodes that are kept.
func TestU41_WhatNeedsAttentionComesMostUrgentFirst(t *testing.T) {
	t.Parallel()
	var lines []string
	for _, a := range readmodel.Of(input(t, somePools)).Attention {
		lines = append(lines, fmt.Sprintf("%d %s %s %s", a.Count, a.What, a.Code, a.Pool))
	}
	want := "1 pods PoolNotReady shut\n1 nodes NodeNotReady default\n" +
		"1 nodes DoNotDisruptNode default"
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	alone := readmodel.Of(input(t, "pool shut blocked=its-class-is-missing\n")).Attention
	if len(alone) != 1 || alone[0].What != "pool" || alone[0].Code != "PoolNotReady" {
		t.Errorf("%+v", alone)
	}
	quiet := readmodel.Of(input(t, "pool default\n"))
	if len(quiet.Attention) != 0 || len(quiet.Nodes) != 0 || quiet.Totals.Nodes != 0 {
		t.Errorf("%+v", quiet)
	}
}

// TestU41_DetailsSayWhatExplainSays of a pod, a node and a pool, and nothing of what is not there.
func TestU41_DetailsSayWhatExplainSays(t *testing.T) {
	t.Parallel()
	in := input(t, somePools)
	pod, there := readmodel.PodOf(in, "default", "huge")
	if !there || pod.Explanation.Also[0].Code != cause.PodTooLarge || len(pod.Explanation.Pools) != 3 ||
		pod.Requests[0] != (readmodel.Amount{Resource: "cpu", Amount: "64"}) {
		t.Errorf("%+v", pod)
	}
	if runs, there := readmodel.PodOf(in, "default", "on-1"); !there || runs.Node != "n1" ||
		runs.Explanation.State != view.Settled {
		t.Errorf("%+v", runs)
	}
	node, there := readmodel.NodeOf(in, "n4", 0)
	if !there || node.Explanation.Cause.Code != cause.DoNotDisruptNode || node.Stays.Wanted != "Drifted" {
		t.Errorf("%+v", node)
	}
	if on, _ := readmodel.NodeOf(in, "n1", 2); on.On.Total != 3 || len(on.On.Pods) != 1 ||
		on.On.Pods[0].Name != "on-2" {
		t.Errorf("%+v", on.On)
	}
	pool, there := readmodel.PoolOf(in, "shut")
	if !there || pool.Explanation.Cause.Code != cause.PoolNotReady ||
		!strings.Contains(pool.Explanation.Cause.Text, "its-class-is-missing") {
		t.Errorf("%+v", pool)
	}
	if full, _ := readmodel.PoolOf(in, "default"); full.Budgets[0].Allowed != 3 || full.Nodes != 4 ||
		full.Leaving != 1 {
		t.Errorf("%+v", full)
	}
	_, pods := readmodel.PodOf(in, "default", "no")
	_, nodes := readmodel.NodeOf(in, "no", 0)
	if _, pools := readmodel.PoolOf(in, "no"); pods || nodes || pools {
		t.Error("what is not there is found")
	}
}

// TestU41_WaitingPodsComeInPages, and as far as is asked for.
func TestU41_WaitingPodsComeInPages(t *testing.T) {
	t.Parallel()
	in := input(t, "type m cpu=4 zones=a od=0.2\npool p\npod big-0..1201 cpu=64\npod web cpu=1\n")
	seen, from := map[string]bool{}, 0
	for range 4 {
		list := readmodel.WaitingPods(in, "PodTooLarge", "p", "", "", from)
		for _, pod := range list.Pods {
			seen[pod.Name] = true
		}
		if from = list.Next; list.Total != 1202 || len(list.Pods) > readmodel.Page {
			t.Fatalf("%d of %d", len(list.Pods), list.Total)
		}
		if from == 0 {
			break
		}
	}
	if len(seen) != 1202 || seen["web"] {
		t.Errorf("%d pods", len(seen))
	}
	if list := readmodel.WaitingPods(in, "", "", "default", "/web", 0); list.Total != 1 || list.Pods[0].Name != "web" {
		t.Errorf("%+v", list)
	}
	if list := readmodel.WaitingPods(in, "", "", "other", "", 7); list.Total != 0 || list.Pods == nil {
		t.Errorf("%+v", list)
	}
}
