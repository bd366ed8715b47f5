package claim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/kube/patch"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// settleTime is how long a node that is not ready yet is left to its kubelet. The kubelet writes to it all the time,
// and our patch would collide. Often the node is ready in a moment, and one patch serves both steps (B-12). No pod
// could run there earlier anyway. Creation times are in whole seconds, so it is up to a second less.
const settleTime = 3 * time.Second

// register matches the claim with its node, once the node has joined. In one patch the node gets the claim's labels,
// annotations and taints, our finalizer and the claim as its owner, and loses the taint karpenter.sh/unregistered. If
// the node is ready already, that patch also marks it as initialized.
func (c *Controller) register(ctx context.Context, w *work) error {
	if w.is(karpenterv1.ConditionTypeRegistered) {
		return nil
	}
	if w.node == nil {
		c.set(w, condition.Unknown(karpenterv1.ConditionTypeRegistered, "NodeNotFound",
			"the node has not joined the cluster yet"))
		return nil
	}
	if w.node.DeletionTimestamp != nil {
		c.set(w, condition.Unknown(karpenterv1.ConditionTypeRegistered, "NodeTerminating",
			"the node is being deleted"))
		return nil
	}
	opened, err := c.openFirst(ctx, w)
	if err != nil || !opened {
		return err
	}
	w.claim.Status.NodeName = w.node.Name
	c.set(w, condition.True(karpenterv1.ConditionTypeRegistered, "Registered", ""))
	w.saved = append(w.saved, func() {
		pool := translate.PoolOf(w.claim)
		c.reached(w, metrics.StageRegistered)
		c.config.Metrics.Nodes.Created.WithLabelValues(pool, w.node.Labels[corev1.LabelTopologyZone]).Inc()
		c.config.Log.Info("registered", "event", "Registered", "claim", w.claim.Name, "node", w.node.Name, "pool",
			pool)
		c.reportHealth(ctx, w, condition.True(karpenterv1.ConditionTypeNodeRegistrationHealthy,
			"NodeRegistrationHealthy", ""))
	})
	return nil
}

// openFirst writes the claim's part onto its node, which opens it to pods. It reports false if there is nothing to
// open yet, which it sets in the condition Registered, or if other nodes must open first.
func (c *Controller) openFirst(ctx context.Context, w *work) (bool, error) {
	for prepared, tried := false, false; ; {
		before := w.node
		w.node = before.DeepCopy()
		adopt(w.node, w.claim)
		missing := lacking(w.node, w.claim)
		if age := c.config.Now().Sub(w.node.CreationTimestamp.Time); age < settleTime && missing != "" {
			w.askAgain(settleTime - age)
			c.set(w, condition.Unknown(karpenterv1.ConditionTypeRegistered, "NodeNotFound",
				"the node has not joined the cluster yet"))
			return false, nil
		}
		if !prepared {
			prepared = true
			if wait := c.beforeOpening(ctx, w, before); wait > 0 {
				w.askAgain(wait)
				return false, nil
			}
			// That takes time, and others write to a fresh node meanwhile.
			fresh, err := c.config.nodeOf(ctx, w.claim)
			if err != nil {
				return false, err
			}
			if fresh != nil && fresh.ResourceVersion != before.ResourceVersion {
				w.node = fresh
				continue
			}
		}
		if missing == "" {
			w.node.Labels[karpenterv1.NodeInitializedLabelKey] = "true"
		}
		if equality.Semantic.DeepEqual(before, w.node) { // an earlier step did it, but did not write the claim
			return true, nil
		}
		err := c.config.Client.Patch(ctx, w.node, patch.Node(before, w.node))
		if err == nil {
			return true, nil
		}
		if client.IgnoreNotFound(err) == nil { // it just went away, and the cache does not show that yet
			w.node = nil
			c.set(w, condition.Unknown(karpenterv1.ConditionTypeRegistered, "NodeNotFound",
				"the node is gone; it has not joined again yet"))
			return false, nil
		}
		// Others write to a fresh node all the time. The cache's newer version is tried at once: a new step would
		// request the instance again.
		fresh, lookErr := c.config.nodeOf(ctx, w.claim)
		if tried || !apierrors.IsInvalid(err) || lookErr != nil || fresh == nil ||
			fresh.ResourceVersion == before.ResourceVersion {
			return false, fmt.Errorf("registering node %s: %w", before.Name, err)
		}
		w.node, tried = fresh, true
	}
}

// beforeOpening does what must be done before pods may come to a node. It returns how long the node must wait.
func (c *Controller) beforeOpening(ctx context.Context, w *work, node *corev1.Node) time.Duration {
	if !hasTaint(node.Spec.Taints, corev1.Taint{Key: karpenterv1.UnregisteredTaintKey,
		Effect: corev1.TaintEffectNoExecute}) &&
		node.Labels[karpenterv1.NodeRegisteredLabelKey] == "" {
		c.config.Events.Event(w.claim, event.Warning, event.UnregisteredTaintMissing, "Node "+node.Name+
			" joined without the taint karpenter.sh/unregistered:NoExecute: pods could be placed on it too early; "+
			"add the taint in its bootstrap")
	}
	if c.config.Keep == nil {
		return 0
	}
	return c.config.Keep(ctx, w.claim.Name, node.Name)
}

// adopt makes the node ours. It keeps what the node has beyond the claim. If an earlier step did this and could not
// write the claim, the startup taints stay as they are: their agents may have removed them since.
func adopt(node *corev1.Node, claim *karpenterv1.NodeClaim) {
	taints := slices.Clone(claim.Spec.Taints)
	if node.Labels[karpenterv1.NodeRegisteredLabelKey] != "true" || !isOwner(node, claim) {
		taints = append(taints, claim.Spec.StartupTaints...)
	}
	node.Labels = with(node.Labels, claim.Labels)
	if pool := translate.PoolOf(claim); pool != "" {
		node.Labels[karpenterv1.NodePoolLabelKey] = pool
	}
	if class := claim.Spec.NodeClassRef; class != nil { // shows whose the node is when its claim is gone
		node.Labels[fleet.ClassLabel(schema.GroupKind{Group: class.Group, Kind: class.Kind})] = class.Name
	}
	node.Annotations = with(node.Annotations, claim.Annotations)
	mark(node, claim)
	if node.Labels[karpenterv1.NodeDoNotSyncTaintsLabelKey] != "true" {
		for _, taint := range taints {
			if !hasTaint(node.Spec.Taints, taint) {
				node.Spec.Taints = append(node.Spec.Taints, taint)
			}
		}
	}
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints,
		func(t corev1.Taint) bool { return t.Key == karpenterv1.UnregisteredTaintKey })
}

// with returns a map with the entries of both; those of more win.
func with(entries, more map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, entries)
	maps.Copy(all, more)
	return all
}

// hasTaint reports whether a taint of the same key and effect is in the list.
func hasTaint(taints []corev1.Taint, taint corev1.Taint) bool {
	return slices.ContainsFunc(taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) })
}
