// Package pool keeps a NodePool's status up to date: the drift hash, the counts, the conditions (V-11 to V-13). It
// also tells planning what the pool's node class offers.
//
// validation.go checks the specification, compatible.go checks whether any instance type is left; both are pure. Start
// with [Controller.Reconcile].
package pool

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/kube/patch"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
	"github.com/joiner-autoscaler/joiner/internal/translate"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// IndexClaimPool is the cache's index field by which a pool finds its claims.
const IndexClaimPool = "nodepool"

// refreshEvery is how often a catalogue is read again: prices change, and sold-out offerings come back.
const refreshEvery = 30 * time.Second

// Catalogs receives the catalogues of node classes.
type Catalogs interface {
	SetCatalog(class world.ClassRef, c catalog.Catalog) error
}

// Picture provides snapshots.
type Picture interface {
	Snapshot() *cluster.Snapshot
}

// Config configures the controller; all fields except Headroom are required.
type Config struct {
	Client   client.Client // reads from a cache with the index field above
	Live     client.Reader // reads from the API server
	Fleet    *fleet.Fleet
	Catalogs Catalogs
	Picture  Picture
	// Paused returns why voluntary disruption is paused, as far as is known, "" if it is not (D-14).
	Paused func() string
	// InVain returns which launches of the pool are held back because earlier ones were in vain, "" for none (P-35).
	InVain func(pool string) string
	// Headroom returns the state of the room that a pool keeps free (K-54); nil if nobody knows.
	Headroom func(pool string) Headroom
	// StaticOff is true if nobody acts on spec.replicas.
	StaticOff bool
	// Held is the longest that a cloud may delay a launch that was sent in time (see plugin.Parts).
	Held    time.Duration
	Events  event.Recorder
	Metrics metrics.Pools
	Now     func() time.Time
	Log     logr.Logger
}

// Controller keeps the status of NodePools.
type Controller struct {
	config  Config
	settled *settled
}

// New returns the controller.
func New(config Config) *Controller { return &Controller{config: config, settled: newSettled()} }

// Reconcile updates the NodePool of that name, with at most one patch of its metadata and one of its status.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var pool karpenterv1.NodePool
	if err := c.config.Client.Get(ctx, request.NamespacedName, &pool); err != nil {
		c.forget(request.Name)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !c.config.Fleet.OwnsPool(&pool) { // another program's, which writes its status
		c.forget(pool.Name)
		c.config.Log.V(1).Info("left alone: no provider here serves its node class", "pool", pool.Name, "served",
			c.config.Fleet.Served())
		return reconcile.Result{}, nil
	}
	if patch.LosesOriginal(&pool) {
		return reconcile.Result{}, nil
	}
	var claims karpenterv1.NodeClaimList
	// read only
	if err := c.config.Client.List(ctx, &claims, client.MatchingFields{IndexClaimPool: pool.Name},
		client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing the NodeClaims of pool %s: %w", pool.Name, err)
	}
	if err := c.hash(ctx, &pool, claims.Items); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	before := pool.Status.DeepCopy()
	retry := c.judge(ctx, &pool)
	count(&pool, claims.Items)
	c.above(&pool, claims.Items)
	again := c.allow(&pool)
	settling, unread := c.enforce(ctx, &pool, claims.Items)
	if settling > 0 {
		again = min(again, settling)
	}
	retry = errors.Join(retry, unread)
	c.measure(&pool)
	if !patch.SameStatus(before, &pool.Status) {
		if err := c.config.Client.Status().Patch(ctx, &pool, patch.Status(&pool, before, &pool.Status)); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
	}
	return reconcile.Result{RequeueAfter: again}, retry
}

// hash writes the drift hash onto the pool. It also writes it onto claims with a hash of an older version: otherwise
// an upgrade would make them all drift (P-34).
func (c *Controller) hash(ctx context.Context, pool *karpenterv1.NodePool, claims []karpenterv1.NodeClaim) error {
	want := map[string]string{
		karpenterv1.NodePoolHashAnnotationKey:        translate.Hash(pool),
		karpenterv1.NodePoolHashVersionAnnotationKey: translate.HashVersion,
	}
	migrate := pool.Annotations[karpenterv1.NodePoolHashVersionAnnotationKey] != translate.HashVersion
	for i := range claims {
		before := &claims[i]
		if !migrate || !c.config.Fleet.OwnsClaim(before) ||
			before.Annotations[karpenterv1.NodePoolHashVersionAnnotationKey] == translate.HashVersion {
			continue
		}
		claim := before.DeepCopy()
		own := map[string]string{karpenterv1.NodePoolHashVersionAnnotationKey: translate.HashVersion}
		if !condition.IsTrue(claim.Status.Conditions, karpenterv1.ConditionTypeDrifted) { // drift stays
			own = want
		}
		annotate(claim, own)
		if err := c.config.Client.Patch(ctx, claim, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("writing the hash of NodeClaim %s: %w", claim.Name, err)
		}
	}
	if has(pool, want) {
		return nil
	}
	before := pool.DeepCopy()
	annotate(pool, want)
	return c.config.Client.Patch(ctx, pool, client.MergeFrom(before))
}

// has reports whether the object has all these annotations.
func has(object client.Object, want map[string]string) bool {
	for key, value := range want {
		if object.GetAnnotations()[key] != value {
			return false
		}
	}
	return true
}

func annotate(object client.Object, want map[string]string) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, want)
	object.SetAnnotations(annotations)
}

// judge sets the conditions. The error is a provider failure that is worth a retry; a condition shows it too.
func (c *Controller) judge(ctx context.Context, pool *karpenterv1.NodePool) error {
	offered, class, failure := c.class(ctx, pool)
	set, _, invalid := translate.PoolRequirements(pool)
	valid := validate(pool, set, invalid, offered)
	compatible := condition.Unknown(karpenterv1.ConditionTypeInstanceTypesCompatible, "NodeClassNotReady",
		"it is not known what the node class offers")
	if class.Status == "True" {
		compatible = anyType(set, invalid, offered)
		if compatible.Status == "False" {
			c.config.Events.Event(pool, event.Warning, event.NoCompatibleInstanceTypes, compatible.Message)
		}
	}
	values := []condition.Value{valid, class, compatible, ready(valid, class, compatible)}
	if _, found := condition.Get(pool.Status.Conditions, karpenterv1.ConditionTypeNodeRegistrationHealthy); !found {
		values = append(values, condition.Unknown(karpenterv1.ConditionTypeNodeRegistrationHealthy,
			"AwaitingReconciliation", "no node of the pool has joined yet"))
	}
	if pool.Spec.Replicas != nil {
		values = append(values, c.replicas(pool))
	}
	values = append(append(values, c.inVain(pool)...), c.keeps(pool)...)
	if pause := translate.PoolPauseOf(pool); pause.On() {
		values = append(values, c.paused(pool, pause))
	} else {
		condition.Clear(&pool.Status.Conditions, karpenterv1.ConditionTypePaused)
	}
	values = append(values, c.roll(pool)...)
	ceiling := c.config.Picture.Snapshot().Ceiling()
	if ceiling.Unknown != "" {
		values = append(values, condition.Unknown(karpenterv1.ConditionTypeClusterLimitReached, "TableUnreadable",
			ceiling.Unknown))
	} else if full, hard := ceiling.Full(); full {
		reason := "MaxNodes"
		if hard {
			reason = "MaxNodeClaimsHard"
		}
		values = append(values, condition.True(karpenterv1.ConditionTypeClusterLimitReached, reason, ceiling.Text()))
	} else {
		condition.Clear(&pool.Status.Conditions, karpenterv1.ConditionTypeClusterLimitReached)
	}
	c.tellIgnored(pool)
	for _, value := range values {
		condition.Set(&pool.Status.Conditions, pool.Generation, value, c.config.Now())
	}
	return failure
}

// tellIgnored reports annotations, labels and limits without effect, or with another effect than their author may
// think.
func (c *Controller) tellIgnored(pool *karpenterv1.NodePool) {
	_, overhead := translate.NodeOverheadPrice(pool, 0)
	_, ratio := translate.OnDemandPercent(pool)
	_, volumes := translate.LocalVolumes(pool)
	faults := append(translate.UnknownOfPool(pool), translate.LimitFaults(pool)...)
	for _, err := range []error{overhead, ratio, volumes, translate.GracefulFault(pool)} {
		if err != nil {
			faults = append(faults, err.Error())
		}
	}
	for _, fault := range faults {
		c.config.Events.Event(pool, event.Warning, event.IgnoredField, fault)
	}
}

// paused reports what the pool's annotation stops (K-52), in a condition and an event.
func (c *Controller) paused(pool *karpenterv1.NodePool, pause translate.PoolPause) condition.Value {
	kind, reason := event.Normal, "PausedByAnnotation"
	if pause.Fault != "" {
		kind, reason = event.Warning, "PausedValueUnknown"
	}
	message := pause.By() + ": " + pause.Stops()
	c.config.Events.Event(pool, kind, event.PoolPaused, message)
	return condition.True(karpenterv1.ConditionTypePaused, reason, message)
}

// inVain reports that launches of the pool do not help their pods. A pool for which that was never true gets no
// condition.
func (c *Controller) inVain(pool *karpenterv1.NodePool) []condition.Value {
	const kind = karpenterv1.ConditionTypeLaunchesInVain
	if message := c.config.InVain(pool.Name); message != "" {
		return []condition.Value{condition.True(kind, "PodsStillWait", message)}
	}
	if condition.IsTrue(pool.Status.Conditions, kind) {
		return []condition.Value{condition.False(kind, "NothingHeldBack", "")}
	}
	return nil
}

// ready combines the conditions: the pool may launch nodes (V-12).
func ready(values ...condition.Value) condition.Value {
	var reasons, messages []string
	for _, value := range values {
		if value.Status == "False" ||
			value.Status == "Unknown" && value.Type != karpenterv1.ConditionTypeInstanceTypesCompatible {
			reasons = append(reasons, value.Type)
			messages = append(messages, value.Type+": "+value.Message)
		}
	}
	if len(reasons) == 0 {
		return condition.True(karpenterv1.ConditionTypeReady, "Ready", "")
	}
	return condition.False(karpenterv1.ConditionTypeReady, reasons[0]+"Failed", strings.Join(messages, "; "))
}

// class asks the provider what the pool's node class offers, passes it to planning, and returns the result as a
// condition.
func (c *Controller) class(ctx context.Context, pool *karpenterv1.NodePool) (catalog.Catalog, condition.Value, error) {
	const kind = karpenterv1.ConditionTypeNodeClassReady
	ref := pool.Spec.Template.Spec.NodeClassRef
	offered, err := c.config.Fleet.For(ref).Catalog(ctx, ref.Name)
	var notReady *provider.NodeClassNotReadyError
	switch {
	case errors.Is(err, provider.ErrNodeClassNotFound):
		err = c.config.Catalogs.SetCatalog(world.ClassRef(*ref), catalog.Catalog{})
		return catalog.Catalog{},
			condition.False(kind, "NodeClassNotFound", fmt.Sprintf("%s %s does not exist", ref.Kind, ref.Name)), err
	case errors.As(err, &notReady):
		return catalog.Catalog{}, condition.False(kind, "NodeClassNotReady", notReady.Error()), nil
	case err != nil:
		return catalog.Catalog{}, condition.Unknown(kind, "CatalogUnavailable", err.Error()),
			fmt.Errorf("reading what %s %s offers: %w", ref.Kind, ref.Name, err)
	}
	if err := c.config.Catalogs.SetCatalog(world.ClassRef(*ref), offered); err != nil {
		return catalog.Catalog{}, condition.False(kind, "CatalogInvalid", err.Error()), nil
	}
	return offered, condition.True(kind, "NodeClassReady", ""), nil
}

// count sets the total capacity and number of the pool's claims (V-13). An empty pool has 0 of these resources, like
// Karpenter's: dashboards divide them by the limit.
func count(pool *karpenterv1.NodePool, claims []karpenterv1.NodeClaim) {
	sum := corev1.ResourceList{corev1.ResourceCPU: {}, corev1.ResourceMemory: {}, corev1.ResourcePods: {},
		corev1.ResourceEphemeralStorage: {}}
	for _, claim := range claims {
		for name, quantity := range claim.Status.Capacity {
			total := sum[name]
			total.Add(quantity)
			sum[name] = total
		}
	}
	number := int64(len(claims))
	sum[resources.NameNodes] = *resource.NewQuantity(number, resource.DecimalSI)
	pool.Status.Resources, pool.Status.Nodes = sum, &number
}

// measure exports limits and usage. Removed limits disappear.
func (c *Controller) measure(pool *karpenterv1.NodePool) {
	amounts := func(list corev1.ResourceList) map[string]float64 {
		all := map[string]float64{}
		for name, quantity := range list {
			amount, kind := quantity.AsApproximateFloat64(), metrics.ResourceType(string(name))
			if known, found := all[kind]; found { // two names with one label value: in any order the lower amount
				amount = min(amount, known)
			}
			all[kind] = amount
		}
		return all
	}
	limits := amounts(corev1.ResourceList(pool.Spec.Limits))
	maps.Copy(limits, amounts(corev1.ResourceList(pool.Spec.HardLimits))) // the hard limit wins (L-03)
	c.config.Metrics.Limit.Show(pool.Name, limits)
	c.config.Metrics.Usage.Show(pool.Name, amounts(pool.Status.Resources))
}

func (c *Controller) forget(pool string) {
	c.settled.forget(pool)
	c.config.Metrics.Limit.Show(pool, nil)
	c.config.Metrics.Usage.Show(pool, nil)
	c.config.Metrics.Allowed.Show(pool, nil)
	c.config.Metrics.Consuming.Show(pool, nil)
	c.config.Metrics.Remaining.Show(pool, nil)
}
