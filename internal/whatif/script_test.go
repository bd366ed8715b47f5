package whatif_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/provider/kwok"
	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

// TestScripts runs every script below testdata/scripts (U-03, U-16). "files" has the manifests that all commands after
// it add theirs to; "simulate" prints what is planned for them, or with the word json the same for programs; "explain
// NAME" says how the pod default/NAME stands, and "explain-node", "explain-pool", "explain-claim" or "explain KIND
// NAME" how another object does. The word all asks for every cause, try for changes that would help, json for
// programs, stored says that the
// manifests are those of a cluster, max-nodes=N is the limit of the whole cluster (K-53), and devices has claims for
// devices looked at (K-42).
func TestScripts(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		var base []whatif.Document
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			documents := documentsOf(t, d)
			if d.Cmd == "files" {
				base = documents
				return ""
			}
			documents = append(base[:len(base):len(base)], documents...)
			if strings.HasPrefix(d.Cmd, "explain") {
				out := explained(t, documents, d)
				if left := unfilled.FindString(out); left != "" {
					d.Fatalf(t, "what can be done is not said in full: %s", left)
				}
				return out
			}
			out, err := simulated(t, documents, d)
			if err != nil {
				return "error: " + err.Error() + "\n"
			}
			return out
		})
	})
}

// unfilled matches parts of a remedy that still have to be filled in (U-16).
var unfilled = regexp.MustCompile(`(?m)^ +(do +|one of +)?[a-z].*\b(NAME|CLAIM|POOL|KEY)\b.*$`)

func documentsOf(t *testing.T, d *datadriven.TestData) []whatif.Document {
	t.Helper()
	var documents []whatif.Document
	for i, text := range strings.Split(d.Input, "\n---\n") {
		var content map[string]any
		if err := yaml.Unmarshal([]byte(text), &content); err != nil {
			d.Fatalf(t, "document %d: %v", i+1, err)
		}
		if content != nil {
			documents = append(documents, whatif.Document{Where: fmt.Sprintf("%s, document %d", d.Cmd, i+1),
				Content: content})
		}
	}
	return documents
}

func pictured(t *testing.T, documents []whatif.Document) (*whatif.World, error) {
	t.Helper()
	return picturedBelow(t, documents, 0, false)
}

// asTold is the world of a command, with the limit of the whole cluster that it names.
func asTold(t *testing.T, documents []whatif.Document, d *datadriven.TestData) (*whatif.World, error) {
	t.Helper()
	var maxNodes int64
	d.MaybeScanArgs(t, "max-nodes", &maxNodes)
	return picturedBelow(t, documents, maxNodes, d.HasArg("devices"))
}

func picturedBelow(t *testing.T, documents []whatif.Document, maxNodes int64, devices bool) (*whatif.World, error) {
	t.Helper()
	inventory, err := kwok.LoadInventory("testdata/small.json", os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	return whatif.New(whatif.Input{
		Documents: documents, Catalogue: inventory.Catalog(), MaxNodes: maxNodes, Devices: devices,
		Now: time.Unix(1_800_000_000, 0),
	})
}

func explained(t *testing.T, documents []whatif.Document, d *datadriven.TestData) string {
	t.Helper()
	for i := range documents {
		documents[i].Stored = d.HasArg("stored")
	}
	world, err := asTold(t, documents, d)
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	var e whatif.Explained
	name, all := d.CmdArgs[0].Key, d.HasArg("all")
	switch d.Cmd {
	case "explain":
		if e, err = world.ExplainPod("default", name, all); err == nil && d.HasArg("try") {
			world.Try(&e)
		}
	case "explain-node":
		e, err = world.ExplainNode(name, all)
	case "explain-pool":
		e, err = world.ExplainPool(name)
	case "explain-claim":
		e, err = world.ExplainClaim(name)
	case "explain-workload":
		e, err = world.ExplainWorkload(name, "default", d.CmdArgs[1].Key, all)
	default:
		d.Fatalf(t, "unknown verb %s", d.Cmd)
	}
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	write := e.WriteText
	if d.HasArg("json") {
		write = e.WriteJSON
	}
	var out strings.Builder
	if err := write(&out); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s%s, clean: %t\n", out.String(), e.State, e.Clean())
}

func simulated(t *testing.T, documents []whatif.Document, d *datadriven.TestData) (string, error) {
	t.Helper()
	world, err := asTold(t, documents, d)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	write := world.Plan().WriteText
	if d.HasArg("json") {
		write = world.Plan().WriteJSON
	}
	if err := write(&out); err != nil {
		t.Fatal(err)
	}
	return out.String(), nil
}

// TestU16_EachCauseHasAScript: a cause that no script shows is one that nobody has seen.
func TestU16_EachCauseHasAScript(t *testing.T) {
	t.Parallel()
	var shown strings.Builder
	entries, err := os.ReadDir("testdata/scripts")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		data, err := os.ReadFile("testdata/scripts/" + entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		shown.Write(data)
	}
	elsewhere := map[cause.Code]string{
		cause.LaunchesInVain:      "nothing was launched yet where nothing is applied; TestWaits of package view has it",
		cause.ClusterLimitUnknown: "only a controller looks at the table of the limit; script limits/08_cluster of package engine has it",
		cause.NoPlaceFound:        "no combination is known that is none of the others",
	}
	for _, code := range cause.WaitingCodes() {
		waits, stands := ", "+string(code)+"\n", " waits: "+string(code)+"\n"
		if has := strings.Contains(shown.String(), waits) || strings.Contains(shown.String(),
			stands); has == (elsewhere[code] != "") {
			t.Errorf("%s: in a script: %t; said to be elsewhere: %q", code, has, elsewhere[code])
		}
	}
	for _, code := range slices.Concat(cause.PoolCodes(), cause.ClaimCodes(),
		[]cause.Code{cause.Paused, cause.PoolHeld, cause.BackingOff}) {
		said := regexp.MustCompile("\n(nodepool|nodeclaim|node n1) .*: " + string(code) + "\n")
		if !said.MatchString(shown.String()) {
			t.Errorf("no script shows %s", code)
		}
	}
}
