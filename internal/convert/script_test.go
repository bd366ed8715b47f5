package convert

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"sigs.k8s.io/yaml"
)

// TestScripts runs the examples in testdata/scripts. Each has an object in YAML, without status unless it matters,
// and:
//
//	up      v1beta1 to v1; what comes out is converted back and must be equal
//	down    v1 to v1beta1, and back
//	edit    path=/spec/x value=JSON...: the object is converted, edited there, and converted back
//
// Annotations of ours are printed as YAML, since their JSON is hard to read.
func TestScripts(t *testing.T) {
	t.Parallel()
	c := converter(t)
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			data, err := yaml.YAMLToJSON([]byte(d.Input))
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			o := decodeText(t, string(data))
			from, to := V1beta1, V1
			if strings.HasSuffix(text(o, "apiVersion"), "/v1") {
				from, to = to, from
			}
			there, err := c.Convert(o, to)
			if err != nil {
				return err.Error() + "\n"
			}
			if d.Cmd == "edit" {
				edit(t, d, there.Object)
				back, err := c.Convert(there.Object, from)
				if err != nil {
					return err.Error() + "\n"
				}
				return readable(t, back.Object)
			}
			back, err := c.Convert(there.Object, from)
			if err != nil || !equal(back.Object, o) {
				d.Fatalf(t, "converted back it is %s, error %v", encode(back.Object), err)
			}
			out := ""
			if len(there.Problems) > 0 {
				out = "not converted: " + Describe(there.Problems) + "\n"
			}
			return out + readable(t, there.Object)
		})
	})
}

// edit sets fields of an object: path=/spec/x value=JSON; without a value the field is removed.
func edit(t *testing.T, d *datadriven.TestData, o object) {
	t.Helper()
	for _, arg := range d.CmdArgs {
		path := unpointer(arg.Key)
		parent := at(o, path[:len(path)-1]...)
		if parent == nil {
			d.Fatalf(t, "nothing at %s", arg.Key)
		}
		delete(parent, path[len(path)-1])
		if len(arg.Vals) == 1 {
			parent[path[len(path)-1]] = decodeText(t, `{"v":`+arg.Vals[0]+`}`)["v"]
		}
	}
}

func readable(t *testing.T, o object) string {
	t.Helper()
	o = cloneObject(o)
	for key, value := range annotationsOf(o) {
		if content, err := Decode([]byte(value.(string))); err == nil {
			annotationsOf(o)[key] = content
		}
	}
	out, err := yaml.JSONToYAML([]byte(encode(o)))
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid([]byte(encode(o))) {
		t.Fatal("no JSON")
	}
	return string(out)
}
