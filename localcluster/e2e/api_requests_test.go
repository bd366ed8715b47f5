package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// poolManifest returns a NodePool with these fields in its spec, each line indented by two spaces.
func poolManifest(name, fields string) string {
	return fmt.Sprintf(`apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %s}
spec:
  template: {spec: {requirements: [], nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}}
%s
`, name, fields)
}

// V-01, V-08: kubectl scale reads and writes the replicas of a static pool and sees the number of nodes;
// a dynamic pool cannot be scaled.
func TestKubectlScalesAStaticPoolOnly(t *testing.T) {
	t.Parallel()
	env := sharedEnvironment.Get(t)
	env.mustKubectl(t, poolManifest("api-scale-static", "  replicas: 2"), "create", "-f", "-")
	env.mustKubectl(t, poolManifest("api-scale-dynamic", "  weight: 1"), "create", "-f", "-")
	client, _ := env.dynamicClient(t)
	pools := client.Resource(apiKinds()["NodePool"].resource)
	t.Cleanup(func() {
		removeObject(t, pools, "api-scale-static")
		removeObject(t, pools, "api-scale-dynamic")
	})

	env.mustKubectl(t, "", "patch", "nodepool", "api-scale-static", "--subresource=status", "--type=merge", "-p",
		`{"status":{"nodes":7}}`)
	env.mustKubectl(t, "", "scale", "nodepool", "api-scale-static", "--current-replicas=2", "--replicas=5")
	scale, err := pools.Get(t.Context(), "api-scale-static", metav1.GetOptions{}, "scale")
	if err != nil {
		t.Fatal(err)
	}
	spec, _, _ := unstructured.NestedInt64(scale.Object, "spec", "replicas")
	status, _, _ := unstructured.NestedInt64(scale.Object, "status", "replicas")
	if spec != 5 || status != 7 {
		t.Errorf("scale says replicas %d of %d, want 7 of 5", status, spec)
	}

	output, err := env.kubectl(t, "", "scale", "nodepool", "api-scale-dynamic", "--replicas=5")
	if want := "spec.replicas cannot be added or removed after creation"; err == nil ||
		!strings.Contains(output, want) {
		t.Errorf("scaling a dynamic pool: error %v, output without %q:\n%s", err, want, output)
	}
}

// V-11: of a condition only type, status and lastTransitionTime are required; status is written through
// its subresource alone.
func TestConditionsNeedThreeFields(t *testing.T) {
	t.Parallel()
	env := sharedEnvironment.Get(t)
	env.mustKubectl(t, poolManifest("api-conditions", ""), "create", "-f", "-")
	client, _ := env.dynamicClient(t)
	t.Cleanup(func() { removeObject(t, client.Resource(apiKinds()["NodePool"].resource), "api-conditions") })
	patch := func(arguments ...string) (string, error) {
		return env.kubectl(t, "", append([]string{"patch", "nodepool", "api-conditions", "--type=merge", "-p"},
			arguments...)...)
	}

	const ready = `{"status":{"conditions":[{"type":"Ready","status":"%s","lastTransitionTime":"2024-02-02T19:54:34Z"}]}}`
	if output, err := patch(fmt.Sprintf(ready, "True"), "--subresource=status"); err != nil {
		t.Errorf("three fields are refused: %s", output)
	}
	for field, condition := range map[string]string{
		"lastTransitionTime": `{"type":"Ready","status":"True"}`,
		"status":             `{"type":"Ready","lastTransitionTime":"2024-02-02T19:54:34Z"}`,
		"type":               `{"status":"True","lastTransitionTime":"2024-02-02T19:54:34Z"}`,
	} {
		output, err := patch(`{"status":{"conditions":[`+condition+`]}}`, "--subresource=status")
		if want := "status.conditions[0]." + field + ": Required value"; err == nil ||
			!strings.Contains(output, want) {
			t.Errorf("without %s: error %v, output without %q:\n%s", field, err, want, output)
		}
	}
	if output, err := patch(fmt.Sprintf(ready, "Maybe"), "--subresource=status"); err == nil {
		t.Errorf("the status Maybe is accepted: %s", output)
	}
	if _, err := patch(`{"status":{"nodes":9}}`); err != nil {
		t.Error(err)
	}
	if nodes := env.mustKubectl(t, "", "get", "nodepool", "api-conditions", "-o",
		"jsonpath={.status.nodes}"); nodes != "0" {
		t.Errorf("status.nodes is %s after a write outside the status subresource, want 0", nodes)
	}
}

// V-07: the API server warns about the reason Expired and accepts the pool; nothing else is warned about.
func TestTheAPIServerWarnsThatABudgetForExpiredRestrictsNothing(t *testing.T) {
	t.Parallel()
	env := sharedEnvironment.Get(t)
	client, received := env.dynamicClient(t)
	pools := client.Resource(apiKinds()["NodePool"].resource)
	const want = "spec.disruption.budgets: the reason Expired restricts nothing"
	const deadline = time.Minute // A new policy takes a few seconds until it is enforced.
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		dryRunPool(t, pools, []any{"Drifted", "Expired"})
		if texts := strings.Join(received.take(), "\n"); strings.Contains(texts, want) {
			break
		}
		if time.Since(began) > deadline {
			t.Fatalf("no warning that contains %q within %s", want, deadline)
		}
	}
	dryRunPool(t, pools, []any{"Drifted", "Empty"})
	dryRunPool(t, pools, nil)
	if texts := received.take(); len(texts) != 0 {
		t.Errorf("warnings without the reason Expired: %q", texts)
	}
	manifest := poolManifest("api-warning", `  disruption: {budgets: [{nodes: 1, reasons: [Expired]}]}`)
	wrapper := strings.NewReplacer("karpenter.sh/v1", "karpenter.hypershift.openshift.io/v1beta1", "NodePool",
		"OpenshiftNodePool").Replace(manifest)
	for _, manifest := range []string{manifest, wrapper} {
		if output := env.mustKubectl(t, manifest, "apply", "--dry-run=server", "-f", "-"); !strings.Contains(output,
			"Warning: ") || !strings.Contains(output, want) {
			t.Errorf("kubectl printed no warning with %q:\n%s", want, output)
		}
	}
}

// dryRunPool creates a pool whose budget has the given reasons, without storing it.
func dryRunPool(t *testing.T, pools dynamic.ResourceInterface, reasons []any) {
	t.Helper()
	budget := map[string]any{"nodes": "1"}
	if reasons != nil {
		budget["reasons"] = reasons
	}
	pool := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "karpenter.sh/v1",
		"kind":       "NodePool",
		"metadata":   map[string]any{"name": "api-warning"},
		"spec": map[string]any{
			"disruption": map[string]any{"budgets": []any{budget}},
			"template": map[string]any{"spec": map[string]any{
				"requirements": []any{},
				"nodeClassRef": map[string]any{"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass",
					"name": "default"},
			}},
		},
	}}
	if _, err := pools.Create(t.Context(), pool,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Fatal(err)
	}
}
