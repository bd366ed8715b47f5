package crd

import (
	"bytes"
	"testing"
)

// V-01, V-02: every kind has its manifest, and every manifest is one document.
func TestManifestsHoldOneDocumentForEachKind(t *testing.T) {
	t.Parallel()
	manifests, err := Manifests()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"karpenter.sh_nodepools.yaml",
		"karpenter.sh_nodeclaims.yaml",
		"karpenter.sh_nodeoverlays.yaml",
		"karpenter.kwok.sh_kwoknodeclasses.yaml",
		"policy_expired-budget.yaml",
		"policy_expired-budget_binding.yaml",
	} {
		if _, found := manifests[name]; !found {
			t.Errorf("%s is missing", name)
		}
	}
	for name, content := range manifests {
		document := bytes.TrimPrefix(content, []byte("---\n"))
		if bytes.Contains(document, []byte("\n---")) || bytes.Count(document, []byte("\napiVersion: "))+bytes.Count(document[:11], []byte("apiVersion:")) != 1 {
			t.Errorf("%s does not hold exactly one document", name)
		}
	}
}
