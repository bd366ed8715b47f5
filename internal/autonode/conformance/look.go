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

// Look judges every object and returns a report.
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
	strays  map[string]map[fold.Key]Finding // labels outside of the policy, by provider ID of the claim
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

// add records a finding, and the resulting state of its object.
func (l *look) add(f Finding) {
	l.found = append(l.found, f)
	product := Product{f.Kind, f.Name}
	l.judged[product] = graver(l.judged[product], f.State)
}

// seen records an object before it is judged.
func (l *look) seen(kind, name string) { l.judged[Product{kind, name}] = Conforms }

// graver returns the graver of two states. An object has the gravest state of its findings. Every state is graver than
// none.
func graver(a, b State) State {
	order := []State{Conforms, Replacing, NotKnown, NotConforming}
	return order[max(slices.Index(order, a), slices.Index(order, b))]
}

// fresh reports whether the process has not yet had time to look at everything once.
func (l *look) fresh() bool { return l.Now.Sub(l.Memory.Began) < l.Settings.Settle }

// young reports whether an object is so new that writes about it may be under way.
func (l *look) young(object metav1.Object) bool {
	return l.Now.Sub(object.GetCreationTimestamp().Time) < l.Settings.Settle
}

// policyItself adds findings about the policy itself, or about what keeps it in force.
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

// age says whether an object is older than the policy's present generation, as far as known.
type age int

const (
	younger age = iota
	older
	unclear
)

// age is called only for objects outside of the policy, so there is a policy.
func (l *look) age(object metav1.Object) age {
	made := object.GetCreationTimestamp().Time
	switch {
	case l.Memory.PolicySince.IsZero() && l.Policy.Generation == 1:
		// Nobody has changed the policy: it has been in force since its creation.
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

// late returns the state of an object that is outside of the policy because it is older: Replacing, for a while.
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

// byAge returns state and cause of an object outside of the policy: its age, or the given cause.
func (l *look) byAge(object metav1.Object, otherwise Cause) (State, Cause) {
	switch l.age(object) {
	case older:
		return l.late(), PolicyChanged
	case unclear:
		return NotConforming, Unclear
	}
	return NotConforming, otherwise
}

// stray returns state and cause of a product that the operator has not written: it is older than the protection of the
// guest, or was made while the protection was missing.
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

// written returns what the operator knows about a product, if it is this very object: UIDs tell objects apart.
func (l *look) written(kind string, object metav1.Object) (Written, bool) {
	w := l.Memory.Written[Product{kind, object.GetName()}]
	return w, w.UID == object.GetUID()
}

// whose returns state and cause of a product of the operator that is not as the policy wants it.
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
