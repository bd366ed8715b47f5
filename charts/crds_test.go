package charts_test

import (
	"bytes"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/charts"
	"github.com/joiner-autoscaler/joiner/charts/chartstest"
)

// U-11: Helm keeps the definitions that it may change: without its definition, all of a kind's objects would go.
func TestU11_HelmKeepsEveryDefinition(t *testing.T) {
	t.Parallel()
	found := 0
	for _, chart := range chartstest.Charts() {
		set := chartstest.Needed(chart)
		if chart == charts.Operator {
			set["crds.install"] = true
		}
		for name, document := range render(t, chart, set) {
			if !strings.HasPrefix(name, "CustomResourceDefinition/") {
				continue
			}
			found++
			definition := metadataOf(t, document)
			if definition.Metadata.Annotations["helm.sh/resource-policy"] != "keep" ||
				definition.Metadata.Annotations["controller-gen.kubebuilder.io/version"] == "" {
				t.Errorf("%s: %s has the annotations %v", chart, name, definition.Metadata.Annotations)
			}
			if bytes.Contains(document[len(document)/4:], []byte("helm.sh/")) {
				t.Errorf("%s: %s has an annotation of Helm's somewhere else too", chart, name)
			}
		}
	}
	if found != 10 {
		t.Errorf("%d definitions are in templates, want 10", found)
	}
}

// U-11: the chart of definitions has those that other charts have in crds. Each switch leaves out its own.
func TestU11_TheChartOfDefinitionsHasThem(t *testing.T) {
	t.Parallel()
	var want []string
	for _, chart := range []string{charts.Joiner, charts.Webhook} {
		names, err := fs.Glob(charts.Files(), chart+"/crds/*")
		if err != nil || len(names) == 0 {
			t.Fatalf("%s has no definitions (%v)", chart, err)
		}
		for _, name := range names {
			if !bytes.Equal(file(t, name), file(t, charts.CRDs+"/files/"+path.Base(name))) {
				t.Errorf("%s is another one in %s: copy it (make generate does)", name, charts.CRDs)
			}
			resource, group, _ := strings.Cut(strings.TrimSuffix(path.Base(name), ".yaml"), "_")
			want = append(want, "CustomResourceDefinition/"+group+"."+resource)
		}
	}
	slices.Sort(want)
	all := render(t, charts.CRDs, nil)
	if got := slices.Sorted(maps.Keys(all)); !slices.Equal(got, want) {
		t.Errorf("the chart has %v, want %v", got, want)
	}
	off := map[string]int{"karpenter": 3, "capacityBuffers": 1, "aws": 1, "kwok": 1, "nodeSchedulingGroups": 1}
	for name, fewer := range off {
		if got := len(render(t, charts.CRDs, map[string]any{name: false})); got != len(want)-fewer {
			t.Errorf("without %s there are %d definitions, want %d", name, got, len(want)-fewer)
		}
	}
	document := render(t, charts.CRDs,
		map[string]any{"annotations": map[string]any{"example.com/on": "true"}})[want[0]]
	if got := metadataOf(t, document).Metadata.Annotations["example.com/on"]; got != "true" {
		t.Errorf("a further annotation is %q", got)
	}
}

// metadata is what the tests read of any object.
type metadata struct {
	Metadata struct {
		Name        string
		Annotations map[string]string
	}
}

func metadataOf(t *testing.T, document []byte) (found metadata) {
	t.Helper()
	if err := yaml.Unmarshal(document, &found); err != nil {
		t.Fatalf("%v\n%s", err, document)
	}
	return found
}
