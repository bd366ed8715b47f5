package charts_test

import (
	"flag"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

var rewrite = flag.Bool("rewrite-conditions", false, "write the matchConditions of the evaluator into the chart and the user's page")

// conditions are the matchConditions of the evaluator as a list in YAML, in lines that people can read.
func conditions() string {
	const width = 128
	var b strings.Builder
	for _, c := range evaluator.MatchConditions() {
		b.WriteString("- name: " + c.Name + "\n  expression: >-\n   ")
		line := 3
		for word := range strings.FieldsSeq(c.Expression) {
			if line+1+len(word) > width {
				b.WriteString("\n   ")
				line = 3
			}
			b.WriteString(" " + word)
			line += 1 + len(word)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// what the API server calls the webhook for is written by the evaluator, in the chart and on the page, and so in the manifest for files.
// With -rewrite-conditions they are written anew.
func TestA16_TheMatchConditionsAreTheEvaluators(t *testing.T) {
	t.Parallel()
	indented := "  " + strings.ReplaceAll(strings.TrimSuffix(conditions(), "\n"), "\n", "\n  ") + "\n"
	block := regexp.MustCompile(`(?s)(  matchConditions: [^\n]*\n).*?(- name: templates\.)`)
	for file, want := range map[string]func(string) string{
		"joiner-webhook/rules/conditions.yaml": func(string) string { return conditions() },
		"../docs/control-plane-protection.md": func(page string) string {
			return block.ReplaceAllStringFunc(page, func(found string) string {
				parts := block.FindStringSubmatch(found)
				return parts[1] + indented + parts[2]
			})
		},
	} {
		content, err := os.ReadFile(file)
		if err != nil && !*rewrite {
			t.Fatal(err)
		}
		wanted := want(string(content))
		if wanted == string(content) {
			continue
		}
		if !*rewrite {
			t.Errorf("%s has other conditions than the evaluator: run go test ./charts -run A16 -rewrite-conditions", file)
			continue
		}
		if err := os.WriteFile(file, []byte(wanted), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var read []admissionv1.MatchCondition
	if err := yaml.UnmarshalStrict([]byte(conditions()), &read); err != nil {
		t.Fatal(err)
	}
	var want []admissionv1.MatchCondition
	for _, c := range evaluator.MatchConditions() {
		want = append(want, admissionv1.MatchCondition{Name: c.Name, Expression: c.Expression})
	}
	if !reflect.DeepEqual(read, want) {
		t.Errorf("the list in YAML reads as %v, want %v", read, want)
	}
}
