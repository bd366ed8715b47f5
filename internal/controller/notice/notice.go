// Package notice tells users about annotations without the hoped-for effect: those that v1 dropped (V-15), and a
// do-not-disrupt, do-not-repair or disruption-cost with an invalid value. It also reports fields of a pod that
// planning ignores (U-42). It changes and stores nothing. While the process lives, an event is not repeated.
package notice

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// Pods checks the annotations of one pod at a time.
type Pods struct {
	Client client.Client
	Events event.Recorder
	Now    func() time.Time
}

// Reconcile checks the pod of that name.
func (p *Pods) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var pod corev1.Pod
	if err := p.Client.Get(ctx, request.NamespacedName, &pod); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if _, found := pod.Annotations[karpenterv1.DroppedDoNotEvictAnnotationKey]; found {
		p.Events.Event(&pod, event.Warning, event.DroppedAnnotation,
			"The annotation "+karpenterv1.DroppedDoNotEvictAnnotationKey+" does nothing any more: use "+
				karpenterv1.DoNotDisruptAnnotationKey+`: "true"`)
	}
	if _, err := translate.ProtectedUntil(&pod); err != nil {
		p.Events.Event(&pod, event.Warning, event.InvalidDoNotDisrupt, err.Error())
	}
	if err := translate.CostFault(&pod); err != nil {
		p.Events.Event(&pod, event.Warning, event.IgnoredField, err.Error())
	}
	if err := ignored(&pod); err != nil {
		p.Events.Event(&pod, event.Warning, event.IgnoredField,
			"It counts for nothing, and the rest of the pod is planned for: "+
				strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return reconcile.Result{RequeueAfter: p.protection(&pod)}, nil
}

// protection reports until when a pod's do-not-disrupt protects its node, and later that the protection is over
// (K-14). It returns when to check again, 0 for never.
func (p *Pods) protection(pod *corev1.Pod) time.Duration {
	until, err := translate.ProtectedUntil(pod)
	if err != nil || until == 0 || until == cluster.Never || pod.Spec.NodeName == "" || translate.Finished(pod) {
		return 0
	}
	end := time.Unix(until, 0).UTC()
	text := "The annotation " + karpenterv1.DoNotDisruptAnnotationKey +
		" keeps voluntary disruption away from its node until " + end.Format(time.RFC3339)
	if left := end.Sub(p.Now()); left > 0 {
		p.Events.Event(pod, event.Normal, event.DoNotDisruptUntil, text)
		return left
	}
	p.Events.Event(pod, event.Normal, event.DoNotDisruptElapsed,
		"The annotation "+karpenterv1.DoNotDisruptAnnotationKey+" kept voluntary disruption away from its node until "+
			end.Format(time.RFC3339)+", and does so no more")
	return 0
}

// ignored returns what planning ignores of a pod without a node.
func ignored(pod *corev1.Pod) error {
	if pod.Spec.NodeName != "" {
		return nil
	}
	return translate.Ignored(pod)
}

// Concerns reports whether an object's annotations, or a pod's requests, may need an event. It is a filter for
// watches.
func Concerns(object client.Object) bool {
	annotations := object.GetAnnotations()
	if pod, isPod := object.(*corev1.Pod); isPod {
		if translate.CostFault(pod) != nil || ignored(pod) != nil {
			return true
		}
	} else if len(translate.NodeSwitchFaults(annotations)) > 0 {
		return true
	}
	_, evict := annotations[karpenterv1.DroppedDoNotEvictAnnotationKey]
	_, consolidate := annotations[karpenterv1.DroppedDoNotConsolidateAnnotationKey]
	value, disrupt := annotations[karpenterv1.DoNotDisruptAnnotationKey]
	return evict || consolidate || disrupt && value != "true"
}

// indexClaimProviderID is the cache's index field for finding the claim of a machine.
const indexClaimProviderID = "status.providerID"

// Owners says which nodes are ours; see package fleet.
type Owners interface {
	OwnsNode(node *corev1.Node, claim *karpenterv1.NodeClaim, pool *karpenterv1.NodePool) bool
}

// Nodes checks the annotations of one of our nodes at a time.
type Nodes struct {
	Client client.Client // reads from a cache with the index field above
	Fleet  Owners
	Events event.Recorder
}

// Reconcile checks the node of that name.
func (n *Nodes) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var node corev1.Node
	if err := n.Client.Get(ctx, request.NamespacedName, &node); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var claims karpenterv1.NodeClaimList
	if err := n.Client.List(ctx, &claims,
		client.MatchingFields{indexClaimProviderID: node.Spec.ProviderID}); err != nil {
		return reconcile.Result{}, err
	}
	if len(claims.Items) == 0 || !n.Fleet.OwnsNode(&node, &claims.Items[0], nil) {
		return reconcile.Result{}, nil
	}
	for _, of := range []client.Object{&node, &claims.Items[0]} {
		for _, fault := range translate.NodeSwitchFaults(of.GetAnnotations()) {
			n.Events.Event(of, event.Warning, event.IgnoredField, fault)
		}
	}
	if _, found := node.Annotations[karpenterv1.DroppedDoNotConsolidateAnnotationKey]; found {
		n.Events.Event(&node, event.Warning, event.DroppedAnnotation,
			"The annotation "+karpenterv1.DroppedDoNotConsolidateAnnotationKey+" does nothing any more: use "+
				karpenterv1.DoNotDisruptAnnotationKey+`: "true"`)
	}
	return reconcile.Result{}, nil
}
