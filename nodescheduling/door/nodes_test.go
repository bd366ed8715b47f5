package door

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/api/v1alpha1"
)

// N54, N55, N68, A-12: lists and groups follow the nodes, and a list is made anew only when it has to be.
func TestNodesFollowTheCluster(t *testing.T) {
	t.Parallel()
	clients := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(clients, 0)
	config := protectedSources().Config
	config.Groups[0].Taints = []v1alpha1.GroupTaint{{Key: "cp", Effect: corev1.TaintEffectNoSchedule}}
	nodes, err := NodesOf(factory.Core().V1().Nodes().Informer(), config)
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	api := clients.CoreV1().Nodes()
	expect := func(what string, all, members int) {
		t.Helper()
		var seen, inGroup int
		for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
			seen, inGroup = 0, 0
			for range each(nodes.list()) {
				seen++
			}
			for range nodes.members(string(configv1.ControlPlane)) {
				inGroup++
			}
			if seen == all && inGroup == members {
				return
			}
		}
		t.Errorf("%s: %d nodes, %d of the group; want %d and %d", what, seen, inGroup, all, members)
	}
	expect("none", 0, 0)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"cp": ""}}}
	if _, err := api.Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("one of the group", 1, 1)
	list := &nodes.list()[0]
	if &nodes.list()[0] != list {
		t.Error("the list was made anew without a change")
	}
	node.Labels = nil
	if _, err := api.Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("none of the group", 1, 0)
	anew := func() {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); &nodes.list()[0] == list; {
			if time.Now().After(deadline) {
				t.Fatal("the list still has the old labels or taints")
			}
		}
		list = &nodes.list()[0]
	}
	anew()
	node.Spec.Taints = []corev1.Taint{{Key: "cp", Effect: corev1.TaintEffectNoSchedule}}
	if _, err := api.Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("one of the group by its taint", 1, 1)
	anew()
	if err := api.Delete(t.Context(), "n", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("none again", 0, 0)
}

// N68: nodes that nobody changes are found as those of an informer are; a selector that is none is an error.
func TestN68_FixedNodes(t *testing.T) {
	t.Parallel()
	config := protectedSources().Config
	node := func(name string, labels map[string]string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	nodes, err := FixedNodes(config, []*corev1.Node{node("a", map[string]string{"cp": ""}), node("b", nil)})
	if err != nil {
		t.Fatal(err)
	}
	members := slices.Collect(nodes.members(string(configv1.ControlPlane)))
	if all := slices.Collect(each(nodes.list())); len(all) != 2 || len(members) != 1 || members[0].Name != "a" {
		t.Errorf("all %v, members %v", all, members)
	}
	for range each(nodes.list()) {
		break // which ends it
	}
	bad := config.DeepCopy()
	bad.Groups[0].LabelSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Maybe"}}
	informer := informers.NewSharedInformerFactory(fake.NewClientset(), 0).Core().V1().Nodes().Informer()
	_, fixed := FixedNodes(bad, nil)
	_, followed := NodesOf(informer, bad)
	for _, err := range []error{fixed, followed} {
		if err == nil || !strings.Contains(err.Error(), "groups[0].labelSelector: ") {
			t.Errorf("a selector that is none: %v", err)
		}
	}
	if _, err := NodesOf(informer, nil); err != nil {
		t.Errorf("without a configuration: %v", err)
	}
	if _, err := NodesOf(informer, nil); err == nil || !strings.Contains(err.Error(), "nodes by their groups: ") {
		t.Errorf("the index is there: %v", err)
	}
}

// N68: what is no node in a cache is left out, and without the index all nodes are members: a group must not lose its
// protection.
func TestN68_WhatIsNoNode(t *testing.T) {
	t.Parallel()
	index, err := groupIndexOf(protectedSources().Config)
	if err != nil {
		t.Fatal(err)
	}
	if groups, err := index[groupIndex]("x"); err != nil || len(groups) > 0 {
		t.Errorf("it is of %v (%v)", groups, err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	if got := slices.Collect(each([]any{"x", node})); !slices.Equal(got, []*corev1.Node{node}) {
		t.Errorf("%v", got)
	}
	bare := &Nodes{cache: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})}
	if err := bare.cache.Add(node); err != nil {
		t.Fatal(err)
	}
	if got := slices.Collect(bare.members("ControlPlane")); !slices.Equal(got, []*corev1.Node{node}) {
		t.Errorf("without an index: %v", got)
	}
	n := &Nodes{}
	for _, c := range []struct {
		old, now any
		changed  bool
	}{
		{node, node.DeepCopy(), false}, {"x", node, true}, {node, "x", true},
		{node, &corev1.Node{Status: corev1.NodeStatus{Phase: "x"}}, false},
		{node, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}}, true},
		{node, &corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "t"}}}}, true},
	} {
		before := n.changes.Load()
		if n.updated(c.old, c.now); (n.changes.Load() != before) != c.changed {
			t.Errorf("from %v to %v: changed is %t", c.old, c.now, !c.changed)
		}
	}
}
