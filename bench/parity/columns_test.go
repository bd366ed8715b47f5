package parity

import (
	"maps"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	peerapis "sigs.k8s.io/karpenter/pkg/apis"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/api/crd"
)

// column is what kubectl needs for a column, except the heading.
type column struct {
	path     string
	priority int32
}

// columns returns those of a version, by heading. Either kind of quotes in paths means the same.
func columns(definition *apiextensionsv1.CustomResourceDefinition, version string) map[string]column {
	all := map[string]column{}
	for _, v := range definition.Spec.Versions {
		if v.Name != version {
			continue
		}
		for _, c := range v.AdditionalPrinterColumns {
			all[c.Name] = column{strings.ReplaceAll(c.JSONPath, `"`, `'`), c.Priority}
		}
	}
	return all
}

// K-19: what kubectl shows about Karpenter's kinds, and the names by which it finds them. Columns are compared by
// heading, as scripts read them; V-14 says their order.
func TestK19_KubectlShowsWhatItShowsOfKarpenter(t *testing.T) {
	t.Parallel()
	manifests, err := crd.Manifests()
	if err != nil {
		t.Fatal(err)
	}
	ours := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for name, content := range manifests {
		var definition apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(content, &definition); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		ours[definition.Name] = &definition
	}
	compared := 0
	for _, peer := range peerapis.CRDs {
		own := ours[peer.Name]
		if own == nil {
			t.Errorf("there is no definition %s", peer.Name)
			continue
		}
		compared++
		version := peer.Spec.Versions[0].Name
		if have, want := columns(own, version), columns(peer, version); len(want) == 0 || !maps.Equal(have, want) {
			t.Errorf("columns of %s are\n%v\nwant\n%v", peer.Name, have, want)
		}
		have, want := own.Spec.Names, peer.Spec.Names
		if !slices.Equal(have.ShortNames, want.ShortNames) || !slices.Equal(have.Categories, want.Categories) ||
			have.Plural != want.Plural || have.Singular != want.Singular {
			t.Errorf("names of %s are %+v, want %+v", peer.Name, have, want)
		}
	}
	if compared != 4 {
		t.Errorf("%d kinds were compared, want 4", compared)
	}
}
