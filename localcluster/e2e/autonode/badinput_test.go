package autonode

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// badPolicy is a policy that cannot be applied. The API server refuses it, or the operator says so in its status.
type badPolicy struct {
	id, what string
	spec     object
	reason   string   // of Ready=False, when the API accepts it and the operator must find it
	says     []string // in the refusal or the message
}

func badVolumes() []badPolicy {
	bad := func(what, volume string, says ...string) badPolicy {
		return badPolicy{id: "G8", what: what, spec: root(volume), says: says}
	}
	return []badPolicy{
		bad("throughput with a type that has none", "{volumeType: io1, iops: 3000, throughput: 250}", "throughput",
			"gp3"),
		bad("throughput with gp2", "{volumeType: gp2, throughput: 250}", "throughput", "gp3"),
		bad("iops with a type that has none", "{volumeType: gp2, iops: 3000}", "iops", "gp3"),
		bad("io1 without iops", "{volumeType: io1}", "iops"),
		bad("io2 without iops", "{volumeType: io2, volumeSize: 100Gi}", "iops"),
		bad("a size that is no quantity", "{volumeSize: big}", "volumeSize"),
		bad("a size of nothing", "{volumeSize: 0Gi}", "volumeSize"),
		bad("a size below a GiB", "{volumeSize: 500Mi}", "volumeSize"),
		bad("a fraction of a GiB", "{volumeSize: 1536Mi}", "volumeSize"),
		bad("a size without a unit", `{volumeSize: "75"}`, "volumeSize"),
		bad("a size beyond EBS", "{volumeSize: 70000Gi}", "volumeSize"),
		bad("a type that does not exist", "{volumeType: fast}", "volumeType", "fast", "gp3"),
		bad("iops of nothing", "{volumeType: gp3, iops: 0}", "iops"),
	}
}

func badRequirements() []badPolicy {
	bad := func(id, what string, e object, says ...string) badPolicy {
		return badPolicy{id: id, what: what, spec: restrict(e), says: says}
	}
	many := make([]string, 1001)
	for i := range many {
		many[i] = fmt.Sprintf("t%d", i)
	}
	return []badPolicy{
		{id: "G12", what: "more than 100 entries", spec: restrict(numbered(101, "p")...),
			says: []string{"requirements", "100"}},
		bad("G12", "more than 1,000 values", in(instanceType, many...), "values", "1000"),
		bad("G13", "the pool's own label", in("karpenter.sh/nodepool", "x"), "karpenter.sh/nodepool", "restricted"),
		bad("G13", "the node's name", in("kubernetes.io/hostname", "x"), "kubernetes.io/hostname", "restricted"),
		bad("G13", "another label of the domain karpenter.sh", in("karpenter.sh/registered", "x"),
			"karpenter.sh/registered", "restricted"),
		bad("G13", "a label of AWS that does not exist", in("karpenter.k8s.aws/no-such-label", "x"),
			"karpenter.k8s.aws/no-such-label", "restricted"),
		bad("G13", "a key that is no label", in("not a label", "x"), "key"),
		bad("G13", "an empty key", in("", "x"), "key"),
		bad("G13", "a value that is no label's", in(arch, "amd 64"), "values"),
		bad("G13", "In without values", entry(arch, "In"), "values"),
		bad("G13", "Exists with values", entry(arch, "Exists", "amd64"), "Exists", "values"),
		bad("G13", "Gt with a word", entry(cpus, "Gt", "four"), "Gt"),
		bad("G13", "Lt with two values", entry(cpus, "Lt", "4", "8"), "Lt"),
		bad("G13", "an operator that does not exist", entry(arch, "Foo", "amd64"), "operator", "Foo"),
		bad("G13", "minValues above its limit", atLeast(51, in(arch, "amd64")), "minValues", "50"),
		bad("G13", "minValues above the number of values", atLeast(3, in(instanceType, "a", "b")), "minValues"),
	}
}

// storedBadPolicies returns those whose fault the API cannot see.
func storedBadPolicies() []badPolicy {
	return []badPolicy{
		{id: "G14", what: "entries that contradict each other", reason: "ConflictingRequirements",
			spec: restrict(in(instanceType, "a"), in(instanceType, "c")), says: []string{instanceType}},
		{id: "G11", what: "minValues that two entries leave unreachable", reason: "MinValuesUnsatisfiable",
			spec: restrict(atLeast(2, in(instanceType, "a", "b")), in(instanceType, "a")),
			says: []string{instanceType, "2"}},
		{id: "G13", what: "NotIn without values", reason: "InvalidRequirements",
			spec: restrict(entry(arch, "NotIn")), says: []string{"values", "NotIn"}},
		{id: "G13", what: "a name of the zone that Karpenter does not read", reason: "InvalidRequirements",
			spec: restrict(in("topology.gke.io/zone", "z1")), says: []string{"topology.gke.io/zone", zone}},
	}
}

// settled returns a world with a policy that is applied to one pool and to the class.
func settled(t *testing.T) *world {
	t.Helper()
	w := begin(t)
	w.policy(goodPolicy())
	w.pool("bad", wants(in(instanceType, "b")))
	w.policySays("True", "")
	w.stands()
	return w
}

func goodPolicy() object {
	return both(restrict(in(instanceType, "a", "b")), root("{volumeSize: 90Gi}"))
}

// stands demands that what the good policy made is unchanged.
func (w *world) stands() {
	w.t.Helper()
	w.merged("bad", in(instanceType, "a", "b"), in(instanceType, "b"))
	w.rooted("{volumeSize: 90Gi, volumeType: gp3, encrypted: true}", "default")
}

// G8, G12, G13: if the API can see the fault, the policy is not stored, and the answer names the field and what is
// allowed.
func TestBadPoliciesAreRefusedByTheAPI(t *testing.T) {
	w := settled(t)
	generation := w.get(policyKind, "default").GetGeneration()
	for _, bad := range append(badVolumes(), badRequirements()...) {
		err := w.try(w.sre, newObject(policyKind, w.namespace, "default", bad.spec))
		if !apierrors.IsInvalid(err) {
			t.Errorf("%s %s: answered with %v, want 422", bad.id, bad.what, err)
			continue
		}
		for _, part := range bad.says {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s %s: %q is not in the answer", bad.id, bad.what, part)
			}
		}
		t.Logf("| %s | %s | %s |", bad.id, bad.what, strings.ReplaceAll(err.Error(), "\n", " "))
	}
	if now := w.get(policyKind, "default").GetGeneration(); now != generation {
		t.Errorf("the policy has generation %d, had %d", now, generation)
	}
	w.stands()
}

// G11, G13, G14: if the API cannot see the fault, the operator refuses the policy. Ready says why, the last applied
// state stays, and new wrappers wait.
func TestBadPoliciesThatAreStoredAreNotApplied(t *testing.T) {
	w := settled(t)
	for i, bad := range storedBadPolicies() {
		w.policy(both(bad.spec, root("{volumeSize: 200Gi}")))
		ready := w.policySays("False", bad.reason, bad.says...)
		t.Logf("| %s | %s | Ready=False %s: %s |", bad.id, bad.what, ready["reason"], ready["message"])
		waiting := fmt.Sprintf("waiting-%d", i)
		w.pool(waiting, wants(in(arch, "amd64")))
		w.poolSays(waiting, "Ready", "False", "")
		w.stays("pool and class", func() any {
			return []any{requirementsOf(w.get(nodePoolKind, "bad")), w.get(nodePoolKind, waiting) == nil}
		})
		w.merged("bad", in(instanceType, "a", "b"), in(instanceType, "b"))
		if w.get(nodePoolKind, waiting) != nil {
			t.Errorf("%s: a new wrapper was written", bad.what)
		}
		w.policy(goodPolicy())
		w.policySays("True", "")
		w.stands()
		w.merged(waiting, in(instanceType, "a", "b"), in(arch, "amd64"))
	}
}

// G13: the guest may have another version of the definition of NodePools than ours; it is the second gate. The wrapper
// and the policy say what it refuses, and the last applied state stays.
func TestG13_WhatTheGuestsAPIRefusesIsToldOnThePolicy(t *testing.T) {
	w := settled(t)
	const label = "example.com/only-here"
	crd := newObject(crdKind, "", "nodepools.karpenter.sh", nil)
	if err := w.cadmin.Get(w.ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
		t.Fatal(err)
	}
	before := parse(show(crd.Object["spec"]))
	key := crd.Object["spec"]
	for _, step := range []any{"versions", 0, "schema", "openAPIV3Schema", "properties", "spec", "properties",
		"template", "properties", "spec", "properties", "requirements", "items", "properties", "key"} {
		switch step := step.(type) {
		case string:
			key = key.(object)[step]
		case int:
			key = key.([]any)[step]
		}
	}
	rules, _ := key.(object)["x-kubernetes-validations"].([]any)
	key.(object)["x-kubernetes-validations"] = append(rules,
		object{"rule": "self != '" + label + "'", "message": "label " + label + " is restricted"})
	w.put(w.cadmin, newObject(crdKind, "", crd.GetName(), crd.Object["spec"].(object)))
	t.Cleanup(func() { w.put(w.cadmin, newObject(crdKind, "", crd.GetName(), before)) })
	w.eventually("the rule to hold", func() (bool, string) {
		probe := handMade("probe")
		probe.Object["spec"].(object)["template"].(object)["spec"].(object)["requirements"] = list(in(label, "x"))
		err := w.exempt.Create(w.ctx, probe, client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "restricted"), fmt.Sprint(err)
	})
	w.policy(both(restrict(in(label, "x")), root("{volumeSize: 90Gi}")))
	ready := w.policySays("False", "InvalidRequirements", "bad")
	t.Logf("| G13 | a label that the guest's API does not accept | Ready=False %s: %s |", ready["reason"],
		ready["message"])
	w.poolSays("bad", "Ready", "False", "InvalidRequirements", label)
	w.stands()
	w.policy(goodPolicy())
	w.policySays("True", "")
}

// G8: sizes and types in other spellings are accepted and written in the provider's way.
func TestG8_SizesAndTypesAreNormalised(t *testing.T) {
	w := begin(t)
	for volume, want := range map[string]string{
		"{volumeSize: 76800Mi}":               hardCoded,
		"{volumeSize: 75Gi, volumeType: GP3}": hardCoded,
		"{encrypted: false}":                  "{volumeSize: 75Gi, volumeType: gp3, encrypted: false}",
		"{volumeType: io2, iops: 3000}":       "{volumeSize: 75Gi, volumeType: io2, encrypted: true, iops: 3000}",
		"{volumeSize: 1Ti, throughput: 250}":  "{volumeSize: 1Ti, volumeType: gp3, encrypted: true, throughput: 250}",
		"{volumeSize: 100G, volumeType: gp2}": "{volumeSize: 100G, volumeType: gp2, encrypted: true}",
	} {
		w.policy(root(volume))
		w.rooted(want, "default")
		w.policySays("True", "")
	}
}
