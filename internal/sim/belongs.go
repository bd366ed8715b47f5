package sim

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
)

// This file tells the checks to which pool a claim belongs, and lets users change the labels that say so (L-13).

// poolName returns the pool of a claim: the pool for which it was made. A changed label does not matter, since it is
// put back. For claims made by hand and claims of another program the label counts.
func poolName(claim client.Object) string {
	for _, owner := range claim.GetOwnerReferences() {
		if owner.Kind == "NodePool" && !isOther(claim) {
			return owner.Name
		}
	}
	return claim.GetLabels()[karpenterv1.NodePoolLabelKey]
}

// belongVerbs returns the script lines of this file.
func belongVerbs() map[string]func(*World, arguments) error {
	return map[string]func(*World, arguments) error{"relabel-node": (*World).relabelNode}
}

// relabelNode gives the Kth node the label of another pool, as a user may. It skips nodes whose claim was made by
// hand.
func (w *World) relabelNode(a arguments) error {
	owned := func(o client.Object) bool {
		for _, owner := range o.GetOwnerReferences() {
			claim := w.server.Peek(&karpenterv1.NodeClaim{}, client.ObjectKey{Name: owner.Name})
			if claim != nil && len(claim.GetOwnerReferences()) > 0 && !isOther(o) {
				return true
			}
		}
		return false
	}
	found := w.choose(&corev1.Node{}, a.first(), owned)
	if found == nil {
		return nil
	}
	change(w, &corev1.Node{}, client.ObjectKeyFromObject(found), apiserver.Main, func(n *corev1.Node) {
		n.Labels[karpenterv1.NodePoolLabelKey] = a[1]
	})
	return nil
}

// belongs makes some scripts change labels while a limit is lowered. It has its own dice, so that scripts of other
// seeds do not change.
func (g *generator) belongs() {
	d := newDice(g.script.Seed, "belongs")
	if !d.chance(0.15) {
		return
	}
	pools := append([]string{"elsewhere"}, g.names...)
	for range 1 + d.n(2) {
		at := d.between(20*time.Second, g.script.Heal-20*time.Second)
		if d.chance(0.7) {
			g.add(at, "limit", of(&d, g.names...), of(&d, "hard=", "soft=")+of(&d, "1", "2", "3"))
		}
		for range 1 + d.n(3) {
			when, verb := at+d.between(0, 5*time.Second), of(&d, "relabel", "relabel", "relabel-node")
			g.add(when, verb, fmt.Sprint(d.n(9)), of(&d, pools...))
		}
	}
}

// mislabelled finds a claim whose label names another pool than the one for which it was made, and a node whose label
// differs from its claim's.
func (w *World) mislabelled() string {
	problem := ""
	w.server.All(&karpenterv1.NodeClaim{}, func(o client.Object) {
		claim := o.(*karpenterv1.NodeClaim)
		if isOther(claim) || claim.Status.NodeName == "" || len(claim.OwnerReferences) == 0 {
			return
		}
		if label := claim.Labels[karpenterv1.NodePoolLabelKey]; label != poolName(claim) {
			problem = fmt.Sprintf("claim %s says NodePool %q, and was made for %q", claim.Name, label, poolName(claim))
		}
		node := w.server.Peek(&corev1.Node{}, client.ObjectKey{Name: claim.Status.NodeName})
		if node != nil && node.GetLabels()[karpenterv1.NodePoolLabelKey] != poolName(claim) {
			problem = fmt.Sprintf("node %s of claim %s says NodePool %q, and that was made for %q", node.GetName(),
				claim.Name, node.GetLabels()[karpenterv1.NodePoolLabelKey], poolName(claim))
		}
	})
	return problem
}
