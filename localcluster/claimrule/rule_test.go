package claimrule

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/autonodepolicy/admission"
	"github.com/joiner-autoscaler/joiner/autonodepolicy/fold"
	"github.com/joiner-autoscaler/joiner/autonodepolicy/policy"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
)

// cases is the number of generated policies and pools.
const cases = 500

func compiled(t testing.TB, provided []fold.Requirement) rule {
	t.Helper()
	protection, leftOut, err := admission.ClaimRule{Requirements: provided,
		Classes: []policy.NodeClass{defaultClass}}.Protection()
	if err != nil || len(leftOut) > 0 {
		t.Fatalf("%v, left out %v", err, leftOut)
	}
	return compile(t, protection)
}

func conforms(provided []fold.Requirement, claim *karpenterv1.NodeClaim) []fold.Key {
	return policy.Conforms(provided, policy.Claim{Requirements: merge.FromAPI(claim.Spec.Requirements),
		Labels: claim.Labels})
}

func describe(provided []fold.Requirement, claim *karpenterv1.NodeClaim) string {
	return fmt.Sprintf("policy %+v\nclaim %+v\nlabels %v", provided, merge.FromAPI(claim.Spec.Requirements),
		claim.Labels)
}

// the claims that Joiner and Karpenter make from merged pools pass. With a value outside the policy, another
// class or a missing label they do not.
func TestClaimsOfMergedPools(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(4, 25))
	refused := 0
	for range cases {
		p, result := mergedPool(r)
		provided := ruleFor(p)
		rule := compiled(t, provided)
		for name, claim := range map[string]*karpenterv1.NodeClaim{"Joiner": joinersClaim(result),
			"Karpenter": karpentersClaim(result)} {
			if v := rule.judge(t, claim); !v.allowed() || len(conforms(provided, claim)) > 0 {
				t.Fatalf("%s's claim of a merged pool is refused: %v %v\n%s", name, v.refused, v.failed,
					describe(provided, claim))
			}
			claim.Spec.NodeClassRef.Name = "rogue"
			if v := rule.judge(t, claim); v.allowed() {
				t.Fatalf("%s's claim passes with another class", name)
			}
			claim.Spec.NodeClassRef.Name = "default"
			refused += outside(t, rule, provided, claim)
		}
	}
	if refused < cases {
		t.Errorf("only %d claims lay outside: do the generators still make any?", refused)
	}
}

// outside takes each label of the policy in turn and moves the claim outside of it. It returns how many ways it tried.
func outside(t *testing.T, rule rule, provided []fold.Requirement, claim *karpenterv1.NodeClaim) (tried int) {
	t.Helper()
	set, _, _ := fold.Of(provided)
	for allowed := range set.All() {
		key := string(allowed.Key())
		about := func(r merge.Requirement) bool { return string(fold.Canonical(r.Key)) == key }
		ways := [][]merge.Requirement{{}} // no entry for the label at all
		if allowed.AllowsPresent() && !allowed.Has("elsewhere") {
			ways = append(ways, []merge.Requirement{{Key: key, Operator: "In", Values: []string{"elsewhere"}}})
		}
		if values, finite := allowed.Values(); finite && len(values) > 0 {
			ways = append(ways,
				[]merge.Requirement{{Key: key, Operator: "In", Values: append([]string{"elsewhere"}, values...)}},
				[]merge.Requirement{{Key: key, Operator: "Exists"}})
			for _, alias := range fold.Names(allowed.Key())[1:] { // the provider's Karpenter may not read it
				ways = append(ways, []merge.Requirement{{Key: alias, Operator: "In", Values: values}})
			}
		}
		if !allowed.AllowsAbsent() {
			ways = append(ways, []merge.Requirement{{Key: key, Operator: "DoesNotExist"}})
		}
		for _, way := range ways {
			changed := claim.DeepCopy()
			changed.Spec.Requirements = append(slices.DeleteFunc(changed.Spec.Requirements, about), way...)
			v := rule.judge(t, changed)
			if v.allowed() || !v.names(key) {
				t.Fatalf("%s: passes with %v: %v %v\n%s", key, way, v.refused, v.failed, describe(provided, changed))
			}
			tried++
		}
		for _, name := range fold.Names(allowed.Key()) {
			changed := claim.DeepCopy()
			changed.Labels[name] = "elsewhere"
			if v := rule.judge(t, changed); v.allowed() != allowed.Has("elsewhere") {
				t.Fatalf("label %s: passes: %t\n%s", name, v.allowed(), describe(provided, changed))
			}
		}
	}
	return tried
}

// for any claim, the expression says what policy.Conforms says. What both accept lies within the policy, as
// Karpenter folds it, except exclusions of numbers next to bounds.
func TestTheExpressionIsTheRule(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(4, 27))
	taken, refused := 0, 0
	for range cases {
		provided := ruleFor(validPolicy(r))
		rule := compiled(t, provided)
		for range 20 {
			claim := &karpenterv1.NodeClaim{}
			claim.Spec.NodeClassRef = &karpenterv1.NodeClassReference{Group: defaultClass.Group,
				Kind: defaultClass.Kind, Name: defaultClass.Name}
			claim.Spec.Requirements = append([]merge.Requirement{}, entries(r, 4)...) // the API has no null
			for _, entry := range provided {                                          // or nothing would ever pass
				if r.IntN(3) > 0 {
					claim.Spec.Requirements = append(claim.Spec.Requirements, merge.Requirement{
						Key: entry.Key, Operator: corev1.NodeSelectorOperator(entry.Operator), Values: entry.Values})
				}
			}
			if r.IntN(3) == 0 {
				label := universe[r.IntN(len(universe))]
				claim.Labels = map[string]string{
					label.names[r.IntN(len(label.names))]: label.values[r.IntN(len(label.values))],
				}
			}
			v, keys := rule.judge(t, claim), conforms(provided, claim)
			if v.allowed() != (len(keys) == 0) || len(v.refused) != len(keys) || len(v.failed) > 0 {
				t.Fatalf("the API server: %v %v, policy.Conforms: %v\n%s", v.refused, v.failed, keys,
					describe(provided, claim))
			}
			if !v.allowed() {
				refused++
				continue
			}
			taken++
			if key := wider(provided, claim); key != "" {
				t.Fatalf("%s lies outside and is taken\n%s", key, describe(provided, claim))
			}
		}
	}
	if taken < cases || refused < cases {
		t.Errorf("%d taken, %d refused: do the generators still make both?", taken, refused)
	}
}

// wider returns a label for which a claim asks for more than the policy allows, or "".
func wider(provided []fold.Requirement, claim *karpenterv1.NodeClaim) fold.Key {
	asked := slices.DeleteFunc(merge.FromAPI(claim.Spec.Requirements), func(r fold.Requirement) bool {
		return !fold.ReadByKarpenter(r.Key)
	})
	all, _, _ := fold.Of(asked)
	set, _, _ := fold.Of(provided)
	for allowed := range set.All() {
		key := allowed.Key()
		own := slices.DeleteFunc(slices.Clone(asked), func(r fold.Requirement) bool {
			return fold.Canonical(r.Key) != key
		})
		isBound := func(r fold.Requirement) bool {
			return slices.Contains([]fold.Operator{"Gt", "Gte", "Lt", "Lte"}, r.Operator)
		}
		if slices.ContainsFunc(own, isBound) {
			allowed = withoutNumbers(provided, key)
		}
		got := all.Get(key)
		if got.Empty() && len(fold.Names(key)) == 1 && !exclusionsOnly(own) {
			got = fold.Absent(key) // K2
		}
		if !slices.ContainsFunc(own, func(r fold.Requirement) bool { return r.Operator == fold.DoesNotExist }) &&
			!got.Equal(fold.Absent(key)) {
			got = got.And(fold.Present(key)) // Karpenter does not tell an exclusion from one that wants the label
		}
		if len(own) == 0 || !got.And(allowed).Equal(got) {
			return key
		}
		for _, name := range fold.Names(key) {
			if value, found := claim.Labels[name]; found && !set.Get(key).Has(value) {
				return key
			}
		}
	}
	return ""
}

// exclusionsOnly reports whether entries contradict each other through exclusions alone: all values within the bounds
// are excluded. Karpenter does not see that.
func exclusionsOnly(own []fold.Requirement) bool {
	set, _, _ := fold.Of(slices.DeleteFunc(slices.Clone(own), func(r fold.Requirement) bool {
		return r.Operator == fold.NotIn
	}))
	return len(own) > 0 && !set.Get(fold.Canonical(own[0].Key)).Empty()
}

func withoutNumbers(provided []fold.Requirement, key fold.Key) fold.Allowed {
	var list []fold.Requirement
	for _, entry := range provided {
		if entry.Operator == fold.NotIn {
			entry.Values = slices.DeleteFunc(slices.Clone(entry.Values), func(v string) bool {
				_, err := strconv.Atoi(v)
				return err == nil
			})
		}
		list = append(list, entry)
	}
	set, _, _ := fold.Of(list)
	return set.Get(key)
}

// A-04, U11: the rule costs far less than a third of what an API server allows for one expression, with 1,000 values
// in the policy and 100 or 600 in the claim. Exclusions that cost more are left out and named.
func TestCost(t *testing.T) {
	t.Parallel()
	const third = 1_000_000 / 3
	for _, values := range []int{100, 600} {
		claim := largeClaim(values)
		v := compiled(t, []fold.Requirement{{Key: instanceType, Operator: fold.In, Values: names(1000)}}).judge(t,
			claim)
		t.Logf("1,000 values in the policy, %d in the claim: cost %d", values, v.cost)
		if !v.allowed() || v.cost > third {
			t.Errorf("%d values: %v %v, cost %d", values, v.refused, v.failed, v.cost)
		}
	}
	for _, excluded := range []int{100, 1000, 1001} {
		provided := []fold.Requirement{{Key: team, Operator: fold.NotIn, Values: names(excluded)[:100]},
			{Key: team, Operator: fold.NotIn, Values: names(excluded)[excluded-min(excluded, 1000):]}}
		protection, leftOut, err := admission.ClaimRule{Requirements: provided,
			Classes: []policy.NodeClass{defaultClass}}.Protection()
		if err != nil {
			t.Fatal(err)
		}
		claim := largeClaim(0)
		claim.Spec.Requirements = append(claim.Spec.Requirements, merge.Requirement{Key: team, Operator: "NotIn",
			Values: append(others(100), names(excluded)...)})
		v := compile(t, protection).judge(t, claim)
		t.Logf("%d exclusions: left out %v, cost %d", excluded, leftOut, v.cost)
		if !v.allowed() || v.cost > third || (len(leftOut) > 0) != (excluded > 1000) {
			t.Errorf("%d exclusions: %v %v, cost %d, left out %v", excluded, v.refused, v.failed, v.cost, leftOut)
		}
	}
}

// a policy with the most labels that it may have, each with many values, stays within what one binding may cost
// and etcd may store. What does not fit is named.
func TestTheLargestPolicy(t *testing.T) {
	t.Parallel()
	var provided []fold.Requirement
	claim := largeClaim(0)
	claim.Spec.Requirements = nil
	for i := range merge.MaxRequirements {
		key := fmt.Sprintf("example.com/label-%d", i)
		provided = append(provided, fold.Requirement{Key: key, Operator: fold.In, Values: names(1000)})
		claim.Spec.Requirements = append(claim.Spec.Requirements,
			merge.Requirement{Key: key, Operator: "In", Values: names(100)})
	}
	protection, leftOut, err := admission.ClaimRule{Requirements: provided,
		Classes: []policy.NodeClass{defaultClass}}.Protection()
	if err != nil {
		t.Fatal(err)
	}
	v := compile(t, protection).judge(t, claim)
	size := protection.Policy.Size()
	t.Logf("%d labels, %d left out, cost %d, %d bytes", len(provided), len(leftOut), v.cost, size)
	if !v.allowed() || v.cost > 10_000_000/3 || size > 1_000_000 || len(leftOut) == 0 || len(leftOut) > 90 {
		t.Errorf("%v %v, cost %d, %d bytes, left out %v", v.refused, v.failed, v.cost, size, leftOut)
	}
}

// the guest's users cannot make the rule too large for an API server by their node classes, however many they
// have and however long their names are. What does not fit is named, and refused.
func TestTheLargestNumberOfNodeClasses(t *testing.T) {
	t.Parallel()
	var provided []fold.Requirement
	for i := range merge.MaxRequirements {
		provided = append(provided, fold.Requirement{Key: fmt.Sprintf("example.com/label-%d", i), Operator: fold.In,
			Values: names(1000)})
	}
	labels := -1 // left out
	for _, count := range []int{390, 3000} {
		rule := admission.ClaimRule{Requirements: provided}
		for i := range count {
			class := defaultClass
			class.Name = fmt.Sprintf("%04d-%s", i, strings.Repeat("x", 248))
			rule.Classes = append(rule.Classes, class)
		}
		protection, leftOut, err := rule.Protection()
		if err != nil || labels >= 0 && len(leftOut) != labels {
			t.Fatalf("%d classes: %v, %d labels are left out, with fewer classes %d", count, err, len(leftOut), labels)
		}
		labels = len(leftOut)
		without := rule.ClassesLeftOut()
		if size := protection.Policy.Size(); size > 1_000_000 || (len(without) > 0) != (count > 1000) {
			t.Errorf("%d classes: %d bytes, %d classes are left out", count, size, len(without))
		}
		compiled, claim := compile(t, protection), largeClaim(0)
		for i, class := range []policy.NodeClass{rule.Classes[0], rule.Classes[count-len(without)-1],
			rule.Classes[count-1], {Group: defaultClass.Group, Kind: defaultClass.Kind, Name: "rogue"}} {
			claim.Spec.NodeClassRef.Name = class.Name
			v := compiled.judge(t, claim)
			fits := i < 2 || i == 2 && len(without) == 0
			if len(v.failed) > 0 || slices.Contains(v.refused, classMessage(protection)) == fits {
				t.Errorf("%d classes: the claim of the %d. is refused: %v %v", count, i, v.refused, v.failed)
			}
		}
	}
}

// classMessage is what is said of a claim with another node class.
func classMessage(protection admission.Protection) string {
	return protection.Policy.Spec.Validations[0].Message
}

func names(count int) []string {
	list := make([]string, count)
	for i := range list {
		list[i] = fmt.Sprintf("m%03d.24xlarge", i)
	}
	return list
}

func others(count int) []string {
	list := names(count)
	for i := range list {
		list[i] = strings.Replace(list[i], "m", "z", 1)
	}
	return list
}

// largeClaim has 100 entries, one of them with this many instance types.
func largeClaim(types int) *karpenterv1.NodeClaim {
	claim := &karpenterv1.NodeClaim{}
	claim.Spec.NodeClassRef = &karpenterv1.NodeClassReference{Group: defaultClass.Group, Kind: defaultClass.Kind,
		Name: defaultClass.Name}
	for i := range 98 {
		claim.Spec.Requirements = append(claim.Spec.Requirements,
			merge.Requirement{Key: fmt.Sprintf("example.com/other-%d", i), Operator: "Exists"})
	}
	if types > 0 {
		claim.Spec.Requirements = append(claim.Spec.Requirements, merge.Requirement{Key: instanceType, Operator: "In",
			Values: names(types)})
	}
	return claim
}
