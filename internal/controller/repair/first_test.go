package repair_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/controller/repair"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/script"
)

// pictured is a pool of five nodes, of which x is broken and has a pod that fits nowhere else.
func pictured(t *testing.T, of string) *rig {
	t.Helper()
	r := situation(t, nil, append(fine(4, "p", "fake"), machineOf("x", "p", "fake", with("Broken", time.Hour)))...)
	r.sky.picture = drawn(t, of)
	return r
}

// drawn is a picture with node x, whose claim has its name.
func drawn(t *testing.T, text string) *cluster.Snapshot {
	t.Helper()
	s, err := script.Parse("type m5.large cpu=2 mem=8Gi zones=a od=0.096\npool p\n" + text)
	if err != nil {
		t.Fatal(err)
	}
	parts := *s
	parts.Nodes = slices.Clone(s.Nodes)
	for i, node := range parts.Nodes {
		own := *node
		own.Claim = strings.TrimSuffix(own.Claim, "-claim")
		parts.Nodes[i] = &own
	}
	return cluster.New(parts)
}

const alone = "node x type=m5.large zone=a pool=p\npod a cpu=1 node=x\n"

// K-49: the replacement of an unhealthy node is launched, and the node is marked and stays until the disruption
// controller handles it. The mark has the condition, both get events, and a second look does nothing more.
func TestK49_WhatReplacesAnUnhealthyNodeComesFirst(t *testing.T) {
	t.Parallel()
	r := pictured(t, alone)
	registry := r.with(nil)
	for range 2 {
		r.reconcile(t)
		if names, _ := r.deleted(t); len(names) > 0 {
			t.Fatalf("%v deleted before anything is there", names)
		}
		if len(r.sky.launched) != 1 || !slices.Equal(r.sky.launched[0].Replaces, []string{"x"}) {
			t.Fatalf("launched %v, want one node that replaces x", r.sky.launched)
		}
	}
	var claim karpenterv1.NodeClaim
	if err := r.server.Get(t.Context(), client.ObjectKey{Name: "x"}, &claim); err != nil {
		t.Fatal(err)
	}
	mark, _ := condition.Get(claim.Status.Conditions, karpenterv1.ConditionTypeDisruptionReason)
	if mark.Reason != "Unhealthy" || mark.Message != "Broken=True" {
		t.Errorf("the mark is %+v", mark)
	}
	said := strings.Join(r.tape.Said(), "\n")
	const what = "x DisruptionLaunching: The node is to go: Unhealthy, Broken=True since 2026-01-02T02:04:05Z, once p/m5.large is there"
	if strings.Count(said, what) != 2 {
		t.Errorf("said %q, want claim and node to say what is waited for", said)
	}
	if n := counted(t, registry); n != 1 {
		t.Errorf("%v replacements were counted, want 1", n)
	}
}

// K-49: if no replacement can come first, the node goes at once, with the reason.
func TestK49_WhereNothingCanComeFirstItGoesAtOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ of, why string }{
		"not ready": {"node x type=m5.large zone=a pool=p not-ready\npod a cpu=1 node=x\n",
			"it is not ready, so nothing runs there that could wait"},
		"room elsewhere": {alone + "node y type=m5.large zone=a pool=p\n", "its pods have places elsewhere"},
		"room for nobody": {"node x type=m5.large zone=a pool=p\npod a cpu=3 node=x\n",
			"pod default/a would find no place elsewhere"},
		"unknown": {"", "it is not known"},
	} {
		r := pictured(t, c.of)
		r.reconcile(t)
		if names, ends := r.deleted(t); !slices.Equal(names, []string{"x"}) || ends != "2026-01-02T03:04:35Z" ||
			len(r.sky.launched) > 0 {
			t.Errorf("%s: deleted %v, the drain ends at %q, launched %v", name, names, ends, r.sky.launched)
		}
		if said := strings.Join(r.tape.Said(), "\n"); !strings.Contains(said, "nothing replaces it before: "+c.why) {
			t.Errorf("%s: said %q", name, said)
		}
	}
}

// K-49: a claim that could not be marked is checked again, and the failure is returned. Nothing is counted.
func TestK49_WhatCouldNotBeMarkedIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]error{"refused": nil, "failed": errors.New("no answer")} {
		r := pictured(t, alone)
		registry := r.with(nil)
		r.sky.refuses, r.sky.fails = true, fails
		if _, err := r.step.Reconcile(t.Context(), reconcile.Request{}); !errors.Is(err, fails) {
			t.Errorf("%s: %v", name, err)
		}
		if names, _ := r.deleted(t); len(names)+len(r.tape.Said()) > 0 || counted(t, registry) != 0 {
			t.Errorf("%s: deleted %v, said %q", name, names, r.tape.Said())
		}
		r.sky.refuses, r.sky.fails = false, nil
		if r.reconcile(t); len(r.sky.launched) != 1 {
			t.Errorf("%s: launched %v afterwards", name, r.sky.launched)
		}
	}
}

// K-49: the disruption controller learns when a marked node has recovered, or somebody keeps it.
func TestK49_ARecoveredNodeIsKnown(t *testing.T) {
	t.Parallel()
	keep := func(key string) func(m *machine) {
		return func(m *machine) { m.claim.Annotations = map[string]string{key: "true"} }
	}
	broken := with("Broken", time.Hour)
	for name, c := range map[string]struct {
		changes  []func(m *machine)
		own      bool
		want     string
		notThere bool
	}{
		"still broken":        {changes: []func(m *machine){broken}},
		"healthy":             {want: "it is healthy again"},
		"broken a moment ago": {changes: []func(m *machine){with("Broken", time.Second)}, want: "it is healthy again"},
		"vetoed": {changes: []func(m *machine){broken, keep(karpenterv1.DoNotRepairAnnotationKey)},
			want: "karpenter.sh/do-not-repair is set"},
		"kept": {changes: []func(m *machine){broken, keep(karpenterv1.DoNotDisruptAnnotationKey)},
			want: "karpenter.sh/do-not-disrupt is set"},
		"kept, which counts not": {changes: []func(m *machine){broken, keep(karpenterv1.DoNotDisruptAnnotationKey)},
			own: true},
		"another program's": {
			changes: []func(m *machine){func(m *machine) { m.claim.Spec.NodeClassRef.Kind = "Other" }},
		},
		"its node is gone": {
			changes: []func(m *machine){func(m *machine) { m.claim.Status.NodeName = "gone" }},
		},
		"its machine is another": {
			changes: []func(m *machine){func(m *machine) { m.node.Spec.ProviderID = "fake://y" }},
		},
		"the claim is gone, too ": {notThere: true},
	} {
		r := situation(t, nil, machineOf("x", "p", "fake", c.changes...))
		r.with(func(config *repair.Config) { config.OnlyOwnVeto = c.own })
		claim := "x"
		if c.notThere {
			claim = "gone"
		}
		why, err := r.step.Recovered(t.Context(), claim)
		if err != nil || !strings.HasPrefix(why, c.want) || (why == "") != (c.want == "") {
			t.Errorf("%s: %q, %v; want %q", name, why, err, c.want)
		}
	}
	controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
		r := situation(t, nil, machineOf("x", "p", "fake", broken))
		r.with(func(config *repair.Config) { config.Client = f.Wrap(r.server) })
		return func() error {
			_, err := r.step.Recovered(t.Context(), "x")
			return err
		}
	})
}

func counted(t *testing.T, registry *prometheus.Registry) float64 {
	return controllertest.Count(t, registry, "karpenter_voluntary_disruption_decisions_total", metrics.Replace,
		"unhealthy", "")
}
