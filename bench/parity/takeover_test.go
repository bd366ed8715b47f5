package parity

import (
	"encoding/json"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	peerapis "sigs.k8s.io/karpenter/pkg/apis"
	peerv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/api/crd"
	"github.com/joiner-autoscaler/joiner/internal/takeover"
)

func content(t *testing.T, of any) map[string]any {
	t.Helper()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(of)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// K-25, K-28: the check names exactly the fields that our definitions have and Karpenter's do not. Karpenter has no
// field that we do not have.
func TestK28_WhatKarpenterTakes(t *testing.T) {
	t.Parallel()
	manifests, err := crd.Manifests()
	if err != nil {
		t.Fatal(err)
	}
	ours := map[string]map[string]bool{}
	for name, data := range manifests {
		var definition map[string]any
		if err := yaml.Unmarshal(data, &definition); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		metadata, _ := definition["metadata"].(map[string]any)
		called, _ := metadata["name"].(string)
		ours[called] = takeover.FieldsOf(definition)
	}
	own := 0
	for _, peer := range peerapis.CRDs {
		if ours[peer.Name] == nil {
			continue // CapacityBuffer, whose definition is not among ours
		}
		theirs := takeover.FieldsOf(content(t, peer))
		for path := range theirs {
			if !ours[peer.Name][path] {
				t.Errorf("%s: Karpenter has %s, and Joiner has not", peer.Name, path)
			}
		}
		for path := range ours[peer.Name] {
			if is := takeover.OwnField(peer.Name, path); theirs[path] == is {
				t.Errorf("%s: %s: it is said to be our own: %t; Karpenter has it: %t", peer.Name, path, is,
					theirs[path])
			} else if is {
				own++
			}
		}
	}
	if own == 0 {
		t.Error("nothing was compared")
	}
}

// K-28: a NodePool with everything that only Joiner has is refused by Karpenter's definition, and Karpenter cannot
// read it. After the patch it is accepted and readable.
func TestK28_WhatIsPatchedKarpenterReads(t *testing.T) {
	t.Parallel()
	const text = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: web}
spec:
  template: {spec: {expireAfter: 30d, terminationGracePeriod: 1d, requirements: [], nodeClassRef: {group: a.b, kind: C, name: d}}}
  disruption:
    consolidateAfter: 30s
    consolidationPolicy: WhenUnderutilized
    budgets: [{nodes: 2}, {nodes: "1", reasons: [Expired]}, {nodes: "3", reasons: [Expired, Drifted]},
      {nodes: "0", schedule: "@daily", duration: 30m1h}]
`
	var pool map[string]any
	if err := yaml.Unmarshal([]byte(text), &pool); err != nil {
		t.Fatal(err)
	}
	fixed, faults := takeover.ForKarpenter(pool)
	if refusals := refusals(t, pool); len(refusals) == 0 || len(faults) == 0 {
		t.Errorf("as it is, Karpenter's definition refuses %v, and the check finds %q", refusals, faults)
	}
	if read(t, pool) == nil {
		t.Error("Karpenter reads it as it is: the page says otherwise")
	}
	if refusals := refusals(t, fixed); len(refusals) > 0 {
		t.Errorf("patched, it is refused: %v", refusals)
	}
	if err := read(t, fixed); err != nil {
		t.Errorf("patched, Karpenter cannot read it: %v", err)
	}
}

// read reads an object into Karpenter's type.
func read(t *testing.T, object map[string]any) error {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var pool peerv1.NodePool
	return json.Unmarshal(data, &pool)
}

// refusals returns what Karpenter's schema has against a NodePool, without rules in CEL.
func refusals(t *testing.T, object map[string]any) (all []string) {
	t.Helper()
	for _, peer := range peerapis.CRDs {
		if peer.Spec.Names.Kind != "NodePool" {
			continue
		}
		var schema apiextensions.JSONSchemaProps
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
			peer.Spec.Versions[0].Schema.OpenAPIV3Schema, &schema, nil); err != nil {
			t.Fatal(err)
		}
		validator, _, err := validation.NewSchemaValidator(&schema)
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range validation.ValidateCustomResource(nil, object, validator) {
			all = append(all, fault.Error())
		}
	}
	return all
}
