package cli_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"

	"github.com/joiner-autoscaler/joiner/internal/cli"
)

var definitionsOfAll = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
	Resource: "customresourcedefinitions"}

// defined is a cluster with Karpenter's definitions, made by a release of its chart, and one of somebody else's.
func defined() *fake.FakeDynamicClient {
	definition := func(name string, annotations map[string]any, labels map[string]any) runtime.Object {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1",
			"kind": "CustomResourceDefinition", "metadata": map[string]any{"name": name, "annotations": annotations,
				"labels": labels}}}
	}
	helm := map[string]any{"meta.helm.sh/release-name": "karpenter-crd", "meta.helm.sh/release-namespace": "karpenter",
		"of": "theirs"}
	return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{definitionsOfAll: "CustomResourceDefinitionList"},
		definition("nodepools.karpenter.sh", helm, map[string]any{"app.kubernetes.io/managed-by": "Helm"}),
		definition("ec2nodeclasses.karpenter.k8s.aws", nil, nil),
		definition("widgets.example.com", helm, nil))
}

// K-24: definitions of Karpenter's kinds get to the release of our chart and are kept; others stay as they are. A dry
// run prints the patches and writes nothing. Done once, there is nothing left to do.
func TestK24_AdoptDefinitions(t *testing.T) {
	t.Parallel()
	client := defined()
	code, out, failures := run(t, client, "", "takeover", "adopt-crds", "--dry-run")
	patch :=
		`kubectl patch crd nodepools.karpenter.sh --type=merge -p '{"metadata":{"annotations":{"helm.sh/resource-policy":"keep",` +
			`"meta.helm.sh/release-name":"joiner-crds","meta.helm.sh/release-namespace":"joiner"}}}'`
	if code != cli.CodeFindings || failures != "" || !strings.Contains(out, patch) ||
		strings.Contains(out, "widgets") {
		t.Fatalf("exit %d, %q:\n%s\nwant\n%s", code, failures, out, patch)
	}
	if wrote := writes(client); len(wrote) > 0 {
		t.Fatalf("a dry run does %q", wrote)
	}
	code, out, _ = run(t, client, "", "takeover", "adopt-crds", "--release-namespace", "nodes")
	for _, want := range []string{
		"nodepools.karpenter.sh: belongs to release nodes/joiner-crds now, and not to karpenter/karpenter-crd",
		"ec2nodeclasses.karpenter.k8s.aws: belongs to release nodes/joiner-crds now\n",
		"kubectl delete secret --namespace karpenter --selector owner=helm,name=karpenter-crd"} {
		if code != cli.CodeFindings || !strings.Contains(out, want) {
			t.Errorf("exit %d; %q is missing in\n%s", code, want, out)
		}
	}
	for name, want := range map[string]string{"nodepools.karpenter.sh": "joiner-crds keep theirs",
		"widgets.example.com": "karpenter-crd  theirs", "ec2nodeclasses.karpenter.k8s.aws": "joiner-crds keep "} {
		object, err := client.Resource(definitionsOfAll).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		a := object.GetAnnotations()
		if got := strings.Join([]string{a["meta.helm.sh/release-name"], a["helm.sh/resource-policy"], a["of"]},
			" "); got != want {
			t.Errorf("%s: %q, want %q (%v)", name, got, want, slices.Sorted(maps.Keys(a)))
		}
	}
	client.ClearActions()
	code, out, _ = run(t, client, "", "takeover", "adopt-crds", "--release-namespace", "nodes")
	if wrote := writes(client); code != cli.CodeFine || len(wrote) > 0 || strings.Count(out, " already\n") != 2 {
		t.Errorf("once more: exit %d, writes %q:\n%s", code, wrote, out)
	}
}

// K-24: the definition of CapacityBuffers comes with Karpenter's charts and with others. It is adopted if it belongs
// to Karpenter's release or to none. With another release it stays, and the output says what to do then.
func TestK24_CapacityBuffersMayBeAnothers(t *testing.T) {
	t.Parallel()
	const name = "capacitybuffers.autoscaling.x-k8s.io"
	for release, want := range map[string]string{
		"karpenter-crd": name + ": belongs to release joiner/joiner-crds now, and not to karpenter/karpenter-crd\n",
		"":              name + ": belongs to release joiner/joiner-crds now\n",
		"cluster-autoscaler": name +
			": stays with release karpenter/cluster-autoscaler, which has no definition of Karpenter's own: " +
			"install our chart of definitions with --set capacityBuffers=false\n",
	} {
		client, metadata := defined(), map[string]any{"name": name}
		if release != "" {
			metadata["annotations"] = map[string]any{"meta.helm.sh/release-name": release,
				"meta.helm.sh/release-namespace": "karpenter"}
		}
		buffers := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1",
			"kind": "CustomResourceDefinition", "metadata": metadata}}
		if _, err := client.Resource(definitionsOfAll).Create(t.Context(), buffers,
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		code, out, failures := run(t, client, "", "takeover", "adopt-crds")
		if code != cli.CodeFindings || failures != "" || !strings.Contains(out, want) {
			t.Errorf("%q: exit %d, %q: want %q in\n%s", release, code, failures, want, out)
		}
		found, err := client.Resource(definitionsOfAll).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if keeps := found.GetAnnotations()["helm.sh/resource-policy"]; (keeps == "keep") == (release == "cluster-autoscaler") {
			t.Errorf("%q: its annotations are %v", release, found.GetAnnotations())
		}
	}
}
