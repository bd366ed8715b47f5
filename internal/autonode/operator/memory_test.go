package operator

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterawsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/conformance"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/condition"
)

// readPolicy is the reading of a policy of that generation, which restricts as many labels.
func readPolicy(generation int64, labels int) Reading {
	policy := &hypershiftv1beta1.AutoNodePolicy{ObjectMeta: metav1.ObjectMeta{Generation: generation}}
	for i := range labels {
		entry := karpenterv1.NodeSelectorRequirementWithMinValues{Key: fmt.Sprintf("example.com/label-%d", i),
			Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}
		defaults := &policy.Spec.NodePoolDefaults
		defaults.Requirements = append(defaults.Requirements, entry)
	}
	return Reading{State: StateRead, Policy: policy}
}

// imaged is an EC2NodeClass that chooses an image.
func imaged(uid, image string) *karpenterawsv1.EC2NodeClass {
	return &karpenterawsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "x", UID: types.UID(uid)},
		Spec: karpenterawsv1.EC2NodeClassSpec{AMISelectorTerms: []karpenterawsv1.AMISelectorTerm{{ID: image}}}}
}

// of a class the operator remembers the spec that it last found as it was to be, and all images that it gave.
func TestA21_WhatIsRememberedOfAClass(t *testing.T) {
	t.Parallel()
	good := func(uid, image string) outcome {
		class := imaged(uid, image)
		return outcome{product: class, made: &Made{Product: class}}
	}
	waiting := func(uid, image string, said ...condition.Value) outcome {
		return outcome{product: imaged(uid, image), made: &Made{Missing: "bootstrap", Conditions: said}}
	}
	refusing := func(reason, image string) outcome {
		out := good("u", image)
		out.refused = &refusal{reason: reason}
		return out
	}
	unknown := func(uid string) outcome { return outcome{product: imaged(uid, "ami-3")} }
	unresolved := condition.False(hypershiftv1beta1.ConditionTypeVersionResolved, "NotHad", "")
	for name, c := range map[string]struct {
		steps  []outcome
		want   conformance.Written
		image  string // of the spec that is remembered, "" for none
		images []string
	}{
		"as it is to be": {[]outcome{good("u", "ami-1")}, conformance.Written{}, "ami-1", []string{"ami-1"}},
		"with a new image": {[]outcome{good("u", "ami-1"), good("u", "ami-2")}, conformance.Written{}, "ami-2",
			[]string{"ami-1", "ami-2"}},
		"waiting, and changed by somebody": {[]outcome{good("u", "ami-1"), waiting("u", "ami-2")},
			conformance.Written{Failed: conformance.BootstrapMissing}, "ami-1", []string{"ami-1"}},
		"waiting, and of somebody else": {[]outcome{good("before", "ami-1"), waiting("u", "ami-1")},
			conformance.Written{Failed: conformance.BootstrapMissing}, "", []string{"ami-1"}},
		"waiting for a release": {[]outcome{waiting("u", "ami-1", unresolved)},
			conformance.Written{Failed: conformance.VersionNotSupported}, "", nil},
		"altered on its way": {
			[]outcome{good("u", "ami-1"), refusing(hypershiftv1beta1.ReasonAlteredOnWrite, "ami-2")},
			conformance.Written{Altered: true}, "", []string{"ami-1"}},
		"refused": {[]outcome{good("u", "ami-1"), refusing(ReasonRefused, "ami-2")},
			conformance.Written{Failed: conformance.OperatorError}, "", []string{"ami-1"}},
		"being deleted by somebody": {[]outcome{refusing(ReasonDeleting, "ami-1")},
			conformance.Written{Failed: conformance.WrittenByOther}, "", nil},
		"the policy is not known": {[]outcome{good("u", "ami-1"), unknown("u")}, conformance.Written{}, "ami-1",
			[]string{"ami-1"}},
	} {
		board := NewBoard()
		for _, step := range c.steps {
			board.made(conformance.EC2NodeClass, "x", readPolicy(7, 1), step)
		}
		c.want.UID, c.want.Policy = "u", 7
		if c.image != "" {
			c.want.Class = &imaged("u", c.image).Spec
		}
		written, images := board.remembered()
		got := written[conformance.Product{Kind: conformance.EC2NodeClass, Name: "x"}]
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		if got := slices.Sorted(maps.Keys(images)); !slices.Equal(got, c.images) {
			t.Errorf("%s: the images are %v, want %v", name, got, c.images)
		}
	}
}

// what is gone is not remembered, also while the policy is not known; nor is what nobody has looked at yet.
// Nothing else of that name, or that kind, is forgotten with it.
func TestA21_WhatIsForgotten(t *testing.T) {
	t.Parallel()
	products := []conformance.Product{{Kind: conformance.NodePool, Name: "x"},
		{Kind: conformance.EC2NodeClass, Name: "x"}, {Kind: conformance.EC2NodeClass, Name: "y"}}
	for name, happens := range map[string]func(*Board){
		"its wrapper went": func(b *Board) { b.unmade(conformance.EC2NodeClass, "x") },
		"it went, and cannot be made": func(b *Board) {
			b.made(conformance.EC2NodeClass, "x", readPolicy(7, 1), outcome{made: &Made{Missing: "bootstrap"}})
		},
		"it went while the policy is not known": func(b *Board) {
			b.made(conformance.EC2NodeClass, "x", Reading{State: StateUnavailable}, outcome{})
		},
	} {
		board := NewBoard()
		for _, product := range products {
			board.made(product.Kind, product.Name, readPolicy(7, 1),
				outcome{product: imaged("u", "ami-1"), made: &Made{}})
		}
		happens(board)
		written, _ := board.remembered()
		for _, product := range products {
			if _, found := written[product]; found == (product == products[1]) {
				t.Errorf("%s: %v is remembered: %t", name, product, found)
			}
		}
	}
	board := NewBoard()
	board.made(conformance.EC2NodeClass, "x", Reading{State: StateUnavailable}, outcome{product: imaged("u", "ami-1")})
	if written, images := board.remembered(); len(written)+len(images) > 0 {
		t.Errorf("of a look without a policy %v and %v are remembered", written, images)
	}
}

// the cause of a pool that is not as it should be. Without a policy nothing is the provider's.
func TestA45_TheCauseOfAPool(t *testing.T) {
	t.Parallel()
	pool := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "x", UID: "u"}}
	invalid := readPolicy(7, 1)
	entries := &invalid.Policy.Spec.NodePoolDefaults.Requirements
	*entries = append(*entries, karpenterv1.NodeSelectorRequirementWithMinValues{Key: (*entries)[0].Key,
		Operator: corev1.NodeSelectorOpIn, Values: []string{"b"}})
	none := Reading{State: StateRead}
	const unmanaged, notApplied = hypershiftv1beta1.ReasonNodeClassUnmanaged,
		hypershiftv1beta1.ReasonNodeClassNotApplied
	const notSupported = hypershiftv1beta1.ReasonVersionNotSupported
	const tooMany, notValid = hypershiftv1beta1.ReasonTooManyRequirements, hypershiftv1beta1.ReasonInvalidRequirements
	for name, c := range map[string]struct {
		reading Reading
		reason  string // of the problem, "" for none
		want    conformance.Cause
	}{
		"it waits for its class": {readPolicy(7, 1), "", ""},
		"too many entries":       {readPolicy(7, 1), tooMany, conformance.IncompatibleRequirements},
		"too many entries of the policy": {readPolicy(7, merge.MaxRequirements), tooMany,
			conformance.TooManyRequirements},
		"too many entries without one":    {none, tooMany, conformance.IncompatibleRequirements},
		"the policy is not valid":         {invalid, tooMany, conformance.PolicyInvalid},
		"its entries are not valid":       {none, notValid, conformance.IncompatibleRequirements},
		"another kind of class":           {none, merge.ReasonInvalidNodeClassRef, conformance.NodeClassUnmanaged},
		"a class without a wrapper":       {none, unmanaged, conformance.NodeClassUnmanaged},
		"a class that is not applied":     {none, notApplied, conformance.NodeClassUnmanaged},
		"a release that nobody has":       {none, notSupported, conformance.VersionNotSupported},
		"a problem that is not told here": {none, "Another", conformance.OperatorError},
	} {
		made := &Made{Missing: "its class"}
		if c.reason != "" {
			made = &Made{Problems: []merge.Problem{{Reason: c.reason}}}
		}
		board := NewBoard()
		board.made(conformance.NodePool, "x", c.reading, outcome{product: pool, made: made})
		want := conformance.Written{UID: "u", Failed: c.want}
		if c.reading.Policy != nil {
			want.Policy = 7
		}
		written, _ := board.remembered()
		if got := written[conformance.Product{Kind: conformance.NodePool, Name: "x"}]; got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}
