package operator

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterawsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/conformance"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
)

const (
	// lookEvery is when to compare everything again although nothing has changed.
	lookEvery = 5 * time.Minute
	// liveEvery is how often the objects are read from the API server instead of the cache.
	liveEvery = time.Hour
	// toldEvery is how often an object gets an event, at most.
	toldEvery = time.Hour
)

// ReasonNotConforming is an event: an object of the guest is not as the provider's policy wants it.
const ReasonNotConforming = conformance.ReasonNotConforming

// ConformanceConfig is the configuration of a [ConformanceController]. All fields except Profile and Others are
// required.
type ConformanceConfig struct {
	// reads from a cache that watches NodePools, NodeClaims, Nodes and, with Classes, EC2NodeClasses
	Guest    GuestClient
	Live     client.Reader // reads from the guest's API server
	Classes  bool          // whether the guest has EC2NodeClasses
	Profile  string        // the instance profile of all nodes; "" if the operator gives none
	Others   []Kind        // that another operator writes; usually none
	Settings conformance.Settings
	Board    *Board
	Wake     func() // the writer of the policy's status
	Events   event.Recorder
	Metrics  Metrics
	Now      func() time.Time
	Log      logr.Logger
}

// ConformanceController compares everything in the guest with the policy, by package conformance. It reports the
// result as a condition of the policy, in metrics, and by events about the objects. It writes nothing
// else. It has one worker.
type ConformanceController struct {
	config ConformanceConfig

	began  time.Time // time of the first step that knew the policy, or that there is none
	live   time.Time // when the API server was asked last
	policy *hypershiftv1beta1.AutoNodePolicy
	since  time.Time // when the policy's generation came into force; zero if before the first step
	told   map[conformance.Product]time.Time
}

// NewConformanceController returns the controller.
func NewConformanceController(config ConformanceConfig) *ConformanceController {
	return &ConformanceController{config: config, told: map[conformance.Product]time.Time{}}
}

// Reconcile looks at everything once.
func (c *ConformanceController) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	now := c.config.Now()
	if !c.config.Board.Protected() { // G22: protection wakes everybody
		return reconcile.Result{}, nil
	}
	state, known := c.state(now)
	if !known {
		return reconcile.Result{RequeueAfter: c.config.Settings.Settle}, nil
	}
	objects, err := c.gather(ctx, now)
	if err != nil {
		return reconcile.Result{}, err
	}
	memory, err := c.memory(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	input := conformance.Input{State: state, Policy: c.policy, Memory: memory, Objects: objects,
		Settings: c.config.Settings, Now: now}
	report := conformance.Look(input)
	c.config.Metrics.ShowConformance(report, now)
	c.tell(report, objects, now)
	again := lookEvery
	if fresh := c.began.Add(c.config.Settings.Settle).Sub(now); fresh > 0 {
		again = fresh
		if report.Condition().Status == metav1.ConditionUnknown {
			// what an earlier process found stays until this one knows
			return reconcile.Result{RequeueAfter: again}, nil
		}
	}
	said := report.Condition()
	if said.Reason == conformance.ReasonNotChecked { // it can be judged a while later
		again = min(again, c.config.Settings.Settle)
	}
	if c.config.Board.setConforming(said) {
		c.config.Wake()
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// state updates which policy is in force and, as far as this process has seen it, since when. It returns false for
// known until the first reading.
func (c *ConformanceController) state(now time.Time) (state conformance.PolicyState, known bool) {
	reading := c.config.Board.Reading()
	first := c.began.IsZero()
	if first {
		if !reading.Known() { // nothing was written yet, so there is no memory to compare with
			return "", false
		}
		c.began, c.live = now, now // the cache has just been filled
	}
	switch reading.State {
	case StatePermissive:
		c.policy, c.since = nil, time.Time{}
		return conformance.PolicyIsUnread, true
	case StateDenied, StateUnavailable, StateStarting: // the known one holds (G15)
		return conformance.PolicyHolds, true
	}
	if reading.Policy == nil {
		c.policy, c.since = nil, now
		return conformance.PolicyHolds, true
	}
	if len(merge.Check(reading.Policy)) > 0 {
		return conformance.PolicyIsBad, true // the last valid one holds
	}
	if before := c.policy; !first && (before == nil || before.UID != reading.Policy.UID ||
		before.Generation != reading.Policy.Generation) {
		c.since = now
	}
	c.policy = reading.Policy
	return conformance.PolicyHolds, true
}

// memory returns what the operator remembers about itself.
func (c *ConformanceController) memory(ctx context.Context) (conformance.Memory, error) {
	unprotected := len(c.config.Board.Missing())+len(c.config.Board.missingOfOthers()) > 0
	m := conformance.Memory{Began: c.began, PolicySince: c.since, Profile: c.config.Profile, Unprotected: unprotected}
	if since, known := c.config.Board.protectedSince(); known {
		m.Protected = since
	}
	var images map[string]bool
	m.Written, images = c.config.Board.remembered()
	if len(images) > 0 {
		m.Images = images
	}
	others := c.config.Others
	if hosted := c.config.Board.Hosted(); hosted.Known {
		m.Profile = hosted.Infra.InstanceProfile
		if hosted.LeavesClasses && c.config.Classes {
			others = append(slices.Clone(others), EC2NodeClasses(AWSConfig{}))
		}
	}
	for _, kind := range others {
		m.Others = union(m.Others, map[string]bool{kind.Product: true})
		if kind.Product != conformance.EC2NodeClass {
			continue
		}
		list := kind.NewWrapperList()
		if err := c.config.Guest.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return m, fmt.Errorf("listing %ss: %w", kind.Wrapper, err)
		}
		m.Wrapped = map[string]bool{}
		_ = meta.EachListItem(list, func(item runtime.Object) error { // the function returns no error
			m.Wrapped[item.(client.Object).GetName()] = true
			return nil
		})
	}
	return m, nil
}

// gather reads all objects: from the cache, and every liveEvery from the API server itself.
func (c *ConformanceController) gather(ctx context.Context, now time.Time) (conformance.Objects, error) {
	live := now.Sub(c.live) >= liveEvery
	var (
		pools   karpenterv1.NodePoolList
		classes karpenterawsv1.EC2NodeClassList
		claims  karpenterv1.NodeClaimList
		nodes   corev1.NodeList
	)
	lists := map[string]client.ObjectList{conformance.NodePool: &pools, conformance.NodeClaim: &claims,
		conformance.Node: &nodes}
	if c.config.Classes {
		lists[conformance.EC2NodeClass] = &classes
	}
	for _, kind := range []string{conformance.NodePool, conformance.EC2NodeClass, conformance.NodeClaim,
		conformance.Node} {
		list := lists[kind]
		if list == nil {
			continue
		}
		read := func() error { return c.config.Guest.List(ctx, list, client.UnsafeDisableDeepCopy) }
		if live {
			read = func() error { return inPages(ctx, c.config.Live, list) }
		}
		if err := read(); err != nil {
			return conformance.Objects{}, fmt.Errorf("listing %ss: %w", kind, err)
		}
	}
	if live {
		c.live = now
	}
	return conformance.Objects{Pools: pools.Items, Classes: classes.Items, Claims: claims.Items, Nodes: nodes.Items},
		nil
}

// pageSize is how many objects to ask an API server for at once.
const pageSize = 500

// inPages lists all objects of a kind from an API server. It keeps what the look is about, as the cache does: with
// their images, the nodes of a large cluster need more memory than the process has.
func inPages(ctx context.Context, server client.Reader, list client.ObjectList) error {
	var all []runtime.Object
	next := ""
	for {
		page := list.DeepCopyObject().(client.ObjectList) // still empty
		if err := server.List(ctx, page, client.Limit(pageSize), client.Continue(next)); err != nil {
			return err
		}
		items, err := meta.ExtractList(page)
		if err != nil {
			return err
		}
		for _, item := range items {
			item.(client.Object).SetManagedFields(nil)
			if node, is := item.(*corev1.Node); is {
				node.Status.Images = nil
			}
		}
		all = append(all, items...)
		if next = page.GetContinue(); next == "" {
			return meta.SetList(list, all)
		}
	}
}

// tell writes an event about each object that does not conform, at most every toldEvery.
func (c *ConformanceController) tell(report conformance.Report, objects conformance.Objects, now time.Time) {
	wrong := map[conformance.Product]bool{}
	for _, f := range report.Findings {
		product := conformance.Product{Kind: f.Kind, Name: f.Name}
		if f.State != conformance.NotConforming {
			continue
		}
		wrong[product] = true
		if now.Sub(c.told[product]) < toldEvery { // the zero time is long ago
			continue
		}
		about := find(objects, product)
		if about == nil {
			continue // the policy itself: its conditions report that
		}
		c.told[product] = now
		text := fmt.Sprintf("%s: %s %s", f.Cause, f.Field, f.Message)
		if f.Field == "" {
			text = fmt.Sprintf("%s: %s", f.Cause, f.Message)
		}
		c.config.Events.Event(about, event.Warning, ReasonNotConforming, cut(text))
	}
	for product := range c.told {
		if !wrong[product] {
			delete(c.told, product)
		}
	}
}

// find returns the object of that kind and name, nil if there is none.
func find(objects conformance.Objects, product conformance.Product) client.Object {
	switch product.Kind {
	case conformance.NodePool:
		return named(objects.Pools, product.Name)
	case conformance.EC2NodeClass:
		return named(objects.Classes, product.Name)
	case conformance.NodeClaim:
		return named(objects.Claims, product.Name)
	case conformance.Node:
		return named(objects.Nodes, product.Name)
	}
	return nil
}

func named[T any, P interface {
	*T
	client.Object
}](list []T, name string) client.Object {
	for i := range list {
		if object := P(&list[i]); object.GetName() == name {
			return object
		}
	}
	return nil
}

// addConforming adds what was found to the conditions of the policy, next to Ready.
func (c *PolicyController) addConforming(conditions *[]karpenterv1.Condition, generation int64) (changed bool) {
	found := c.config.Board.conforming()
	if !c.vouches() {
		found = new(condition.Unknown(conformance.ConditionType, conformance.ReasonNotChecked, c.protected().Message))
	}
	return found != nil && condition.Set(conditions, generation, *found, c.config.Now())
}
