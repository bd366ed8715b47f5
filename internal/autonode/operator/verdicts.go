package operator

import (
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/conformance"
	"github.com/joiner-autoscaler/joiner/internal/condition"
)

// Verdict is what a step of this process found out about a wrapper. The policy's readiness depends on verdicts
// only. A wrapper's status is for its users, and administrators of the guest can change it.
type Verdict struct {
	// UID and Generation are the wrapper's.
	UID        types.UID
	Generation int64
	// Observed is the state of the policy that the verdict is about; nil for none.
	Observed *hypershiftv1.ObservedPolicy
	// Conditions are PolicyApplied and the conditions of the merge. Their transition times are not set.
	Conditions []karpenterv1.Condition

	// cause is why the policy is not applied, "" if it is, or if the reason is unknown.
	cause conformance.Cause
	// stands is the product if it is as policy and wrapper want it, or was so for this policy and has not changed
	// since.
	stands standing
	// astray says that somebody else has changed the product, which cannot be restored since something is missing.
	astray        bool
	statusAltered time.Time // when the guest's API server stored another status than written; zero if it did not
}

// standing is a state of a product; it is comparable.
type standing struct {
	found      bool
	uid        types.UID
	generation int64
}

// standingAfter returns the standing of a product after a step. It keeps the previous standing if the step could not
// merge, but not if the product could not be written or is altered.
func standingAfter(s scene, out outcome, before Verdict) standing {
	if out.product == nil {
		return standing{}
	}
	now := standingOf(out.product)
	switch made := out.made; {
	case out.refused == nil && len(made.Problems) == 0 && made.Missing == "":
		return now
	case made.Product == nil && before.stands == now && samePolicy(before.Observed, s.reading.Policy):
		return now
	}
	return standing{}
}

// verdict returns the verdict of a step, nil if the step did not know the policy. kind is the product's; before is the
// last verdict about the wrapper, the zero value for none.
func verdict(kind string, s scene, out outcome, before Verdict) *Verdict {
	if out.made == nil {
		return nil
	}
	v := Verdict{UID: s.wrapper.GetUID(), Generation: s.wrapper.GetGeneration(), Observed: observed(s.reading.Policy)}
	v.stands, v.cause = standingAfter(s, out, before), failure(kind, s.reading, out)
	if v.cause == "" && s.reading.State == StatePermissive {
		v.cause = conformance.PolicyUnreadable
	}
	for _, value := range append(slices.Clone(out.made.Conditions), verdictOf(s.reading, out)) {
		condition.Set(&v.Conditions, v.Generation, value, time.Time{})
	}
	return &v
}

// applied reports whether the verdict says that the policy is applied.
func (v Verdict) applied() bool {
	return condition.IsTrue(v.Conditions, hypershiftv1beta1.ConditionTypePolicyApplied)
}

// same reports whether two verdicts are the same, apart from whether the status was altered.
func (v Verdict) same(other Verdict) bool {
	v.statusAltered, other.statusAltered = time.Time{}, time.Time{}
	return reflect.DeepEqual(v, other)
}

// verdictKey identifies a wrapper.
type verdictKey struct{ kind, name string }

// Reach stores a verdict, and notifies the listener if it is news.
func (b *Board) Reach(kind, name string, v Verdict) {
	b.mu.Lock()
	before := b.verdicts[verdictKey{kind, name}] // the zero value for none
	b.verdicts[verdictKey{kind, name}] = v
	tell := b.tell
	b.mu.Unlock()
	if tell != nil && (!before.same(v) || before.statusAltered.IsZero() != v.statusAltered.IsZero()) {
		tell(kind, name)
	}
}

// Forget removes a verdict: the wrapper is gone, or its state is no longer known.
func (b *Board) Forget(kind, name string) {
	b.mu.Lock()
	_, found := b.verdicts[verdictKey{kind, name}]
	delete(b.verdicts, verdictKey{kind, name})
	tell := b.tell
	b.mu.Unlock()
	if found && tell != nil {
		tell(kind, name)
	}
}

// Verdict returns the verdict about the present generation of a wrapper. A verdict about another object of that name,
// or about an earlier generation, does not count.
func (b *Board) Verdict(kind string, wrapper client.Object) (Verdict, bool) {
	v, found := b.lastVerdict(kind, wrapper)
	if v.Generation < wrapper.GetGeneration() {
		return Verdict{}, false
	}
	return v, found
}

// lastVerdict returns the verdict about a wrapper, of any generation.
func (b *Board) lastVerdict(kind string, wrapper client.Object) (Verdict, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v := b.verdicts[verdictKey{kind, wrapper.GetName()}]
	if v.UID != wrapper.GetUID() {
		return Verdict{}, false
	}
	return v, true
}

// OnVerdict sets the listener for news about a wrapper. Call it once, before the controllers start.
func (b *Board) OnVerdict(tell func(kind, name string)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tell = tell
}

// asReached returns an object of the wrapper's kind with the status that the board's verdict implies, empty if there
// is no verdict. The wrapper's own status does not count.
func (b *Board) asReached(kind Kind, wrapper client.Object) (client.Object, Verdict) {
	said := kind.NewWrapper()
	said.SetName(wrapper.GetName())
	said.SetDeletionTimestamp(wrapper.GetDeletionTimestamp())
	v, _ := b.Verdict(kind.Wrapper, wrapper)
	*kind.State(said).Conditions, *kind.State(said).ObservedPolicy = v.Conditions, v.Observed
	return said, v
}
