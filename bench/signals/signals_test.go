package signals

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	rewrite = flag.Bool("rewrite", false, "write the page anew")
	keep    = flag.String("keep", "",
		"directory that keeps what the two sides have shown, and from which it is read when it is there")
)

const (
	root = "../.."
	page = root + "/docs/metrics-parity.md"
)

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// K-08 to K-11, K-14 to K-16, K-18, K-19: one scenario, first with Karpenter's controller and then with Joiner.
// Metrics, events, tables and messages of the log are compared. Every difference has an explanation, and every
// explanation a difference.
func TestK08_OneScenarioOnBothSides(t *testing.T) {
	explanations, err := ReadExplanations(read(t, "testdata/differences.txt"))
	if err != nil {
		t.Fatal(err)
	}
	events, err := ReadTold(read(t, "testdata/events.txt"))
	if err != nil {
		t.Fatal(err)
	}
	messages, err := ReadTold(read(t, "testdata/messages.txt"))
	if err != nil {
		t.Fatal(err)
	}
	theirs, ours, tests := karpenter(t), joiner(t), testsOf(t)
	rows := Compare(theirs, ours)
	for _, missing := range Unexplained(rows, explanations) {
		t.Errorf("a difference without an explanation: %s", missing)
	}
	for _, idle := range Idle(explanations) {
		t.Errorf("an explanation without a difference: %s", idle)
	}
	for _, fault := range slices.Concat(Faults(events, ours.Events, tests), Faults(messages, ours.Messages, tests)) {
		t.Error(fault)
	}
	for _, of := range []*Run{theirs, ours} {
		for _, missing := range Unlisted(events, of.Events) {
			t.Errorf("the event %s is not in testdata/events.txt", missing)
		}
	}
	for _, m := range messages {
		if m.How == ByRun && theirs.Messages[m.What] == 0 {
			t.Errorf("Karpenter did not log %q", m.What)
		}
	}
	if !maps.EqualFunc(theirs.Columns, ours.Columns, sameColumns) {
		t.Errorf("tables have the columns\n%v\nand\n%v", theirs.Columns, ours.Columns)
	}
	text := Page(rows, explanations, events, messages, theirs, ours, tests)
	if *rewrite {
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	had := read(t, page)
	for _, e := range explanations {
		if !e.Varies && !strings.Contains(had, e.Why) {
			t.Errorf("the page does not say of %s %s: %s", e.Name, e.Aspect, e.Why)
		}
	}
	if Lasting(had) != Lasting(text) {
		t.Errorf("the page is not what the runs have shown; make signals SIGNALS_FLAGS=-rewrite writes it:\n%s",
			firstDifference(Lasting(had), Lasting(text)))
	}
}

// sameColumns reports whether two headings have the same columns; the wide table of NodeClaims has another order
// (V-14).
func sameColumns(a, b string) bool {
	return slices.Equal(slices.Sorted(strings.FieldsSeq(a)), slices.Sorted(strings.FieldsSeq(b)))
}

func firstDifference(a, b string) string {
	one, other := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(one), len(other)) {
		if one[i] != other[i] {
			return "- " + one[i] + "\n+ " + other[i]
		}
	}
	return "one is longer"
}

// K-14: each reason for which Karpenter has a name is in the table of events.
func TestK14_EachReasonOfKarpentersIsInTheTable(t *testing.T) {
	t.Parallel()
	events := read(t, "testdata/events.txt")
	directory, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}",
		"sigs.k8s.io/karpenter").Output()
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(strings.TrimSpace(string(directory)),
		"pkg/events/reason.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	reasons := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, is := n.(*ast.BasicLit); is && literal.Kind == token.STRING {
			reason, err := strconv.Unquote(literal.Value)
			if reasons++; err != nil || !strings.Contains("\n"+events, "\n"+reason+" ") {
				t.Errorf("%s is not in testdata/events.txt", literal.Value)
			}
		}
		return true
	})
	if reasons < 20 {
		t.Errorf("only %d reasons were found", reasons)
	}
}

var declared = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`)

// testsOf returns the tests of the repository, with their directories.
func testsOf(t *testing.T) map[string]string {
	t.Helper()
	tests := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := os.ReadFile(path)
		for _, found := range declared.FindAllSubmatch(content, -1) {
			tests[string(found[1])] = strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), root+"/")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests
}

func scraped(t *testing.T, text string) *Run {
	t.Helper()
	families, err := ReadMetrics(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return &Run{Rest: families, End: families}
}

// K-08: the comparison sees what differs: a metric that one side does not have, a type, a label, a value of a label, a
// value. It ignores what is new in each run.
func TestK08_WhatDiffersIsSeen(t *testing.T) {
	t.Parallel()
	theirs := scraped(t, `# TYPE karpenter_a counter
karpenter_a{nodepool="p",name="x"} 3
# TYPE karpenter_b gauge
karpenter_b{nodepool="p"} 1
# TYPE karpenter_c counter
karpenter_c{reason="drifted"} 1
# TYPE karpenter_d_seconds gauge
karpenter_d_seconds 5
# TYPE karpenter_e gauge
karpenter_e 1
# TYPE go_threads gauge
go_threads 7
`)
	ours := scraped(t, `# TYPE karpenter_a counter
karpenter_a{nodepool="p",name="y"} 4
# TYPE karpenter_b counter
karpenter_b{pool="p"} 1
# TYPE karpenter_c counter
karpenter_c{reason="empty"} 1
# TYPE karpenter_d_seconds gauge
karpenter_d_seconds 9
# TYPE go_threads gauge
go_threads 8
# TYPE joiner_own gauge
joiner_own 1
`)
	got := Unexplained(Compare(theirs, ours), nil)
	want := []string{"karpenter_a value: {nodepool=p}: 3, 4", "karpenter_b labels: [nodepool], [pool]",
		"karpenter_b series: Karpenter only: {nodepool=p}; Joiner only: {pool=p}", "karpenter_b type: gauge, counter",
		"karpenter_c series: Karpenter only: {reason=drifted}; Joiner only: {reason=empty}",
		"karpenter_e absent: Joiner has none"}
	if !slices.Equal(got, want) {
		t.Errorf("seen is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	all, err := ReadExplanations("# why\nkarpenter_a value more\nkarpenter_* type? other\nkarpenter_z absent none\n")
	if err != nil {
		t.Fatal(err)
	}
	if left := Unexplained(Compare(theirs, ours), all); len(left) != 4 {
		t.Errorf("without an explanation are %q", left)
	}
	if idle := Idle(all); !slices.Equal(idle, []string{"karpenter_z absent"}) {
		t.Errorf("explanations of nothing are %q", idle)
	}
	for _, wrong := range []string{"karpenter_a value", "karpenter_a size why"} {
		if _, err := ReadExplanations(wrong); err == nil {
			t.Errorf("%q is taken for an explanation", wrong)
		}
	}
}

// K-14, K-18: a list says that the run shows something, that a test shows it, or that it is never told. Each of these
// statements is checked.
func TestK14_AListIsHeldToWhatIsTold(t *testing.T) {
	t.Parallel()
	all, err := ReadTold(
		"# what\nA Normal Pod | run\nB Normal Pod | run\nC Normal Pod | TestThis\nD Normal Pod | TestThat\n" +
			"E Normal Pod | never: no\nlaunched nodeclaim | launched | run\n")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]int{"A Normal Pod": 1, "E Normal Pod": 1, "launched": 2, "F Normal Pod": 1}
	faults := Faults(all, shown, map[string]string{"TestThis": "here"})
	if len(faults) != 3 || !strings.HasPrefix(faults[0], "B ") || !strings.HasPrefix(faults[1], "D ") ||
		!strings.HasPrefix(faults[2], "E ") {
		t.Errorf("faults are %q", faults)
	}
	if missing := Unlisted(all, shown); !slices.Equal(missing, []string{"F Normal Pod", "launched"}) {
		t.Errorf("not in the list are %q", missing)
	}
	if _, err := ReadTold("A"); err == nil {
		t.Error("a line without a reason is taken")
	}
}
