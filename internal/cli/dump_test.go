package cli_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/cli"
	"github.com/joiner-autoscaler/joiner/internal/dump"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
)

const planned = "2026-11-22T07:00:00Z"

// dumped dumps examples/simulate to a file, and returns its name.
func dumped(t *testing.T, more ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dump.gz")
	code, out, failures := ran(t, "", append([]string{"dump", "-f", "../../examples/simulate", "--now", planned, "-o",
		path}, more...)...)
	if code != cli.CodeFine || failures != "" || !strings.HasSuffix(out, "replayed with the same plans\n") {
		t.Fatalf("exit %d, %q, %q", code, out, failures)
	}
	return path
}

// understood reads a dump.
func understood(t *testing.T, path string) dump.Dump {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d, warnings, err := dump.Read(bytes.NewReader(data), dump.Options{Strict: true})
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	return d
}

// stored writes a dump to a file, and returns its name.
func storedDump(t *testing.T, d dump.Dump) string {
	t.Helper()
	var b bytes.Buffer
	if err := dump.Write(&b, d); err != nil {
		t.Fatal(err)
	}
	return file(t, "dump.gz", b.String())
}

// otherPlan is a dump with a plan that the engine does not make.
func otherPlan(t *testing.T) string {
	t.Helper()
	s, err := enginetest.Parse("type m cpu=2 mem=8Gi od=0.1\npool gpu hard.nodes=2\npod train-0..2 ns=ml cpu=1500m")
	if err != nil {
		t.Fatal(err)
	}
	d, err := dump.Make(s, engine.Terms{}, dump.All()...)
	if err != nil {
		t.Fatal(err)
	}
	d.Header = dump.Header{Program: "test", Source: dump.FromController, Redaction: dump.RedactNone}
	d.Plans[0].Plan.Launches = d.Plans[0].Plan.Launches[1:]
	return storedDump(t, d)
}

// lines unpacks a dump.
func lines(t *testing.T, data []byte) string {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestU06_ADumpReplaysToTheSamePlan: with each redaction, and the key says what the names stand for.
func TestU06_ADumpReplaysToTheSamePlan(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"none", "names", "all"} {
		path := dumped(t, "--redact", how)
		code, out, failures := ran(t, "", "replay", path)
		if code != cli.CodeFine || failures != "" || !strings.HasPrefix(out,
			path+": the same plans\nwritten by joinerctl ") ||
			!strings.Contains(out, ", rebuilt, redacted: "+how+", planned for "+planned+"\n") {
			t.Errorf("%s: exit %d, %q\n%s", how, code, failures, out)
		}
		if named := strings.Contains(out, "shop/nightly-"); named != (how == "none") {
			t.Errorf("%s: names are told: %t\n%s", how, named, out)
		}
	}
	key := filepath.Join(t.TempDir(), "key")
	path := dumped(t, "--key", key)
	var names struct{ Names dump.Key }
	data, err := os.ReadFile(key)
	if err != nil || json.Unmarshal(data, &names) != nil || names.Names["namespace"]["namespace-000003"] != "shop" {
		t.Errorf("%v, %s", err, data)
	}
	for _, file := range []string{path, key} {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", file, err, info)
		}
	}
}

// TestU06_AnotherPlanIsTold: by its lines and with 1, or with 0 when any plan is expected.
func TestU06_AnotherPlanIsTold(t *testing.T) {
	t.Parallel()
	path := otherPlan(t)
	code, out, failures := ran(t, "", "replay", path)
	if code != cli.CodeFindings || failures != "" || !strings.HasPrefix(out, path+": another plan\n") ||
		!strings.Contains(out, "\nlaunches, - in the file, + now:\n  + launch gpu/slot-0 ") {
		t.Errorf("exit %d, %q\n%s", code, failures, out)
	}
	if code, _, _ := ran(t, "", "replay", path, "--expect", "any"); code != cli.CodeFine {
		t.Errorf("--expect any: exit %d", code)
	}
}

// TestU06_WithAnotherSetting: a replacement that saves a little is planned for when less has to be saved.
func TestU06_WithAnotherSetting(t *testing.T) {
	t.Parallel()
	s, err := enginetest.Parse("type small cpu=2 mem=8Gi od=0.097\ntype large cpu=4 mem=8Gi od=0.1\npool p\n" +
		"node n1 type=large pool=p capacity=on-demand\npod web node=n1 cpu=1")
	if err != nil {
		t.Fatal(err)
	}
	d, err := dump.Make(s, engine.Terms{MinSavingPercent: 5}, dump.All()...)
	if err != nil {
		t.Fatal(err)
	}
	d.Header = dump.Header{Program: "test", Source: dump.Rebuilt, Redaction: dump.RedactNone}
	path := storedDump(t, d)
	code, out, failures := ran(t, "", "replay", path, "--with", "consolidation-min-saving-percent=0")
	if code != cli.CodeFindings || failures != "" || !strings.Contains(out, "+ remove n1-claim (p) Underutilized") ||
		!strings.Contains(out, "\nwith consolidation-min-saving-percent=0\n") {
		t.Errorf("exit %d, %q\n%s", code, failures, out)
	}
	code, out, _ = ran(t, "", "replay", path, "--with", "consolidation-min-saving-percent=0", "--with",
		"node-overhead-price=100", "--with", "price-tolerance=10") // B-20: the same saving in dollars
	if code != cli.CodeFindings || !strings.Contains(out, ": 0.097/h on 1 node instead of 0.100/h on 1 node") {
		t.Errorf("exit %d\n%s", code, out)
	}
	if code, out, _ := ran(t, "", "replay", path, "--with", "consolidation-min-saving-percent=1", "--with",
		"node-overhead-price=100"); code != cli.CodeFine { // and a smaller share of what the node costs in all
		t.Errorf("exit %d\n%s", code, out)
	}
	if code, out, _ := ran(t, "", "replay", path, "--with", "consolidation-min-saving-percent=0", "--with",
		"consolidation-min-saving=0.5", "--with", "feature-gates=SpotToSpotConsolidation=true"); code != cli.CodeFine {
		t.Errorf("exit %d\n%s", code, out)
	}
}

// P-22, B-20, K-53: a dump made from objects holds the costs and limits that flags of the controller state. The other
// commands that plan take these flags, too.
func TestP22_AllThatPlansTakesTheCosts(t *testing.T) {
	t.Parallel()
	d := understood(t, dumped(t, "--price-tolerance", "7", "--node-overhead-price", "0.03", "--max-nodes", "8",
		"--max-node-claims-hard", "9"))
	if d.Snapshot.MaxNodes != 8 || d.Snapshot.MaxClaims != 9 {
		t.Errorf("the whole cluster may have %d nodes and %d NodeClaims, want 8 and 9", d.Snapshot.MaxNodes,
			d.Snapshot.MaxClaims)
	}
	for _, pool := range d.Snapshot.Pools {
		if pool.PriceTolerance != 7 || pool.NodeOverheadPrice.String() != "0.030" {
			t.Errorf("pool %s has a tolerance of %d %% and an overhead of %s", pool.Name, pool.PriceTolerance,
				pool.NodeOverheadPrice)
		}
	}
	for _, args := range [][]string{
		{"top", "-f", "../../examples/simulate"}, {"status", "-f", "../../examples/simulate"},
		{"explain", "pod", "ml/train-2", "-f", "../../examples/simulate"},
		{"policy", "check", "-f", "../../examples/policycheck"},
		{"dump", "-f", "../../examples/simulate", "-o", filepath.Join(t.TempDir(), "dump.gz")},
	} {
		for _, setting := range []string{"--price-tolerance=101", "--node-overhead-price=1000001", "--max-nodes=-1"} {
			flag, _, _ := strings.Cut(setting, "=")
			code, _, failures := ran(t, "", append(args, setting)...)
			if code != cli.CodeFailed || !strings.Contains(failures, flag) {
				t.Errorf("%s %s: exit code %d, %q", args, setting, code, failures)
			}
		}
	}
}

// TestU06_ReplayExplains a pod and a node as explain does.
func TestU06_ReplayExplains(t *testing.T) {
	t.Parallel()
	path := dumped(t, "--redact", "none")
	_, want, _ := ran(t, "", "explain", "pod", "ml/train-2", "-f", "../../examples/simulate")
	want, _, _ = strings.Cut(want, "\n\nobjects:")
	code, out, failures := ran(t, "", "replay", path, "--explain", "pod/ml/train-2")
	if code != cli.CodeFine || failures != "" || !strings.HasSuffix(out, want+"\n") ||
		!strings.Contains(want, "HardLimitNodes") {
		t.Errorf("exit %d, %q\n%s\nwant\n%s", code, failures, out, want)
	}
	own := filepath.Join(t.TempDir(), "dump.gz")
	if code, _, failures := ran(t, "", "dump", "-f", "../../examples/explain", "-o", own, "--redact",
		"none"); code != 0 {
		t.Fatal(failures)
	}
	if _, out, _ := ran(t, "", "replay", own, "--explain", "node/n1"); !strings.Contains(out,
		"\nnode n1 stays, although Underutilized: PodDisruptionBudget\n") {
		t.Error(out)
	}
}

// TestU06_ADumpBecomesATest: the script has the plan of the dump; what scripts cannot say is named, and ends it.
func TestU06_ADumpBecomesATest(t *testing.T) {
	t.Parallel()
	code, out, failures := ran(t, "", "replay", otherPlan(t), "--script")
	const want = "provision\ntype m cpu=2000m mem=8589934592 pods=110 zones=a od=0.100 arch=amd64 os=linux\n" +
		"namespace default\npool gpu hard.nodes=2\npod train-0 ns=ml cpu=1500m\npod train-1 ns=ml cpu=1500m\n" +
		"pod train-2 ns=ml cpu=1500m\n----\nlaunch gpu/slot-0 m zone=a on-demand 0.100/h: ml/train-0\n" +
		"launch gpu/slot-1 m zone=a on-demand 0.100/h: ml/train-1\n" +
		"unplaced ml/train-2: pool gpu: nodes 2 of 2 (hard limit)\n"
	if code != cli.CodeFine || failures != "" || out != want {
		t.Errorf("exit %d, %q\n%s", code, failures, out)
	}
	path := filepath.Join(t.TempDir(), "dump.gz")
	if code, _, failures := ran(t, "", "dump", "-f", "../../examples/status", "-o", path); code != cli.CodeFine {
		t.Fatal(failures)
	}
	code, out, failures = ran(t, "", "replay", path, "--script")
	if code != cli.CodeFailed || out != "" ||
		!strings.HasPrefix(failures, "joinerctl: --script: scripts cannot say:\n") ||
		!strings.Contains(failures, "\njoinerctl: pool pool-000001: no catalogue\n") {
		t.Errorf("exit %d, %q, %q", code, out, failures)
	}
}

// TestU22_TheSameDump: the same objects in any order are the same bytes.
func TestU22_TheSameDump(t *testing.T) {
	t.Parallel()
	_, first, _ := ran(t, "", "dump", "-f", "../../examples/simulate/pools.yaml", "-f",
		"../../examples/simulate/workloads.yaml", "--now", planned)
	_, second, _ := ran(t, "", "dump", "-f", "../../examples/simulate/workloads.yaml", "-f",
		"../../examples/simulate/pools.yaml", "--now", planned)
	if first == "" || lines(t, []byte(first)) != lines(t, []byte(second)) || first != second {
		a, b := strings.Split(lines(t, []byte(first)), "\n"), strings.Split(lines(t, []byte(second)), "\n")
		for i := range a {
			if a[i] != b[i] {
				t.Errorf("%.300s\n%.300s", a[i], b[i])
			}
		}
	}
}

// TestU18_DumpReadsOnly, and what it may not read it says, in the file too (U-19).
func TestU18_DumpReadsOnly(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "dump.gz")
	client := live(t, "persistentvolumes")
	code, _, failures := run(t, client, "", "dump", "--rebuild", "-o", path)
	d := understood(t, path)
	const lacks = "persistentvolumes, for want of the right to list them"
	if code != cli.CodeFailed || !strings.Contains(failures, lacks) ||
		!slices.Equal(d.Header.NotRead, []string{lacks}) || len(d.Snapshot.Pending) != 1 {
		t.Errorf("exit %d, %q, %+v", code, failures, d.Header)
	}
	for _, action := range client.Actions() {
		if !slices.Contains([]string{"get", "list", "watch"}, action.GetVerb()) {
			t.Errorf("it does %s", action.GetVerb())
		}
	}
	_, out, _ := ran(t, "", "replay", path)
	if !strings.Contains(out, "\nit lacks "+lacks+"\n") {
		t.Error(out)
	}
	path += "2"
	code, _, failures = run(t, live(t, "pods"), "", "dump", "--rebuild", "-o", path)
	if _, err := os.Stat(path); code != cli.CodeFailed || !strings.Contains(failures, "pods cannot be listed") ||
		err == nil {
		t.Errorf("exit %d, %q, %v", code, failures, err)
	}
}

// TestU36_DumpAndReplayNameWhatIsWrong.
func TestU36_DumpAndReplayNameWhatIsWrong(t *testing.T) {
	t.Parallel()
	path := otherPlan(t)
	text := file(t, "text", "hello")
	files := []string{"dump", "-f", "../../examples/simulate"}
	for want, args := range map[string][]string{
		`--redact is "some": it must be none, names or all`:            append(files, "--redact", "some"),
		`--max-size is "big": it must be a number of bytes above 0, `:  append(files, "--max-size", "big"),
		`--now is "noon": it must be a time, such as 2026-11-22T07:00`: append(files, "--now", "noon"),
		`--key is set and --redact is none: nothing is taken away`: append(files, "--redact", "none", "--key",
			"k"),
		`--key is "-": it must be a file of its own`:                   append(files, "--key", "-"),
		`--output: open /nowhere/at/all: `:                             append(files, "-o", "/nowhere/at/all"),
		`--expect is "luck": it must be same or any`:                   {"replay", path, "--expect", "luck"},
		`open /nowhere: `:                                              {"replay", "/nowhere"},
		text + `: it is no dump: it is not packed by gzip`:             {"replay", text},
		`--with: "x=1" is none of the flags that a plan depends on: w`: {"replay", path, "--with", "x=1"},
		`--with: consolidation-min-saving-percent is "100"; want 0 to`: {"replay", path, "--with",
			"consolidation-min-saving-percent=100"},
		`--with: consolidation-min-saving: price -1: want dollars per`: {"replay", path, "--with",
			"consolidation-min-saving=-1"},
		`--explain: "pod" is explained; want pod/NAMESPACE/NAME or no`: {"replay", path, "--explain", "pod"},
		`--explain: there is no node and no NodeClaim n1`:              {"replay", path, "--explain", "node/n1"},
		`--explain: there is no pod x in namespace ns`:                 {"replay", path, "--explain", "pod/ns/x"},
	} {
		code, out, failures := ran(t, "", args...)
		if code != cli.CodeFailed || out != "" || !strings.HasPrefix(failures, "joinerctl: "+want) {
			t.Errorf("%v: exit %d, %q, want %q", args, code, failures, want)
		}
	}
	code, out, failures := ran(t, "", append(files, "--max-size", "10")...)
	if code != cli.CodeFailed || out != "" || !strings.HasSuffix(failures, "--max-size is 10: nothing was written\n") {
		t.Errorf("exit %d, %q", code, failures)
	}
	var terminal bytes.Buffer
	if code := cli.Run(t.Context(), cli.Config{Out: &terminal, Err: &terminal, OutTerminal: true}, files); code != 2 ||
		terminal.String() != "joinerctl: a dump is packed, and no text for a terminal: name a file with -o, or pipe it\n" {
		t.Errorf("exit %d, %s", code, terminal.String())
	}
}
