package plug

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/kube/patch"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/class"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/refusal"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
)

// EventWaiting means that a class being deleted waits for claims, EventAMI that its images have changed (E-04, E-10).
const (
	EventWaiting = "WaitingOnNodeClaimTermination"
	EventAMI     = resolve.AMIChanged
)

// waitingEvery is how often a class that waits for claims sends its event (E-04).
const waitingEvery = 10 * time.Minute

// classes is the singleton that resolves EC2NodeClasses. It resolves all of them together, so that AWS gets equal
// questions only once.
type classes struct {
	*link
	trials trials
	told   map[string]time.Time // by UID of a class: when it last sent EventWaiting
	lacks  map[types.UID]string // by UID of a pool: the last text of its event
}

func newClasses(l *link) *classes {
	return &classes{link: l, trials: trials{}, told: map[string]time.Time{}, lacks: map[types.UID]string{}}
}

func sameAnnotations(a, b client.Object) bool {
	return maps.Equal(a.GetAnnotations(), b.GetAnnotations())
}

// Reconcile implements reconcile.Reconciler.
func (k *classes) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	var list awsv1.EC2NodeClassList
	var claims karpenterv1.NodeClaimList
	if err := errors.Join(k.deps.Client.List(ctx, &list), k.deps.Client.List(ctx, &claims)); err != nil {
		return reconcile.Result{}, err
	}
	slices.SortFunc(list.Items, func(a, b awsv1.EC2NodeClass) int { return strings.Compare(a.Name, b.Name) })
	c := k.connected()
	if c == nil {
		return reconcile.Result{}, k.unreached(ctx, list.Items)
	}
	var live []*awsv1.EC2NodeClass
	var failures []error
	again := leastRefresh
	for i := range list.Items {
		each := &list.Items[i]
		if each.DeletionTimestamp != nil {
			failures = append(failures, k.end(ctx, c, each, claims.Items))
			continue
		}
		if patch.LosesOriginal(each) {
			continue
		}
		if err := k.prepare(ctx, each, claims.Items); err != nil {
			failures = append(failures, err)
			continue
		}
		live = append(live, each)
	}
	results := c.resolver.Resolve(ctx, live, k.known().kubernetes)
	c.machines.Resolved(live, results)
	k.expire(ctx, c, results)
	for _, each := range live {
		after, err := k.conclude(ctx, c, each, results[each.Name], claims.Items)
		again = min(again, after)
		failures = append(failures, err)
	}
	k.trials.forget(list.Items)
	return reconcile.Result{RequeueAfter: max(again, time.Second)}, errors.Join(failures...)
}

// unreached sends each class an event that says why AWS cannot be reached. Their status stays: this is not their fault
// (E-03).
func (k *classes) unreached(ctx context.Context, list []awsv1.EC2NodeClass) error {
	why := k.why()
	if why.Reason == reasonStarting {
		return nil
	}
	var failures []error
	for i := range list {
		each := &list[i]
		k.deps.Events.Event(each, event.Warning, why.Reason, why.Message)
		if _, found := condition.Get(each.Status.Conditions, karpenterv1.ConditionTypeReady); found ||
			each.DeletionTimestamp != nil {
			continue
		}
		after := each.DeepCopy()
		condition.Set(&after.Status.Conditions, each.Generation,
			condition.Unknown(karpenterv1.ConditionTypeReady, why.Reason, why.Message), k.deps.Now())
		failures = append(failures, k.deps.Client.Status().Patch(ctx, after,
			client.MergeFromWithOptions(each, client.MergeFromWithOptimisticLock{})))
	}
	return errors.Join(failures...)
}

// prepare gives a class its finalizer and its drift hash. If another program or release wrote the hash of its claims,
// it updates these too (E-05). A claim that has drifted already stays drifted.
func (k *classes) prepare(ctx context.Context, each *awsv1.EC2NodeClass, claims []karpenterv1.NodeClaim) error {
	hash, err := class.Hash(each)
	if err != nil {
		return err
	}
	if each.Annotations[class.HashVersionKey] != class.HashVersion {
		for i := range claims {
			if err := k.annotate(ctx, &claims[i], each, hash); err != nil {
				return err
			}
		}
	}
	if each.Annotations[class.HashKey] == hash && each.Annotations[class.HashVersionKey] == class.HashVersion &&
		controllerutil.ContainsFinalizer(each, class.Finalizer) {
		return nil
	}
	before := each.DeepCopy()
	if each.Annotations == nil {
		each.Annotations = map[string]string{}
	}
	each.Annotations[class.HashKey], each.Annotations[class.HashVersionKey] = hash, class.HashVersion
	controllerutil.AddFinalizer(each, class.Finalizer)
	if err := k.deps.Client.Patch(ctx, each,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("annotating EC2NodeClass %s: %w", each.Name, err)
	}
	return nil
}

// annotate writes the class's hash on a claim, unless it has one of our version. A drifted claim gets only the
// version.
func (k *classes) annotate(ctx context.Context, claim *karpenterv1.NodeClaim, of *awsv1.EC2NodeClass,
	hash string) error {
	if !refers(claim) || claim.Spec.NodeClassRef.Name != of.Name ||
		claim.Annotations[class.HashVersionKey] == class.HashVersion || claim.DeletionTimestamp != nil {
		return nil
	}
	after := claim.DeepCopy()
	if after.Annotations == nil {
		after.Annotations = map[string]string{}
	}
	after.Annotations[class.HashVersionKey] = class.HashVersion
	if !condition.IsTrue(claim.Status.Conditions, karpenterv1.ConditionTypeDrifted) {
		after.Annotations[class.HashKey] = hash
	}
	err := k.deps.Client.Patch(ctx, &karpenterv1.NodeClaim{ObjectMeta: metaOf(claim)}, patch.Meta(claim, after))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("annotating NodeClaim %s: %w", claim.Name, err)
	}
	return nil
}

// conclude tries a class by a dry run, and writes its status.
func (k *classes) conclude(
	ctx context.Context, c *connection, each *awsv1.EC2NodeClass, r resolve.Result, claims []karpenterv1.NodeClaim,
) (again time.Duration, err error) {
	r = k.fit(ctx, c, each, r)
	again = r.After
	status := r.Status
	status.Subnets = inOrder(each.Status.Subnets, status.Subnets)
	problems := class.Problems(each, r, k.known().join, k.settings.clusterName)
	if text, until := c.machines.Failing(each.UID); text != "" {
		problems = append(problems, class.Problem{Reason: class.ReasonInstancesFail, Message: text, Unknown: true})
		again = min(again, until.Sub(k.deps.Now()))
	}
	if len(problems) == 0 && !k.settings.dryRunOff {
		problem, after, accepted := k.trials.judge(ctx, k, c, each, status, r.Conditions)
		again = min(again, after)
		if problem != nil {
			problems = append(problems, *problem)
		}
		if accepted {
			c.resolver.ProfileAccepted(status.InstanceProfile)
			if propagating(r.Conditions) {
				again = 0
			}
		}
	}
	before := each.DeepCopy()
	each.Status = status
	each.Status.Conditions = before.Status.DeepCopy().Conditions
	conclusions := class.With(r.Conditions, problems)
	for _, each1 := range conclusions {
		condition.Set(&each.Status.Conditions, each.Generation,
			condition.Value{Type: each1.Type, Status: each1.Status, Reason: each1.Reason, Message: each1.Message},
			k.deps.Now())
	}
	dropOthers(&each.Status.Conditions, conclusions)
	k.meterOf(each, r)
	if !equality.Semantic.DeepEqual(before.Status, each.Status) {
		err := k.deps.Client.Status().Patch(ctx, each,
			client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return time.Second, nil // somebody else has written; try again
		}
		if err != nil {
			return again, fmt.Errorf("writing the status of EC2NodeClass %s: %w", each.Name, err)
		}
	}
	if len(r.AMIChanges) > 0 {
		k.deps.Events.Event(each, event.Normal, EventAMI, resolve.AMIChangedText(r.AMIChanges, func(image string) int {
			return countOf(claims, each.Name, image)
		}))
	}
	return again, nil
}

// countOf returns how many claims of a class run an image.
func countOf(claims []karpenterv1.NodeClaim, name, image string) int {
	n := 0
	for i := range claims {
		if refers(&claims[i]) && claims[i].Spec.NodeClassRef.Name == name && claims[i].Status.ImageID == image {
			n++
		}
	}
	return n
}

// inOrder keeps the order of the status while the subnets are the same: their free addresses change all the time, and
// the provider counts these by itself.
func inOrder(before, now []awsv1.Subnet) []awsv1.Subnet {
	key := func(s awsv1.Subnet) string { return s.ID + " " + s.Zone + " " + s.ZoneID }
	in := func(list []awsv1.Subnet) map[string]bool {
		set := map[string]bool{}
		for _, s := range list {
			set[key(s)] = true
		}
		return set
	}
	if len(before) == len(now) && maps.Equal(in(before), in(now)) {
		return before
	}
	return now
}

// dropOthers removes our conditions that no longer apply, such as that of a removed selector.
func dropOthers(list *[]karpenterv1.Condition, kept []karpenterv1.Condition) {
	for _, kind := range []string{resolve.CapacityReservationsReady, resolve.PlacementGroupReady} {
		if !slices.ContainsFunc(kept, func(c karpenterv1.Condition) bool { return c.Type == kind }) {
			condition.Clear(list, kind)
		}
	}
}

func propagating(list []karpenterv1.Condition) bool {
	return slices.ContainsFunc(list, func(c karpenterv1.Condition) bool { return c.Reason == resolve.Propagating })
}

func (k *classes) meterOf(each *awsv1.EC2NodeClass, r resolve.Result) {
	if bytes, known := class.UserDataBytes(each, k.known().join); known {
		k.meter.rendered(each, bytes)
	}
	age := 0.0
	if !r.StaleSince.IsZero() {
		age = k.deps.Now().Sub(r.StaleSince).Seconds()
	}
	k.meter.stale.WithLabelValues(each.Name).Set(age)
}

// end removes the finalizer of a class that nobody refers to, after everything that was created for it (E-04).
func (k *classes) end(ctx context.Context, c *connection, each *awsv1.EC2NodeClass,
	claims []karpenterv1.NodeClaim) error {
	if !controllerutil.ContainsFinalizer(each, class.Finalizer) {
		return nil
	}
	var waits []string
	for i := range claims {
		if refers(&claims[i]) && claims[i].Spec.NodeClassRef.Name == each.Name {
			waits = append(waits, claims[i].Name)
		}
	}
	if len(waits) > 0 {
		if now := k.deps.Now(); now.Sub(k.told[string(each.UID)]) >= waitingEvery {
			k.told[string(each.UID)] = now
			k.deps.Events.Event(each, event.Normal, EventWaiting, waitingText(waits))
		}
		return nil
	}
	if _, err := c.machines.Keeper().CollectOf(ctx, each.Name, k.deps.Now()); err != nil {
		return fmt.Errorf("deleting the launch templates of EC2NodeClass %s: %w", each.Name, err)
	}
	err := c.resolver.RemoveProfiles(ctx, string(each.UID))
	if each.Spec.InstanceProfile != nil && refusal.Of(err).Class == refusal.Rights {
		// The rights for profiles of ours may be missing where users name theirs (docs/aws-rights.md).
		k.deps.Log.Info("no right to look for instance profiles of ours; the class names one of its users", "class",
			each.Name, "reason", oneLine(err))
		err = nil
	}
	if err != nil {
		return fmt.Errorf("deleting the instance profiles of EC2NodeClass %s: %w", each.Name, err)
	}
	delete(k.told, string(each.UID))
	k.meter.forget(each.Name)
	c.machines.Forget(each.Name)
	err = k.deps.Client.Patch(ctx, &awsv1.EC2NodeClass{ObjectMeta: metaOf(each)},
		patch.RemoveFinalizer(each, class.Finalizer))
	return client.IgnoreNotFound(err)
}

// waitingText names up to five claims.
func waitingText(names []string) string {
	const most = 5
	slices.Sort(names)
	text := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("%d NodeClaims still refer to it: %s", len(names), text)
}
