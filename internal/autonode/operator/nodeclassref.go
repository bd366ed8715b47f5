package operator

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterawsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/condition"
)

const (
	// classAgainAfter is when to look again for a class that is being made, if no event comes.
	classAgainAfter = 10 * time.Second
	// classPatience is how long a pool keeps its status while its class is being brought in line with a policy. That
	// mostly takes a moment, and saves one of two writes of each pool's status. It is also how long writes of a
	// product may fail before that counts.
	classPatience = 5 * time.Second
)

// OnlyManaged returns the kind of pools whose EC2NodeClass must be made from a wrapper of kind classes. classes
// is nil for a platform without such wrappers. Node classes of other kinds have no wrapper, and count as managed.
func (k Kind) OnlyManaged(classes *Kind) Kind {
	k.class = func(product client.Object) (string, bool) {
		ref := product.(*karpenterv1.NodePool).Spec.Template.Spec.NodeClassRef
		if ref == nil { // the guest's admin can change the definition
			return "", false
		}
		return ref.Name, ref.Kind == karpenterawsv1.EC2NodeClassKind && ref.Group == karpenterawsv1.Group
	}
	k.classes = classes
	return k
}

// ClassOf returns the name of the EC2NodeClass that a pool's user asks for, "" if the pool names another kind.
func ClassOf(pool *hypershiftv1beta1.OpenshiftNodePool) string {
	ref := pool.Spec.Template.Spec.NodeClassRef
	switch {
	case ref == nil:
		return DefaultClassName
	case ref.Group == karpenterawsv1.Group || ref.Group == hypershiftv1beta1.Group:
		return ref.Name
	}
	return ""
}

// classState is what is known about the node class of a pool.
type classState int

const (
	classManaged classState = iota
	// there is a wrapper, but its product is not yet in line with this policy, or was not looked at
	classPending
	classNotApplied // it could not be brought in line
	classUnmanaged  // there is no wrapper
)

// lookAtClass returns the state of the node class that a product refers to. For an existing pool, only the API server
// is trusted that there is no wrapper: closing the pool costs it its nodes.
func (c *Controller) lookAtClass(ctx context.Context, s scene, name string) (classState, error) {
	classes := c.config.Kind.classes
	if classes == nil {
		return classUnmanaged, nil
	}
	wrapper := classes.NewWrapper()
	err := c.config.Guest.Get(ctx, client.ObjectKey{Name: name}, wrapper)
	if apierrors.IsNotFound(err) && s.product != nil {
		err = c.config.Live.Get(ctx, client.ObjectKey{Name: name}, wrapper)
	}
	switch {
	case apierrors.IsNotFound(err):
		return classUnmanaged, nil
	case err != nil:
		return classPending, fmt.Errorf("looking for %s %s: %w", classes.Wrapper, name, err)
	case wrapper.GetDeletionTimestamp() != nil:
		return classUnmanaged, nil
	case classes.ByOther || c.config.Board.leavesClasses():
		return c.lookAtOthersClass(ctx, name)
	}
	v, _ := c.config.Board.lastVerdict(classes.Wrapper, wrapper)
	switch {
	case !samePolicy(v.Observed, s.reading.Policy):
		return classPending, nil
	case v.stands.found:
		return classManaged, nil
	case v.astray:
		return classNotApplied, nil
	}
	said, _ := condition.Get(v.Conditions, hypershiftv1beta1.ConditionTypePolicyApplied)
	if said.Status == metav1.ConditionFalse {
		return classNotApplied, nil
	}
	return classPending, nil
}

// lookAtOthersClass finds out whether another operator has made the node class of a wrapper. Its content is not
// this operator's business: the condition Conforming reports differences from the policy.
func (c *Controller) lookAtOthersClass(ctx context.Context, name string) (classState, error) {
	classes := c.config.Kind.classes
	product := classes.NewProduct()
	err := c.config.Guest.Get(ctx, client.ObjectKey{Name: name}, product)
	switch {
	case apierrors.IsNotFound(err):
		return classPending, nil
	case err != nil:
		return classPending, fmt.Errorf("looking for %s %s: %w", classes.Product, name, err)
	case product.GetDeletionTimestamp() != nil:
		return classPending, nil
	}
	return classManaged, nil
}

// guardClass lets a pool launch nodes of managed classes only. Otherwise it withholds a new product, and closes an
// existing one. later says to end the step here for now.
func (c *Controller) guardClass(ctx context.Context, s scene, made *Made) (later bool, err error) {
	kind := c.config.Kind
	if kind.class == nil || made.Product == nil {
		return false, nil
	}
	name, ofWrapper := kind.class(made.Product)
	state := classManaged
	if ofWrapper {
		if state, err = c.lookAtClass(ctx, s, name); err != nil {
			return false, err
		}
	}
	const said = hypershiftv1beta1.ConditionTypeNodeClassManaged
	switch state {
	case classManaged:
		c.trusted.set(s.name, name)
		made.Conditions = append(made.Conditions, condition.True(said, hypershiftv1beta1.ReasonManaged, ""))
	case classPending:
		made.Missing, made.RetryAfter = fmt.Sprintf("node class %s is not in line with the provider's policy yet",
			name), classAgainAfter
		if kind.classes.ByOther || c.config.Board.leavesClasses() {
			made.Missing = fmt.Sprintf("node class %s is not made yet", name)
		}
		// A pool does not follow a new reference to such a class: somebody may have made it past the wrappers, and it
		// may stay so for good, for example if a version is never resolved. Keeping the former reference would need
		// that class to be looked at too. The nodes drift by the new reference anyway.
		if s.product == nil {
			made.Product = nil
		} else if !c.trusted.has(s.name, name) {
			closePool(made.Product)
			made.Missing += "; until then the pool launches nothing"
		}
		made.Conditions = append(made.Conditions, condition.Unknown(said, ReasonWaiting, made.Missing))
	case classNotApplied, classUnmanaged:
		c.trusted.set(s.name, "")
		problem := merge.Problem{Reason: hypershiftv1beta1.ReasonNodeClassUnmanaged,
			Field: "spec.template.spec.nodeClassRef", Message: fmt.Sprintf(
				"names node class %s, which no OpenshiftEC2NodeClass of this name stands behind: create it, "+
					"or name another. Until then the pool launches nothing",
				name)}
		if state == classNotApplied {
			problem.Reason = hypershiftv1beta1.ReasonNodeClassNotApplied
			problem.Message =
				fmt.Sprintf(
					"names node class %s, whose OpenshiftEC2NodeClass says in PolicyApplied why it is not applied. "+
						"Until it is, the pool launches nothing",
					name)
		}
		made.Problems = append(made.Problems, problem)
		made.Conditions = append(made.Conditions, condition.False(said, problem.Reason, problem.String()))
		if s.product == nil {
			made.Product = nil
		} else {
			closePool(made.Product)
		}
	}
	return c.patience.holds(s.name, state == classPending && s.product != nil, c.config.Now()), nil
}

// nothing is an entry that the API accepts and no instance type satisfies (G10).
func nothing() karpenterv1.NodeSelectorRequirementWithMinValues {
	return karpenterv1.NodeSelectorRequirementWithMinValues{Key: corev1.LabelInstanceTypeStable,
		Operator: corev1.NodeSelectorOpDoesNotExist}
}

// closePool makes a NodePool launch nothing. A full list loses its last entry: nothing is left anyway.
func closePool(product client.Object) {
	spec := &product.(*karpenterv1.NodePool).Spec.Template.Spec
	if isClosed(product) {
		return
	}
	spec.Requirements = append(spec.Requirements[:min(len(spec.Requirements), merge.MaxRequirements-1)], nothing())
}

// isClosed reports whether a NodePool ends with the entry that closes it.
func isClosed(product client.Object) bool {
	entries := product.(*karpenterv1.NodePool).Spec.Template.Spec.Requirements
	return len(entries) > 0 && reflect.DeepEqual(entries[len(entries)-1], nothing())
}

// patience remembers since when something has been waited for, by name. It is safe for concurrent use.
type patience struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// holds reports whether the thing of that name waits, and has waited for less than classPatience.
func (p *patience) holds(name string, waits bool, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !waits {
		delete(p.since, name)
		return false
	}
	if p.since == nil {
		p.since = map[string]time.Time{}
	}
	since, found := p.since[name]
	if !found {
		p.since[name], since = now, now
	}
	return now.Sub(since) < classPatience
}

func (p *patience) forget(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.since, name)
}
