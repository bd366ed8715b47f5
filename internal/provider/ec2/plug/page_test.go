package plug

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
)

// docs is where the pages for users are, and top the repository.
const (
	top  = "../../../../"
	docs = top + "docs/"
)

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// E-80: the table of settings on docs/aws.md has every flag with its default and the chart's value for it, and no
// other.
func TestThePageHasEverySetting(t *testing.T) {
	t.Parallel()
	page, chart := read(t, docs+"aws.md"), read(t, top+"charts/joiner/templates/deployment.yaml")
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	New().Flags(flags)
	rows := map[string][]string{}
	for _, row := range regexp.MustCompile(
		"(?m)^\\| `--([a-z-]+)` \\| (.*?) \\| (.*?) \\| (.+) \\|$").FindAllStringSubmatch(page, -1) {
		rows[row[1]] = row[2:]
	}
	flags.VisitAll(func(f *pflag.Flag) {
		row, found := rows[f.Name]
		delete(rows, f.Name)
		if !found {
			t.Errorf("docs/aws.md has no row for --%s", f.Name)
			return
		}
		value := "–"
		passed := regexp.MustCompile(`--` + f.Name + `=\{\{ \.(\w+) \}\}`).FindStringSubmatch(
			chart)
		if passed != nil {
			value = "`aws." + passed[1] + "`"
		}
		byDefault := "–"
		if f.DefValue != "" {
			byDefault = "`" + f.DefValue + "`"
		}
		if row[0] != value || row[1] != byDefault {
			t.Errorf("docs/aws.md: --%s has chart value %s and default %s, want %s and %s", f.Name, row[0], row[1],
				value, byDefault)
		}
	})
	for name := range rows {
		t.Errorf("docs/aws.md has a row for --%s, which does not exist", name)
	}
}

// E-80: the manifests of docs/aws.md are of the API as it is, and the metrics and controllers that it names exist.
func TestThePageShowsWhatThereIs(t *testing.T) {
	t.Parallel()
	page := read(t, docs+"aws.md")
	objects := map[string]any{"EC2NodeClass": &awsv1.EC2NodeClass{}, "NodePool": &karpenterv1.NodePool{}}
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(page, -1) {
		kind := regexp.MustCompile(`(?m)^kind: (\w+)$`).FindStringSubmatch(block[1])
		if kind == nil || objects[kind[1]] == nil {
			t.Errorf("a manifest of no kind that is known here:\n%s", block[1])
			continue
		}
		if err := yaml.UnmarshalStrict([]byte(block[1]), objects[kind[1]]); err != nil {
			t.Errorf("the manifest of %s: %v", kind[1], err)
		}
		delete(objects, kind[1])
	}
	if len(objects) > 0 {
		t.Errorf("no manifest of %v", objects)
	}
	code := sourceOf(t, ".")
	for _, name := range regexp.MustCompile(
		"`((?:joiner_ec2|karpenter)_[a-z0-9_]+|ec2\\.[a-z]+)").FindAllStringSubmatch(page, -1) {
		if !strings.Contains(code, `"`+name[1]+`"`) {
			t.Errorf("docs/aws.md names %s, which does not exist", name[1])
		}
	}
	for _, name := range regexp.MustCompile(
		`"((?:joiner_ec2|karpenter)_[a-z0-9_]+|ec2\.[a-z]+)"`).FindAllStringSubmatch(code, -1) {
		if !strings.Contains(page, "`"+name[1]) {
			t.Errorf("docs/aws.md does not name %s", name[1])
		}
	}
}

// E-81: each number of docs/aws-numbers.md stands in the code as the page quotes it, and each flag that it names
// exists.
func TestTheNumbersAreThoseOfTheCode(t *testing.T) {
	t.Parallel()
	page := read(t, docs+"aws-numbers.md")
	sources := map[string]string{}
	found := 0
	for _, row := range regexp.MustCompile("(?m)^\\|.*\\| `([a-z0-9/]+): (.+)` \\|$").FindAllStringSubmatch(page, -1) {
		where := map[string]string{"ec2": "..", "provider": "../..",
			"controller/claim": "../../../controller/claim"}[row[1]]
		if where == "" {
			where = "../" + row[1]
		}
		if sources[where] == "" {
			sources[where] = sourceOf(t, where)
		}
		if !strings.Contains(sources[where], row[2]) {
			t.Errorf("docs/aws-numbers.md quotes %q of package %s, where it does not stand", row[2], row[1])
		}
		found++
	}
	if rows := len(regexp.MustCompile(`(?m)^\|`).FindAllString(page, -1)) - 2*
		len(regexp.MustCompile(`(?m)^\|---`).FindAllString(page, -1)); found != rows || found < 50 {
		t.Errorf("%d numbers are found in %d rows: does the test still read them?", found, rows)
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	New().Flags(flags)
	for _, name := range regexp.MustCompile("`--([a-z-]+)`").FindAllStringSubmatch(page, -1) {
		if flags.Lookup(name[1]) == nil {
			t.Errorf("docs/aws-numbers.md names --%s, which does not exist", name[1])
		}
	}
}

// sourceOf returns the code of a package, with single spaces.
func sourceOf(t *testing.T, folder string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range names {
		if !strings.HasSuffix(name, "_test.go") {
			all.WriteString(read(t, name))
		}
	}
	return regexp.MustCompile(`[ \t]+`).ReplaceAllString(all.String(), " ")
}
