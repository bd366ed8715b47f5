package conversion

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterv1beta1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1beta1"
	awsv1beta1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1beta1"
)

const (
	hash, hashVersion = karpenterv1.NodePoolHashAnnotationKey, karpenterv1.NodePoolHashVersionAnnotationKey
	// oldHash was written by a Karpenter of v1beta1. It is no hash of v1 of any pool here.
	oldHash, oldHashVersion = "4012513481623584108", "v2"
)

// oldPools are NodePools of v1beta1, as users wrote them. One is consolidated and expires, one has everything that a
// template can have. Nodes of tidy are full, and no cheaper ones exist.
const oldPools = `
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
---
apiVersion: karpenter.sh/v1beta1
kind: NodePool
metadata: {name: tidy, annotations: {karpenter.sh/nodepool-hash: "4012513481623584108", karpenter.sh/nodepool-hash-version: v2}}
spec:
  template:
    spec:
      nodeClassRef: {apiVersion: karpenter.kwok.sh/v1alpha1, kind: KWOKNodeClass, name: default}
      requirements:
      - {key: kubernetes.io/arch, operator: In, values: [amd64]}
      - {key: kubernetes.io/os, operator: In, values: [linux]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
  disruption: {consolidationPolicy: WhenUnderutilized, expireAfter: 240h}
---
apiVersion: karpenter.sh/v1beta1
kind: NodePool
metadata: {name: full, annotations: {karpenter.sh/nodepool-hash: "4012513481623584108", karpenter.sh/nodepool-hash-version: v2}}
spec:
  weight: 10
  limits: {cpu: "100"}
  template:
    metadata:
      labels: {example.com/team: a}
      annotations: {example.com/note: one}
    spec:
      nodeClassRef: {apiVersion: karpenter.kwok.sh/v1alpha1, kind: KWOKNodeClass, name: default}
      taints: [{key: example.com/own, value: "yes", effect: NoSchedule}]
      requirements: [{key: kubernetes.io/arch, operator: In, values: [amd64]}, {key: kubernetes.io/os, operator: In, values: [linux]}]
      kubelet: {maxPods: 20, evictionHard: {memory.available: 5%}}
      resources: {requests: {cpu: "1"}}
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 30s, expireAfter: Never, budgets: [{nodes: "100%"}]}
`

// machinesOfEach is how many machines each of the pools has.
const machinesOfEach = 2

// oldClient returns a client that knows v1beta1 only, by the types it was built with.
func oldClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, karpenterv1beta1.AddToScheme,
		awsv1beta1.AddToScheme} {
		must(t, add(scheme))
	}
	made, err := client.New(config, client.Options{Scheme: scheme})
	must(t, err)
	return made
}

// oldMachines makes what a Karpenter of v1beta1 leaves of a pool: launched, registered and initialized NodeClaims, and
// their nodes. KWOK runs the nodes from then on.
func oldMachines(t *testing.T, old client.Client, name string) {
	t.Helper()
	var pool karpenterv1beta1.NodePool
	must(t, old.Get(t.Context(), client.ObjectKey{Name: name}, &pool))
	for i := range machinesOfEach {
		claim := oldClaim(&pool, fmt.Sprintf("%s-%d", name, i))
		status := claim.Status
		must(t, old.Create(t.Context(), claim))
		claim.Status = status
		must(t, old.Status().Update(t.Context(), claim))
		must(t, old.Create(t.Context(), oldNode(claim)))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func oldClaim(pool *karpenterv1beta1.NodePool, name string) *karpenterv1beta1.NodeClaim {
	labels := map[string]string{
		karpenterv1.NodePoolLabelKey: pool.Name, karpenterv1.CapacityTypeLabelKey: "on-demand",
		corev1.LabelInstanceTypeStable: "c-2x-amd64-linux", corev1.LabelTopologyZone: "test-zone-a",
		corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux",
		"karpenter.kwok.sh/instance-size": "2", "karpenter.kwok.sh/instance-family": "c",
		"karpenter.kwok.sh/instance-cpu": "2", "karpenter.kwok.sh/instance-memory": "4Gi",
	}
	for key, value := range pool.Spec.Template.ObjectMeta.Labels {
		labels[key] = value
	}
	annotations := map[string]string{hash: oldHash, hashVersion: oldHashVersion}
	for key, value := range pool.Spec.Template.ObjectMeta.Annotations {
		annotations[key] = value
	}
	spec := *pool.Spec.Template.Spec.DeepCopy()
	spec.Resources = karpenterv1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m"),
			corev1.ResourcePods: resource.MustParse("1")},
	}
	// Long ago, since the comparison of instances and claims leaves young ones alone.
	since := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	var conditions []karpenterv1beta1.Condition
	for _, kind := range []string{karpenterv1.ConditionTypeLaunched, karpenterv1.ConditionTypeRegistered,
		karpenterv1.ConditionTypeInitialized, karpenterv1.ConditionTypeReady} {
		conditions = append(conditions, karpenterv1beta1.Condition{Type: kind, Status: metav1.ConditionTrue,
			LastTransitionTime: since})
	}
	return &karpenterv1beta1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: labels, Annotations: annotations,
			Finalizers: []string{karpenterv1.TerminationFinalizer}, OwnerReferences: []metav1.OwnerReference{{
				APIVersion: karpenterv1beta1.GroupVersion().String(), Kind: "NodePool", Name: pool.Name, UID: pool.UID,
				BlockOwnerDeletion: new(true),
			}},
		},
		Spec: spec,
		Status: karpenterv1beta1.NodeClaimStatus{
			// A name of its own, as Karpenter's simulated machines have.
			NodeName: "kwok-" + name + "-7", ProviderID: "kwok://kwok-" + name + "-7", Capacity: oldCapacity("2"),
			Allocatable: oldCapacity("1900m"), Conditions: conditions,
		},
	}
}

func oldCapacity(cpu string) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("4Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("20Gi"), corev1.ResourcePods: resource.MustParse("32"),
	}
}

func oldNode(claim *karpenterv1beta1.NodeClaim) *corev1.Node {
	labels := map[string]string{
		corev1.LabelHostname: claim.Name, karpenterv1.NodeRegisteredLabelKey: "true",
		karpenterv1.NodeInitializedLabelKey: "true",
		"kwok.x-k8s.io/node":                "fake", "kwok-partition": "a",
		"eks-node-viewer/instance-price": "0.054295",
	}
	for key, value := range claim.Labels {
		labels[key] = value
	}
	annotations := map[string]string{"kwok.x-k8s.io/node": "fake",
		"karpenter.kwok.sh/launched": time.Now().Add(-time.Hour).UTC().Format(time.RFC3339Nano)}
	for key, value := range claim.Annotations {
		annotations[key] = value
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: claim.Status.NodeName, Labels: labels, Annotations: annotations, Finalizers: claim.Finalizers,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: karpenterv1beta1.GroupVersion().String(), Kind: "NodeClaim", Name: claim.Name,
				UID: claim.UID, BlockOwnerDeletion: new(true),
			}},
		},
		Spec: corev1.NodeSpec{ProviderID: claim.Status.ProviderID, Taints: claim.Spec.Taints},
		Status: corev1.NodeStatus{Phase: corev1.NodeRunning, Capacity: claim.Status.Capacity,
			Allocatable: claim.Status.Allocatable},
	}
}
