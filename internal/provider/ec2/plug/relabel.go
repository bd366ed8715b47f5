package plug

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2"
)

// settledFor is the age at which a machine's listing is reliable about reservations: listings lag behind launches.
const settledFor = 2 * time.Minute

// relabel changes a machine's labels to on-demand once its reservation has ended: it runs on, at the full price
// (E-13). It writes the claim before the node. A node that registers meanwhile may have the labels of before and the
// capacity type of after.
func (l *link) relabel(ctx context.Context, c *connection, claim *karpenterv1.NodeClaim, node *corev1.Node) error {
	reserved := func(o client.Object) bool {
		labels := o.GetLabels()
		return labels[karpenterv1.CapacityTypeLabelKey] == catalog.Reserved ||
			slices.ContainsFunc(ec2.ReservationLabels(), func(key string) bool { return labels[key] != "" })
	}
	if !reserved(claim) && !reserved(node) {
		return nil
	}
	reservation, launched, listed := c.machines.ReservationOf(claim.Status.ProviderID)
	if !listed || reservation != "" || l.deps.Now().Sub(launched) < settledFor {
		return nil
	}
	for _, object := range []client.Object{claim, node} {
		if !reserved(object) || object.GetDeletionTimestamp() != nil {
			continue
		}
		before := object.DeepCopyObject().(client.Object)
		after := object.DeepCopyObject().(client.Object)
		labels := after.GetLabels()
		if labels[karpenterv1.CapacityTypeLabelKey] == catalog.Reserved {
			labels[karpenterv1.CapacityTypeLabelKey] = catalog.OnDemand
		}
		for _, key := range ec2.ReservationLabels() {
			delete(labels, key)
		}
		if err := l.deps.Client.Patch(ctx, after, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("labelling %s, whose reservation has ended: %w", object.GetName(), err)
		}
		l.deps.Log.Info("its capacity reservation has ended: it is on-demand now", "name", object.GetName())
	}
	return nil
}
