package autonode

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestR9_EverythingButTheRequirementsIsCopied(t *testing.T) {
	w := begin(t)
	w.policy(restrict(in(instanceType, "a")))
	spec := parse(`
weight: 7
limits: {cpu: "100", nodes: "10"}
disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 90s, budgets: [{nodes: "20%"}, {nodes: "1", schedule: "@daily", duration: 1h0m0s}]}
template:
  metadata: {labels: {team: blue}, annotations: {example.com/note: kept}}
  spec:
    nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
    taints: [{key: example.com/t, value: v, effect: NoSchedule}]
    startupTaints: [{key: example.com/s, effect: NoExecute}]
    expireAfter: 72h
    terminationGracePeriod: 1h
    requirements: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]`)
	w.pool("r9", spec)
	w.merged("r9", in(instanceType, "a"), in(arch, "amd64"))
	want := parse(show(spec))
	want["template"].(object)["spec"].(object)["requirements"] = list(in(instanceType, "a"), in(arch, "amd64"))
	if got := field(w.get(nodePoolKind, "r9"), "spec"); !reflect.DeepEqual(got, any(want)) {
		t.Errorf("the NodePool's spec is\n%s, want\n%s", show(got), show(want))
	}
}

func TestR10_PolicyEntriesComeFirstThenTheUsers(t *testing.T) {
	w := begin(t)
	p1, p2 := in(instanceType, "a", "b"), entry(zone, "NotIn", "x")
	u1, u2 := entry(arch, "Exists"), in(instanceType, "b", "c")
	w.policy(restrict(p1, p2))
	w.pool("r10", wants(u1, u2))
	w.merged("r10", p1, p2, u1, u2)
}

func TestR11_UsersCanRestrictFurther(t *testing.T) {
	w := begin(t)
	w.policy(restrict(in(instanceType, "a", "b", "c", "d")))
	w.pool("r11", wants(in(instanceType, "b", "c")))
	w.merged("r11", in(instanceType, "a", "b", "c", "d"), in(instanceType, "b", "c"))
	w.folds("r11", instanceType, []string{"a", "b", "c", "d", "e"}, []string{"b", "c"})
}

func TestR12_ValuesOutsideThePolicyHaveNoEffect(t *testing.T) {
	w := begin(t)
	w.policy(restrict(in(instanceType, "a", "b", "c")))
	w.pool("r12", wants(in(instanceType, "b", "d")))
	w.merged("r12", in(instanceType, "a", "b", "c"), in(instanceType, "b", "d"))
	w.folds("r12", instanceType, []string{"a", "b", "c", "d"}, []string{"b"})
	w.poolSays("r12", "RequirementsCompatible", "True", "")
}

func TestR13_APoolWithNothingInsideThePolicySaysSo(t *testing.T) {
	w := begin(t)
	w.policy(restrict(in(instanceType, "a")))
	w.pool("r13", wants(in(instanceType, "b")))
	w.poolSays("r13", "RequirementsCompatible", "False", "NoCompatibleInstanceTypes", instanceType, "a", "b")
	w.poolSays("r13", "Ready", "False", "")
	w.merged("r13", in(instanceType, "a"), in(instanceType, "b"))
	w.folds("r13", instanceType, []string{"a", "b"}, []string{})
	w.policySays("True", "", "1")
}

func TestR14_PolicyDoesNotRefuseAtAdmission(t *testing.T) {
	w := begin(t)
	w.policy(restrict(in(instanceType, "a")))
	pool := newObject(poolWrapper, "", "r14", wants(in(instanceType, "b")))
	if err := w.cadmin.Create(w.ctx, pool.DeepCopy(), client.DryRunAll); err != nil {
		t.Errorf("a dry run is refused: %v", err)
	}
	if err := w.cadmin.Create(w.ctx, pool); err != nil {
		t.Errorf("the pool is refused: %v", err)
	}
}

func TestR15_AnAllowListOfZonesExcludesLocalZones(t *testing.T) {
	w := begin(t)
	w.policy(restrict(in(zone, "us-east-1a", "us-east-1b")))
	w.pool("r15", wants(in(arch, "amd64")))
	w.merged("r15", in(zone, "us-east-1a", "us-east-1b"), in(arch, "amd64"))
	w.folds("r15", zone, []string{"us-east-1a", "us-east-1b", "us-east-1-bos-1a"},
		[]string{"us-east-1a", "us-east-1b"})
}

func TestR16_MinValuesIsCarried(t *testing.T) {
	w := begin(t)
	p := atLeast(2, in(instanceType, "a", "b", "c"))
	w.policy(restrict(p))
	w.pool("r16", wants(in(arch, "amd64")))
	w.merged("r16", p, in(arch, "amd64"))
}

func TestR17_WithoutAPolicyUsersGetWhatTheyAskFor(t *testing.T) {
	w := begin(t)
	w.pool("r17", wants(in(instanceType, "a")))
	w.class("r17", object{"monitoring": "Basic"})
	w.merged("r17", in(instanceType, "a"))
	w.rooted(hardCoded, "r17", "default")
}

func TestR18_EmptyRequirementsAllowEverythingWhileTheRootVolumeApplies(t *testing.T) {
	w := begin(t)
	w.pool("r18", wants(in(instanceType, "a")))
	for size, spec := range map[string]object{"80Gi": {}, "81Gi": restrict(), "82Gi": {"nodePoolDefaults": object{}}} {
		w.policy(both(root("{volumeSize: "+size+"}"), spec))
		w.rooted("{volumeType: gp3, encrypted: true, volumeSize: "+size+"}", "default")
		w.policySays("True", "")
		w.merged("r18", in(instanceType, "a"))
	}
}

func TestR19_APolicyUpdateReachesAllPoolsWithoutTheUser(t *testing.T) {
	w := begin(t)
	began := time.Now()
	w.policy(restrict(in(instanceType, "a", "b")))
	names := []string{"r19-1", "r19-2", "r19-3"}
	generations := map[string]int64{}
	for _, name := range names {
		w.pool(name, wants(in(arch, "amd64")))
		w.merged(name, in(instanceType, "a", "b"), in(arch, "amd64"))
		generations[name] = w.get(poolWrapper, name).GetGeneration()
	}
	w.policy(restrict(in(instanceType, "a", "b", "c")))
	for _, name := range names {
		w.merged(name, in(instanceType, "a", "b", "c"), in(arch, "amd64"))
		pool := w.get(poolWrapper, name)
		if pool.GetGeneration() != generations[name] {
			t.Errorf("%s has generation %d, had %d: somebody wrote its spec", name, pool.GetGeneration(),
				generations[name])
		}
	}
	for _, e := range w.writes(w.guest, "openshiftnodepools") {
		if e.ReceivedAt.After(began) && e.User == operatorUser && e.Sub != "status" && e.Verb != "patch" {
			t.Errorf("the operator made a %s of %s", e.Verb, e.URI)
		}
	}
}

func TestR20_DeletingThePolicyLeavesTheUsersEntries(t *testing.T) {
	w := begin(t)
	p := w.policy(both(restrict(in(instanceType, "a", "b")), root("{volumeSize: 90Gi}")))
	w.pool("r20", wants(in(instanceType, "b")))
	w.merged("r20", in(instanceType, "a", "b"), in(instanceType, "b"))
	w.rooted("{volumeSize: 90Gi, volumeType: gp3, encrypted: true}", "default")
	w.remove(w.sre, p)
	w.merged("r20", in(instanceType, "b"))
	w.rooted(hardCoded, "default")
}

func TestR21_APolicyThatComesAfterThePoolApplies(t *testing.T) {
	w := begin(t)
	w.pool("r21", wants(in(instanceType, "b")))
	w.merged("r21", in(instanceType, "b"))
	w.policy(restrict(in(instanceType, "a", "b")))
	w.merged("r21", in(instanceType, "a", "b"), in(instanceType, "b"))
}

func TestR22_InterleavedUpdatesConverge(t *testing.T) {
	w := begin(t)
	var policy, user object
	for i := range 50 {
		policy, user = in(instanceType, "b", fmt.Sprintf("p%d", i)), in(instanceType, "b", fmt.Sprintf("u%d", i))
		w.policy(restrict(policy))
		w.pool("r22", wants(user))
	}
	w.merged("r22", policy, user)
	w.stays("the NodePool", func() any { return requirementsOf(w.get(nodePoolKind, "r22")) })
	w.policySays("True", "")
}

// G21: what cannot change in a NodePool cannot change in its wrapper, so no update gets stuck in between.
func TestG21_WhatANodePoolCannotChangeIsRefusedOnTheWrapper(t *testing.T) {
	w := begin(t)
	dynamic, static := "{template: {spec: {requirements: []}}}", "{replicas: 1, template: {spec: {requirements: []}}}"
	w.pool("g21", parse(dynamic))
	w.pool("g21-static", parse(static))
	for name, spec := range map[string]string{
		"g21": static, "g21-static": dynamic,
	} {
		if err := w.try(w.cadmin, newObject(poolWrapper, "", name, parse(spec))); !apierrors.IsInvalid(err) {
			t.Errorf("%s: replicas that come or go are answered with %v", name, err)
		}
	}
	other :=
		"{template: {spec: {requirements: [], nodeClassRef: {group: karpenter.hypershift.openshift.io, kind: " +
			"OpenshiftEC2NodeClass, name: default}}}}"
	if err := w.try(w.cadmin, newObject(poolWrapper, "", "g21", parse(other))); !apierrors.IsInvalid(err) {
		t.Errorf("another kind of node class is answered with %v", err)
	}
	w.merged("g21")
	w.merged("g21-static")
}
