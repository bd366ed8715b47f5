package takeover

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/charts/chartstest"
)

// K-20: the table of the values of Karpenter's charts is right about the chart for KWOK: it has exactly the chart's
// keys, with their defaults.
func TestK20_TheTableHasWhatTheChartHas(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(module(t), "kwok", "charts", "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	delete(values["controller"].(map[string]any), "image") // of Karpenter's programs
	seen := 0
	for _, key := range chartstest.KarpentersKeys() {
		value, is := taken(values, strings.Split(key.Path, "."))
		if is != (key.KWOK != "-") {
			t.Errorf("the chart has %s: %t; the table says %t", key.Path, is, !is)
			continue
		}
		if !is {
			continue
		}
		seen++
		said := key.Default
		if key.KWOK != "" {
			said = key.KWOK
		}
		var want any
		if err := json.Unmarshal([]byte(said), &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(value, want) {
			t.Errorf("the default of %s is %v, the table says %v", key.Path, value, want)
		}
	}
	if left := leaves(values); len(left) > 0 || seen < 40 {
		t.Errorf("%d keys were compared; the chart has also %v", seen, left)
	}
}

// taken removes a value from a file of values, and returns it.
func taken(values map[string]any, path []string) (any, bool) {
	value, is := values[path[0]]
	if len(path) == 1 || !is {
		delete(values, path[0])
		return value, is
	}
	inner, isMap := value.(map[string]any)
	if !isMap {
		return nil, false
	}
	return taken(inner, path[1:])
}

// leaves returns the names of what is left in a file of values.
func leaves(values map[string]any) (names []string) {
	for name, value := range values {
		if inner, isMap := value.(map[string]any); isMap {
			for _, below := range leaves(inner) {
				names = append(names, name+"."+below)
			}
			continue
		}
		names = append(names, name)
	}
	return names
}
