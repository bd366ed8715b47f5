package disruption_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/disruption"
	"github.com/joiner-autoscaler/joiner/internal/translate"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// graceOf is the grace of these tests.
const graceOf = 15 * time.Minute

func graceful(config *disruption.Config) { config.Grace = graceOf }

// starts is a new process with a grace: only the API objects are left.
func (r *rig) starts(t *testing.T) {
	t.Helper()
	r.store = world.New(world.Config{Now: r.clock.Now, Off: r.off})
	r.over(r.server, graceful)
	r.sync(t)
}

// takeover is what the first start wrote; nil for nothing.
func (r *rig) takeover(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	var object corev1.ConfigMap
	err := r.server.Get(t.Context(), types.NamespacedName{Namespace: "kube-system", Name: translate.TakeoverName},
		&object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return &object
}

func (r *rig) markedAre(t *testing.T, want int, when string) {
	t.Helper()
	if _, marked := r.claims(t); marked != want {
		t.Errorf("%s: %d nodes are marked, want %d", when, marked, want)
	}
}

// K-27: if another program made the NodeClaims and Joiner is new, nothing is chosen during the grace, and pools are
// told one cause. A restart neither restarts nor ends it. Then work goes on, and another start has no grace.
func TestK27_TheFirstStartHolds(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleet("100%", "a", "b")...)
	r.over(r.server, graceful)
	began := r.clock.Now()
	r.reconcile(t)
	r.markedAre(t, 0, "after the first start")
	end := began.Add(graceOf).UTC().Format(time.RFC3339)
	data := r.takeover(t).Data
	if data["held"] != "NodePool default, 2 nodes: 2 empty" {
		t.Errorf("held is %q", data["held"])
	}
	if data["nodeclaims"] != "2" || data["until"] != end || data["started"] != began.UTC().Format(time.RFC3339) {
		t.Errorf("written is %v", data)
	}
	why := "voluntary disruption is paused after the first start, by ConfigMap kube-system/joiner-takeover until " +
		end
	if said := strings.Join(r.tape.Said(), "\n"); !strings.Contains(said, "default DisruptionPaused: "+why) ||
		!strings.Contains(r.step.LastPaused(), why) {
		t.Errorf("said %s; paused is %s", said, r.step.LastPaused())
	}
	if left := r.step.GraceLeft(); left > graceOf || left < graceOf-time.Second {
		t.Errorf("%s are left", left)
	}
	if why, err := r.step.Paused(t.Context()); why != "" || err != nil {
		t.Errorf("repair is held: %s (%v)", why, err)
	}
	r.clock.Advance(graceOf - 10*time.Second)
	r.starts(t)
	if result := r.reconcile(t); result.RequeueAfter > 10*time.Second || result.RequeueAfter <= 0 {
		t.Errorf("the next round comes after %s, and the grace ends in ten seconds", result.RequeueAfter)
	}
	r.markedAre(t, 0, "after a restart")
	r.clock.Advance(11 * time.Second)
	r.reconcile(t)
	r.markedAre(t, 2, "after the grace")
	if left := r.step.GraceLeft(); left != 0 || r.step.LastPaused() != "" {
		t.Errorf("%s are left, paused is %q", left, r.step.LastPaused())
	}
	r.pausedGauge(t, 0)
}

// K-27: without anything to take over there is no grace: neither in an empty cluster, nor if Joiner made what exists.
// What another program makes later starts none.
func TestK27_NothingToTakeOver(t *testing.T) {
	t.Parallel()
	for name, objects := range map[string][]client.Object{"empty": fleet("100%"), "own": fleet("100%", "a")} {
		for _, o := range objects {
			if claim, is := o.(*karpenterv1.NodeClaim); is {
				claim.Annotations = map[string]string{karpenterv1.LaunchedWithAnnotationKey: "g/1"}
			}
		}
		r := newRig(t, objects...)
		r.over(r.server, graceful)
		r.reconcile(t)
		if name == "own" {
			r.markedAre(t, 1, name)
		}
		if data := r.takeover(t).Data; data["nodeclaims"] != "0" || data["until"] != data["started"] {
			t.Errorf("%s: written is %v", name, data)
		}
		late, claim := machine("late")
		r.create(t, late)
		r.create(t, claim)
		r.starts(t)
		r.reconcile(t)
		if paused := r.step.LastPaused(); paused != "" {
			t.Errorf("%s: a later start is held: %s", name, paused)
		}
	}
}

// K-27: go: "true" ends it within a round; another value does not and is reported. An unreadable end does not count.
func TestK27_WhatEndsTheGrace(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		key, value, said string
		marked           int
	}{
		"go":          {"go", "true", "", 1},
		"not go":      {"go", "false", "", 0},
		"perhaps":     {"go", "yes", `go is "yes": want true or false; it counts as false`, 0},
		"no such end": {"until", "tomorrow", `until is "tomorrow": want a time such as`, 0},
	} {
		r := newRig(t, fleet("100%", "a")...)
		r.over(r.server, graceful)
		r.reconcile(t)
		object := r.takeover(t)
		object.Data[row.key] = row.value
		if err := r.server.Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		if row.key == "until" {
			r.clock.Advance(2 * graceOf)
		}
		r.reconcile(t)
		r.markedAre(t, row.marked, name)
		if said := strings.Join(r.tape.Said(), "\n"); !strings.Contains(said, row.said) {
			t.Errorf("%s: said %s", name, said)
		}
	}
}

// K-27: trimming waits too, even for a hard limit, which a pause does not stop (D-14).
func TestK27_TrimmingWaits(t *testing.T) {
	t.Parallel()
	r := newRig(t, limitedFleet("1", "a", "b", "c")...)
	r.over(r.server, graceful)
	r.reconcile(t)
	r.markedAre(t, 0, "in the grace")
	if held := r.takeover(t).Data["held"]; held != "NodePool default, 3 nodes: 2 above its limit or its replicas" {
		t.Errorf("held is %q", held)
	}
	r.clock.Advance(graceOf)
	r.reconcile(t)
	r.markedAre(t, 2, "after it")
}

// K-27: 0 means no grace: nothing is read or written for it.
func TestK27_WithoutGrace(t *testing.T) {
	t.Parallel()
	r := newRig(t, fleet("100%", "a")...)
	r.reconcile(t)
	r.markedAre(t, 1, "without a grace")
	if r.takeover(t) != nil {
		t.Error("what the first start found is written")
	}
}
