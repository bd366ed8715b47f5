// Package interruption acts on clouds' notices about machines (P-43). It deletes the NodeClaim of a doomed machine at
// once. So its node is tainted and drained, and its pods are planned elsewhere. An offering that the cloud lacks is
// not requested for a while. Budgets do not apply: the machine goes anyway.
//
// It is a singleton that asks each provider for its notices. It keeps no state: a notice is acknowledged after
// everything was done about it, and doing so twice is harmless.
package interruption

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/kube/removal"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// indexClaimProviderID is the cache's index field for finding the claim of a machine.
const indexClaimProviderID = "status.providerID"

// unknownAgainAfter is the delay until a notice about a machine without a claim is checked again. The result of its
// launch may not be recorded yet.
const unknownAgainAfter = 5 * time.Second

// Catalogs receives the catalogues of node classes after something has become unavailable.
type Catalogs interface {
	SetCatalog(class world.ClassRef, c catalog.Catalog) error
}

// Config configures the controller; all fields are required.
type Config struct {
	Client   client.Client // reads from a cache with the index field above
	Fleet    *fleet.Fleet
	Catalogs Catalogs
	Events   event.Recorder
	Removed  removal.Told // for the history (U-32)
	Claims   metrics.Claims
	Metrics  metrics.Interruptions
	Now      func() time.Time
	Log      logr.Logger
}

// Controller is the singleton that acts on notices.
type Controller struct {
	config Config
}

// New returns the controller.
func New(config Config) *Controller { return &Controller{config: config} }

// Reconcile acts on all waiting notices. It ignores the request.
func (c *Controller) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	var again time.Duration
	soon := func(d time.Duration) {
		if d > 0 && (again == 0 || d < again) {
			again = d
		}
	}
	var failures []error
	for cloud := range c.config.Fleet.All() {
		notices, err := cloud.Notices(ctx)
		if err != nil {
			failures = append(failures, fmt.Errorf("asking %s for notices: %w", cloud.Name(), err))
			continue
		}
		soon(notices.Again)
		for _, notice := range notices.List {
			known, err := c.handle(ctx, cloud, notice)
			if err != nil {
				failures = append(failures, fmt.Errorf("notice %s of %s about %s: %w", notice.Kind, cloud.Name(),
					notice.ProviderID, err))
			}
			if !known {
				soon(unknownAgainAfter)
			}
		}
	}
	return reconcile.Result{RequeueAfter: again}, errors.Join(failures...)
}

// handle acts on one notice, and reports whether its machine has a claim.
func (c *Controller) handle(ctx context.Context, cloud provider.Provider,
	notice provider.Notice) (known bool, err error) {
	claim, err := c.claimOf(ctx, cloud, notice.ProviderID)
	if err != nil || claim == nil {
		return err != nil, err
	}
	if fresh := claim.DeletionTimestamp == nil; fresh {
		c.tell(claim, notice)
		if notice.Kind.Scarce() {
			c.markUnavailable(ctx, cloud, claim)
		}
	}
	if notice.Kind.Ends() {
		if err := c.remove(ctx, claim, notice); err != nil {
			return true, err
		}
	}
	if err := cloud.Acknowledge(ctx, notice); err != nil {
		return true, fmt.Errorf("acknowledging: %w", err)
	}
	c.config.Metrics.Deleted.Inc()
	return true, nil
}

// claimOf returns the claim of a machine, nil when none is known.
func (c *Controller) claimOf(ctx context.Context, cloud provider.Provider,
	providerID string) (*karpenterv1.NodeClaim, error) {
	var claims karpenterv1.NodeClaimList
	if err := c.config.Client.List(ctx, &claims, client.MatchingFields{indexClaimProviderID: providerID}); err != nil {
		return nil, fmt.Errorf("looking for its NodeClaim: %w", err)
	}
	for i := range claims.Items {
		if serving := c.config.Fleet.For(claims.Items[i].Spec.NodeClassRef); serving != nil &&
			serving.NodeClass() == cloud.NodeClass() {
			return &claims.Items[i], nil
		}
	}
	return nil, nil
}

// tell reports the notice as events on the claim and its node.
func (c *Controller) tell(claim *karpenterv1.NodeClaim, notice provider.Notice) {
	text, kind := sentence(notice.Kind), event.Warning
	if !notice.Kind.Ends() {
		kind = event.Normal
	}
	if !notice.Gone.IsZero() {
		text += "; the machine will be gone at " + notice.Gone.UTC().Format(time.RFC3339)
	}
	c.config.Events.Event(claim, kind, string(notice.Kind), text)
	if claim.Status.NodeName != "" {
		c.config.Events.Event(event.NodeRef(claim.Status.NodeName), kind, string(notice.Kind), text)
	}
	c.config.Metrics.Received.WithLabelValues(messageType(notice.Kind)).Inc()
}

// markUnavailable keeps the replacement from requesting what the cloud has just taken away.
func (c *Controller) markUnavailable(ctx context.Context, cloud provider.Provider, claim *karpenterv1.NodeClaim) {
	cloud.MarkUnavailable(provider.Offering{
		Type: claim.Labels[string(catalog.LabelInstanceType)], Zone: claim.Labels[string(catalog.LabelZone)],
		CapacityType: claim.Labels[karpenterv1.CapacityTypeLabelKey],
	})
	class := claim.Spec.NodeClassRef.Name
	offered, err := cloud.Catalog(ctx, class)
	if err == nil {
		err = c.config.Catalogs.SetCatalog(world.ClassRef(*claim.Spec.NodeClassRef), offered)
	}
	if err != nil { // the pool's controller reads it again soon
		c.config.Log.V(1).Info("could not refresh the catalogue", "class", class, "reason", err.Error())
	}
}

// remove deletes the claim, and makes its drain end before the machine does. Otherwise pods held by a
// PodDisruptionBudget would be lost without a grace period.
func (c *Controller) remove(ctx context.Context, claim *karpenterv1.NodeClaim, notice provider.Notice) error {
	if claim.DeletionTimestamp == nil {
		if err := removal.Delete(ctx, c.config.Client, claim); err != nil {
			return err
		}
		pool := claim.Labels[karpenterv1.NodePoolLabelKey]
		c.config.Claims.Disrupt(claim, string(notice.Kind), "")
		c.config.Events.Event(claim, event.Warning, event.TerminatingOnInterruption, "The node is drained: "+
			sentence(notice.Kind))
		c.config.Removed.Tell(claim, string(notice.Kind), "")
		c.config.Log.Info("interrupted", "claim", claim.Name, "node", claim.Status.NodeName, "pool", pool, "reason",
			string(notice.Kind), "goneAt", notice.Gone)
	}
	return removal.Bound(ctx, c.config.Client, claim, notice.Gone, c.config.Now())
}

// sentence says what a notice means.
func sentence(kind provider.NoticeKind) string {
	switch kind {
	case provider.SpotInterrupted:
		return "the cloud takes the spot machine back"
	case provider.CapacityReservationInterrupted:
		return "the cloud takes the machine's capacity reservation back"
	case provider.CapacityBlockExpiring:
		return "the capacity block that the machine runs in ends soon"
	case provider.RebalanceRecommended:
		return "the cloud says that the spot machine may be taken back soon"
	case provider.InstanceStopping:
		return "the machine is being stopped"
	case provider.InstanceTerminating:
		return "the machine is being terminated"
	}
	return "the cloud says that the machine is unhealthy"
}

// messageType returns the name of a notice in metrics, as dashboards know it.
func messageType(kind provider.NoticeKind) string {
	switch kind {
	case provider.SpotInterrupted:
		return "spot_interrupted"
	case provider.CapacityReservationInterrupted:
		return "capacity_reservation_interrupted"
	case provider.CapacityBlockExpiring:
		return "capacity_block_expiring"
	case provider.RebalanceRecommended:
		return "rebalance_recommendation"
	case provider.InstanceStopping:
		return "instance_stopped"
	case provider.InstanceTerminating:
		return "instance_terminated"
	}
	return "instance_unhealthy"
}
