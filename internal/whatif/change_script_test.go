package whatif_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

// TestU03_Changes runs every script below testdata/changes. "files" has the manifests of a cluster. "change" prints
// the effect of its manifests, with scale=NAMESPACE/NAME=N, delete=KIND/NAME and remove=NODE, until=plan or
// until=quiet; fail=WORD,… is --fail-on. With the word json it prints the same for programs; with stored, the files
// are objects of a cluster.
func TestU03_Changes(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/changes", func(t *testing.T, path string) {
		var base []whatif.Document
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			documents := documentsOf(t, d)
			if d.Cmd == "files" {
				for i := range documents {
					documents[i].Stored = d.HasArg("stored")
				}
				base = documents
				return ""
			}
			out, err := changed(t, base, documents, d)
			if err != nil {
				return "error: " + err.Error() + "\n"
			}
			return out
		})
	})
}

func changed(t *testing.T, base, documents []whatif.Document, d *datadriven.TestData) (string, error) {
	t.Helper()
	world, err := pictured(t, base)
	if err != nil {
		return "", err
	}
	change, until, failOn := whatif.Change{Documents: documents}, whatif.UntilQuiet, whatif.DefaultFailOn
	for _, arg := range d.CmdArgs {
		switch value := strings.Join(arg.Vals, ","); arg.Key {
		case "scale":
			change.Scale = append(change.Scale, value)
		case "delete":
			change.Delete = append(change.Delete, value)
		case "remove":
			change.RemoveNodes = append(change.RemoveNodes, value)
		case "until":
			until = whatif.Until(value)
		case "fail":
			failOn = value
		case "json":
		default:
			d.Fatalf(t, "unknown argument %s", arg.Key)
		}
	}
	on, err := whatif.ParseFailOn(failOn)
	if err != nil {
		return "", err
	}
	c, err := world.Compare(change, until)
	if err != nil {
		return "", err
	}
	c.Judge(on)
	var out strings.Builder
	write := c.WriteText
	if d.HasArg("json") {
		write = c.WriteJSON
	}
	if err := write(&out); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%sclean: %t\n", out.String(), c.Clean()), nil
}
