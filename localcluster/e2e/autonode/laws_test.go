package autonode

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
)

// heldBack takes the right to write admission policies from the operator; release gives it back.
func (w *world) heldBack() (release func()) {
	w.t.Helper()
	var roles rbacv1.ClusterRoleList
	if err := w.cadmin.List(w.ctx, &roles); err != nil {
		w.t.Fatal(err)
	}
	for _, role := range roles.Items {
		before := slices.Clone(role.Rules)
		found := false
		for i, rule := range role.Rules {
			if slices.Contains(rule.Resources, "validatingadmissionpolicies") &&
				slices.Contains(rule.Verbs, "create") &&
				slices.Contains(rule.APIGroups, "admissionregistration.k8s.io") {
				role.Rules[i].Verbs, found = []string{"get", "list", "watch"}, true
			}
		}
		if !found || strings.HasPrefix(role.Name, "system:") {
			continue
		}
		if err := w.cadmin.Update(w.ctx, &role); err != nil {
			w.t.Fatal(err)
		}
		done := false
		release = func() {
			if done {
				return
			}
			done = true
			now := &rbacv1.ClusterRole{}
			if err := w.cadmin.Get(w.ctx, client.ObjectKeyFromObject(&role), now); err != nil {
				w.t.Fatal(err)
			}
			now.Rules = before
			if err := w.cadmin.Update(w.ctx, now); err != nil {
				w.t.Fatal(err)
			}
		}
		w.t.Cleanup(release)
		return release
	}
	w.t.Fatal("no ClusterRole lets the operator write admission policies")
	return nil
}

// A-09 (a), G22: while the admission policies cannot be written, here for 5 s, no object of Karpenter is written, and
// the policy is not Ready. Mutants: Protected is always true; the wrappers do not check it; the policy's status does
// not check it.
func TestA09a_NothingIsWrittenBeforeTheGuestIsProtected(t *testing.T) {
	w := begin(t)
	w.halt()
	for _, o := range []struct{ policy, binding string }{{poolGuard, poolGuardBinding},
		{classGuard, classGuardBinding}} {
		w.remove(w.cadmin, w.existing(bindingKind, o.binding))
		w.remove(w.cadmin, w.existing(vapKind, o.policy))
	}
	release := w.heldBack()
	w.pool("a09", wants(in(instanceType, "b")))
	w.class("a09", object{"monitoring": "Basic"})
	w.policy(restrict(in(instanceType, "a", "b")))
	began := time.Now()
	var freed time.Time
	released := make(chan struct{})
	go func() { // the operator is not ready before
		defer close(released)
		w.unprotected(began, "a09")
		freed = time.Now()
		release()
	}()
	w.run()
	<-released
	w.eventuallyIn(3*within, "the pool", func() (bool, string) {
		return w.get(nodePoolKind, "a09") != nil,
			"none yet"
	})
	w.policySays("True", "")
	var guarded, wrote []time.Time
	for _, e := range w.events(w.guest, func(e cluster.Event) bool {
		return e.User == operatorUser && e.Verb == "create" && e.Code < 300 && e.ReceivedAt.After(began)
	}) {
		switch {
		case strings.HasPrefix(e.Resource, "validatingadmissionpol"):
			guarded = append(guarded, e.DoneAt)
		case slices.Contains([]string{"nodepools", "ec2nodeclasses"}, e.Resource):
			wrote = append(wrote, e.ReceivedAt)
		}
	}
	if len(guarded) != 4 || len(wrote) < 2 ||
		slices.MinFunc(wrote, time.Time.Compare).Before(slices.MaxFunc(guarded, time.Time.Compare)) {
		t.Errorf("admission written at %v, Karpenter's objects at %v", guarded, wrote)
	}
	t.Logf("the first object was written %s after admission could be", wrote[0].Sub(freed).Round(time.Millisecond))
}

// unprotected watches the operator while it tries to write admission policies in vain, for 5 s after its first
// attempt. It reports what the operator writes nevertheless.
func (w *world) unprotected(since time.Time, name string) {
	const watched = 5 * time.Second
	var first time.Time
	// It ends by itself, or at the end of its time; first says which.
	_ = wait.PollUntilContextTimeout(w.ctx, poll, time.Until(since.Add(6*within)), true,
		func(context.Context) (bool, error) {
			for kind, o := range map[string]*unstructured.Unstructured{"NodePool": w.get(nodePoolKind, name),
				"EC2NodeClass": w.get(nodeClassKind, name)} {
				if o != nil {
					w.t.Errorf("a %s is written without admission", kind)
				}
			}
			if ready := condition(w.get(policyKind, "default"), "Ready"); ready != nil {
				w.t.Errorf("without admission the policy says %s", show(ready))
			}
			if first.IsZero() && len(w.events(w.guest, func(e cluster.Event) bool {
				return e.User == operatorUser && e.Code == 403 && e.Resource == "validatingadmissionpolicies" &&
					e.ReceivedAt.After(since)
			})) > 0 {
				first = time.Now()
			}
			return !first.IsZero() && time.Since(first) >= watched, nil
		})
	if first.IsZero() {
		w.t.Error("the operator has not tried to write an admission policy")
	}
}

// A-09 (c): a pool of an earlier process is this one's, too, once this one has looked at it. Somebody removes its
// label and owner, forges its wrapper's status and deletes the wrapper at the same moment. That does not set the pool
// free.
func TestA09c_APoolThatWasAdoptedIsNotSetFree(t *testing.T) {
	w := begin(t)
	w.policy(restrict(in(instanceType, "a", "b")))
	for i := range 5 {
		name := fmt.Sprintf("a09-%d", i)
		w.pool(name, wants(in(instanceType, "b")))
		w.merged(name, in(instanceType, "a", "b"), in(instanceType, "b"))
		w.poolSays(name, "PolicyApplied", "True", "")
	}
	w.restart()
	w.eventually("the operator to have looked at the pools", func() (bool, string) {
		lines := w.metric("autonode_wrappers{")
		return slices.Contains(lines, `autonode_wrappers{applied="True",kind="OpenshiftNodePool",party=""} 5`),
			strings.Join(lines, "\n")
	})
	began := time.Now()
	for i := range 5 {
		name := fmt.Sprintf("a09-%d", i)
		done := make(chan error, 2)
		go func() {
			done <- w.patch(w.cadmin, newObject(nodePoolKind, "", name, nil),
				object{"metadata": object{"labels": nil, "ownerReferences": nil}})
		}()
		go func() {
			err := w.patch(w.cadmin, newObject(poolWrapper, "", name, nil),
				object{"metadata": object{"finalizers": nil}})
			if err == nil {
				err = w.cadmin.Delete(w.ctx, newObject(poolWrapper, "", name, nil))
			}
			done <- err
		}()
		for range 2 {
			if err := <-done; client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range 5 {
		w.gone(fmt.Sprintf("a09-%d", i))
	}
	t.Logf("all were gone %s after the first attack", time.Since(began).Round(time.Millisecond))
}
