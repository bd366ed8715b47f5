package door

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// answering makes the clients answer every call of a verb and resource with an error, or with what it returns.
func answering(clients *fake.Clientset, verb, resource string,
	answer func(clienttesting.Action) (runtime.Object, error)) {
	clients.PrependReactor(verb, resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
		object, err := answer(a)
		return true, object, err
	})
}

// H8: the authorizer is asked about the user with all groups, UID and extra, which may restrict what a token is good
// for. It is asked for the verb and the group of nodes, cluster-wide; no answer is a no.
func TestH8_TheAuthorizerIsAskedWhatTheEvaluatorAsks(t *testing.T) {
	t.Parallel()
	clients := fake.NewClientset()
	var asked authorizationv1.SubjectAccessReviewSpec
	answer, failure := true, error(nil)
	answering(clients, "create", "subjectaccessreviews", func(a clienttesting.Action) (runtime.Object, error) {
		create, is := a.(clienttesting.CreateAction)
		if !is {
			return nil, fmt.Errorf("%T", a)
		}
		review, is := create.GetObject().(*authorizationv1.SubjectAccessReview)
		if !is {
			return nil, fmt.Errorf("%T", create.GetObject())
		}
		asked = review.Spec
		review.Status.Allowed = answer
		return review, failure
	})
	cluster := Ports(clients, nil, Namespaces{}, nil)(t.Context())
	alice := evaluator.User{Name: "alice", UID: "u-1", Groups: []string{"a", "b"},
		Extra: map[string][]string{"scopes.authorization.openshift.io": {"user:info", "user:check-access"}}}
	access := evaluator.Access{User: alice, Verb: evaluator.Occupy, Group: "Edge"}
	for _, answer = range []bool{true, false} {
		if allowed, err := cluster.Allowed(access); allowed != answer || err != nil {
			t.Errorf("allowed %t (%v), want %t", allowed, err, answer)
		}
	}
	if want := (authorizationv1.SubjectAccessReviewSpec{User: "alice", UID: "u-1", Groups: []string{"a", "b"},
		Extra: map[string]authorizationv1.ExtraValue{
			"scopes.authorization.openshift.io": {"user:info", "user:check-access"},
		},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Group: "scheduling.openshift.io",
			Resource: "nodeschedulinggroups", Name: "Edge", Verb: "occupy"}}); !reflect.DeepEqual(asked, want) {
		t.Errorf("asked %+v, want %+v", asked, want)
	}
	failure = errors.New("no answer")
	if allowed, err := cluster.Allowed(access); allowed || err == nil || err.Error() !=
		"asking whether alice may occupy: no answer" {
		t.Errorf("without an answer: %t (%v)", allowed, err)
	}
}

// N57, H7, A-11: what does not exist is none and no error; what cannot be read is an error and none.
func TestN57_WhatIsReadLive(t *testing.T) {
	t.Parallel()
	clients := fake.NewClientset(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "tmp", Name: "debug"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tmp", UID: firstUID}})
	cluster := Ports(clients, nil, NamespacesOf(nil, clients), nil)(t.Context())
	if pod, err := cluster.LivePod("tmp", "debug"); err != nil || pod == nil || pod.Name != "debug" {
		t.Errorf("a pod: %v (%v)", pod, err)
	}
	if pod, err := cluster.LivePod("app", "debug"); err != nil || pod != nil {
		t.Errorf("no such pod: %v (%v)", pod, err)
	}
	if uid, exists, err := cluster.Namespace("tmp"); err != nil || !exists || uid != firstUID {
		t.Errorf("a namespace: %q, %t (%v)", uid, exists, err)
	}
	answering(clients, "get", "*", func(clienttesting.Action) (runtime.Object, error) {
		return nil, errors.New("no answer")
	})
	if node, err := cluster.LiveNode("n"); err == nil || node != nil {
		t.Errorf("a node that cannot be read: %v (%v)", node, err)
	}
	if uid, exists, err := cluster.Namespace("tmp"); err == nil || exists || uid != "" {
		t.Errorf("a namespace that cannot be read: %q, %t (%v)", uid, exists, err)
	}
}

// N56: of nodes and namespaces is kept what is read of them, and what a cache needs; a tombstone stays what it is.
func TestN56_WhatIsKept(t *testing.T) {
	t.Parallel()
	meta := metav1.ObjectMeta{Name: "n", UID: firstUID, ResourceVersion: "7", Labels: map[string]string{"cp": ""},
		Annotations: map[string]string{"a": "b"}}
	kind := metav1.TypeMeta{Kind: "Kind", APIVersion: "v1"}
	taints := []corev1.Taint{{Key: "t", Effect: corev1.TaintEffectNoSchedule}}
	node := &corev1.Node{TypeMeta: kind, ObjectMeta: meta, Spec: corev1.NodeSpec{Taints: taints, ProviderID: "x"}}
	space := &corev1.Namespace{TypeMeta: kind, ObjectMeta: meta}
	bare := metav1.ObjectMeta{Name: "n", UID: firstUID, ResourceVersion: "7"}
	labeled := bare
	labeled.Labels = meta.Labels
	tombstone := cache.DeletedFinalStateUnknown{Key: "n", Obj: node}
	for _, c := range []struct {
		slim       func(any) (any, error)
		give, want any
	}{
		{SlimNode, node, &corev1.Node{TypeMeta: kind, ObjectMeta: labeled, Spec: corev1.NodeSpec{Taints: taints}}},
		{Slim, node, &corev1.Node{TypeMeta: kind, ObjectMeta: labeled, Spec: corev1.NodeSpec{Taints: taints}}},
		{Slim, space, &corev1.Namespace{TypeMeta: kind, ObjectMeta: bare}},
		{SlimNamespace, tombstone, tombstone}, {SlimNode, tombstone, tombstone}, {Slim, tombstone, tombstone},
	} {
		if got, err := c.slim(c.give); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v (%v), want %+v", got, err, c.want)
		}
	}
}

// N60: a request that waits looks again every 50 ms. A machine that is busy makes it later and never sooner, so the
// quickest of several counts.
func TestN60_HowOftenARequestLooksForTheNodes(t *testing.T) {
	t.Parallel()
	quickest := time.Hour
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline) && quickest > nodesReadyEvery*3/2; {
		asked := 0
		port := nodePort{ctx: t.Context(), known: Known{Nodes: func() bool { asked++; return asked > 1 }}}
		began := time.Now()
		if !port.Ready() {
			t.Fatal("not ready")
		}
		quickest = min(quickest, time.Since(began))
	}
	if quickest < nodesReadyEvery || quickest > nodesReadyEvery*3/2 {
		t.Errorf("looked again after %s, want %s", quickest, nodesReadyEvery)
	}
}

// N57: a node that the cache lacks is none.
func TestN57_ANodeThatTheCacheLacks(t *testing.T) {
	t.Parallel()
	nodes, err := FixedNodes(protectedSources().Config, []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n"}}})
	if err != nil {
		t.Fatal(err)
	}
	port := Ports(nil, nodes, Namespaces{}, nil)(context.Background()).Nodes
	if node, found := port.Get("other"); found || node != nil {
		t.Errorf("%v, %t", node, found)
	}
	if node, found := port.Get("n"); !found || node.Name != "n" {
		t.Errorf("%v, %t", node, found)
	}
}
