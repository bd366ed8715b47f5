package sim

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
	"github.com/joiner-autoscaler/joiner/internal/sim/cloud"
)

// checkCauseName names the check of P-35: machines that help no pod are not launched without end.
const checkCauseName = "cause"

const (
	// causeSpan is the time for which machines count.
	causeSpan = 30 * time.Minute
	// causeSpare is how many machines may be useless in that time, in addition to two for each pod or its room: for
	// tries and faults.
	causeSpare = 8
)

// causes is the state of the check.
type causes struct {
	bought map[string]*purchase // by the node's name
	most   int                  // the most pods, and room for pods, that were ever wanted at a time
}

// purchase is a machine that was launched for pods.
type purchase struct {
	pool   string
	at     time.Duration
	joined bool // its node was initialized
	used   bool // a pod was bound to it, not counting daemons
}

// boughtFor notes a machine, and fails if too many were useless before.
func (w *World) boughtFor(m *cloud.Machine) {
	claim := w.claimOf(m.ClaimUID)
	if claim == nil || claim.Annotations[karpenterv1.LaunchedForAnnotationKey] == "" {
		return
	}
	if pool := w.poolOf(claim); pool != nil && pool.Spec.Replicas != nil {
		return // nodes of a static pool are wanted for themselves
	}
	pool, idle := claim.Labels[karpenterv1.NodePoolLabelKey], 0
	for _, p := range w.checks.causes.bought {
		if p.pool == pool && p.joined && !p.used && w.now-p.at < causeSpan {
			idle++
		}
	}
	wanted := w.roomAsked() + w.headroomAsked()
	for _, l := range w.cluster.workloads {
		wanted += l.replicas
	}
	c := &w.checks.causes
	c.most = max(c.most, wanted)
	if most := 2*c.most*(1+w.deaths) + causeSpare; idle > most {
		w.fail(checkCauseName,
			"NodePool %s gets another machine for pods, although %d of the last %s stood unused, for %d pods or room",
			pool, idle, causeSpan, c.most)
	}
	c.bought[m.Node.Name] = &purchase{pool: pool, at: w.now}
}

// claimOf returns the claim with a UID, or nil.
func (w *World) claimOf(uid string) *karpenterv1.NodeClaim {
	var found *karpenterv1.NodeClaim
	w.server.All(&karpenterv1.NodeClaim{}, func(o client.Object) {
		if string(o.GetUID()) == uid {
			found = o.(*karpenterv1.NodeClaim)
		}
	})
	return found
}

// watchCause notes initialized nodes and bound pods.
func (w *World) watchCause(e apiserver.Event) {
	switch object := e.Object.(type) {
	case *corev1.Node:
		if p := w.checks.causes.bought[object.Name]; p != nil &&
			object.Labels[karpenterv1.NodeInitializedLabelKey] == "true" {
			p.joined = true
		}
	case *corev1.Pod:
		if p := w.checks.causes.bought[object.Spec.NodeName]; p != nil && !isDaemon(object) {
			p.used = true
		}
	}
}

// daemons adds DaemonSets and admission defaults for their pods to some scripts, and to a few a user's controller that
// taints new nodes. It has its own dice, so that scripts of other seeds do not change.
func (g *generator) daemons() {
	d := newDice(g.script.Seed, "daemons")
	at := func() time.Duration { return d.between(0, g.script.Heal-time.Second) }
	if d.chance(0.3) {
		for i := range 1 + d.n(2) {
			args := []string{fmt.Sprintf("daemon%d", i)}
			args = append(args, of(&d, "cpu=100m", "cpu-limit=500m", "mem=128Mi", "mem-limit=512Mi", "injected=300m"))
			if d.chance(0.5) {
				args = append(args, "all")
			}
			if d.chance(0.4) {
				args = append(args, "need="+of(&d, "kubernetes.io/os=linux", "topology.kubernetes.io/zone=zone-a"))
			}
			if d.chance(0.3) {
				args = append(args, "port=9000")
			}
			g.add(of(&d, 0, at()), "daemons", args...)
		}
	}
	if d.chance(0.1) {
		g.add(of(&d, 0, at()), "limit-range", "defaults", of(&d, "cpu=200m", "cpu-limit=400m", "mem=256Mi"))
	}
	if d.chance(0.05) {
		g.add(at(), "spoil", "all")
	}
	if own := newDice(g.script.Seed, "bindings"); own.chance(0.05) { // so that other seeds do not change
		g.add(own.between(0, g.script.Heal-time.Second), "spoil", "bindings")
	}
}
