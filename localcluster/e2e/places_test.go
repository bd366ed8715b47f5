package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/controller/provisioning"
	enginecluster "github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// oneCore is a pod that asks for a core.
const oneCore = `
---
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: default}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: example.invalid/main, resources: {requests: {cpu: '1'}}}]
`

// B-16: kube-scheduler respects a kept place. Two older pods would fill the node. The pod whose place is kept there
// gets it, and one of the others waits.
func TestKubeSchedulerLeavesAKeptPlace(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *rig.Options) { o.WithoutJoiner = true })
	phase := func(name string) (string, error) {
		var pod corev1.Pod
		err := r.Client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &pod)
		switch {
		case err != nil:
			return "", err
		case pod.Spec.NodeName != "":
			return "bound", nil
		case len(pod.Status.Conditions) > 0 && pod.Status.Conditions[0].Reason == corev1.PodReasonUnschedulable:
			return "waits", nil
		}
		return "new", nil
	}
	sees := func(what string, want map[string]int, names ...string) {
		t.Helper()
		r.eventually(soon, what, func(context.Context) (bool, string, error) {
			got := map[string]int{}
			for _, name := range names {
				now, err := phase(name)
				if err != nil {
					return false, "", err
				}
				got[now]++
			}
			return fmt.Sprint(got) == fmt.Sprint(want), fmt.Sprint(got), nil
		})
	}
	// one after the other: the scheduler's queue is by age
	for _, name := range []string{"older-1", "older-2", "kept"} {
		r.apply(fmt.Sprintf(oneCore, name))
		sees("a pod that waits", map[string]int{"waits": 1}, name)
	}
	places := provisioning.Places{Client: r.Client, Now: time.Now, Log: logr.Discard()}
	kept := []*enginecluster.Pod{{Namespace: "default", Name: "kept"}}
	places.Keep(t.Context(), kept, "n1")
	r.node("n1", "2")
	sees("the kept place taken", map[string]int{"bound": 1}, "kept")
	sees("one of the others bound", map[string]int{"bound": 1, "waits": 1}, "older-1", "older-2")

	// A pod that can never run does not keep others away for long: the scheduler forgets a nomination when it tries
	// the pod in vain.
	r.apply(fmt.Sprintf(oneCore, "never") + `  nodeSelector: {nowhere: "true"}
`)
	sees("a pod that waits", map[string]int{"waits": 1}, "never")
	kept[0].Name = "never"
	places.Keep(t.Context(), kept, "n2")
	r.node("n2", "1")
	sees("the other one bound", map[string]int{"bound": 2, "waits": 1}, "older-1", "older-2", "never")
}

// node makes a ready node with this much CPU.
func (r *testRig) node(name, cpu string) {
	r.t.Helper()
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu),
		corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("10")}
	if err := r.Client.Create(r.t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name},
			Annotations: map[string]string{cluster.FakeNodeAnnotation: cluster.FakeNodeValue}},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
				LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}}},
	}); err != nil {
		r.t.Fatal(err)
	}
}
