package whatif

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	kwokv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenterkwok/v1alpha1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/nearest"
	"github.com/joiner-autoscaler/joiner/internal/translate"
	"github.com/joiner-autoscaler/joiner/internal/view"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// LeaseName is the Lease of the leader, whether that is Joiner or Karpenter.
const LeaseName = "karpenter-leader-election"

// reasonNoClass is the reason of a condition about a missing node class.
const reasonNoClass = "NodeClassNotFound"

// ExplainPool returns what a NodePool launches, or why it launches nothing (U-04). The error says that the pool does
// not exist.
func (w *World) ExplainPool(name string) (Explained, error) {
	e := Explained{APIVersion: APIVersion, Kind: "Explanation", About: About{Kind: "NodePool", Name: name}}
	var pool *karpenterv1.NodePool
	var names []string
	for _, o := range w.objects {
		if found, isPool := o.Object.(*karpenterv1.NodePool); isPool {
			names = append(names, found.Name)
			if found.Name == name {
				pool = found
			}
		}
	}
	if pool == nil {
		return e, fmt.Errorf("there is no NodePool %s%s", name, nearest.Ask(name, names))
	}
	s := w.store.Snapshot()
	steps := w.poolSteps(pool)
	value := s.Pool(name)
	if value == nil {
		e.Explanation = view.Pool(name, "", steps)
		return e, nil
	}
	standing := engine.WhyPool(s, value)
	has := func(code cause.Code) bool {
		return slices.ContainsFunc(standing.Causes, func(s plan.Step) bool { return s.Cause == code })
	}
	if step, so := w.notReady(pool); so && len(steps) == 0 && !has(cause.NoInstanceTypes) {
		steps = append(steps, step)
	}
	for _, step := range standing.Causes {
		switch {
		case len(steps) > 0 && step.Cause == cause.NoDemand && len(standing.Demand) > 0:
			continue // the pods that wait are listed with what this pool says of them
		case step.Cause == cause.ReplicasBelow && replicasOff(pool) != "":
			step.Detail += ": " + replicasOff(pool)
		}
		steps = append(steps, step)
	}
	e.Pool = w.factsOf(s, value, standing)
	e.Explanation = view.Pool(name, e.Pool.launches(), steps)
	return e, nil
}

// replicasOff returns why nobody acts on the replicas of a static pool, "" if somebody does.
func replicasOff(pool *karpenterv1.NodePool) string {
	c, _ := condition.Get(pool.Status.Conditions, karpenterv1.ConditionTypeReplicasWithinLimits)
	if c.Reason == translate.GateDisabled {
		return c.Message
	}
	return ""
}

// poolSteps returns the causes found in the pool, its claims and the leader's Lease.
func (w *World) poolSteps(pool *karpenterv1.NodePool) []plan.Step {
	var steps []plan.Step
	add := func(code cause.Code, key, format string, args ...any) {
		steps = append(steps, plan.Step{Cause: code, Key: key, Detail: strings.Join(strings.Fields(fmt.Sprintf(format,
			args...)), " ")})
	}
	if code, text := w.leader(); code != "" {
		add(code, "", "%s", text)
	}
	if at := pool.DeletionTimestamp; at != nil {
		add(cause.BeingDeleted, "", "it is being deleted since %s, and %s", clock(at.Time), w.held(pool))
	}
	w.classSteps(pool, add)
	if c, found := condition.Get(pool.Status.Conditions, karpenterv1.ConditionTypeValidationSucceeded); found {
		if c.Status == metav1.ConditionFalse {
			add(cause.InvalidPool, "", "its specification cannot be understood: %s", c.Message)
		}
	} else if value := w.store.Snapshot().Pool(pool.Name); value != nil && value.Invalid &&
		pool.DeletionTimestamp == nil {
		add(cause.InvalidPool, "", "its specification cannot be understood: %s",
			strings.ReplaceAll(value.Blocked, "\n", "; "))
	}
	if pause := translate.PoolPauseOf(pool); pause.Launch && pool.DeletionTimestamp == nil {
		add(cause.PoolPaused, "", "it is paused: %s", pause.By())
	}
	w.claimSteps(pool, add)
	if c, _ := condition.Get(pool.Status.Conditions,
		karpenterv1.ConditionTypeLaunchesInVain); c.Status == metav1.ConditionTrue {
		add(cause.LaunchesInVain, "", "%s", c.Message)
	}
	return steps
}

// notReady returns why a pool is not Ready if no other cause says so. Its node class may offer nothing to its
// controller although the catalogue here does, or something is not known.
func (w *World) notReady(pool *karpenterv1.NodePool) (plan.Step, bool) {
	types, _ := condition.Get(pool.Status.Conditions, karpenterv1.ConditionTypeInstanceTypesCompatible)
	ready, found := condition.Get(pool.Status.Conditions, karpenterv1.ConditionTypeReady)
	ref := pool.Spec.Template.Spec.NodeClassRef
	switch {
	case !found || ready.Status == metav1.ConditionTrue:
		return plan.Step{}, false
	case types.Status == metav1.ConditionFalse:
		return plan.Step{Cause: cause.NoInstanceTypes, Key: "what is named", Detail: types.Message}, true
	case ready.Reason == reasonNoClass && ref != nil && w.hasClass(ref):
		return plan.Step{}, false // it could not be read
	}
	return plan.Step{Cause: cause.PoolNotReady, Detail: "it is not Ready: " +
		cmp.Or(ready.Message, ready.Reason, "no reason is given")}, true
}

// held returns what keeps a deleted pool.
func (w *World) held(pool *karpenterv1.NodePool) string {
	left := len(w.claimsOf(pool.Name))
	text := count(left, "NodeClaim of it is left", "NodeClaims of it are left")
	if len(pool.Finalizers) > 0 {
		text += "; its finalizers: " + strings.Join(pool.Finalizers, ", ")
	}
	return text
}

// leader returns the cause if nobody leads, Karpenter leads, or more than one does. Without a Lease nothing is known.
func (w *World) leader() (cause.Code, string) {
	leading, silent := w.leading()
	switch {
	case len(leading) > 1:
		return cause.OtherController, several(leading)
	case len(leading) == 1 && leading[0].Program == ProgramKarpenter:
		return cause.OtherController, fmt.Sprintf("Karpenter leads: the Lease %s is held by %s", leading[0].Lease,
			leading[0].Leader)
	case len(leading) == 1 || len(silent) == 0:
		return "", ""
	}
	last := latest(silent)
	if last.Last == "" || last.Since == nil {
		return cause.ControllerSilent, "nobody leads: the Lease " + last.Lease + " has no holder"
	}
	return cause.ControllerSilent, fmt.Sprintf("nobody leads: the Lease %s was not renewed since %s, by %s",
		last.Lease, clock(*last.Since), last.Last)
}

// classSteps adds the causes about a pool's node class.
func (w *World) classSteps(pool *karpenterv1.NodePool, add func(cause.Code, string, string, ...any)) {
	ref := pool.Spec.Template.Spec.NodeClassRef
	if ref == nil {
		return // the specification is what is wrong
	}
	class := ref.Kind + " " + ref.Name
	c, judged := condition.Get(pool.Status.Conditions, karpenterv1.ConditionTypeNodeClassReady)
	switch {
	case !(both{}).OwnsPool(pool):
		add(cause.KindNotServed, ref.Kind+"."+ref.Group, "nothing is planned for node classes of the kind %s.%s: "+
			"served are EC2NodeClass.%s and "+
			"KWOKNodeClass.%s", ref.Kind, ref.Group, awsv1.Group, kwokv1alpha1.Group)
	case judged && c.Status == metav1.ConditionTrue:
	case judged && c.Reason == reasonNoClass, !judged && !w.hasClass(ref):
		add(cause.NodeClassMissing, class, "there is no %s", class)
	case judged:
		add(cause.NodeClassNotReady, class, "%s is not Ready: %s", class,
			cmp.Or(c.Message, c.Reason, "no reason is given"))
	}
}

// hasClass reports whether a node class exists, or its kind could not be read.
func (w *World) hasClass(ref *karpenterv1.NodeClassReference) bool {
	return w.classes()[world.ClassRef{Group: ref.Group, Kind: ref.Kind, Name: ref.Name}] ||
		slices.ContainsFunc(w.Unread, func(what string) bool { return strings.Contains(what, ref.Group) })
}

// claimsOf are the NodeClaims of a pool, the youngest first.
func (w *World) claimsOf(pool string) []*karpenterv1.NodeClaim {
	var claims []*karpenterv1.NodeClaim
	for _, o := range w.objects {
		if claim, isClaim := o.Object.(*karpenterv1.NodeClaim); isClaim && translate.PoolOf(claim) == pool {
			claims = append(claims, claim)
		}
	}
	slices.SortFunc(claims, func(a, b *karpenterv1.NodeClaim) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	return claims
}

// claimSteps adds the causes about launches that the provider refuses, and machines that do not join. If a younger
// claim did better, older failures do not count.
func (w *World) claimSteps(pool *karpenterv1.NodePool, add func(cause.Code, string, string, ...any)) {
	claims := w.claimsOf(pool.Name)
	refused, first := 0, karpenterv1.Condition{}
	for _, claim := range claims {
		c, _ := condition.Get(claim.Status.Conditions, karpenterv1.ConditionTypeLaunched)
		if c.Status == metav1.ConditionTrue {
			break
		}
		if c.Status == metav1.ConditionFalse {
			if refused++; refused == 1 {
				first = c
			}
		}
	}
	if refused > 0 {
		add(cause.LaunchesFail, "", "the provider refuses %d of the %d NodeClaims that it has: %s: %s", refused,
			len(claims),
			first.Reason, first.Message)
	}
	if c, _ := condition.Get(pool.Status.Conditions,
		karpenterv1.ConditionTypeNodeRegistrationHealthy); c.Status == metav1.ConditionFalse {
		add(cause.NodesNeverJoin, "", "machines are launched and do not join: %s", c.Message)
		return
	}
	for _, claim := range claims {
		c, _ := condition.Get(claim.Status.Conditions, karpenterv1.ConditionTypeRegistered)
		switch c.Status {
		case metav1.ConditionTrue:
			return
		case metav1.ConditionFalse:
			add(cause.NodesNeverJoin, "", "machines are launched and do not join: NodeClaim %s: %s", claim.Name,
				c.Message)
			return
		}
	}
}

// paused returns what pauses voluntary disruption in the whole cluster, from a ConfigMap or the pool's status, and
// when that ends by itself. It returns "" without a pause.
func (w *World) paused(pool *karpenterv1.NodePool) (text string, until time.Time) {
	for _, o := range w.objects {
		if object, is := o.Object.(*corev1.ConfigMap); is && object.Name == translate.SwitchName {
			pause := translate.PauseOf(object.Data, w.now)
			if !pause.On {
				return "", until
			}
			return pause.By(object.Namespace + "/" + object.Name), pause.Until
		}
	}
	if pool != nil && pool.Status.Disruption != nil &&
		pool.Status.Disruption.Paused != translate.PoolPauseOf(pool).Holds(pool.Name) {
		return pool.Status.Disruption.Paused, until
	}
	return "", until
}

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }
