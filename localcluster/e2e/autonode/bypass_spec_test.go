package autonode

import (
	"fmt"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/localcluster/attack"
)

const cpus = "karpenter.k8s.aws/instance-cpu"

// A wrapper may say all this without a refusal, and nothing of it may widen what the policy allows. left are the
// offered values that must remain for the key; incompatible demands RequirementsCompatible=False (G10).
func TestX11_NothingInAWrapperWidensThePolicy(t *testing.T) {
	w := begin(t)
	for i, c := range []struct {
		what         string
		policy       object
		user         object // the spec of the wrapper
		key          string
		offered      []string
		left         []string
		incompatible bool
	}{
		{"another value", in(instanceType, "a"), wants(in(instanceType, "z")), instanceType, []string{"a", "z"},
			[]string{}, true},
		{"the legacy name of the label", in(instanceType, "a"), wants(in("beta.kubernetes.io/instance-type", "z")),
			instanceType, []string{"a", "z"}, []string{}, true},
		{"a legacy name of the zone", in(zone, "1a"), wants(in("failure-domain.beta.kubernetes.io/zone", "bos")), zone,
			[]string{"1a", "bos"}, []string{}, true},
		{"a label of the template", in(instanceType, "a"),
			parse(`{template: {metadata: {labels: {node.kubernetes.io/instance-type: z}}, spec: {}}}`), instanceType,
			[]string{"a", "z"}, []string{}, true},
		{"a legacy label of the template", in(instanceType, "a"),
			parse(`{template: {metadata: {labels: {beta.kubernetes.io/instance-type: z}}, spec: {}}}`), instanceType,
			[]string{"a", "z"}, []string{}, true},
		{"presence", in(instanceType, "a"), wants(entry(instanceType, "Exists")), instanceType, []string{"a", "z"},
			[]string{"a"}, false},
		{"absence", in(instanceType, "a"), wants(entry(instanceType, "DoesNotExist")), instanceType,
			[]string{"a", "z"}, []string{}, true},
		{"an exclusion", in(instanceType, "a", "b"), wants(entry(instanceType, "NotIn", "a")), instanceType,
			[]string{"a", "b", "z"}, []string{"b"}, false},
		{"numbers above", entry(cpus, "Lt", "9"), wants(entry(cpus, "Gt", "2")), cpus, []string{"2", "4", "8", "16"},
			[]string{"4", "8"}, false},
		{"numbers that do not meet", entry(cpus, "Lt", "9"), wants(entry(cpus, "Gt", "15")), cpus,
			[]string{"4", "8", "16"}, []string{}, true},
		{"a number as a word", entry(cpus, "Lt", "9"), wants(in(cpus, "016", "16")), cpus,
			[]string{"4", "8", "16", "016"}, []string{}, true},
	} {
		t.Run(strings.ReplaceAll(c.what, " ", "_"), func(t *testing.T) {
			w := &world{fixture: w.fixture, t: t, ctx: w.ctx}
			name := fmt.Sprintf("x11-%d", i)
			w.policy(restrict(c.policy))
			w.policyRead() // else the wrapper may be merged with the policy of the previous case
			w.pool(name, c.user)
			status := map[bool]string{true: "False", false: "True"}[c.incompatible]
			w.poolSays(name, "RequirementsCompatible", status, "")
			w.folds(name, c.key, c.offered, c.left)
			if got := requirementsOf(w.get(nodePoolKind, name)); show(got[0]) != show(c.policy) {
				t.Errorf("the first entry is %s, want the policy's %s", show(got[0]), show(c.policy))
			}
		})
	}
}

// G10: if Karpenter would launch nodes without the label, an entry that nothing satisfies is added, and goes again.
func TestX11_CustomLabelsFailClosed(t *testing.T) {
	w := begin(t)
	const label = "example.com/tier"
	w.policy(restrict(in(label, "gold")))
	for name, user := range map[string]object{
		"x11-other": wants(in(label, "lead")), "x11-absent": wants(entry(label, "DoesNotExist")),
		"x11-label": parse(`{template: {metadata: {labels: {example.com/tier: lead}}, spec: {}}}`),
	} {
		w.pool(name, user)
		w.poolSays(name, "RequirementsCompatible", "False", "NoCompatibleInstanceTypes", label)
		if types := w.fold(name).Get(requirement.Key(instanceType)); types.AllowsPresent() {
			t.Errorf("%s: instance types are left: %s", name, types)
		}
	}
	w.pool("x11-other", wants(in(label, "gold", "lead")))
	w.merged("x11-other", in(label, "gold"), in(label, "gold", "lead"))
	w.poolSays("x11-other", "RequirementsCompatible", "True", "")
}

// G12: a wrapper that fills the list cannot push the policy's entries out of it: its pool is not written at all.
func TestX11_AFullListDoesNotPushThePolicyOut(t *testing.T) {
	w := begin(t)
	w.pool("x11-full", wants(in(instanceType, "b")))
	w.policy(restrict(in(instanceType, "a", "b")))
	w.merged("x11-full", in(instanceType, "a", "b"), in(instanceType, "b"))
	w.pool("x11-full", wants(numbered(100, "user")...))
	w.poolSays("x11-full", "Ready", "False", "TooManyRequirements")
	w.merged("x11-full", in(instanceType, "a", "b"), in(instanceType, "b"))
}

// G20: a wrapper cannot point to a class that the policy does not reach.
func TestX11_ForeignNodeClassesAreRefused(t *testing.T) {
	w := begin(t)
	for i, ref := range []string{
		"{group: karpenter.kwok.sh, kind: KWOKNodeClass, name: mine}",
		"{group: example.com, kind: EC2NodeClass, name: default}",
	} {
		name := fmt.Sprintf("x11-ref-%d", i)
		err := w.try(w.cadmin,
			newObject(poolWrapper, "", name, parse("{template: {spec: {requirements: [], nodeClassRef: "+ref+"}}}")))
		if err != nil { // refused at admission
			attack.SawRefusal(t, err)
			continue
		}
		w.poolSays(name, "Ready", "False", "InvalidNodeClassRef")
		if w.get(nodePoolKind, name) != nil {
			t.Errorf("a NodePool was written for nodeClassRef %s", ref)
		}
	}
	w.pool("x11-ref",
		parse(
			"{template: {spec: {requirements: [], nodeClassRef: {group: karpenter.hypershift.openshift.io, kind: "+
				"OpenshiftEC2NodeClass, name: default}}}}"))
	w.merged("x11-ref")
	want := object{"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
	got := field(w.get(nodePoolKind, "x11-ref"), "spec", "template", "spec", "nodeClassRef")
	if show(got) != show(want) {
		t.Errorf("the NodePool refers to %s, want %s", show(got), show(want))
	}
}

// G5: when the operand has a name of its own, nobody else makes NodeClaims. Deleting them stays free.
func TestX11_HandMadeNodeClaimsAreRefusedWhenTheOperandHasAName(t *testing.T) {
	w := begin(t)
	const operand = "joiner"
	claim := newObject(nodeClaimKind, "", "x11-claim",
		parse(`{nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default},
		requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [t3.micro]}]}`))
	w.run("--protect-nodeclaims=ByIdentity", "--operand-user-name="+operand)
	w.eventually("the admission policy of NodeClaims", func() (bool, string) {
		err := w.try(w.cadmin, claim.DeepCopy())
		if err == nil {
			w.remove(w.cadmin, claim)
			return false, "accepted"
		}
		return strings.Contains(err.Error(), "OpenshiftNodePool"), err.Error()
	})
	theirs := claim.DeepCopy()
	if err := w.as(operand, "system:masters").Create(w.ctx, theirs); err != nil {
		t.Fatalf("the operand is refused: %v", err)
	}
	w.refused("an edit of the operand's claim",
		w.patch(w.cadmin, theirs, object{"spec": object{"requirements": list(in(instanceType, "x"))}}))
	w.mustPatch(w.cadmin, theirs, object{"metadata": object{"annotations": object{"a": "b"}}})
	w.remove(w.cadmin, theirs)
}

// The weaker rule refuses claims that belong to no pool. What it lets pass is documented.
func TestX11_NodeClaimsWithoutAPoolAreRefusedByContent(t *testing.T) {
	w := begin(t)
	w.run("--protect-nodeclaims=ByContent")
	spec := parse(`{nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default},
		requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [t3.micro]}]}`)
	stray := newObject(nodeClaimKind, "", "x11-stray", spec)
	w.eventually("the admission policy of NodeClaims", func() (bool, string) {
		err := w.try(w.cadmin, stray.DeepCopy())
		if err == nil {
			w.remove(w.cadmin, stray)
			return false, "accepted"
		}
		return strings.Contains(err.Error(), "OpenshiftNodePool"), err.Error()
	})
	w.pool("x11-owner", wants(in(instanceType, "a")))
	w.merged("x11-owner", in(instanceType, "a"))
	owner := w.get(nodePoolKind, "x11-owner")
	posed := newObject(nodeClaimKind, "", "x11-posed", spec)
	posed.SetLabels(map[string]string{"karpenter.sh/nodepool": "x11-owner"})
	posed.Object["metadata"].(object)["ownerReferences"] = list(object{
		"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": "x11-owner", "uid": string(owner.GetUID())})
	if err := w.cadmin.Create(w.ctx, posed); err != nil {
		t.Errorf("the documented gap is closed, say so in docs/autonode-bypass.md: %v", err)
	}
	w.remove(w.cadmin, posed)
}

// An overlay changes what a type costs or offers; it does not change what a pool allows.
func TestX11_OverlaysDoNotTouchThePool(t *testing.T) {
	w, pool := guarded(t)
	overlay := newObject(overlayKind, "", "x11", parse(`{price: "0.001", capacity: {example.com/gpu: "8"},
		requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [t3.micro]}]}`))
	if err := w.cadmin.Create(w.ctx, overlay); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.remove(w.cadmin, overlay) })
	w.stays("the NodePool", func() any { return field(w.get(nodePoolKind, "x11"), "spec") })
	if now := w.get(nodePoolKind, "x11"); now.GetGeneration() != pool.GetGeneration() {
		t.Error("the NodePool changed")
	}
}
