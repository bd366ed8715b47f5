package provisioning

import (
	"context"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/kube/patch"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// This file has kube-scheduler keep the room of pods that keep apart, on nodes that were launched for them (B-16, ADR 0021). Else it
// fills the first nodes of a plan with pods that could go anywhere, and each pod that finds its place taken needs a further node.

// PlacesToKeep returns the pods whose place on a node of ours has to be kept when it opens: those that keep apart from their like and
// were promised this node, while other nodes of the pool are on their way (B-16). The last node of a plan needs none: whoever is left
// then has no other place.
func PlacesToKeep(s *cluster.Snapshot, claim, node string, now time.Time) (pods []types.NamespacedName) {
	at := slices.IndexFunc(s.Nodes, func(n *cluster.Node) bool { return n.Claim == claim })
	if at < 0 || !slices.ContainsFunc(s.Nodes, func(n *cluster.Node) bool {
		return n.Claim != claim && n.Pool == s.Nodes[at].Pool && onItsWay(s, n, now)
	}) {
		return nil
	}
	for _, pod := range s.Pending {
		if (pod.Promised == claim || pod.Promised == node) && pod.Node == "" && len(pod.Shape.ApartTerms()) > 0 {
			pods = append(pods, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
		}
	}
	return pods
}

// release gives back room that is kept for pods which get no place there: the plan launches another node for them, or finds none.
// Kept room that nobody comes for keeps others away.
func (c *Controller) release(ctx context.Context, s *cluster.Snapshot, p plan.Plan) {
	elsewhere := map[string]bool{}
	for _, l := range p.Launches {
		for _, pod := range l.Pods {
			elsewhere[pod.UID] = true
		}
	}
	for _, u := range p.Unplaced {
		elsewhere[u.Pod.UID] = true
	}
	var pods []types.NamespacedName
	for _, pod := range s.Pending {
		if pod.Kept != "" && elsewhere[pod.UID] {
			pods = append(pods, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
		}
	}
	if len(pods) > 0 && c.config.Release != nil {
		c.config.Release(ctx, pods)
	}
}

// Places keeps room for pods, by status.nominatedNodeName: pods of the same or a lower priority leave it free. It is a help. A pod
// whose nomination fails is bound where the scheduler likes, as all others are. All fields are required.
type Places struct {
	Client client.Client
	Now    func() time.Time
	Log    logr.Logger
}

// Keep keeps room for pods on a node. Those that wait no more, and those that kube-scheduler has nominated itself, are left alone.
func (p Places) Keep(ctx context.Context, pods []types.NamespacedName, node string) {
	for _, name := range pods {
		p.nominate(ctx, name, node, func(pod *corev1.Pod) bool {
			return (translate.Provisionable(pod) || translate.Untried(pod)) && translate.KeptOn(pod) != node
		})
	}
}

// Release keeps no room for pods any more.
func (p Places) Release(ctx context.Context, pods []types.NamespacedName) {
	for _, name := range pods {
		p.nominate(ctx, name, "", func(pod *corev1.Pod) bool { return translate.KeptOn(pod) != "" })
	}
}

func (p Places) nominate(ctx context.Context, name types.NamespacedName, node string, wanted func(*corev1.Pod) bool) {
	var pod corev1.Pod
	err := p.Client.Get(ctx, name, &pod)
	if err == nil && wanted(&pod) {
		err = p.Client.Status().Patch(ctx, pod.DeepCopy(), patch.Place(&pod, node, translate.PlaceKept(node, p.Now())))
	}
	if client.IgnoreNotFound(err) != nil {
		p.Log.V(1).Info("could not keep a pod's place", "pod", name.String(), "node", node, "reason", err.Error())
	}
}
