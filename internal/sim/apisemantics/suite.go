// Package apisemantics tests, in one suite, what the controllers rely on in an API server. It runs against the
// simulated server in internal/sim/apiserver and, in localcluster/e2e, against a real kube-apiserver. Proofs by
// simulation hold as far as these two agree.
//
// Start with [Run].
package apisemantics

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// Harness is a server under test.
type Harness interface {
	// Client reads from the server, not from a cache.
	Client() client.WithWatch
	// Settle waits until the status of a PodDisruptionBudget matches its specification and pods.
	Settle(t *testing.T, budget *policyv1.PodDisruptionBudget)
}

// bench is one test on a server. Objects are named after the test, so that tests can share a server.
type bench struct {
	client.WithWatch
	Harness
	t      *testing.T
	prefix string
}

// Run runs the suite. fresh is called once for each test and may return the same server each time. Objects are deleted
// after each test.
func Run(t *testing.T, fresh func(t *testing.T) Harness) {
	t.Helper()
	for _, test := range []struct {
		name string
		run  func(bench)
	}{
		{"names are unique", namesAreUnique},
		{"generateName gives names that differ", generatedNames},
		{"an update of an old version is a conflict", conflicts},
		{"a write that changes nothing makes no version", noChange},
		{"the status is a resource of its own", statusApart},
		{"the generation counts changes of the specification", generations},
		{"a merge patch with a version is a conflict when that is old", optimisticPatch},
		{"a merge patch without a version goes through", plainPatch},
		{"a merge patch removes what is null", patchRemoves},
		{"a JSON patch whose test fails is refused as invalid", jsonPatch},
		{"a finalizer holds a deletion", finalizers},
		{"no finalizer is added to what is being deleted", lateFinalizer},
		{"a deletion names its object by UID", preconditions},
		{"a name is free when its object is gone", nameIsFree},
		{"what is not there is not found", notFound},
		{"a watch shows changes in order", watchOrder},
		{"a watch can begin with what there is and a bookmark", bookmarks},
		{"a pod ends after its grace period", gracefulPods},
		{"limits become requests of pods, not of templates", limitsAreRequests},
		{"a LimitRange is completed", limitRangesAreCompleted},
		{"an eviction that a budget allows spends it", evictions},
		{"an eviction that no budget allows is too many requests", blockedEvictions},
		{"an eviction under two budgets is an internal error", twoBudgets},
		{"an eviction names its pod by UID", evictionPreconditions},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			harness := fresh(t)
			prefix := "sem-" + strings.Map(func(r rune) rune {
				if r >= 'a' && r <= 'z' {
					return r
				}
				return -1
			}, strings.ToLower(test.name))
			test.run(bench{WithWatch: harness.Client(), Harness: harness, t: t, prefix: prefix[:min(len(prefix), 40)]})
		})
	}
}

func (b bench) pool() *karpenterv1.NodePool {
	return &karpenterv1.NodePool{
		ObjectMeta: metav1.ObjectMeta{Name: b.prefix},
		Spec: karpenterv1.NodePoolSpec{Template: karpenterv1.NodeClaimTemplate{Spec: karpenterv1.NodeClaimTemplateSpec{
			NodeClassRef: &karpenterv1.NodeClassReference{Group: "example.com", Kind: "NoNodeClass", Name: "none"},
			Requirements: []karpenterv1.NodeSelectorRequirementWithMinValues{
				{Key: corev1.LabelOSStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"linux"}},
			},
		}}},
	}
}

func (b bench) pod(name string) *corev1.Pod {
	no := false
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: b.prefix + "-" + name,
			Labels: map[string]string{"app": b.prefix}},
		Spec: corev1.PodSpec{
			NodeName: b.prefix + "-no-such-node", AutomountServiceAccountToken: &no, // so that nothing else touches it
			Containers: []corev1.Container{{Name: "c", Image: "none"}},
		},
	}
}

func (b bench) budget(name string, available int) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: b.prefix + "-" + name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt32(int32(available))),
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": b.prefix}},
		},
	}
}

// create stores an object and deletes it at the end of the test, finalizers or not.
func (b bench) create(object client.Object) {
	b.t.Helper()
	if err := b.Create(b.t.Context(), object); err != nil {
		b.t.Fatalf("creating %T %s: %v", object, object.GetName(), err)
	}
	b.t.Cleanup(func() { b.end(object) })
}

func (b bench) end(object client.Object) {
	ctx := b.t.Context()
	ctx = withoutCancel(ctx)
	fresh := object.DeepCopyObject().(client.Object)
	if b.Get(ctx, client.ObjectKeyFromObject(object), fresh) != nil {
		return
	}
	if len(fresh.GetFinalizers()) > 0 {
		_ = b.Patch(ctx, fresh, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	}
	_ = b.Delete(ctx, fresh, client.GracePeriodSeconds(0))
}

func (b bench) get(object client.Object) {
	b.t.Helper()
	if err := b.Get(b.t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		b.t.Fatalf("getting %T %s: %v", object, object.GetName(), err)
	}
}

func (b bench) must(what string, err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
}

func (b bench) want(what string, err error, is func(error) bool) {
	b.t.Helper()
	if !is(err) {
		b.t.Errorf("%s gives error %v (reason %q, code %s)", what, err, apierrors.ReasonForError(err), code(err))
	}
}

func code(err error) string {
	if status, ok := err.(apierrors.APIStatus); ok {
		return fmt.Sprint(status.Status().Code)
	}
	return "none"
}
