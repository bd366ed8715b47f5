package charts_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/charts/chartstest"
)

var rewriteReadme = flag.Bool("rewrite-readme", false, "write the tables of values into the pages of the charts")

// valuesMark stands where the table of values begins on the page of a chart.
const valuesMark = "<!-- values -->\n"

// U-11: `helm show readme` has every value of the chart, with its default and its comment in the file of values.
func TestU11_ThePagesHaveEveryValue(t *testing.T) {
	t.Parallel()
	for _, chart := range chartstest.Charts() {
		name := chart + "/README.md"
		page := string(file(t, name))
		text, _, found := strings.Cut(page, valuesMark)
		if !found {
			t.Errorf("%s has no %q", name, valuesMark)
			continue
		}
		want := text + valuesMark + tableOf(t, string(file(t, chart+"/values.yaml")))
		if page == want {
			continue
		}
		if !*rewriteReadme {
			t.Errorf(
				"%s has another table than values.yaml: go test ./charts -run TestU11_ThePagesHave -rewrite-readme",
				name)
			continue
		}
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// tableOf returns the table of a file of values: a line for each value with a default of its own.
func tableOf(t *testing.T, text string) string {
	t.Helper()
	var values map[string]any
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	said := commentsOf(text)
	var rows []string
	eachLeaf(values, "", func(path string, value any) {
		shown, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if len(shown) > 40 {
			shown = []byte("see values.yaml")
		}
		if said[path] == "" {
			t.Errorf("no comment in values.yaml says what %s is", path)
		}
		rows = append(rows, fmt.Sprintf("| `%s` | `%s` | %s |\n", path, shown,
			strings.ReplaceAll(said[path], "|", "\\|")))
	})
	return "\n| value | default | meaning |\n|---|---|---|\n" + strings.Join(rows, "")
}

// eachLeaf visits values by their path, sorted; an empty map is a value.
func eachLeaf(values map[string]any, at string, visit func(path string, value any)) {
	var names []string
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		path := strings.TrimPrefix(at+"."+name, ".")
		if inner, is := values[name].(map[string]any); is && len(inner) > 0 && !strings.HasSuffix(path, "labels") {
			eachLeaf(inner, path, visit)
			continue
		}
		visit(path, values[name])
	}
}

// commentsOf returns the comments above the values of a file, by path. A value without one has the comment of the
// value before it; the first value below another has that one's.
func commentsOf(text string) map[string]string {
	said := map[string]string{}
	var above, parents []string
	last := []string{""} // said at each depth
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		if comment, is := strings.CutPrefix(trimmed, "#"); is {
			above = append(above, strings.TrimSpace(comment))
			continue
		}
		depth := (len(line) - len(strings.TrimLeft(line, " "))) / 2
		name, _, isKey := strings.Cut(trimmed, ":")
		if isKey && !strings.HasPrefix(trimmed, "-") && depth <= len(parents) {
			parents = append(parents[:depth:depth], name)
			of := last[min(depth, len(last)-1)]
			if len(above) > 0 {
				of = strings.Join(above, " ")
			}
			last = append(last[:min(depth, len(last)):min(depth, len(last))], of, of)
			said[strings.Join(parents, ".")] = of
		}
		above = nil
	}
	return said
}
