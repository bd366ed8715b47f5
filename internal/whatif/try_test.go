package whatif

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

// with returns a cluster's files with another version of one object. A workload's pod is added to the others.
func (g generator) with(files []Document, w *World, changed client.Object) []Document {
	g.t.Helper()
	var list []Document
	for _, d := range files {
		metadata, _ := d.Content["metadata"].(map[string]any)
		if d.Content["kind"] == "NodePool" && metadata["name"] == changed.GetName() {
			continue
		}
		list = append(list, d)
	}
	add := func(o client.Object, kind, version string) {
		data, err := json.Marshal(o)
		if err != nil {
			g.t.Fatal(err)
		}
		d := g.document("%s", data)
		d.Content["kind"], d.Content["apiVersion"], d.Stored = kind, version, true
		list = append(list, d)
	}
	pod, isPod := changed.(*corev1.Pod)
	if !isPod {
		add(changed, "NodePool", "karpenter.sh/v1")
	}
	for i := range list { // what a cluster has: pods are not made of it again
		list[i].Stored = true
	}
	for key, other := range w.known {
		switch {
		case isPod && key == pod.Namespace+"/"+pod.Name:
			add(pod, "Pod", "v1")
		default:
			add(other, "Pod", "v1")
		}
	}
	return list
}

// othersWait reports whether a pod waits in one world that has a place in another.
func othersWait(in, than *World) bool {
	waited := map[string]bool{}
	for _, u := range than.planned().Unplaced {
		waited[u.Pod.String()] = true
	}
	return slices.ContainsFunc(in.planned().Unplaced, func(u plan.Unplaced) bool { return !waited[u.Pod.String()] })
}

// TestU04_WhatIsTriedPlacesThePod: each change that --try shows gives the pod a place when it is applied to a fresh
// world, and takes none from another pod. Changes that were tried but not shown do not. The world stays the same, and
// the cheapest of equal changes is first.
func TestU04_WhatIsTriedPlacesThePod(t *testing.T) {
	t.Parallel()
	told, not := 0, 0
	for seed := range uint64(25) {
		g := newGenerator(t, seed)
		files := g.cluster()
		w := g.pictured(files)
		before := fmt.Sprint(engine.Launches(w.store.Snapshot()))
		for i, u := range w.planned().Unplaced {
			if i == 1 {
				break
			}
			e, err := w.ExplainPod(u.Pod.Namespace, u.Pod.Name, false)
			if err != nil {
				t.Fatal(err)
			}
			w.Try(&e)
			places := map[string]bool{}
			for i, try := range e.Tries {
				places[try.Object.String()+try.Change] = true
				if i > 0 && try.price() < e.Tries[i-1].price() {
					t.Errorf("seed %d: %s comes after what costs more", seed, try)
				}
			}
			if e.Tried == 0 || len(e.Tries) > triesShown {
				t.Errorf("seed %d: %d of %d tries of a pod that waits", seed, len(e.Tries), e.Tried)
			}
			for _, try := range e.tried {
				fresh := g.pictured(g.with(files, w, try.changed))
				done, err := fresh.ExplainPod(u.Pod.Namespace, u.Pod.Name, false)
				want, has := places[try.Object.String()+try.Change], err == nil && done.State != view.Held
				if has = has && !othersWait(fresh, w); has != want && (want || len(e.Tries) < triesShown) {
					t.Errorf("seed %d: %s: %s: placed %t (%v), told %t", seed, u.Pod, try.Change, has, err, want)
				}
				if want {
					told++
				} else {
					not++
				}
			}
		}
		if after := fmt.Sprint(engine.Launches(w.store.Snapshot())); after != before {
			t.Errorf("seed %d: the plan is\n%s\nafter what was tried, and was\n%s", seed, after, before)
		}
	}
	if told < 5 || not < 5 {
		t.Errorf("%d changes were told and %d not: want more of both", told, not)
	}
}
