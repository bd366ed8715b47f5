package migrate_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/internal/convert"
	"github.com/joiner-autoscaler/joiner/internal/migrate"
)

// TestScripts runs the examples in testdata/scripts (V-25). check reads YAML documents and prints the report; with
// file the documents stand in a file of that name, otherwise they are the cluster's; with json it prints that form.
func TestScripts(t *testing.T) {
	t.Parallel()
	converter, err := convert.New(convert.Config{})
	if err != nil {
		t.Fatal(err)
	}
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			file := ""
			if d.HasArg("file") {
				d.ScanArgs(t, "file", &file)
			}
			report := migrate.Check(objects(t, d, file), converter)
			var out bytes.Buffer
			write := report.WriteText
			if d.HasArg("json") {
				write = report.WriteJSON
			}
			if err := write(&out); err != nil {
				t.Fatal(err)
			}
			var again map[string]any
			if d.HasArg("json") && json.Unmarshal(out.Bytes(), &again) != nil {
				t.Fatalf("not JSON: %s", out.String())
			}
			return out.String()
		})
	})
}

func objects(t *testing.T, d *datadriven.TestData, file string) []migrate.Object {
	t.Helper()
	var found []migrate.Object
	for document := range strings.SplitSeq(d.Input, "\n---\n") {
		data, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		content, err := convert.Decode(data)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		found = append(found, migrate.Object{Where: file, Content: content})
	}
	return found
}
