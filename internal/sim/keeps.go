package sim

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// This file simulates what NodePools keep independent of pods: a number of nodes (the floor), and room for future pods
// (K-54). Users set both, change and remove them, also to invalid texts. No node of the floor goes without a
// replacement. At the end floor and room are there, or a limit explains why not, and no node is kept beyond that. The
// check unplaced verifies for all scripts that no pod waits for reserved room.

const verbKeep = "keep"

// keepVerbs returns the script lines about what pools keep.
func keepVerbs() map[string]func(*World, arguments) error {
	return map[string]func(*World, arguments) error{verbKeep: (*World).keep}
}

// keep sets what a pool keeps: keep POOL min-nodes=N headroom=TEXT spot-ratio=PERCENT. none removes a setting;
// settings that are not named stay.
func (w *World) keep(a arguments) error {
	change(w, &karpenterv1.NodePool{}, client.ObjectKey{Name: a.first()}, apiserver.Main,
		func(pool *karpenterv1.NodePool) {
			for word, key := range map[string]string{"min-nodes": karpenterv1.MinNodesAnnotationKey,
				"headroom": karpenterv1.HeadroomAnnotationKey, "spot-ratio": karpenterv1.SpotRatioAnnotationKey} {
				switch text, named := a.value(word); {
				case !named:
				case text == "none":
					delete(pool.Annotations, key)
				default:
					metav1.SetMetaDataAnnotation(&pool.ObjectMeta, key, text)
				}
			}
		})
	return nil
}

// keeps adds floors and headroom to some scripts. It has its own dice, so that the rest of the scripts does not
// change.
func (g *generator) keeps() {
	d := newDice(g.script.Seed, "keeps")
	if !d.chance(0.3) {
		return
	}
	at := func() time.Duration { return d.between(time.Second, g.script.Heal-time.Second) }
	names := g.names
	if d.chance(0.2) {
		names = append(names[:len(names):len(names)], "s") // the static pool, if there is one: it has no effect there
	}
	for range 1 + d.n(4) {
		args := []string{of(&d, names...)}
		if d.chance(0.6) {
			args = append(args, "min-nodes="+of(&d, "none", "1", "1", "2", "3", "0", "many"))
		}
		if d.chance(0.6) {
			args = append(args, "headroom="+of(&d, "none", "10%", "50%", "100%", "200%", "cpu=1",
				"cpu=500m,memory=1Gi", "some"))
		}
		g.add(at(), verbKeep, args...)
	}
}

// usefulNodes counts, by pool, the nodes on which pods can run and that stay, according to a replica's caches. Nodes
// and claims are matched by machine, since the claim may not show its node's name yet.
func (r *replica) usefulNodes() map[string]int64 {
	useful, nodes := map[string]int64{}, map[string]*corev1.Node{}
	r.cache.All(&corev1.Node{}, func(o client.Object) { nodes[o.(*corev1.Node).Spec.ProviderID] = o.(*corev1.Node) })
	r.cache.All(&karpenterv1.NodeClaim{}, func(o client.Object) {
		claim := o.(*karpenterv1.NodeClaim)
		node := nodes[claim.Status.ProviderID]
		if isOther(claim) || claim.Status.ProviderID == "" || claim.DeletionTimestamp != nil || chosen(claim) ||
			node == nil || node.DeletionTimestamp != nil ||
			node.Labels[karpenterv1.NodeInitializedLabelKey] != "true" {
			return
		}
		useful[poolName(claim)]++
	})
	return useful
}

// oneForOne reports whether, according to a replica's caches, a claim goes with others for which at least as many have
// come in its pool.
func (r *replica) oneForOne(gone *karpenterv1.NodeClaim) bool {
	going, coming := 0, 0
	r.cache.All(gone, func(o client.Object) {
		claim := o.(*karpenterv1.NodeClaim)
		if replaced := translate.Replaces(claim); slices.Contains(replaced, gone.Name) &&
			claim.DeletionTimestamp == nil && !chosen(claim) && poolName(claim) == poolName(gone) {
			going, coming = len(replaced), coming+1
		}
	})
	return coming > 0 && coming >= going
}

// checkFloor is K-54: removing a node to save money leaves its pool the number of nodes that it always keeps, as far
// as the replica knew, or as many as there were.
func (w *World) checkFloor(claim *karpenterv1.NodeClaim) {
	p, name := w.actor, poolName(claim)
	now, _ := p.line.replica.cache.Peek(&karpenterv1.NodePool{}, client.ObjectKey{Name: name}).(*karpenterv1.NodePool)
	if p.pools[name] == nil || now == nil || now.UID != p.pools[name].UID {
		return
	}
	least, _, _ := translate.MinNodes(now)
	then, _, _ := translate.MinNodes(p.pools[name])
	has := max(p.useful[name], p.line.replica.usefulNodes()[name])
	if has < min(least, then) && !p.line.replica.oneForOne(claim) {
		w.fail(checkFloor,
			"claim %s is removed to save money, and leaves NodePool %s %d nodes of the %d that it always keeps",
			claim.Name, name, has, min(least, then))
	}
}

// floorOf returns how many nodes a pool always keeps.
func floorOf(pool *karpenterv1.NodePool) int64 {
	if pool == nil || isOther(pool) {
		return 0
	}
	least, _, _ := translate.MinNodes(pool)
	return least
}

// below finds a pool with fewer nodes than it always keeps, although it could have another one.
func (w *World) below() string {
	problem := ""
	w.server.All(&karpenterv1.NodePool{}, func(o client.Object) {
		pool := o.(*karpenterv1.NodePool)
		if has := w.count(pool.Name) - w.others(pool.Name); has < floorOf(pool) && w.room(pool) > 0 && problem == "" {
			problem = fmt.Sprintf("NodePool %s has %d nodes of the %d that it always keeps, and room for more",
				pool.Name, has, floorOf(pool))
		}
		if c, _ := condition.Get(pool.Status.Conditions,
			karpenterv1.ConditionTypeMinNodes); c.Status == metav1.ConditionTrue &&
			w.count(pool.Name) < floorOf(pool) && problem == "" {
			problem = fmt.Sprintf("NodePool %s says %q and has %d nodes", pool.Name, c.Message, w.count(pool.Name))
		}
	})
	return problem
}

// headroomOf returns for how many pods at most a pool keeps room, and the least that they request, in millicores.
func (w *World) headroomOf(pool *karpenterv1.NodePool) (pods, cores int64) {
	asked, _ := translate.HeadroomOf(pool)
	if asked == nil || isOther(pool) {
		return 0, 0
	}
	nodes := map[string]bool{}
	w.server.All(&karpenterv1.NodeClaim{}, func(o client.Object) {
		if claim := o.(*karpenterv1.NodeClaim); poolName(claim) == pool.Name && !isOther(claim) &&
			claim.Status.NodeName != "" {
			nodes[claim.Status.NodeName] = true
		}
	})
	// pods on another program's node with the pool's label count too
	w.server.All(&corev1.Node{}, func(o client.Object) {
		if o.GetLabels()[karpenterv1.NodePoolLabelKey] == pool.Name {
			nodes[o.GetName()] = true
		}
	})
	running, each := int64(0), int64(0)
	w.server.All(&corev1.Pod{}, func(o client.Object) {
		pod := o.(*corev1.Pod)
		if !nodes[pod.Spec.NodeName] || isDaemon(pod) || pod.DeletionTimestamp != nil || translate.Finished(pod) {
			return
		}
		running++
		cpu := pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
		if each == 0 || cpu < each {
			each = cpu
		}
	})
	if asked.Percent > 0 {
		pods = (running*int64(asked.Percent) + 99) / 100
		return pods, pods * each
	}
	cpu := asked.Amounts.Cpu().MilliValue()
	if each == 0 || each > cpu {
		each = min(cpu, 1000)
	}
	return (cpu + each - 1) / each, cpu
}

// headroomAsked returns for how many pods at most all pools keep room.
func (w *World) headroomAsked() (all int) {
	w.server.All(&karpenterv1.NodePool{}, func(o client.Object) {
		pods, _ := w.headroomOf(o.(*karpenterv1.NodePool))
		all += int(pods)
	})
	return all
}

// headroomMissing finds a pool with headroom that has no condition, that says there is room where there is none, or
// that lacks room although it could have another node.
func (w *World) headroomMissing() string {
	problem := ""
	free := w.freeCores()
	w.server.All(&karpenterv1.NodePool{}, func(o client.Object) {
		pool := o.(*karpenterv1.NodePool)
		pods, cores := w.headroomOf(pool)
		if pods == 0 || problem != "" || pool.DeletionTimestamp != nil {
			return
		}
		have := int64(0) // another program's node with the pool's label counts as room too
		w.server.All(&corev1.Node{}, func(o client.Object) {
			if o.GetLabels()[karpenterv1.NodePoolLabelKey] == pool.Name {
				have += max(0, free[o.GetName()])
			}
		})
		switch c, found := condition.Get(pool.Status.Conditions, karpenterv1.ConditionTypeHeadroom); {
		case !found:
			problem = fmt.Sprintf("NodePool %s does not say how its headroom stands", pool.Name)
		case c.Status == metav1.ConditionTrue && have < cores:
			problem = fmt.Sprintf("NodePool %s says %q, and %dm cores are free on its nodes of %dm", pool.Name,
				c.Message, have, cores)
		case c.Status == metav1.ConditionTrue:
		case c.Reason != "LimitReached":
			problem = fmt.Sprintf("NodePool %s still lacks room: %s: %s", pool.Name, c.Reason, c.Message)
		case w.room(pool) > 0:
			problem = fmt.Sprintf("NodePool %s says %s although it has %d nodes of %d", pool.Name, c.Message,
				w.count(pool.Name), nodeLimit(pool))
		}
	})
	return problem
}
