package autonode

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/localcluster/attack"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The rule for NodeClaims, which exempts nobody. The operand here shares the admin's name, as in HyperShift.

const (
	ruleName    = "karpenter.nodeclaim-policy.hypershift.io"
	ruleBinding = "karpenter-binding.nodeclaim-policy.hypershift.io"
)

// beginOpen is begin with an operator that does not check who owns a NodeClaim. So every refusal comes from the
// rule of this file.
func beginOpen(t *testing.T) *world {
	t.Helper()
	w := begin(t)
	w.run("--protect-nodeclaims=Open")
	return w
}

// claimed returns a NodeClaim of an instance type, with further entries.
func claimed(name, class, kind string, further ...object) *unstructured.Unstructured {
	claim := newObject(nodeClaimKind, "", name, object{
		"nodeClassRef": object{"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": class},
		"requirements": list(append([]object{in(instanceType, kind)}, further...)...),
	})
	claim.SetLabels(map[string]string{"for": "a04"})
	return claim
}

// dry tries to create a claim without storing it.
func (w *world) dry(as client.Client, claim *unstructured.Unstructured) error {
	return as.Create(w.ctx, claim.DeepCopy(), client.DryRunAll)
}

// judged waits until a claim is refused with this reason or, without a reason, let through.
func (w *world) judged(as client.Client, claim *unstructured.Unstructured, reason string) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("the rule to answer %q for %s of class %v", reason, show(requirementsOfClaim(claim)),
		field(claim, "spec", "nodeClassRef", "name")), func() (bool, string) {
		err := w.dry(as, claim)
		if reason == "" {
			return err == nil, fmt.Sprint(err)
		}
		if err == nil || !strings.Contains(err.Error(), reason) {
			return false, fmt.Sprint(err)
		}
		attack.SawRefusal(w.t, err)
		return true, ""
	})
}

func requirementsOfClaim(claim *unstructured.Unstructured) any {
	return field(claim, "spec", "requirements")
}

const (
	outsideType  = "This NodeClaim asks for node.kubernetes.io/instance-type outside of what the provider's policy allows"
	outsideZone  = "This NodeClaim asks for topology.kubernetes.io/zone outside of what the provider's policy allows"
	outsideClass = "The node class of this NodeClaim is not managed by the provider"
)

// claims must lie within the policy and refer to managed classes, whoever writes them: not even the operator is
// exempt. The rule follows the policy and the classes.
func TestA04_ClaimsLieWithinThePolicy(t *testing.T) {
	w := beginOpen(t)
	p := w.policy(restrict(in(instanceType, "a", "b"), in(zone, "z1")))
	inside := claimed("a04-inside", "default", "b", in(zone, "z1"))
	labelled := inside.DeepCopy()
	labelled.SetLabels(map[string]string{zone: "z2"})
	operator := w.as("system:hosted-cluster-config", "system:masters")
	for _, as := range []client.Client{w.cadmin, operator} {
		w.judged(as, inside, "")
		w.judged(as, claimed("a04-type", "default", "c", in(zone, "z1")), outsideType)
		w.judged(as, claimed("a04-zone", "default", "a", in(zone, "z2")), outsideZone)
		w.judged(as, claimed("a04-alias", "default", "a", in("topology.gke.io/zone", "z1")), outsideZone)
		w.judged(as, claimed("a04-open", "default", "a"), outsideZone)
		w.judged(as, claimed("a04-class", "rogue", "a", in(zone, "z1")), outsideClass)
		w.judged(as, labelled, outsideZone)
	}
	w.class("rogue", object{"monitoring": "Basic"})
	w.judged(w.cadmin, claimed("a04-class", "rogue", "a", in(zone, "z1")), "")
	w.policy(restrict(in(instanceType, "a"))) // the type narrower, the zone open
	w.judged(w.cadmin, inside, outsideType)
	w.judged(w.cadmin, claimed("a04-open", "default", "a"), "")
	w.policy(restrict(in(instanceType, "x"), in(instanceType, "y"))) // not valid: the last rule stays (G14)
	w.policySays("False", "ConflictingRequirements")
	w.judged(w.cadmin, claimed("a04-type", "default", "b"), outsideType)
	w.judged(w.cadmin, claimed("a04-open", "default", "a"), "")
	w.remove(w.sre, p)
	w.judged(w.cadmin, claimed("a04-type", "default", "c"), "")
	w.judged(w.cadmin, claimed("a04-class", "unknown", "c"), outsideClass)
}

// a claim is judged as a mutating admission policy changed it, not as it was sent. So Karpenter's claim is never
// stored.
func TestA04_AClaimIsJudgedAfterMutation(t *testing.T) {
	w := beginOpen(t)
	w.class("rogue", object{"monitoring": "Basic"})
	w.policy(restrict(in(instanceType, "a"), in(zone, "z1")))
	good := claimed("a04-mutated", "default", "a", in(zone, "z1"))
	w.judged(w.cadmin, good, "")
	w.judged(w.cadmin, claimed("a04-type", "default", "b", in(zone, "z1")), outsideType)
	for i, m := range []struct{ path, value, reason string }{
		{"/spec/requirements/0/values/0", `"b"`, outsideType},
		{"/spec/requirements/1/values/0", `"z2"`, outsideZone},
		{"/spec/nodeClassRef/name", `"elsewhere"`, outsideClass},
	} {
		end := w.mutate(mutation{name: fmt.Sprintf("a04-%d", i), group: "karpenter.sh", resource: "nodeclaims",
			expression: fmt.Sprintf(`[JSONPatch{op: "replace", path: "%s", value: %s}]`, m.path, m.value)})
		w.judged(w.cadmin, good, m.reason)
		if err := w.cadmin.Create(w.ctx, good.DeepCopy()); err == nil {
			t.Errorf("%s: the claim is stored", m.path)
		}
		end()
		w.judged(w.cadmin, good, "")
	}
	if w.get(nodeClaimKind, "a04-mutated") != nil {
		t.Error("a claim was stored")
	}
}

// the policy is narrowed and widened under a stream of claims. No claim outside of both generations is stored,
// and those inside of both always pass.
func TestA04_NoClaimOutsideBothGenerations(t *testing.T) {
	w := beginOpen(t)
	narrow, broad := restrict(in(instanceType, "a")), restrict(in(instanceType, "a", "b"))
	w.policy(narrow)
	w.judged(w.cadmin, claimed("a04-b", "default", "b"), outsideType)
	w.judged(w.cadmin, claimed("a04-a", "default", "a"), "")
	t.Cleanup(func() {
		for _, claim := range w.list(w.cadmin, nodeClaimKind) {
			if claim.GetLabels()["for"] == "a04" {
				w.remove(w.cadmin, &claim)
			}
		}
	})
	stored := map[string]int{}
	for round := range 12 {
		if round%2 == 0 {
			w.policy(broad)
		} else {
			w.policy(narrow)
		}
		for i := range 25 { // one after the other, as fast as they are answered: more than 50 a second
			for _, kind := range []string{"a", "b", "c"} {
				err := w.cadmin.Create(w.ctx, claimed(fmt.Sprintf("a04-%s-%d-%d", kind, round, i), "default", kind))
				switch {
				case err == nil:
					stored[kind]++
				case kind == "a":
					t.Fatalf("a claim inside of both generations is refused: %v", err)
				case !strings.Contains(err.Error(), outsideType):
					t.Fatal(err)
				}
			}
		}
	}
	for _, claim := range w.list(w.cadmin, nodeClaimKind) {
		if values, _ := field(&claim, "spec", "requirements").([]any); claim.GetLabels()["for"] == "a04" &&
			slices.Contains(values[0].(object)["values"].([]any), any("c")) {
			t.Errorf("%s is stored", claim.GetName())
		}
	}
	t.Logf("stored %v", stored)
	if stored["c"] != 0 || stored["a"] != 12*25 {
		t.Errorf("stored %v", stored)
	}
}

// A-04, R38: the rule is restored when its admin deletes or weakens it.
func TestA04_TheRuleIsRestored(t *testing.T) {
	w := beginOpen(t)
	w.policy(restrict(in(instanceType, "a")))
	bad := claimed("a04-type", "default", "b")
	w.judged(w.cadmin, bad, outsideType)
	for _, spoil := range []func(){
		func() { w.remove(w.cadmin, newObject(bindingKind, "", ruleBinding, nil)) },
		func() { w.remove(w.cadmin, newObject(vapKind, "", ruleName, nil)) },
		func() {
			w.mustPatch(w.cadmin, newObject(vapKind, "", ruleName, nil),
				object{"spec": object{"validations": list(object{"expression": "true"})}})
		},
	} {
		spoil()
		w.eventually("the rule to be whole again", func() (bool, string) {
			rule, binding := w.get(vapKind, ruleName), w.get(bindingKind, ruleBinding)
			if rule == nil || binding == nil {
				return false, "it is not there"
			}
			validations, _ := field(rule, "spec", "validations").([]any)
			return len(validations) == 2, show(validations)
		})
		w.judged(w.cadmin, bad, outsideType)
	}
}

// an operator that does not know the rule leaves it as the last operator wrote it, for an old generation.
// Refusals then name that generation, and the rule says how to get rid of it. An operator that knows the rule repairs
// everything by itself.
func TestA48_ARuleThatIsLeftBehindNamesTheWayOut(t *testing.T) {
	w := beginOpen(t)
	first := w.policy(restrict(in(zone, "z1")))
	wider := claimed("a48", "default", "a", in(zone, "z2"))
	generation := fmt.Sprintf("(generation %d of the AutoNodePolicy)", first.GetGeneration())
	w.judged(w.cadmin, wider, generation)
	w.halt()
	w.policy(restrict(in(zone, "z1", "z2"))) // an older operator would widen the pools, and leave the rule
	w.judged(w.cadmin, wider, generation)
	rule, binding := w.get(vapKind, ruleName), w.get(bindingKind, ruleBinding)
	note := rule.GetAnnotations()["karpenter.hypershift.openshift.io/note"]
	of := rule.GetAnnotations()["karpenter.hypershift.openshift.io/policy-generation"]
	if of != fmt.Sprint(first.GetGeneration()) || !strings.Contains(note, ruleBinding) {
		t.Errorf("the rule has the annotations %v", rule.GetAnnotations())
	}
	w.remove(w.cadmin, binding)
	w.judged(w.cadmin, wider, "")
	w.run("--protect-nodeclaims=Open")
	w.judged(w.cadmin, wider, "")
	w.judged(w.cadmin, claimed("a48-outside", "default", "a", in(zone, "z3")), outsideZone)
}
