package pages

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// read returns the texts of files of the repository, one after another.
func read(t *testing.T, names ...string) string {
	t.Helper()
	var all strings.Builder
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		all.Write(content)
		all.WriteByte('\n')
	}
	return all.String()
}

// makefile has what make knows: its targets, and the variables that a caller may set.
type makefile struct{ targets, variables map[string]bool }

func parseMakefile(source string) makefile {
	m := makefile{map[string]bool{}, map[string]bool{}}
	for _, found := range regexp.MustCompile(`(?m)^([a-z][A-Za-z0-9_ -]*):(?:[^=]|$)`).FindAllStringSubmatch(source,
		-1) {
		for target := range strings.FieldsSeq(found[1]) {
			m.targets[target] = true
		}
	}
	for _, found := range regexp.MustCompile(`(?m)\$\((?:if |or )?\$?\(?([A-Z][A-Z0-9_]*)|^([A-Z][A-Z0-9_]*) *[?:]?=`).
		FindAllStringSubmatch(source, -1) {
		m.variables[found[1]+found[2]] = true
	}
	return m
}

var (
	making   = regexp.MustCompile("(?m)(?:`|^(?:\\$ )?)make ((?:[A-Za-z0-9_/=.-]+ ?)+)")
	assigned = regexp.MustCompile(`^([A-Z][A-Z0-9_]*)=`)
)

// wrongMakes returns the targets and variables in a page's commands that make does not know. Targets below bin are
// left to the tests that build them.
func wrongMakes(name, page string, known makefile) (wrong []string, seen int) {
	for _, found := range making.FindAllStringSubmatch(page, -1) {
		for word := range strings.FieldsSeq(found[1]) {
			seen++
			if variable := assigned.FindStringSubmatch(word); variable != nil {
				if !known.variables[variable[1]] {
					wrong = append(wrong, name+": make knows no variable "+variable[1])
				}
			} else if !strings.HasPrefix(word, "bin/") && !strings.HasPrefix(word, "-") && !known.targets[word] {
				wrong = append(wrong, name+": make knows no target "+word)
			}
		}
	}
	return wrong, seen
}

// U-12: make has all targets that pages tell their readers to make.
func TestU12_TargetsOfPagesExist(t *testing.T) {
	known := parseMakefile(read(t, "Makefile", "bench/bench.mk", "localcluster/localcluster.mk"))
	all := 0
	for name, p := range pages(t) {
		wrong, seen := wrongMakes(name, string(p.source), known)
		all += seen
		for _, problem := range wrong {
			t.Error(problem)
		}
	}
	const fewest = 50
	if all < fewest {
		t.Errorf("only %d words after make were found", all)
	}
	if wrong, _ := wrongMakes("a page", "`make dmeo` and `make demo NOTHING_LIKE_IT=1`", known); len(wrong) != 2 {
		t.Errorf("of two mistakes these were found: %q", wrong)
	}
}

var (
	literal = regexp.MustCompile(`"([a-z][a-z0-9_]*)"`)
	metric  = regexp.MustCompile("`((?:joiner|karpenter)_[a-z0-9_]+)(?:[{`])")
)

// isMetric reports whether the sources have the strings of a metric's name: the whole name, or what follows the
// program's name, or what follows that and a subsystem.
func isMetric(name string, texts map[string]bool) bool {
	if texts[name] {
		return true
	}
	_, rest, _ := strings.Cut(name, "_")
	if texts[rest] {
		return true
	}
	for subsystem, after, found := strings.Cut(rest, "_"); found; {
		if texts[subsystem] && texts[after] {
			return true
		}
		var word string
		if word, after, found = strings.Cut(after, "_"); found {
			subsystem += "_" + word
		}
	}
	return false
}

// U-12: the metrics that pages name are in the sources.
func TestU12_MetricsOfPagesExist(t *testing.T) {
	known := map[string]bool{}
	for _, name := range tracked(t, ".go") {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, found := range literal.FindAllStringSubmatch(read(t, name), -1) {
			known[found[1]] = true
		}
	}
	seen := 0
	for name, p := range pages(t) {
		if strings.HasPrefix(name, "docs/spec/") { // what must hold one day, and exists in part
			continue
		}
		for _, found := range metric.FindAllSubmatch(p.source, -1) {
			seen++
			one := string(found[1])
			if strings.HasPrefix(one, "karpenter_kwok_sh_") {
				continue // a label of Kubernetes, as the label of a series has its name
			}
			if !isMetric(one, known) {
				t.Errorf("%s names the metric %s, which is not in the sources", name, one)
			}
		}
	}
	const fewest = 30
	if seen < fewest {
		t.Errorf("only %d metrics were found", seen)
	}
	if isMetric("joiner_pods_wating", known) {
		t.Error("a misspelt metric passes")
	}
}
