package autonode

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestR42_ReadyMeansMergedIntoEveryPoolAndClass(t *testing.T) {
	w := begin(t)
	w.pool("r42-1", wants(in(arch, "amd64")))
	w.pool("r42-2", wants(in(arch, "amd64")))
	w.class("r42", object{"monitoring": "Basic"})
	for range 2 { // The second time the generation is another one.
		size := map[bool]string{true: "80Gi", false: "90Gi"}[w.get(policyKind, "default") == nil]
		w.policy(both(restrict(in(instanceType, "a")), root("{volumeSize: "+size+"}")))
		w.policySays("True", "")
		// Ready does not come before its reason exists: nothing is polled here.
		for _, name := range []string{"r42-1", "r42-2"} {
			if got := requirementsOf(w.get(nodePoolKind, name)); show(got) != show(list(in(instanceType, "a"),
				in(arch, "amd64"))) {
				t.Errorf("Ready, but NodePool %s has %s", name, show(got))
			}
		}
		for _, name := range []string{"default", "r42"} {
			if roots, _ := rootOf(w.get(nodeClassKind, name)); len(roots) != 1 ||
				roots[0]["ebs"].(object)["volumeSize"] != size {
				t.Errorf("Ready, but EC2NodeClass %s has the root %s", name, show(roots))
			}
		}
	}
}

// G12: more than a hundred entries cannot be stored.
func TestR43_AMergeThatFailsMakesThePolicyNotReady(t *testing.T) {
	w := begin(t)
	w.pool("r43", wants(numbered(60, "user")...))
	w.pool("r43-fine", wants(in(arch, "amd64")))
	w.policy(restrict(numbered(60, "policy")...))
	w.policySays("False", "TooManyRequirements", "r43")
	w.poolSays("r43", "Ready", "False", "TooManyRequirements")
	w.poolSays("r43", "PolicyApplied", "False", "TooManyRequirements")
	w.merged("r43-fine", append(numbered(60, "policy"), in(arch, "amd64"))...)
	w.pool("r43", wants(numbered(40, "user")...))
	w.policySays("True", "")
	w.merged("r43", append(numbered(60, "policy"), numbered(40, "user")...)...)
}

func TestR44_AnImpossiblePolicyIsNotReady(t *testing.T) {
	w := begin(t)
	w.policy(restrict(in(instanceType, "a"), in(instanceType, "b")))
	w.policySays("False", "ConflictingRequirements", instanceType, "a", "b")
}

func TestR46_FixingOrDeletingAMalformedPolicyRecovers(t *testing.T) {
	w := begin(t)
	w.pool("r46", wants(in(arch, "amd64")))
	w.merged("r46", in(arch, "amd64"))
	w.policy(restrict(in(instanceType, "a"), in(instanceType, "b")))
	w.policySays("False", "ConflictingRequirements")
	p := w.policy(restrict(in(instanceType, "a")))
	w.policySays("True", "")
	w.merged("r46", in(instanceType, "a"), in(arch, "amd64"))
	w.policy(restrict(in(instanceType, "c"), in(instanceType, "d")))
	w.policySays("False", "ConflictingRequirements")
	w.merged("r46", in(instanceType, "a"), in(arch, "amd64"))
	w.remove(w.sre, p)
	w.merged("r46", in(arch, "amd64"))
}

// policyCRD returns the installed definition of the policy.
func (w *world) policyCRD() *unstructured.Unstructured {
	w.t.Helper()
	crd := newObject(crdKind, "", "autonodepolicies."+group, nil)
	if err := w.sre.Get(w.ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
		w.t.Fatal(err)
	}
	return crd
}

func TestR47_FieldsOfALaterVersionAreIgnored(t *testing.T) {
	w := begin(t)
	crd := w.policyCRD()
	later := crd.DeepCopy()
	for _, version := range later.Object["spec"].(object)["versions"].([]any) {
		schema := version.(object)["schema"].(object)["openAPIV3Schema"].(object)
		spec := schema["properties"].(object)["spec"].(object)["properties"].(object)
		spec["later"] = object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
		defaults := spec["nodePoolDefaults"].(object)["properties"].(object)
		defaults["taints"] = object{"type": "array", "items": object{"type": "string"}}
	}
	w.put(w.sre, newObject(crdKind, "", later.GetName(), later.Object["spec"].(object)))
	t.Cleanup(func() { w.restoreCRD(crd) })
	spec := parse(
		`{later: {a: b}, nodePoolDefaults: {taints: [x], requirements: [{key: node.kubernetes.io/instance-type, ` +
			`operator: In, values: [a]}]}}`)
	w.eventually("the later field to be stored", func() (bool, string) {
		stored := field(w.policy(parse(show(spec))), "spec", "later")
		return stored != nil, show(stored)
	})
	w.pool("r47", wants(in(arch, "amd64")))
	w.merged("r47", in(instanceType, "a"), in(arch, "amd64"))
	w.policySays("True", "")
	if stored := field(w.get(policyKind, "default"), "spec", "later"); stored == nil {
		t.Error("the operator removed the later field")
	}
}

// restoreCRD puts back the definition that a test changed or removed.
func (w *world) restoreCRD(crd *unstructured.Unstructured) {
	w.t.Helper()
	crd = newObject(crdKind, "", crd.GetName(), crd.Object["spec"].(object))
	w.put(w.sre, crd)
	w.eventually("the definition to be served", func() (bool, string) {
		var all unstructured.UnstructuredList
		all.SetGroupVersionKind(policyKind)
		err := w.sre.List(w.ctx, &all)
		return err == nil, fmt.Sprint(err)
	})
}

func TestR48_WithoutTheOperatorTheLastStateStands(t *testing.T) {
	w := begin(t)
	p := w.policy(both(restrict(in(instanceType, "a")), root("{volumeSize: 90Gi}")))
	w.pool("r48", wants(in(arch, "amd64")))
	w.merged("r48", in(instanceType, "a"), in(arch, "amd64"))
	w.rooted("{volumeSize: 90Gi, volumeType: gp3, encrypted: true}", "default")
	w.halt()
	state := func() any {
		return []any{field(w.get(nodePoolKind, "r48"), "spec"), field(w.get(nodeClassKind, "default"), "spec")}
	}
	before := show(state())
	w.stays("pool and class", state)
	w.remove(w.sre, p)
	w.stays("pool and class", state)
	if after := show(state()); after != before {
		t.Errorf("they changed from %s to %s", before, after)
	}
}

// G15: if the definition is missing for longer than the confirmation, it counts as no policy.
func TestR49_InstallingTheDefinitionChangesNothing(t *testing.T) {
	w := begin(t)
	crd := w.policyCRD()
	w.halt()
	w.remove(w.sre, crd)
	t.Cleanup(func() { w.restoreCRD(crd) })
	w.run()
	w.pool("r49", wants(in(instanceType, "a")))
	w.eventuallyIn(confirmation+within, "a NodePool for r49",
		func() (bool, string) { return w.get(nodePoolKind, "r49") != nil, "none yet" })
	w.merged("r49", in(instanceType, "a"))
	w.rooted(hardCoded, "default")
	w.restoreCRD(crd)
	w.stays("the NodePool", func() any { return requirementsOf(w.get(nodePoolKind, "r49")) })
	w.policy(restrict(in(instanceType, "a", "b")))
	w.eventuallyIn(confirmation+within, "the first policy to be applied", func() (bool, string) {
		got := requirementsOf(w.get(nodePoolKind, "r49"))
		return len(got) == 2, show(got)
	})
	w.merged("r49", in(instanceType, "a", "b"), in(instanceType, "a"))
}

func TestR50_UpdatesNeedNoRestart(t *testing.T) {
	w := begin(t)
	pid := w.operator.PID()
	w.pool("r50", wants(in(arch, "amd64")))
	w.policy(both(restrict(in(instanceType, "a")), root("{volumeSize: 90Gi}")))
	w.merged("r50", in(instanceType, "a"), in(arch, "amd64"))
	p := w.policy(both(restrict(in(instanceType, "a", "b")), root("{volumeSize: 95Gi}")))
	w.merged("r50", in(instanceType, "a", "b"), in(arch, "amd64"))
	w.rooted("{volumeSize: 95Gi, volumeType: gp3, encrypted: true}", "default")
	w.remove(w.sre, p)
	w.merged("r50", in(arch, "amd64"))
	w.rooted(hardCoded, "default")
	select {
	case <-w.operator.Ended():
		t.Error("the operator ended")
	default:
	}
	if w.operator.PID() != pid {
		t.Errorf("the operator's process is %d, was %d", w.operator.PID(), pid)
	}
}
