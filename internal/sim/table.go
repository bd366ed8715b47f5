package sim

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/app/joiner"
	"github.com/joiner-autoscaler/joiner/internal/apply"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// This file is about the hard limit of the whole cluster (K-53, ADR 0023): the flag of replicas, what users do to the
// table, and what must hold.

const (
	checkClusterLimit = "cluster-limit"
	clusterKey        = "cluster" // key among the limits that checks record
	verbClusterLimit  = "cluster-limit"
)

func tableVerbs() map[string]func(*World, arguments) error {
	return map[string]func(*World, arguments) error{verbClusterLimit: (*World).setClusterLimit,
		"lose-table": (*World).loseTable}
}

// clusterLimit returns the flag of a replica that starts now, 0 for none.
func (w *World) clusterLimit() (most int64) {
	for _, action := range w.script.Actions {
		if action.Verb == verbClusterLimit && action.At <= w.now {
			// errors were reported when the line was executed
			most, _ = strconv.ParseInt(arguments(action.Args).first(), 10, 64)
		}
	}
	return most
}

// setClusterLimit rolls the replicas to another flag: a new one starts, and the others end a while later.
func (w *World) setClusterLimit(a arguments) error {
	if n, err := strconv.ParseInt(a.first(), 10, 64); err != nil || n < 1 {
		return fmt.Errorf("%q is no number above 0", a.first())
	}
	if w.now == 0 {
		return nil // the first replica has it
	}
	overlap, _ := a.value("overlap")
	d, err := time.ParseDuration(overlap)
	if err != nil {
		return err
	}
	fresh := w.launchReplica()
	w.after(d, func() {
		for _, r := range slices.Clone(w.replicas) {
			if r.number < fresh.number && !fresh.dead {
				w.end(r)
			}
		}
	})
	return nil
}

// loseTable deletes the table.
func (w *World) loseTable(arguments) error {
	o := w.server.Peek(&corev1.ConfigMap{}, client.ObjectKey{Namespace: joiner.DefaultConfig().SystemNamespace,
		Name: apply.TableName})
	if o != nil {
		return w.server.Delete(o, client.ObjectKeyFromObject(o), apiserver.DeleteOptions{})
	}
	return nil
}

// noteTable records changes of the table.
func (w *World) noteTable(e apiserver.Event, object *corev1.ConfigMap) {
	if object.Name != apply.TableName || e.Type == apiserver.Deleted {
		return
	}
	table, err := limit.ParseTable(object.Data)
	if err != nil {
		w.fail(checkClusterLimit, "the table cannot be read: %v", err)
		return
	}
	if spans := w.checks.limits[clusterKey]; len(spans) == 0 || spans[len(spans)-1].limit != table.Most {
		w.checks.limits[clusterKey] = append(spans, limitSpan{w.now, table.Most})
	}
	for uid, before := range w.checks.places {
		if after := table.Places[uid]; len(after) < len(before) || !slices.Equal(after[:len(before)], before) {
			w.checks.moved[uid] = w.now
		}
	}
	w.checks.places = table.Places
}

// checkClusterLimit is K-53: no claim of Joiner brings the claims of the cluster above its limit. What counts is the
// highest limit since its maker looked. Claims that were on their way when the limit was lowered are left out, and so
// are those that others have made since.
func (w *World) checkClusterLimit(created *karpenterv1.NodeClaim) {
	if _, _, owned := translate.OwningPool(created); w.actor == nil || !owned || w.clusterLimit() == 0 {
		return
	}
	_, most := w.checks.since(clusterKey, w.looked())
	lowered, count := w.checks.lowered(clusterKey, w.looked()), int64(0)
	w.server.All(created, func(o client.Object) {
		if _, _, owned := translate.OwningPool(o.(*karpenterv1.NodeClaim)); owned && !isOther(o) {
			if !w.checks.counted.claims[o.GetUID()].over(lowered) {
				count++
			}
		} else if w.checks.counted.born[o.GetUID()] < lowered {
			count++
		}
	})
	if count > most {
		w.fail(checkClusterLimit,
			"the cluster has %d NodeClaims with %s, beside those that others made since, its hard limit is %d", count,
			created.Name, most)
	}
}

// clusterRoom returns how many more claims the cluster may have, when all is quiet.
func (w *World) clusterRoom() int64 {
	most := w.clusterLimit()
	if most == 0 {
		return math.MaxInt64
	}
	for _, r := range w.replicas { // one may keep running with an older flag if the newer one died
		most = min(most, r.clusterLimit)
	}
	if spans := w.checks.limits[clusterKey]; len(spans) > 0 { // otherwise no plan was ever carried out
		most = min(most, spans[len(spans)-1].limit)
	}
	n := int64(0)
	w.server.All(&karpenterv1.NodeClaim{}, func(client.Object) { n++ })
	return max(0, most-n)
}

// room returns how many more nodes a pool may have by its limit and the cluster's, when all is quiet.
func (w *World) room(pool *karpenterv1.NodePool) int64 {
	return min(nodeLimit(pool)-w.count(pool.Name), w.clusterRoom())
}

// table adds a hard limit of the whole cluster to some scripts. It has its own dice, so that the rest of the scripts
// does not change.
func (g *generator) table() {
	d := newDice(g.script.Seed, "table")
	if !d.chance(0.25) {
		return
	}
	g.add(0, verbClusterLimit, fmt.Sprint(1+d.n(9)))
	// Avoids a deadlock: a drain waits for a budget, the budget for a pod, and the pod for room. Limits of pools
	// cannot cause that, since there are other pools.
	for i, action := range g.script.Actions {
		if action.Verb == "workload" {
			g.script.Actions[i].Args = withoutBudget(action.Args)
		}
	}
	at := func() time.Duration { return d.between(20*time.Second, g.script.Heal-2*time.Minute) }
	for range d.n(4) {
		when, overlap := at(), d.between(0, time.Minute)
		g.add(when, verbClusterLimit, fmt.Sprint(1+d.n(9)), "overlap="+overlap.String())
		for range 3 { // both have work while they overlap
			g.add(when+d.between(0, overlap+time.Second), "scale", of(&d, g.apps...), fmt.Sprint(d.n(9)))
		}
	}
	if d.chance(0.2) {
		g.add(at(), "lose-table")
	}
	for range d.n(3) { // many pods at once, by two leaders
		when := at()
		g.add(when, "second", d.between(20*time.Second, 2*time.Minute).String())
		g.add(when+d.between(0, 20*time.Second), "scale", of(&d, g.apps...), fmt.Sprint(3+d.n(6)))
	}
}

// withoutBudget returns a workload's arguments without a PodDisruptionBudget. Its pods end at once, unless a grace
// period stands before the budget.
func withoutBudget(words []string) (rest []string) {
	for _, word := range words {
		if strings.HasPrefix(word, "pdb=") || strings.HasPrefix(word, "unavailable=") {
			word = "grace=0s"
		}
		if _, stated := arguments(rest).value("grace"); !stated || !strings.HasPrefix(word, "grace=") {
			rest = append(rest, word)
		}
	}
	return rest
}
