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

// checkCause names the check of P-35: machines that help no pod are not bought without end.
const checkCauseName = "cause"

const (
	// causeSpan is how far back machines count.
	causeSpan = 30 * time.Minute
	// causeSpare is how many may be in vain in that time, beside two for each pod: tries, and what faults waste.
	causeSpare = 8
)

// causes is what the check remembers.
type causes struct {
	bought map[string]*purchase // by name of the node
	most   int                  // the most pods that were ever wanted at a time, since the beginning
}

// purchase is a machine that was launched for pods.
type purchase struct {
	pool   string
	at     time.Duration
	joined bool // its node was initialized
	used   bool // a pod that is no daemon was bound to it
}

// boughtFor notes a machine, and fails when too many were bought for nothing before.
func (w *World) boughtFor(m *cloud.Machine) {
	claim := w.claimOf(m.ClaimUID)
	if claim == nil || claim.Annotations[karpenterv1.LaunchedForAnnotationKey] == "" {
		return
	}
	if pool := w.poolOf(claim); pool != nil && pool.Spec.Replicas != nil {
		return // what a static pool has is wanted for itself
	}
	pool, idle := claim.Labels[karpenterv1.NodePoolLabelKey], 0
	for _, p := range w.checks.causes.bought {
		if p.pool == pool && p.joined && !p.used && w.now-p.at < causeSpan {
			idle++
		}
	}
	wanted := 0
	for _, l := range w.cluster.workloads {
		wanted += l.replicas
	}
	c := &w.checks.causes
	c.most = max(c.most, wanted)
	if most := 2*c.most*(1+w.deaths) + causeSpare; idle > most {
		w.fail(checkCauseName,
			"NodePool %s gets another machine for pods, although %d of the last %s stood unused; there are %d pods",
			pool, idle, causeSpan, c.most)
	}
	c.bought[m.Node.Name] = &purchase{pool: pool, at: w.now}
}

// claimOf returns the claim with a UID, nil when it is gone.
func (w *World) claimOf(uid string) *karpenterv1.NodeClaim {
	var found *karpenterv1.NodeClaim
	w.server.All(&karpenterv1.NodeClaim{}, func(o client.Object) {
		if string(o.GetUID()) == uid {
			found = o.(*karpenterv1.NodeClaim)
		}
	})
	return found
}

// watchCause looks at nodes that are initialized and pods that are bound.
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

// daemons adds DaemonSets, and what admission gives their pods, to some scripts, and to a few a controller of a user
// that taints new nodes. They are drawn from dice of their own: what other seeds have shown stays as it was.
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
	if own := newDice(g.script.Seed, "bindings"); own.chance(0.05) { // what other seeds have shown stays as it was
		g.add(own.between(0, g.script.Heal-time.Second), "spoil", "bindings")
	}
}
