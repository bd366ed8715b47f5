package autonode

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/localcluster/attack"
	"github.com/joiner-autoscaler/joiner/localcluster/machinetime"
)

// world is the fixture in the hands of one test.
type world struct {
	*fixture
	t   *testing.T
	ctx context.Context
}

// begin returns a world with a running operator, without policies, and with `default` as the only wrapper.
func begin(t *testing.T) *world {
	t.Helper()
	f := sharedFixture.Get(t)
	// Cleanups also use the context, after the test's own has ended.
	w := &world{fixture: f, t: t, ctx: context.WithoutCancel(t.Context())}
	t.Cleanup(func() {
		if t.Failed() {
			w.printLog()
		}
	})
	w.run()
	w.clear()
	w.eventually("admission to be in force", func() (bool, string) { // an earlier test may have broken it
		err := w.cadmin.Create(w.ctx, handMade("probe"), client.DryRunAll)
		return err != nil, "a NodePool by hand is accepted"
	})
	return w
}

// clear removes what earlier tests left.
func (w *world) clear() {
	w.t.Helper()
	for _, namespace := range []string{hcp, otherHCP} {
		for _, p := range w.list(w.sre, policyKind) {
			if p.GetNamespace() == namespace {
				w.remove(w.sre, &p)
			}
		}
	}
	for _, kind := range []schema.GroupVersionKind{poolWrapper, classWrapper} {
		for _, o := range w.list(w.cadmin, kind) {
			if o.GetName() != "default" {
				w.remove(w.cadmin, &o)
			}
		}
	}
	w.eventually("a guest without pools, with the node class default alone", func() (bool, string) {
		for _, pool := range w.list(w.cadmin, nodePoolKind) { // one that a failed test holds must not fail all others
			if len(pool.GetFinalizers()) > 0 {
				_ = w.patch(w.cadmin, &pool, object{"metadata": object{"finalizers": nil}})
			}
		}
		pools, classes := w.list(w.cadmin, nodePoolKind), w.list(w.cadmin, nodeClassKind)
		wrappers := append(w.list(w.cadmin, poolWrapper), w.list(w.cadmin, classWrapper)...)
		return len(pools) == 0 && len(classes) == 1 && len(wrappers) == 1,
			fmt.Sprintf("%d NodePools, %d EC2NodeClasses, wrappers: %s", len(pools), len(classes), show(wrappers))
	})
}

func (w *world) remove(as client.Client, o *unstructured.Unstructured) {
	w.t.Helper()
	if err := as.Delete(w.ctx, o); client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
}

// put creates an object or replaces its spec.
func (w *world) put(as client.Client, o *unstructured.Unstructured) *unstructured.Unstructured {
	w.t.Helper()
	if err := w.try(as, o); err != nil {
		w.t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
	}
	return o
}

// try is put for objects that may be refused.
func (w *world) try(as client.Client, o *unstructured.Unstructured) error {
	spec := o.Object["spec"]
	err := as.Create(w.ctx, o)
	for range 10 { // The operator may write its status in between.
		if !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
			return err
		}
		if err = as.Get(w.ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		o.Object["spec"] = spec
		err = as.Update(w.ctx, o)
	}
	return err
}

// status writes a status, whatever a controller writes to the object in between, and returns the API server's answer.
func (w *world) status(as client.Client, o *unstructured.Unstructured, status object) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := as.Get(w.ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		o.Object["status"] = status
		return as.Status().Update(w.ctx, o)
	})
}

// policy writes the policy of the hosted cluster.
func (w *world) policy(spec object) *unstructured.Unstructured {
	w.t.Helper()
	return w.put(w.sre, newObject(policyKind, w.namespace, "default", spec))
}

// pool writes an OpenshiftNodePool as the customer, and class an OpenshiftEC2NodeClass.
func (w *world) pool(name string, spec object) *unstructured.Unstructured {
	w.t.Helper()
	return w.put(w.cadmin, newObject(poolWrapper, "", name, spec))
}

func (w *world) class(name string, spec object) *unstructured.Unstructured {
	w.t.Helper()
	return w.put(w.cadmin, newObject(classWrapper, "", name, spec))
}

// patch sends a merge patch.
func (w *world) patch(as client.Client, o *unstructured.Unstructured, change object) error {
	return as.Patch(w.ctx, o.DeepCopy(), mergePatch(change))
}

// mergePatch returns a change as a merge patch. What tests write always marshals.
func mergePatch(change object) client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(show(change)))
}

func (w *world) mustPatch(as client.Client, o *unstructured.Unstructured, change object) {
	w.t.Helper()
	if err := w.patch(as, o, change); err != nil {
		w.t.Fatal(err)
	}
}

// get reads an object as the cluster's own admin. It returns nil if there is none.
func (w *world) get(kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	w.t.Helper()
	as, namespace := w.guest.Client, ""
	if kind == policyKind {
		as, namespace = w.mgmt.Client, w.namespace
	}
	o := newObject(kind, namespace, name, nil)
	err := as.Get(w.ctx, client.ObjectKeyFromObject(o), o)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}

func (w *world) list(as client.Client, kind schema.GroupVersionKind) []unstructured.Unstructured {
	w.t.Helper()
	var all unstructured.UnstructuredList
	all.SetGroupVersionKind(kind)
	if err := as.List(w.ctx, &all); err != nil {
		w.t.Fatal(err)
	}
	return all.Items
}

// eventually polls until look returns true; look also says what it saw.
func (w *world) eventually(what string, look func() (bool, string)) {
	w.t.Helper()
	w.eventuallyIn(within, what, look)
}

// eventuallyIn is eventually with another limit, in machine time.
func (w *world) eventuallyIn(limit time.Duration, what string, look func() (bool, string)) {
	w.t.Helper()
	began, since := machinetime.Now(), time.Now()
	for {
		done, saw := look()
		if done {
			w.saw(attack.Waited, "", what, since)
			return
		}
		if machinetime.Now()-began > limit {
			w.t.Fatalf("waited %s of machine time for %s: %s", limit, what, saw)
		}
		time.Sleep(poll)
	}
}

// saw says what was seen, and how long it took.
func (w *world) saw(how attack.How, by, text string, since time.Time) {
	w.t.Helper()
	attack.Saw(w.t, attack.Seen{How: how, By: by, Text: text, After: time.Since(since)})
}

// stays demands that what look returns does not change for a while.
func (w *world) stays(what string, look func() any) {
	w.t.Helper()
	w.staysFor(unchanged, what, look)
}

// staysFor is stays with another time.
func (w *world) staysFor(during time.Duration, what string, look func() any) {
	w.t.Helper()
	before, end, ticker := look(), time.After(during), time.NewTicker(poll)
	defer ticker.Stop()
	for {
		select {
		case <-end:
			return
		case <-ticker.C:
		}
		if now := look(); !reflect.DeepEqual(before, now) {
			w.t.Fatalf("%s changed from %s to %s", what, show(before), show(now))
		}
	}
}

// keepsTo demands that an unreadable policy has no effect until the confirmation is over, and a while longer. The
// NodePool applied stays as it was applied last, and fresh is not written.
func (w *world) keepsTo(applied, fresh string) {
	w.t.Helper()
	if got := requirementsOf(w.get(nodePoolKind, applied)); len(got) != 2 {
		w.t.Fatalf("NodePool %s is %s, want two requirements", applied, show(got))
	}
	w.staysFor(confirmation+unchanged, "what was applied", func() any {
		return []any{requirementsOf(w.get(nodePoolKind, applied)), w.get(nodePoolKind, fresh) != nil}
	})
	if w.get(nodePoolKind, fresh) != nil {
		w.t.Fatalf("NodePool %s was written without the policy", fresh)
	}
}

func show(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}

// printLog prints the end of the operator's log.
func (w *world) printLog() {
	if w.operator == nil {
		return
	}
	if log, err := os.ReadFile(w.operator.Log()); err == nil {
		lines := strings.Split(strings.TrimSpace(string(log)), "\n")
		w.t.Logf("the end of the operator's log:\n%s", strings.Join(lines[max(0, len(lines)-40):], "\n"))
	}
}
