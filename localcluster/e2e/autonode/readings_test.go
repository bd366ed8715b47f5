package autonode

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// Tests of the readings (G1 to G29) that no requirement covers.

// G3: if Karpenter has a name of its own, metadata can be closed too.
func TestG3_StrictAdmissionRefusesMetadataToo(t *testing.T) {
	w := begin(t)
	const operand = "karpenter-operand"
	w.run("--strict-admission", "--operand-user-name="+operand)
	w.pool("g3", wants(in(arch, "amd64")))
	w.merged("g3", in(arch, "amd64"))
	annotate := object{"metadata": object{"annotations": object{"karpenter.sh/nodepool-hash": "1"}}}
	w.eventually("an annotation by others to be refused", func() (bool, string) {
		err := w.patch(w.cadmin, w.get(nodePoolKind, "g3"),
			object{"metadata": object{"annotations": object{"a": time.Now().String()}}})
		return err != nil && strings.Contains(err.Error(), "OpenshiftNodePool"), fmt.Sprint(err)
	})
	if err := w.patch(w.as(operand, "system:masters"), w.get(nodePoolKind, "g3"), annotate); err != nil {
		t.Errorf("the operand is refused: %v", err)
	}
	if err := w.patch(w.as("system:serviceaccount:kube-system:generic-garbage-collector", "system:masters"),
		w.get(nodePoolKind, "g3"), object{"metadata": object{"finalizers": []any{}}}); err != nil {
		t.Errorf("the garbage collector is refused: %v", err)
	}
	w.refused("a spec by the operand", w.patch(w.as(operand, "system:masters"), w.get(nodePoolKind, "g3"),
		object{"spec": object{"weight": int64(3)}}), "OpenshiftNodePool")
}

// G4: under another name than the exempt one the operator would lock itself out; it does not start.
func TestG4_UnderAnotherNameItDoesNotStart(t *testing.T) {
	w := begin(t)
	w.halt()
	program := w.program(nil)
	program.Name, program.User, program.Groups = "impostor", "somebody-else", []string{"system:masters"}
	running, err := w.guest.Run(w.ctx, program)
	if err == nil {
		_ = running.Kill()
		t.Fatal("it started")
	}
	for _, part := range []string{"somebody-else", operatorUser, "guest-user-name"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
}

// G15: an API server that does not answer permits nothing. What was applied stays, and nothing new is written.
func TestG15_AManagementClusterThatIsDownIsNoPermission(t *testing.T) {
	w := begin(t)
	w.policy(restrict(in(instanceType, "a", "b")))
	w.pool("g15", wants(in(instanceType, "b")))
	w.merged("g15", in(instanceType, "a", "b"), in(instanceType, "b"))
	w.halt()
	if err := w.mgmt.Cluster.StopComponent(cluster.APIServer); err != nil {
		t.Fatal(err)
	}
	back := func() {
		if err := w.mgmt.Cluster.StartComponent(w.ctx, cluster.APIServer); err != nil {
			t.Error(err)
		}
	}
	defer func() {
		if w.mgmt.Cluster.PIDs()[cluster.APIServer] == 0 {
			back()
		}
	}()
	w.run()
	w.pool("g15-new", wants(in(instanceType, "b")))
	w.keepsTo("g15", "g15-new")
	back()
	w.eventuallyIn(confirmation+within, "the new pool",
		func() (bool, string) { return w.get(nodePoolKind, "g15-new") != nil, "none yet" })
	w.merged("g15-new", in(instanceType, "a", "b"), in(instanceType, "b"))
}

// G16, G28: the message of the policy names at most ten wrappers and nothing else of the guest.
func TestG16_TheMessageNamesAFewWrappersAndNoContents(t *testing.T) {
	w := begin(t)
	for i := range 15 {
		w.pool(fmt.Sprintf("g16-%02d", i), wants(numbered(60, "secret")...))
	}
	w.policy(restrict(numbered(60, "policy")...))
	ready := w.policySays("False", "TooManyRequirements", "g16-00", "5 more")
	message := ready["message"].(string)
	if n := strings.Count(message, "g16-"); n > 10 {
		t.Errorf("%d pools are named, want 10 at most: %s", n, message)
	}
	if strings.Contains(message, "secret") {
		t.Errorf("the message tells of what is in the guest: %s", message)
	}
}

// G17: a policy held by a finalizer is in force until it is gone.
func TestG17_APolicyInDeletionIsInForce(t *testing.T) {
	w := begin(t)
	p := w.policy(restrict(in(instanceType, "a")))
	w.mustPatch(w.sre, p, object{"metadata": object{"finalizers": []any{"example.com/held"}}})
	w.remove(w.sre, p)
	w.pool("g17", wants(in(arch, "amd64")))
	w.merged("g17", in(instanceType, "a"), in(arch, "amd64"))
	w.mustPatch(w.sre, p, object{"metadata": object{"finalizers": []any{}}})
	w.merged("g17", in(arch, "amd64"))
}

// G19: a teardown removes wrappers, their products, and the admission policies; pools are not made again.
func TestG19_TeardownLeavesNothing(t *testing.T) {
	w := begin(t)
	w.pool("g19", wants(in(arch, "amd64")))
	w.merged("g19", in(arch, "amd64"))
	w.halt()
	program := w.program([]string{"--teardown"})
	program.Name = "teardown"
	if running, err := w.guest.Run(w.ctx, program); err == nil {
		<-running.Ended()
	} else if !strings.Contains(err.Error(), "it has ended: <nil>") { // it may be done before it is ready
		t.Fatal(err)
	}
	for kind, left := range map[string]int{
		"NodePools": len(w.list(w.cadmin, nodePoolKind)), "EC2NodeClasses": len(w.list(w.cadmin, nodeClassKind)),
		"OpenshiftNodePools":      len(w.list(w.cadmin, poolWrapper)),
		"OpenshiftEC2NodeClasses": len(w.list(w.cadmin, classWrapper)),
	} {
		if left > 0 {
			t.Errorf("%d %s are left", left, kind)
		}
	}
	if w.get(vapKind, poolGuard) != nil || w.get(bindingKind, classGuardBinding) != nil {
		t.Error("admission policies are left")
	}
	if err := w.guest.Apply(w.ctx, defaultClass); err != nil {
		t.Fatal(err)
	}
	w.run()
	w.rooted(hardCoded, "default")
}

// G22: the guest is protected before the first object of Karpenter is written.
func TestG22_AdmissionComesBeforeTheFirstPool(t *testing.T) {
	w := begin(t)
	w.pool("g22", wants(in(arch, "amd64")))
	w.merged("g22", in(arch, "amd64"))
	var first, last time.Time
	for _, e := range w.events(w.guest, func(e cluster.Event) bool {
		return e.User == operatorUser && e.Verb == "create" && e.Code < 300
	}) {
		switch {
		case strings.HasPrefix(e.Resource, "validatingadmissionpol") && last.IsZero() && first.IsZero():
			last = e.DoneAt
		case first.IsZero() && slices.Contains([]string{"nodepools", "ec2nodeclasses"}, e.Resource):
			first = e.ReceivedAt
		}
	}
	if first.IsZero() || last.IsZero() || first.Before(last) {
		t.Errorf("the first admission policy was written at %s and the first of Karpenter's objects at %s", last,
			first)
	}
}

// G24: without the feature there is no policy, and everything else works.
func TestG24_WithoutTheFeatureThereIsNoPolicy(t *testing.T) {
	w := begin(t)
	w.policy(restrict(in(instanceType, "a")))
	w.run("--feature-gates=AutoNodePolicy=false")
	w.pool("g24", wants(in(arch, "amd64")))
	w.merged("g24", in(arch, "amd64"))
	w.refused("a NodePool by hand", w.cadmin.Create(w.ctx, handMade("by-hand"), client.DryRunAll), "OpenshiftNodePool")
	w.run()
	w.merged("g24", in(instanceType, "a"), in(arch, "amd64"))
}

// G29: during a rolling restart two operators run; they do not fight.
func TestG29_TwoOperatorsDoNotFight(t *testing.T) {
	w := begin(t)
	program := w.program(nil)
	program.Name = "second-operator"
	second, err := w.guest.Run(w.ctx, program)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := second.Stop(); err != nil {
			t.Error(err)
		}
	}()
	for i := range 5 {
		w.policy(restrict(in(instanceType, "a", fmt.Sprint(i))))
		w.pool(fmt.Sprintf("g29-%d", i), wants(in(arch, "amd64")))
	}
	for i := range 5 {
		w.merged(fmt.Sprintf("g29-%d", i), in(instanceType, "a", "4"), in(arch, "amd64"))
	}
	w.policySays("True", "")
	w.quiet()
	// Each compares everything with the policy 10 s after the last change, and may then write about it.
	w.eventuallyIn(poolPatience, "both operators to have told what they found", func() (bool, string) {
		wrote := w.events(w.mgmt, func(e cluster.Event) bool {
			return strings.HasPrefix(e.UserAgent, "joiner-operator") && e.Verb == "patch" &&
				e.ReceivedAt.After(time.Now().Add(-12*time.Second))
		})
		return len(wrote) == 0, fmt.Sprintf("%d writes of the status within 12 s", len(wrote))
	})
	for _, of := range []*rig.Rig{w.guest, w.mgmt} {
		began := time.Now()
		w.stays("the requests of two idle operators", func() any {
			var asked []string
			for _, e := range w.events(of, func(e cluster.Event) bool {
				return strings.HasPrefix(e.UserAgent, "joiner-operator") && e.Verb != "watch" && e.Verb != "get" &&
					e.ReceivedAt.After(began)
			}) {
				asked = append(asked, e.Verb+" "+e.URI)
			}
			return asked
		})
	}
}
