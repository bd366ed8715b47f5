package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/machinetime"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// What another program manages in the cluster: a pool, and two claims with their nodes. The names of all begin alike.
const (
	otherPool  = "other"
	otherReady = "other-ready" // its node is empty, ready, and has room for two small pods
	otherLost  = "other-lost"  // its node is not ready and being deleted; the other program has not finished with it
)

var otherClass = karpenterv1.NodeClassReference{Group: "example.com", Kind: "OtherNodeClass", Name: "default"}

// X-02, D-04: what another program manages is only capacity for Joiner. Joiner does not write to its pool, claims and
// nodes, says nothing about them, and evicts no pod there. Meanwhile Joiner's own pool grows, shrinks and is
// consolidated.
func TestWhatAnotherProgramManagesIsLeftAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *rig.Options) { o.Audit = true })
	r.apply(kwokPool("default", amd64Linux, quick))
	r.apply(deployment("web", 1, "{cpu: '1'}", ""))
	r.allRunning(1, soon)
	began := machinetime.Now()
	r.otherProgram()
	// Its room counts: Joiner's node goes, since its pod fits there.
	pod := r.movesToOther("web")
	// One of two pods that keep apart finds its place there, and one node is launched for the other.
	r.apply(deployment("more", 2, "{cpu: '1'}", strings.ReplaceAll(apart, "app: web", "app: more")))
	r.allRunning(3, soon)
	if claims := r.claimsOf("default"); len(claims) != 1 {
		t.Errorf("%d NodeClaims were launched beside a node with room for one of two pods; want 1", len(claims))
	}
	r.run("delete", "deployment", "more")
	r.noneOf("default")
	r.spares(pod)
	// It is empty again, and disruption has looked.
	r.run("delete", "deployment", "web")
	for round := 0; round < 2 || machinetime.Now()-began < 20*time.Second; round++ {
		name := fmt.Sprintf("own-%d", round)
		r.apply(deployment(name, 1, "{cpu: '1'}", "nodeSelector: {karpenter.sh/nodepool: default}"))
		r.allRunning(1, soon)
		r.run("delete", "deployment", name)
		r.noneOf("default")
	}
	r.spares(pod)
	r.otherIsUntouched()
}

// otherProgram lets another program move in.
func (r *testRig) otherProgram() {
	r.t.Helper()
	ctx := r.t.Context()
	r.apply(strings.Replace(kwokPool(otherPool, amd64Linux, quick),
		"{group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}",
		fmt.Sprintf("{group: %s, kind: %s, name: %s}", otherClass.Group, otherClass.Kind, otherClass.Name), 1))
	for _, name := range []string{otherReady, otherLost} {
		claim, node := otherMachine(name)
		status := claim.Status
		if err := r.Client.Create(ctx, claim); err != nil {
			r.t.Fatal(err)
		}
		claim.Status = status
		if err := r.Client.Status().Update(ctx, claim); err != nil {
			r.t.Fatal(err)
		}
		if err := r.Client.Create(ctx, node); err != nil {
			r.t.Fatal(err)
		}
	}
	r.run("delete", "node", otherLost, "--wait=false")
}

// otherMachine returns a claim and a node of the other program.
func otherMachine(name string) (*karpenterv1.NodeClaim, *corev1.Node) {
	providerID := "other://zone-1/" + name
	labels := map[string]string{
		karpenterv1.NodePoolLabelKey: otherPool, corev1.LabelTopologyZone: "zone-1",
		karpenterv1.NodeRegisteredLabelKey: "true", karpenterv1.NodeInitializedLabelKey: "true",
		corev1.LabelHostname: name,
	}
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("2500m"), corev1.ResourceMemory: resource.MustParse("8Gi"),
		corev1.ResourcePods: resource.MustParse("20"),
	}
	claim := &karpenterv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels,
			Finalizers: []string{karpenterv1.TerminationFinalizer}},
		Spec: karpenterv1.NodeClaimSpec{NodeClassRef: &otherClass,
			Requirements: []karpenterv1.NodeSelectorRequirementWithMinValues{
				{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"amd64"}},
			}},
		Status: karpenterv1.NodeClaimStatus{ProviderID: providerID, NodeName: name, Capacity: room, Allocatable: room},
	}
	for _, done := range []string{karpenterv1.ConditionTypeLaunched, karpenterv1.ConditionTypeRegistered,
		karpenterv1.ConditionTypeInitialized} {
		claim.Status.Conditions = append(claim.Status.Conditions, karpenterv1.Condition{
			Type: done, Status: metav1.ConditionTrue, Reason: done, LastTransitionTime: metav1.Now(),
		})
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels,
			Finalizers: []string{karpenterv1.TerminationFinalizer}},
		Spec:   corev1.NodeSpec{ProviderID: providerID},
		Status: corev1.NodeStatus{Capacity: room, Allocatable: room},
	}
	if name == otherReady {
		node.Annotations = map[string]string{cluster.FakeNodeAnnotation: cluster.FakeNodeValue}
		return claim, node
	}
	node.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "Lost"},
	}
	return claim, node
}

// movesToOther waits until the one pod of an app runs on the other program's node and Joiner has none. It returns its
// name.
func (r *testRig) movesToOther(app string) string {
	r.t.Helper()
	var name string
	r.eventually(later, "the pod to run on the other program's node", func(ctx context.Context) (bool, string, error) {
		pods, err := r.pods(ctx, client.MatchingLabels{"app": app})
		if err != nil || len(pods) != 1 {
			return false, fmt.Sprintf("%d pods", len(pods)), err
		}
		name = pods[0].Name
		there := pods[0].Spec.NodeName == otherReady && pods[0].Status.Phase == corev1.PodRunning
		return there, fmt.Sprintf("%s %s on %q", name, pods[0].Status.Phase, pods[0].Spec.NodeName), nil
	})
	r.noneOf("default")
	return name
}

// noneOf waits until a pool has no claims.
func (r *testRig) noneOf(pool string) {
	r.t.Helper()
	r.eventually(later, "no NodeClaim of NodePool "+pool, func(context.Context) (bool, string, error) {
		claims := r.claimsOf(pool)
		return len(claims) == 0, fmt.Sprintf("%d NodeClaims", len(claims)), nil
	})
}

// spares demands that Joiner has not asked for the eviction of a pod.
func (r *testRig) spares(pod string) {
	r.t.Helper()
	r.requestsOfJoiner(func(e cluster.Event) {
		if e.Resource == "pods" && e.Name == pod && (e.Sub == "eviction" || e.Verb == "delete") {
			r.t.Errorf("joiner: %s %s, a pod on the other program's node", e.Verb, e.URI)
		}
	})
}

func (r *testRig) requestsOfJoiner(visit func(cluster.Event)) {
	r.t.Helper()
	seen := 0
	err := cluster.ReadAudit(r.Cluster.AuditLog(), func(e cluster.Event) {
		if e.User == rig.User {
			seen++
			visit(e)
		}
	})
	if err != nil || seen == 0 {
		r.t.Fatalf("%d requests of %s in the audit log, error %v", seen, rig.User, err)
	}
}

// otherIsUntouched demands that Joiner wrote to nothing that the other program manages, and that all is as it was.
func (r *testRig) otherIsUntouched() {
	r.t.Helper()
	ctx := r.t.Context()
	reads := []string{"get", "list", "watch"}
	r.requestsOfJoiner(func(e cluster.Event) {
		if strings.HasPrefix(e.Name, otherPool) && !slices.Contains(reads, e.Verb) {
			r.t.Errorf("joiner: %s %s (answered %d)", e.Verb, e.URI, e.Code)
		}
	})
	var events corev1.EventList
	if err := r.Client.List(ctx, &events); err != nil {
		r.t.Fatal(err)
	}
	for _, e := range events.Items {
		ours := strings.Contains(e.Source.Component+e.ReportingController, rig.User)
		if about := e.InvolvedObject.Name; ours && strings.HasPrefix(about, otherPool) {
			r.t.Errorf("joiner said %s about %s: %s", e.Reason, about, e.Message)
		}
	}
	objects := []client.Object{&karpenterv1.NodePool{}}
	objects[0].SetName(otherPool)
	for _, name := range []string{otherReady, otherLost} {
		claim, node := otherMachine(name)
		objects = append(objects, claim, node)
	}
	for _, object := range objects {
		finalizers := object.GetFinalizers()
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			r.t.Errorf("%T %s: %v", object, object.GetName(), err)
			continue
		}
		if !slices.Equal(object.GetFinalizers(), finalizers) {
			r.t.Errorf("%T %s has the finalizers %v, want %v", object, object.GetName(), object.GetFinalizers(),
				finalizers)
		}
		for _, entry := range object.GetManagedFields() {
			if entry.Manager == rig.User {
				r.t.Errorf("%T %s has fields of joiner: %s %s", object, object.GetName(), entry.Operation,
					entry.FieldsV1)
			}
		}
		ours := func(taint corev1.Taint) bool { return strings.HasPrefix(taint.Key, "karpenter.sh/") }
		if node, is := object.(*corev1.Node); is && slices.ContainsFunc(node.Spec.Taints, ours) {
			r.t.Errorf("node %s has the taints %v", node.Name, node.Spec.Taints)
		}
	}
}
