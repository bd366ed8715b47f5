package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
)

// R1, G20: what a cluster with all the kinds says it serves. The tests with two clusters check that a hosted
// cluster has no AutoNodePolicy.
func TestTheKindsOfTheAutoNodePolicyAreServedWithAStatus(t *testing.T) {
	t.Parallel()
	env := sharedEnvironment.Get(t)
	clients, err := kubernetes.NewForConfig(env.config)
	if err != nil {
		t.Fatal(err)
	}
	for groupVersion, want := range map[string]map[string]bool{ // Whether the resource is namespaced.
		hypershiftv1beta1.GroupVersion().String(): {
			"autonodepolicies": true, "autonodepolicies/status": true,
			"openshiftnodepools": false, "openshiftnodepools/status": false, "openshiftnodepools/scale": false,
			"openshiftec2nodeclasses": false, "openshiftec2nodeclasses/status": false,
		},
		hypershiftv1.GroupVersion().String(): {"openshiftec2nodeclasses": false,
			"openshiftec2nodeclasses/status": false},
	} {
		served, err := clients.Discovery().ServerResourcesForGroupVersion(groupVersion)
		if err != nil {
			t.Fatal(err)
		}
		if len(served.APIResources) != len(want) {
			t.Errorf("%s serves %d resources, want %d: %v", groupVersion, len(served.APIResources), len(want),
				served.APIResources)
		}
		for name, namespaced := range want {
			i := slices.IndexFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == name })
			if i < 0 || served.APIResources[i].Namespaced != namespaced {
				t.Errorf("%s: %s is not served, or not with namespaced %t", groupVersion, name, namespaced)
			}
		}
	}
	got := env.mustKubectl(t, "", "get", "crd", "openshiftec2nodeclasses.karpenter.hypershift.openshift.io",
		"-o", "jsonpath={.spec.versions[*].name} {.status.storedVersions[*]} {.spec.conversion.strategy}")
	if want := "v1 v1beta1 v1 None"; got != want {
		t.Errorf("versions, stored versions and conversion are %q, want %q", got, want)
	}
}

// The design's own manifests apply as they stand, with the field validation of kubectl (R2, G20).
func TestTheManifestsOfTheDesignApplyAsTheyStand(t *testing.T) {
	t.Parallel()
	env := sharedEnvironment.Get(t)
	env.mustKubectl(t, "", "create", "namespace", "clusters-my-cluster")
	client, _ := env.dynamicClient(t)
	for _, path := range []string{"testdata/autonode/policy.yaml", "testdata/autonode/nodepool.yaml"} {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(content, &object.Object); err != nil {
			t.Fatal(err)
		}
		if output := env.mustKubectl(t, string(content), "apply", "-f", "-"); strings.Contains(output, "Warning") {
			t.Errorf("%s: %s", path, output)
		}
		resource := resourceClient(t, client, object)
		t.Cleanup(func() { removeObject(t, resource, object.GetName()) })
		stored, err := resource.Get(t.Context(), object.GetName(), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		checkReads(t, object.Object["spec"], stored.Object["spec"], path)
		checkDecodes(t, stored)
	}
}

// R3: a write of the object leaves the status, and a write of the status leaves the spec.
func TestSpecAndStatusAreWrittenApart(t *testing.T) {
	t.Parallel()
	env := sharedEnvironment.Get(t)
	client, _ := env.dynamicClient(t)
	for _, manifest := range []string{
		`{"apiVersion":"karpenter.hypershift.openshift.io/v1beta1","kind":"AutoNodePolicy",` +
			`"metadata":{"name":"api-apart","namespace":"default"},"spec":{}}`,
		`{"apiVersion":"karpenter.hypershift.openshift.io/v1beta1","kind":"OpenshiftNodePool",` +
			`"metadata":{"name":"api-apart"},"spec":{"template":{"spec":{}}}}`,
		`{"apiVersion":"karpenter.hypershift.openshift.io/v1","kind":"OpenshiftEC2NodeClass",` +
			`"metadata":{"name":"api-apart"},"spec":{"monitoring":"Basic"}}`,
		`{"apiVersion":"karpenter.k8s.aws/v1","kind":"EC2NodeClass","metadata":{"name":"api-apart"},` +
			`"spec":{"role":"a","amiSelectorTerms":[{"alias":"al2@latest"}],` +
			`"subnetSelectorTerms":[{"id":"subnet-1"}],"securityGroupSelectorTerms":[{"id":"sg-1"}]}}`,
	} {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON([]byte(manifest)); err != nil {
			t.Fatal(err)
		}
		t.Run(object.GetKind(), func(t *testing.T) {
			t.Parallel()
			resource := resourceClient(t, client, object)
			stored, err := resource.Create(t.Context(), object, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { removeObject(t, resource, object.GetName()) })

			// As a status: the conditions are stored, the spec is not touched.
			spec := toJSON(t, stored.Object["spec"])
			stored.Object["status"] = map[string]any{
				"conditions": []any{
					map[string]any{"type": "Ready", "status": "True", "lastTransitionTime": "2024-02-02T19:54:34Z"},
				},
			}
			stored.Object["spec"] = mergePatch(object.Object["spec"].(map[string]any), otherSpec(object.GetKind()))
			stored, err = resource.UpdateStatus(t.Context(), stored, metav1.UpdateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := toJSON(t, stored.Object["spec"]); got != spec {
				t.Errorf("after a write of the status the spec is %s, want %s", got, spec)
			}
			status := toJSON(t, stored.Object["status"])
			if !strings.Contains(status, `"Ready"`) {
				t.Fatalf("the status is %s, want the condition Ready in it", status)
			}

			// As the object: the spec is stored, the status is not touched.
			stored.Object["status"] = map[string]any{}
			stored.Object["spec"] = mergePatch(stored.Object["spec"].(map[string]any), otherSpec(object.GetKind()))
			stored, err = resource.Update(t.Context(), stored, metav1.UpdateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := toJSON(t, stored.Object["status"]); got != status {
				t.Errorf("after a write of the object the status is %s, want %s", got, status)
			}
			if got := toJSON(t, stored.Object["spec"]); got == spec {
				t.Errorf("after a write of the object the spec is still %s", got)
			}
		})
	}
}

// G12: a policy has at most 100 entries, each of at most 1000 values. Within these bounds the API server's checks do
// not cost too much.
func TestAPolicyHasBounds(t *testing.T) {
	t.Parallel()
	env := sharedEnvironment.Get(t)
	client, _ := env.dynamicClient(t)
	policies := client.Resource(hypershiftv1beta1.GroupVersion().WithResource("autonodepolicies")).Namespace("default")
	for _, tc := range []struct {
		name            string
		entries, values int
		refused         string
	}{
		{"100 entries", 100, 100, ""},
		{"101 entries", 101, 1, "spec.nodePoolDefaults.requirements: Too many: 101: must have at most 100 items"},
		{"1000 values", 1, 1000, ""},
		{"1001 values", 1, 1001,
			"spec.nodePoolDefaults.requirements[0].values: Too many: 1001: must have at most 1000 items"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			values := make([]any, tc.values)
			for i := range values {
				values[i] = fmt.Sprintf("%063d", i) // The longest that a label may have.
			}
			requirements := make([]any, tc.entries)
			for i := range requirements {
				requirements[i] = map[string]any{"key": fmt.Sprintf("%s.example.com/%063d", strings.Repeat("a", 63),
					i), "operator": "In", "values": values}
			}
			policy := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": hypershiftv1beta1.GroupVersion().String(), "kind": "AutoNodePolicy",
				"metadata": map[string]any{"name": "api-bounds"},
				"spec":     map[string]any{"nodePoolDefaults": map[string]any{"requirements": requirements}},
			}}
			_, err := policies.Create(t.Context(), policy, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if tc.refused != "" {
				checkRefused(t, err, tc.refused, 1)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// otherSpec is a change that the spec of the kind allows.
func otherSpec(kind string) map[string]any {
	return map[string]map[string]any{
		"AutoNodePolicy": {
			"ec2NodeClassDefaults": map[string]any{"rootVolume": map[string]any{"volumeSize": "80Gi"}},
		},
		"OpenshiftNodePool":     {"weight": int64(5)},
		"OpenshiftEC2NodeClass": {"monitoring": "Detailed"},
		"EC2NodeClass":          {"role": "b"},
	}[kind]
}

// Both versions of an OpenshiftEC2NodeClass are one object.
func TestBothVersionsOfTheNodeClassShowTheSame(t *testing.T) {
	t.Parallel()
	env := sharedEnvironment.Get(t)
	client, _ := env.dynamicClient(t)
	stable := client.Resource(hypershiftv1.GroupVersion().WithResource("openshiftec2nodeclasses"))
	beta := client.Resource(hypershiftv1beta1.GroupVersion().WithResource("openshiftec2nodeclasses"))
	created, err := beta.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": hypershiftv1beta1.GroupVersion().String(), "kind": "OpenshiftEC2NodeClass",
		"metadata": map[string]any{"name": "api-versions"}, "spec": map[string]any{
			"kubelet": map[string]any{"maxPods": int64(10), "topologyManagerPolicy": "restricted"},
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeObject(t, stable, "api-versions") })
	read, err := stable.Get(t.Context(), "api-versions", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if read.GetUID() != created.GetUID() || toJSON(t, read.Object["spec"]) != toJSON(t, created.Object["spec"]) {
		t.Errorf("written as v1beta1:\n  %s\nread as v1:\n  %s", toJSON(t, created.Object), toJSON(t, read.Object))
	}
}
