package autonode

import (
	"fmt"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
)

const (
	group = "karpenter.hypershift.openshift.io"
	// managementUser is how the management cluster knows the operator.
	managementUser = "system:serviceaccount:" + hcp + ":" + account
	// confirmation is how long a refusal must last before the operator believes it (G15).
	confirmation = 30 * time.Second
)

func TestR40_TheOperatorWatchesItsOwnNamespaceOnly(t *testing.T) {
	w := begin(t)
	w.policy(restrict(in(instanceType, "a")))
	w.policySays("True", "")
	watched := 0
	for _, e := range w.events(w.mgmt, func(e cluster.Event) bool { return e.User == managementUser }) {
		if e.Namespace != "" && e.Namespace != hcp || e.Namespace == "" && e.Resource == "autonodepolicies" {
			t.Errorf("the operator asked for %s %s", e.Verb, e.URI)
		}
		if e.Resource == "autonodepolicies" && e.Verb == "list" {
			watched++
		}
		if e.Code == 403 && e.ReceivedAt.After(time.Now().Add(-within)) {
			t.Errorf("the operator was refused %s %s", e.Verb, e.URI)
		}
	}
	if watched == 0 {
		t.Error("the audit log has no list of policies by " + managementUser)
	}
}

func TestR41_TheOperatorsRightsAreThoseOfTheSource(t *testing.T) {
	w := begin(t)
	for _, c := range []struct {
		verb, sub, namespace string
		want                 bool
	}{
		{"get", "", hcp, true}, {"list", "", hcp, true}, {"watch", "", hcp, true},
		{"update", "status", hcp, true}, {"patch", "status", hcp, true},
		{"create", "", hcp, false}, {"update", "", hcp, false}, {"patch", "", hcp, false}, {"delete", "", hcp, false},
		{"deletecollection", "", hcp, false}, {"update", "finalizers", hcp, false},
		{"get", "", otherHCP, false}, {"list", "", otherHCP, false}, {"list", "", "", false},
		{"patch", "status", otherHCP, false},
	} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: managementUser,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: c.namespace, Verb: c.verb, Group: group, Resource: "autonodepolicies", Subresource: c.sub,
			},
		}}
		if err := w.sre.Create(w.ctx, review); err != nil {
			t.Fatal(err)
		}
		if review.Status.Allowed != c.want {
			t.Errorf("%s autonodepolicies/%s in %q: allowed is %t, want %t", c.verb, c.sub, c.namespace,
				review.Status.Allowed, c.want)
		}
	}
}

// withoutPolicyRights removes the rules about policies from the operator's role until giveBack or the test's end.
func (w *world) withoutPolicyRights() (giveBack func()) {
	w.t.Helper()
	var roles rbacv1.RoleList
	if err := w.sre.List(w.ctx, &roles, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	var restore []rbacv1.Role
	for _, role := range roles.Items {
		restore = append(restore, *role.DeepCopy())
		var kept []rbacv1.PolicyRule
		for _, rule := range role.Rules {
			if !strings.Contains(strings.Join(rule.Resources, ","), "autonodepolicies") {
				kept = append(kept, rule)
			}
		}
		role.Rules = kept
		if err := w.sre.Update(w.ctx, &role); err != nil {
			w.t.Fatal(err)
		}
	}
	back := false
	giveBack = func() {
		if back {
			return
		}
		back = true
		for _, role := range restore {
			role.ResourceVersion = ""
			if err := w.sre.Update(w.ctx, &role); err != nil {
				w.t.Error(err)
			}
		}
	}
	return giveBack
}

// readState returns the metrics' state of the operator's knowledge of the policy.
func (w *world) readState() string {
	w.t.Helper()
	lines := w.metric("autonode_policy_read_state")
	for _, line := range lines {
		if name, found := strings.CutSuffix(line, "\"} 1"); found {
			return strings.TrimPrefix(name, "autonode_policy_read_state{state=\"")
		}
	}
	return fmt.Sprint(lines)
}

func TestR45_APolicyThatMayNotBeReadIsPermissive(t *testing.T) {
	w := begin(t)
	w.policy(both(restrict(in(instanceType, "a", "b")), root("{volumeSize: 90Gi}")))
	w.policySays("True", "")
	w.halt()
	giveBack := w.withoutPolicyRights()
	defer giveBack()
	w.run()
	w.pool("r45", wants(in(instanceType, "b")))
	w.eventuallyIn(confirmation+within, "a NodePool for r45",
		func() (bool, string) { return w.get(nodePoolKind, "r45") != nil, "none yet" })
	w.merged("r45", in(instanceType, "b"))
	if state := w.readState(); state != "Permissive" {
		t.Errorf("the metrics say that the policy's state is %s, want Permissive", state)
	}
	w.rooted(hardCoded, "default")
	pid := w.operator.PID()
	giveBack()
	w.eventuallyIn(confirmation+within, "the policy to be read again", func() (bool, string) {
		got := requirementsOf(w.get(nodePoolKind, "r45"))
		return len(got) == 2, show(got)
	})
	w.merged("r45", in(instanceType, "a", "b"), in(instanceType, "b"))
	w.rooted("{volumeSize: 90Gi, volumeType: gp3, encrypted: true}", "default")
	if w.operator.PID() != pid {
		t.Error("the operator was restarted")
	}
}

// G15: with --on-policy-unreadable=KeepLast the loss of the rights changes nothing.
func TestR45_KeepLastLeavesTheLastAppliedState(t *testing.T) {
	w := begin(t)
	w.policy(restrict(in(instanceType, "a", "b")))
	w.pool("r45-keep", wants(in(instanceType, "b")))
	w.merged("r45-keep", in(instanceType, "a", "b"), in(instanceType, "b"))
	w.halt()
	giveBack := w.withoutPolicyRights()
	defer giveBack()
	w.run("--on-policy-unreadable=KeepLast")
	w.pool("r45-new", wants(in(instanceType, "b")))
	w.keepsTo("r45-keep", "r45-new")
	giveBack()
	w.eventuallyIn(confirmation+within, "the new pool",
		func() (bool, string) { return w.get(nodePoolKind, "r45-new") != nil, "none yet" })
	w.merged("r45-new", in(instanceType, "a", "b"), in(instanceType, "b"))
}
