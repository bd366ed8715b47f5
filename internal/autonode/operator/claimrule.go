package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
)

// ClaimRuleConfig is the configuration of a [ClaimRuleController]. All fields except Class and AnyOf are required.
type ClaimRuleConfig struct {
	Guest GuestClient
	Board *Board
	// Class is the kind of wrappers of node classes; the zero value if there is none.
	Class Kind
	// AnyOf are the kinds of which NodeClaims may refer to any node class: kinds without a wrapper.
	AnyOf   []schema.GroupKind
	Wake    func(context.Context) // all who depend on the policy, once the rule covers it
	Events  event.Recorder
	Metrics Metrics
	Now     func() time.Time
	Log     logr.Logger
}

// ruleWithin is how long writing the rule may fail with a status that may pass by itself, before the policy is
// followed without it. The guest's admin can make such failures last, for example by a limit on the operator's
// requests. A restart of an API server is shorter.
const ruleWithin = 30 * time.Second

// ClaimRuleController maintains the rule that NodeClaims lie within the policy and refer to managed node classes
// . It writes the rule before anything else follows a new generation of the policy, and before a new node class:
// see [Board.Reading] and [AfterRule]. It runs one step at the start, and whenever the policy, a node class or the
// rule changes.
type ClaimRuleController struct {
	config  ClaimRuleConfig
	writer  *ProtectionController
	failing time.Time // since when the rule could not be written; zero if it could
}

// NewClaimRuleController returns the controller. From then on, [Board.Reading] returns a reading only once the rule
// covers it.
func NewClaimRuleController(config ClaimRuleConfig) *ClaimRuleController {
	config.Board.wantRule()
	return &ClaimRuleController{config: config, writer: NewProtectionController(ProtectionConfig{
		Guest: config.Guest, Events: config.Events, Metrics: config.Metrics,
	})}
}

// ClaimRule returns the rule with its binding, for their names: a teardown and watches need them. Its content is that
// without a policy.
func ClaimRule() merge.Protection {
	rule, _, _ := merge.ClaimRule(nil, nil, nil) // no policy is always valid
	return rule
}

// Reconcile writes the rule for the latest reading if it differs, and then lets the reading count. If the policy is
// unknown or invalid, the rule for the last valid one stays (G14).
func (c *ClaimRuleController) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	board := c.config.Board
	reading := board.Latest()
	if board.Released() {
		return reconcile.Result{}, nil
	}
	classes, err := c.classes(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	decided := reading
	if !changesRule(reading) {
		var known bool
		if decided, known = board.decided(); !known {
			return reconcile.Result{}, nil // keep what an earlier process wrote
		}
	}
	rule, leftOut, err := merge.ClaimRule(decided.Policy, classes, c.config.AnyOf)
	if err != nil {
		return reconcile.Result{}, err
	}
	before := board.ruleWritten()
	for _, object := range []client.Object{&rule.Policy, &rule.Binding} {
		// Before this process has written it, and when the policy has changed, a difference does not mean that
		// somebody changed the rule.
		restored := before != nil && before.same(decided, classes)
		changed, err := c.writer.ensure(ctx, object)
		if err != nil {
			if c.failed(reading, object, err) {
				c.config.Wake(ctx)
			}
			return reconcile.Result{}, err
		}
		if changed && restored {
			c.writer.report(object)
		}
	}
	c.failing = time.Time{}
	lacked := board.RuleLeftOut()
	news := !slices.Equal(lacked.Labels, leftOut.Labels) || !slices.Equal(lacked.Classes, leftOut.Classes)
	board.wroteRule(writtenRule{reading: decided, classes: classes, leftOut: leftOut})
	news = board.setRuleMissing() || news
	if board.cover(reading) || news {
		c.config.Log.Info("the rule for NodeClaims is there; it leaves out what it would be too large with", "labels",
			leftOut.Labels)
		c.config.Wake(ctx)
	}
	return reconcile.Result{}, nil
}

// failed notes that a part of the rule could not be written, and reports whether that is news. A missing right must
// not keep a policy from the pools, and neither must a failure that lasts.
func (c *ClaimRuleController) failed(reading Reading, object client.Object, err error) (news bool) {
	now := c.config.Now()
	if c.failing.IsZero() {
		c.failing = now
	}
	// the reason only: the text may be of the guest (G28)
	reason := cmp.Or(string(apierrors.ReasonForError(err)), "no answer")
	news = c.config.Board.setRuleMissing(fmt.Sprintf("%s %s (%s)", kindOf(object), object.GetName(), reason))
	if refused(kindOf(object), err) != nil || now.Sub(c.failing) >= ruleWithin {
		return c.config.Board.cover(reading) || news
	}
	return news
}

// classes returns the names, sorted, of the node classes that have a wrapper.
func (c *ClaimRuleController) classes(ctx context.Context) ([]string, error) {
	if c.config.Class.NewWrapperList == nil {
		return nil, nil
	}
	list := c.config.Class.NewWrapperList()
	if err := c.config.Guest.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing %ss: %w", c.config.Class.Wrapper, err)
	}
	var names []string
	err := meta.EachListItem(list, func(item runtime.Object) error {
		names = append(names, item.(client.Object).GetName())
		return nil
	})
	slices.SortFunc(names, strings.Compare)
	return names, err
}
