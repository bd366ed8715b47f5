package conformance

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/autonodepolicy/fold"
)

// Look judges every object.
func Look(input Input) Report {
	l := newLook(input)
	l.policyItself()
	for i := range input.Objects.Classes {
		l.class(&input.Objects.Classes[i])
	}
	for i := range input.Objects.Pools {
		l.pool(&input.Objects.Pools[i])
	}
	for i := range input.Objects.Claims {
		l.claim(&input.Objects.Claims[i])
	}
	for i := range input.Objects.Nodes {
		l.node(&input.Objects.Nodes[i])
	}
	return l.report()
}

// look is one look at everything.
type look struct {
	Input
	allowed fold.Set           // by the policy
	least   map[fold.Key]int   // minValues of the policy
	pools   map[types.UID]bool // those that exist
	classes map[string]bool    // those that exist
	claims  map[string]*karpenterv1.NodeClaim
	strays  map[string]map[fold.Key]Finding // by provider ID of a claim: labels outside of the policy
	found   []Finding
	judged  map[Product]State
}

func newLook(input Input) *look {
	l := &look{
		Input: input, pools: map[types.UID]bool{}, classes: map[string]bool{},
		claims: map[string]*karpenterv1.NodeClaim{},
		strays: map[string]map[fold.Key]Finding{}, judged: map[Product]State{},
	}
	if input.Policy != nil {
		entries := input.Policy.Spec.NodePoolDefaults.Requirements
		l.allowed, l.least = folded(entries, nil), leastOf(entries)
	}
	for _, pool := range input.Objects.Pools {
		l.pools[pool.UID] = true
	}
	for _, class := range input.Objects.Classes {
		l.classes[class.Name] = true
	}
	for i := range input.Objects.Claims {
		if claim := &input.Objects.Claims[i]; claim.Status.ProviderID != "" {
			l.claims[claim.Status.ProviderID] = claim
		}
	}
	return l
}

// add notes a finding and what it makes of its object.
func (l *look) add(f Finding) {
	l.found = append(l.found, f)
	product := Product{f.Kind, f.Name}
	l.judged[product] = graver(l.judged[product], f.State)
}

// seen notes an object that is looked at, before anything is found.
func (l *look) seen(kind, name string) { l.judged[Product{kind, name}] = Conforms }

// graver orders states: the gravest of an object's findings is the object's. Every state is graver than none.
func graver(a, b State) State {
	order := []State{Conforms, Replacing, NotKnown, NotConforming}
	return order[max(slices.Index(order, a), slices.Index(order, b))]
}

// fresh reports whether the process has not had the time to look at everything once.
func (l *look) fresh() bool { return l.Now.Sub(l.Memory.Began) < l.Settings.Settle }

// young reports whether an object is younger than what may be under way.
func (l *look) young(object metav1.Object) bool {
	return l.Now.Sub(object.GetCreationTimestamp().Time) < l.Settings.Settle
}

// policyItself tells what is wrong with the policy, or with what keeps it in force.
func (l *look) policyItself() {
	name := ""
	if l.Policy != nil {
		name = l.Policy.Name
	}
	switch l.State {
	case PolicyIsBad:
		l.add(Finding{Policy, name, NotKnown, PolicyInvalid, "",
			"mend the policy: it is not valid, and the last valid one holds"})
	case PolicyIsUnread:
		l.add(Finding{Policy, name, NotKnown, PolicyUnreadable, "",
			"give the operator the right to read the policy: it cannot, and enforces none"})
	}
	if l.Memory.Unprotected {
		l.add(Finding{Policy, name, NotConforming, ProtectionMissing, "",
			"an admission policy of the operator's is not in force: everyone can write what they like past the wrappers"})
	}
}

// age says whether an object came before the policy's present generation, as far as that is known.
type age int

const (
	younger age = iota
	older
	unclear
)

// age is asked only about what is outside of a policy, so there is one.
func (l *look) age(object metav1.Object) age {
	made := object.GetCreationTimestamp().Time
	switch {
	case l.Memory.PolicySince.IsZero() && l.Policy.Generation == 1:
		// Nobody has changed the policy: it is in force since it was made.
		return ageAt(made, l.Policy.CreationTimestamp.Add(l.Settings.Settle))
	case !l.Memory.PolicySince.IsZero():
		return ageAt(made, l.Memory.PolicySince.Add(l.Settings.Settle))
	case made.Before(l.Memory.Began.Add(l.Settings.Clocks)):
		return unclear
	}
	return younger
}

func ageAt(made, since time.Time) age {
	if made.Before(since) {
		return older
	}
	return younger
}

// late says what becomes of an object that is outside of the policy because it is older: its node is replaced, for a
// while.
func (l *look) late() State {
	since := l.Memory.PolicySince
	if since.IsZero() {
		since = l.Policy.CreationTimestamp.Time
	}
	if l.Now.Sub(since) < l.Settings.Grace {
		return Replacing
	}
	return NotConforming
}

// byAge returns state and cause of what is outside of the policy: because of its age, or by the cause given.
func (l *look) byAge(object metav1.Object, otherwise Cause) (State, Cause) {
	switch l.age(object) {
	case older:
		return l.late(), PolicyChanged
	case unclear:
		return NotConforming, Unclear
	}
	return NotConforming, otherwise
}

// stray is the cause of a product that the operator has not written: it was there before the guest was protected, or
// was made while the protection was away.
func (l *look) stray(object metav1.Object) (State, Cause) {
	switch {
	case l.fresh():
		return NotKnown, Unclear
	case l.Memory.Protected.IsZero():
		return NotConforming, Unclear
	case object.GetCreationTimestamp().After(l.Memory.Protected.Add(l.Settings.Clocks)):
		return NotConforming, Foreign
	}
	return NotConforming, Legacy
}

// written is what the operator made of a product, if this one is it: every object of an API server has a UID.
func (l *look) written(kind string, object metav1.Object) (Written, bool) {
	w := l.Memory.Written[Product{kind, object.GetName()}]
	return w, w.UID == object.GetUID()
}

// whose is the state and cause of a product that is the operator's and not as the policy wants it.
func (l *look) whose(w Written) (State, Cause) {
	switch {
	case w.Altered:
		return NotConforming, AlteredOnWrite
	case w.Failed != "":
		return NotConforming, w.Failed
	case l.Policy != nil && w.Policy == l.Policy.Generation:
		return NotConforming, WrittenByOther
	case l.Now.Sub(l.Memory.PolicySince) < l.Settings.Settle || l.fresh():
		return Replacing, PolicyChanged
	}
	return NotConforming, OperatorError
}

func (l *look) report() Report {
	slices.SortStableFunc(l.found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Field, b.Field),
			cmp.Compare(a.Cause, b.Cause))
	})
	return newReport(l.found, l.judged)
}
