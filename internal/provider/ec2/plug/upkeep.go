package plug

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launchid"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/machines"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/offering"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/refusal"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/tag"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/template"
)

// learnEvery is how often the provider learns from nodes what they have (E-21).
const learnEvery = 30 * time.Second

// offers refreshes types and prices of EC2.
type offers struct {
	*link
	known  *offering.Sold
	told   map[types.UID]string // of borrowed prices, on each class
	failed map[types.UID]string // of failed requests for prices, on each class
}

func newOffers(l *link) *offers {
	return &offers{link: l, told: map[types.UID]string{}, failed: map[types.UID]string{}}
}

// Reasons of the events on each class about prices (E-25, E-26).
const (
	EventPricesBorrowed    = "PricesBorrowed"
	EventPricesUnavailable = "PricesUnavailable"
)

// tellPrices sends each class an event, once, if prices are from another region or the request for them failed. Prices
// only rank types: launches go on.
func (o *offers) tellPrices(ctx context.Context, c *connection, err error) {
	if text := c.prices.Known().Borrowed(); text != "" {
		o.tellClasses(ctx, o.told, EventPricesBorrowed, text)
	} else {
		clear(o.told)
	}
	if refused := refusal.Of(err); err != nil {
		o.tellClasses(ctx, o.failed, EventPricesUnavailable,
			fmt.Sprintf("prices could not be asked for, those that are known stay: %s %s", refused.Code,
				strings.TrimRight(refused.Message, ".")))
	}
}

// step refreshes what is due, and learns from nodes.
func (o *offers) step(ctx context.Context, c *connection) (time.Duration, error) {
	var failures []error
	for name, refresh := range map[string]func(context.Context) error{"types": c.types.Refresh,
		"prices": c.prices.Refresh} {
		err := refresh(ctx)
		if name == "prices" {
			o.tellPrices(ctx, c, err)
		}
		if err != nil {
			o.meter.failures.WithLabelValues(name).Inc()
			o.deps.Log.Info("what EC2 sells could not be asked for; what was known of it stays", "what", name,
				"reason", err.Error())
		}
	}
	failures = append(failures, o.learn(ctx, c))
	now := o.deps.Now()
	for _, source := range []string{offering.SourceOnDemand, offering.SourceSpot} {
		if age, asked := c.prices.Known().Age(source, now); asked {
			o.meter.prices.WithLabelValues(source).Set(age.Seconds())
		}
	}
	if sold := c.types.Known(); sold != o.known {
		o.known = sold
		o.deps.Wake(Classes) // dry runs and catalogues may wait for it
	}
	again := min(learnEvery, c.types.Due().Sub(now), c.prices.Due().Sub(now))
	return max(again, time.Second), errors.Join(failures...)
}

// learn reads from nodes and claims how much memory nodes have, which of them take no more addresses, and whose
// reservation has ended.
func (o *offers) learn(ctx context.Context, c *connection) error {
	var nodes corev1.NodeList
	var claims karpenterv1.NodeClaimList
	var list awsv1.EC2NodeClassList
	for _, each := range []client.ObjectList{&nodes, &claims, &list} {
		if err := o.deps.Client.List(ctx, each, client.UnsafeDisableDeepCopy); err != nil {
			return err
		}
	}
	families := map[string]string{}
	for i := range list.Items {
		families[list.Items[i].Name] = resolve.Family(&list.Items[i].Spec)
	}
	byID := map[string]*corev1.Node{}
	for i := range nodes.Items {
		byID[nodes.Items[i].Spec.ProviderID] = &nodes.Items[i]
	}
	var failures []error
	for i := range claims.Items {
		claim := &claims.Items[i]
		node := byID[claim.Status.ProviderID]
		if claim.Status.ProviderID == "" || node == nil || !refers(claim) {
			continue
		}
		c.machines.SawNode(node, claim, families[claim.Spec.NodeClassRef.Name])
		if condition.IsTrue(claim.Status.Conditions, karpenterv1.ConditionTypeInitialized) {
			c.machines.Settled(claim.Status.ProviderID)
		}
		failures = append(failures, o.relabel(ctx, c, claim, node))
	}
	return errors.Join(failures...)
}

// tagger names instances after their nodes.
type tagger struct{ *link }

func newTagger(l *link) tagger { return tagger{l} }

// Reconcile tags the instance of a claim whose node has registered with the node's name and the claim's (E-57). It
// skips tags that the launch has set, and the name if the class sets one.
func (t tagger) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	c := t.connected()
	if c == nil {
		return reconcile.Result{RequeueAfter: againSoon}, nil
	}
	var claim karpenterv1.NodeClaim
	if err := t.deps.Client.Get(ctx, request.NamespacedName, &claim); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if claim.DeletionTimestamp != nil || claim.Status.NodeName == "" ||
		!condition.IsTrue(claim.Status.Conditions, karpenterv1.ConditionTypeRegistered) || !refers(&claim) {
		return reconcile.Result{}, nil
	}
	known, found := c.machines.TagsOf(claim.Status.ProviderID)
	if !found {
		return reconcile.Result{}, nil
	}
	missing := map[string]string{}
	for key, value := range map[string]string{tag.Name: claim.Status.NodeName, launchid.ClaimKey: claim.Name} {
		if known[key] == "" {
			missing[key] = value
		}
	}
	// A name from the class is on the instance, even if no listing has shown it yet.
	var own awsv1.EC2NodeClass
	err := t.deps.Client.Get(ctx, client.ObjectKey{Name: claim.Spec.NodeClassRef.Name}, &own)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	if _, named := own.Spec.Tags[tag.Name]; named {
		delete(missing, tag.Name)
	}
	if len(missing) == 0 {
		return reconcile.Result{}, nil
	}
	_, id, err := machines.ParseProviderID(claim.Status.ProviderID)
	if err != nil {
		return reconcile.Result{}, nil
	}
	_, err = c.clients.EC2.CreateTags(ctx, &awsec2.CreateTagsInput{Resources: []string{id}, Tags: tag.List(missing)})
	switch {
	case err == nil:
		c.machines.Tagged(claim.Status.ProviderID, missing)
		return reconcile.Result{}, nil
	case refusal.Of(err).Class == refusal.Rights || refusal.Of(err).Class == refusal.Request:
		t.meter.failures.WithLabelValues("tags").Inc()
		t.deps.Log.Info("an instance could not be tagged", "nodeClaim", claim.Name, "instance", id, "reason",
			refusal.Of(err).Message)
		return reconcile.Result{RequeueAfter: collectEvery}, nil // names are only for people
	}
	return reconcile.Result{}, fmt.Errorf("tagging instance %s: %w", id, err)
}

const (
	// collectEvery is the interval between collections of launch templates, profilesEvery that of instance profiles
	// (E-56).
	collectEvery  = 10 * time.Minute
	profilesEvery = 30 * time.Minute
)

// collector deletes launch templates and instance profiles that nobody needs any more.
type collector struct {
	*link
	profiles time.Time
}

func newCollector(l *link) *collector { return &collector{link: l} }

// step collects launch templates, and less often instance profiles.
func (k *collector) step(ctx context.Context, c *connection) (time.Duration, error) {
	now := k.deps.Now()
	gone, err := c.machines.Keeper().Collect(ctx, now, template.UnusedFor)
	if len(gone) > 0 {
		k.deps.Log.Info("deleted launch templates that no launch used for an hour", "names", strings.Join(gone, " "))
	}
	k.failed("templates", err)
	if k.profiles.IsZero() {
		k.profiles = now // not at a start
	}
	if now.Sub(k.profiles) >= profilesEvery {
		k.profiles = now
		k.failed("profiles", k.sweep(ctx, c))
	}
	return collectEvery, nil
}

func (k *collector) failed(what string, err error) {
	if err != nil {
		k.meter.failures.WithLabelValues(what).Inc()
		k.deps.Log.Info("a collection failed; the next one goes on", "what", what, "reason", err.Error())
	}
}

// sweep deletes profiles of classes that are gone, unless a machine still has them: somebody may have taken the
// finalizer off the class. It reads classes and claims from the API server, since a cache may be behind. Claims of
// older releases of Karpenter do not name their profile, but a listing of machines does.
func (k *collector) sweep(ctx context.Context, c *connection) error {
	var list awsv1.EC2NodeClassList
	var claims karpenterv1.NodeClaimList
	if err := errors.Join(k.deps.Live.List(ctx, &list), k.deps.Live.List(ctx, &claims)); err != nil {
		return err
	}
	used := c.machines.Profiles()
	for i := range claims.Items {
		used[claims.Items[i].Annotations[profileKey]] = true
	}
	return c.resolver.SweepProfiles(ctx, func(uid, name string) bool {
		return used[name] ||
			slices.ContainsFunc(list.Items, func(each awsv1.EC2NodeClass) bool { return string(each.UID) == uid })
	})
}
