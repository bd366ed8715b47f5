package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/conformance"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/condition"
)

// PolicyConfig is the configuration of a [PolicyController]. All fields except the booleans are required.
type PolicyConfig struct {
	Management ManagementClient
	Guest      GuestClient
	Kinds      []Kind
	Board      *Board
	// ClaimsOpen says that a flag leaves NodeClaims unprotected.
	ClaimsOpen bool
	// PoolsOfOthers and ClassesOfOthers say that another operator writes these, so that the policy is not applied to
	// them.
	PoolsOfOthers, ClassesOfOthers bool
	Metrics                        Metrics
	Now                            func() time.Time
	Log                            logr.Logger
}

// readyAfterStart is how long Ready stays as an earlier process has written it, while this process has not yet looked
// at all wrappers.
const readyAfterStart = time.Minute

// pausedAgainAfter is when to check again whether a pause is over.
const pausedAgainAfter = 10 * time.Second

// stepsEndWithin is when to check again whether steps have ended that were under way when a pause began.
const stepsEndWithin = 200 * time.Millisecond

// PolicyController is the only writer of the policy's status (G16). A step looks at all wrappers and writes at most
// once. It has one worker.
type PolicyController struct {
	config  PolicyConfig
	started time.Time // of the first step
	settled bool      // all wrappers were looked at once
}

// NewPolicyController returns the controller.
func NewPolicyController(config PolicyConfig) *PolicyController {
	return &PolicyController{config: config}
}

// Reconcile sums up what the controllers found out about the wrappers, for the policy's present generation. A conflict
// is an error: somebody has changed the policy, and the feed's next answer brings the change (G29).
func (c *PolicyController) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if c.started.IsZero() {
		c.started = c.config.Now()
	}
	found, err := c.survey(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	reading, held := c.reading()
	policy := reading.Policy
	c.config.Metrics.ShowProtected(c.protected().Reason)
	c.showWhose(reading, found)
	if policy == nil {
		return reconcile.Result{}, nil
	}
	if early := c.early(); early > 0 && !c.config.Board.Protected() { // G22: not Ready before the guest is protected
		return reconcile.Result{RequeueAfter: early}, nil
	}
	ready := c.ready(policy, found, held)
	status := policy.Status.DeepCopy()
	changed := c.sayProtected(policy, status)
	pausing := c.config.Board.pausing(c.config.Now())
	if hosted := c.config.Board.Hosted(); hosted.Asked && !pausing {
		changed = condition.Set(&status.Conditions, policy.Generation, hosted.condition(c.config.Now()),
			c.config.Now()) || changed
	}
	changed = !held && c.addConforming(&status.Conditions, policy.Generation) || changed
	wait := c.leave(policy, ready)
	if wait <= 0 {
		changed = condition.Set(&status.Conditions, policy.Generation, ready, c.config.Now()) || changed
	}
	result := reconcile.Result{RequeueAfter: max(0, wait)}
	if c.config.Board.Paused(c.config.Now()) { // no event tells that the time has come
		result.RequeueAfter = min(cmp.Or(result.RequeueAfter, pausedAgainAfter), pausedAgainAfter)
	}
	if pausing { // the condition says Paused only when nothing is written any more
		result.RequeueAfter = stepsEndWithin
	}
	if !changed {
		return result, nil
	}
	if err := c.config.Management.WriteStatus(ctx, policy, status); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("writing the status of AutoNodePolicy %s/%s: %w", policy.Namespace,
			policy.Name, err)
	}
	c.config.Log.V(1).Info("wrote the policy's status", "ready", ready.Status, "reason", ready.Reason)
	return result, nil
}

// reading returns the reading whose policy gets a status, and whether the rule for NodeClaims still holds that policy
// back. A policy that is held back gets its status all the same: the one before cannot be written any more.
func (c *PolicyController) reading() (reading Reading, held bool) {
	reading, latest := c.config.Board.Reading(), c.config.Board.Latest()
	if latest.Policy == nil || latest.SameForWrappers(reading) {
		return reading, false
	}
	return latest, true
}

// early returns how long what an earlier process has written still stays: readyAfterStart after the first step.
func (c *PolicyController) early() time.Duration {
	return c.started.Add(readyAfterStart).Sub(c.config.Now())
}

// ready returns the condition Ready of a policy.
func (c *PolicyController) ready(policy *hypershiftv1beta1.AutoNodePolicy, found surveyed, held bool) condition.Value {
	ready := notOwned(policy, c.config.PoolsOfOthers, c.config.ClassesOfOthers || c.config.Board.leavesClasses(),
		merge.Ready(policy, found.targets))
	switch {
	case ready.Status == metav1.ConditionFalse:
	case !c.vouches(): // it was not protected within a minute, or cannot be seen any more
		ready = condition.Unknown(ready.Type, hypershiftv1beta1.ReasonProtectionMissing, c.protected().Message)
	case held && ready.Status == metav1.ConditionTrue:
		ready = condition.Unknown(ready.Type, hypershiftv1beta1.ReasonProgressing,
			"the rule for NodeClaims is not written for this generation yet")
	}
	if len(found.altered) > 0 {
		ready.Message = strings.TrimSuffix(ready.Message, ".") + ". " + alteredStatuses(found.altered)
	}
	return ready
}

// showWhose shows whose business it is that the policy is not Ready. While it is unknown whether there is a
// policy, the metric stays as it is.
func (c *PolicyController) showWhose(reading Reading, found surveyed) {
	policy := reading.Policy
	whose := map[conformance.Party]bool{}
	switch {
	case !reading.Known():
		return
	case policy == nil:
	case len(merge.Check(policy)) > 0:
		whose[conformance.PolicyInvalid.Party()] = true
	case c.config.Board.Protected() && merge.Ready(policy, found.targets).Status == metav1.ConditionTrue:
	default:
		whose = found.parties
		if len(whose) == 0 { // nobody else has to act, or no wrapper was looked at yet
			whose[conformance.Service] = true
		}
	}
	c.config.Metrics.ShowNotReady(whose)
}

// sayProtected sets the conditions Protected, whether all admission policies are in force, and ProtectedOnce, since
// when they first were, which then never changes. It reports whether that changed the status.
func (c *PolicyController) sayProtected(policy *hypershiftv1beta1.AutoNodePolicy,
	status *hypershiftv1beta1.AutoNodePolicyStatus) (changed bool) {
	changed = condition.Set(&status.Conditions, policy.Generation, c.protected(), c.config.Now())
	const once = hypershiftv1beta1.ConditionTypeProtectedOnce
	if c.vouches() && len(c.missing())+len(c.config.Board.missingOfOthers()) == 0 &&
		!condition.IsTrue(status.Conditions, once) {
		condition.Set(&status.Conditions, policy.Generation, condition.True(once,
			hypershiftv1beta1.ReasonInForce, ""), c.config.Now())
		return true
	}
	return changed
}

// vouches reports whether the operator can say anything good of the guest: it has protected it, and sees it.
func (c *PolicyController) vouches() bool {
	return c.config.Board.Protected() && len(c.config.Board.blindTo()) == 0
}

// missing returns the parts of the protection that are not in force.
func (c *PolicyController) missing() []string {
	return append(slices.Clone(c.config.Board.Missing()), c.config.Board.ruleMissing()...)
}

// protected returns the condition Protected: whether all admission policies are in force.
func (c *PolicyController) protected() condition.Value {
	const kind = hypershiftv1beta1.ConditionTypeProtected
	missing, leftOut, ofOthers := c.missing(), c.config.Board.RuleLeftOut().Labels, c.config.Board.missingOfOthers()
	const changed = "somebody has changed or deleted these in the hosted cluster, and they are being restored"
	switch {
	case !c.config.Board.Protected(): // never since the start
		return condition.False(kind, hypershiftv1beta1.ReasonProtectionMissing,
			listed("the admission policies are not in force yet", missing))
	case len(c.config.Board.blindTo()) > 0:
		return condition.False(kind, hypershiftv1beta1.ReasonProtectionMissing,
			listed("the operator may not read these in the hosted cluster and does not see what becomes of them",
				c.config.Board.blindTo()))
	case c.config.ClaimsOpen:
		return condition.False(kind, hypershiftv1beta1.ReasonOpenByFlag,
			"everybody may make NodeClaims: take --protect-nodeclaims=Open away")
	case len(missing) > 0:
		var parts []string
		if gone := c.config.Board.Missing(); len(gone) > 0 {
			parts = append(parts, listed(changed, gone))
		}
		if failed := c.config.Board.ruleMissing(); len(failed) > 0 {
			parts = append(parts, listed("these could not be written in the hosted cluster", failed))
		}
		return condition.False(kind, hypershiftv1beta1.ReasonProtectionMissing, strings.Join(parts, "; "))
	case len(ofOthers) > 0:
		return condition.False(kind, hypershiftv1beta1.ReasonProtectionMissing,
			"another operator is to write these in the hosted cluster, and they are missing or do not protect: "+
				strings.Join(ofOthers, ", "))
	case len(leftOut) > 0:
		return condition.False(kind, hypershiftv1beta1.ReasonRuleTooLarge, fmt.Sprintf(
			"the policy has too many values for the rule that NodeClaims have to keep, so it does not have %s: "+
				"list fewer; NodeClaims outside are found afterwards",
			strings.Join(leftOut[:min(len(leftOut), shownPaths)], ", ")))
	}
	return condition.True(kind, hypershiftv1beta1.ReasonInForce, "")
}

// listed adds a list, if there is anything in it, to a sentence.
func listed(sentence string, list []string) string {
	if len(list) == 0 {
		return sentence
	}
	return sentence + ": " + strings.Join(list, ", ")
}

// leave returns how long to leave Ready as an earlier process has written it: until this one knows, at most
// readyAfterStart after the first step.
func (c *PolicyController) leave(policy *hypershiftv1beta1.AutoNodePolicy, ready condition.Value) time.Duration {
	said, _ := condition.Get(policy.Status.Conditions, ready.Type)
	c.settled = c.settled || ready.Status != metav1.ConditionUnknown
	if c.settled || said.ObservedGeneration != policy.Generation {
		return 0
	}
	return c.early()
}

// alteredStatuses returns a message that the status of these wrappers is not stored as written.
func alteredStatuses(names []string) string {
	shown := slices.Clone(names[:min(len(names), shownPaths)])
	if more := len(names) - len(shown); more > 0 {
		shown = append(shown, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf(
		"The guest's API server changes the status of %d of them, which then tells its users something else: %s.",
		len(names), strings.Join(shown, ", "))
}

// surveyed is the result of a survey of all wrappers.
type surveyed struct {
	targets []merge.Target             // of all wrappers, for the policy's readiness
	altered []string                   // names of those whose status is not stored as written
	parties map[conformance.Party]bool // who must act on those that the policy is not applied to
}

// survey looks at all wrappers. It shows how many are in which state, and how many products belong to none (G18).
func (c *PolicyController) survey(ctx context.Context) (surveyed, error) {
	all := surveyed{parties: map[conformance.Party]bool{}}
	for _, kind := range c.config.Kinds {
		if kind.Shared && c.config.Board.leavesClasses() {
			continue
		}
		wrappers, err := c.list(ctx, kind.NewWrapperList())
		if err != nil {
			return surveyed{}, fmt.Errorf("listing %ss: %w", kind.Wrapper, err)
		}
		counts := map[wrapperState]int{}
		names := map[string]bool{}
		for _, wrapper := range wrappers {
			reached, v := c.config.Board.asReached(kind, wrapper)
			all.targets = append(all.targets, kind.Target(reached))
			if !v.statusAltered.IsZero() {
				all.altered = append(all.altered, kind.Wrapper+" "+wrapper.GetName())
			}
			said, _ := condition.Get(v.Conditions, hypershiftv1beta1.ConditionTypePolicyApplied)
			if said.Status == "" {
				said.Status = metav1.ConditionUnknown
			}
			party := v.cause.Party()
			if party != conformance.Nobody && wrapper.GetDeletionTimestamp() == nil {
				all.parties[party] = true
			}
			counts[wrapperState{said.Status, party}]++
			names[wrapper.GetName()] = true
		}
		c.config.Metrics.showWrappers(kind.Wrapper, counts)
		products, err := c.list(ctx, kind.NewProductList())
		if err != nil {
			return surveyed{}, fmt.Errorf("listing %ss: %w", kind.Product, err)
		}
		unmanaged, foreign := 0, 0
		for _, product := range products {
			if !names[product.GetName()] && !managed(product, kind.Wrapper) {
				unmanaged++
				if is, _ := c.config.Board.foreign(product); is {
					foreign++
				}
			}
		}
		c.config.Metrics.Unmanaged.WithLabelValues(kind.Product).Set(float64(unmanaged))
		c.config.Metrics.Foreign.WithLabelValues(kind.Product).Set(float64(foreign))
	}
	slices.Sort(all.altered)
	return all, nil
}

// list reads from the cache. Callers must not change the objects.
func (c *PolicyController) list(ctx context.Context, list client.ObjectList) ([]client.Object, error) {
	if err := c.config.Guest.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var objects []client.Object
	err := meta.EachListItem(list, func(item runtime.Object) error {
		objects = append(objects, item.(client.Object))
		return nil
	})
	return objects, err
}
