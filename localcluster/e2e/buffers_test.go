package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	autoscalingv1beta1 "github.com/joiner-autoscaler/joiner/api/autoscaling/v1beta1"
)

// roomForThree is a CapacityBuffer for pods of a PodTemplate.
const roomForThree = `
apiVersion: v1
kind: PodTemplate
metadata: {name: web, namespace: default}
template:
  metadata: {labels: {app: web}}
  spec: {containers: [{name: main, image: example.invalid/main, resources: {requests: {cpu: 1500m}}}]}
---
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: room, namespace: default}
spec: {podTemplateRef: {name: web}, replicas: 3}
`

// buffer reads a CapacityBuffer, as kubectl shows it.
func (r *testRig) buffer(name string) autoscalingv1beta1.CapacityBuffer {
	r.t.Helper()
	var b autoscalingv1beta1.CapacityBuffer
	if err := yaml.Unmarshal([]byte(r.run("get", "capacitybuffer", name, "-o", "yaml")), &b); err != nil {
		r.t.Fatal(err)
	}
	return b
}

// bufferIs waits until a condition of a buffer has a status and a reason, and returns its message.
func (r *testRig) bufferIs(name, condition string, status metav1.ConditionStatus, reason string) (message string) {
	r.t.Helper()
	what := fmt.Sprintf("%s of buffer %s to be %s: %s", condition, name, status, reason)
	r.eventually(later, what, func(context.Context) (bool, string, error) {
		c := meta.FindStatusCondition(r.buffer(name).Status.Conditions, condition)
		if c == nil {
			return false, "no such condition", nil
		}
		message = c.Message
		return c.Status == status && c.Reason == reason, fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message), nil
	})
	return message
}

// stay checks for a while that the claims are these.
func (r *testRig) stay(names []string, during time.Duration) {
	r.t.Helper()
	ticker, end := time.NewTicker(500*time.Millisecond), time.After(during)
	defer ticker.Stop()
	for {
		if now := r.names(); !slices.Equal(now, names) {
			r.t.Fatalf("the nodes were %v and are %v", names, now)
		}
		select {
		case <-end:
			return
		case <-ticker.C:
		}
	}
}

// ready counts the nodes that are Initialized.
func (r *testRig) ready() (n int) {
	r.t.Helper()
	n, _, _, err := r.initialized(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

// K-35 to K-40: the life of a CapacityBuffer on a real cluster. It is made and filled. Real pods take its room at
// once, and it is filled again. A limit makes it smaller. When it goes, its nodes go.
func TestK37_TheLifeOfACapacityBuffer(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	const provisioning = autoscalingv1beta1.ConditionTypeProvisioning
	r.apply(kwokPool("default",
		amd64Linux+"\n- {key: node.kubernetes.io/instance-type, operator: In, values: [c-2x-amd64-linux]}", quick))
	r.apply(roomForThree)
	r.bufferIs("room", provisioning, metav1.ConditionTrue, "FitsExistingCapacity")
	b := r.buffer("room")
	if b.Status.Replicas == nil || *b.Status.Replicas != 3 || b.Status.PodTemplateRef == nil ||
		b.Status.PodTemplateRef.Name != "web" {
		t.Errorf("the status is %+v", b.Status)
	}
	filled := r.names()
	if len(filled) != 3 {
		t.Errorf("%d nodes have room for 3 pods that need one each", len(filled))
	}
	t.Log(r.run("get", "capacitybuffers"))

	// Nothing removes the nodes, although no pod is on them and empty ones go at once.
	r.stay(filled, 10*time.Second)

	nodes, err := r.nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	// Real pods take the room: they run on existing nodes, and the room is restored.
	r.apply(pod("one", "{cpu: 1500m}", "") + pod("two", "{cpu: 1500m}", ""))
	r.allRunning(2, soon)
	pods, err := r.pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods {
		if _, there := nodes[p.Spec.NodeName]; !there {
			t.Errorf("%s runs on %s, which was launched for it: there was room", p.Name, p.Spec.NodeName)
		}
	}
	r.eventually(later, "room to be made up for", func(context.Context) (bool, string, error) {
		n := r.ready()
		return n == 5, fmt.Sprintf("%d nodes", n), nil
	})
	r.bufferIs("room", provisioning, metav1.ConditionTrue, "FitsExistingCapacity")

	// A limit: pods come first.
	r.limit("default", "5", "null")
	r.apply(pod("three", "{cpu: 1500m}", ""))
	r.allRunning(3, soon)
	if said := r.bufferIs("room", provisioning, metav1.ConditionFalse, "LimitReached"); !strings.Contains(said,
		"for 1 there is none") {
		t.Errorf("it says %q", said)
	}
	r.bufferIs("room", autoscalingv1beta1.ConditionTypeLimitedByQuotas, metav1.ConditionTrue, "LimitReached")

	// Joiner follows changes of its template, its size and its limits.
	r.run("patch", "capacitybuffer", "room", "--type=merge", "-p", `{"spec":{"replicas":9,"limits":{"cpu":"3"}}}`)
	if said := r.bufferIs("room", autoscalingv1beta1.ConditionTypeLimitedByQuotas, metav1.ConditionTrue,
		"OwnLimits"); said !=
		"spec.limits.cpu is 3: that is room for 2 of 9 pods" {
		t.Errorf("it says %q", said)
	}
	r.run("delete", "pods", "one", "two", "three", "--wait=false")
	r.eventually(later, "two nodes to be left", func(context.Context) (bool, string, error) {
		n := len(r.names())
		return n == 2, fmt.Sprintf("%d nodes", n), nil
	})
	r.bufferIs("room", provisioning, metav1.ConditionTrue, "FitsExistingCapacity")
	r.run("delete", "podtemplate", "web")
	r.bufferIs("room", autoscalingv1beta1.ConditionTypeReadyForProvisioning, metav1.ConditionFalse,
		"PodTemplateNotFound")
	r.run("delete", "capacitybuffer", "room")
	r.nothingLeft(later)
}

// K-35, K-39: room for more pods of a Deployment grows and shrinks with the Deployment, and survives a restart of the
// controller.
func TestK35_RoomFollowsADeployment(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.apply(kwokPool("default",
		amd64Linux+"\n- {key: node.kubernetes.io/instance-type, operator: In, values: [c-2x-amd64-linux]}", quick))
	r.apply(deployment("web", 4, "{cpu: 1500m}", "") + `
---
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: half, namespace: default}
spec: {scalableRef: {apiGroup: apps, kind: Deployment, name: web}, percentage: 50}
`)
	r.allRunning(4, later)
	nodes := func(n int) {
		t.Helper()
		r.eventually(later, fmt.Sprintf("%d nodes", n), func(context.Context) (bool, string, error) {
			have := r.ready()
			return have == n && len(r.names()) == n, fmt.Sprintf("%d nodes", have), nil
		})
	}
	nodes(6)
	r.run("scale", "deployment", "web", "--replicas=2")
	nodes(3)
	r.kill("with room that no pod uses")
	before := r.names()
	r.bufferIs("half", autoscalingv1beta1.ConditionTypeProvisioning, metav1.ConditionTrue, "FitsExistingCapacity")
	r.stay(before, 10*time.Second)
}
