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

	"github.com/joiner-autoscaler/joiner/charts"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

var rewrite = flag.Bool("rewrite-conditions", false,
	"write the matchConditions of the evaluator into the chart and the user's page")

// conditions returns the evaluator's matchConditions as a list in YAML, in lines that people can read.
func conditions(all []evaluator.MatchCondition) string {
	var b strings.Builder
	for _, c := range all {
		b.WriteString("- name: " + c.Name + "\n  expression: >-\n" + folded("    ", c.Expression))
	}
	return b.String()
}

// folded returns an expression as a folded scalar of YAML.
func folded(margin, expression string) string {
	const width = 128
	var b strings.Builder
	line := 0
	for word := range strings.FieldsSeq(expression) {
		switch {
		case line == 0:
			b.WriteString(margin)
			line = len(margin)
		case line+1+len(word) > width:
			b.WriteString("\n" + margin)
			line = len(margin)
		default:
			b.WriteString(" ")
			line++
		}
		b.WriteString(word)
		line += len(word)
	}
	return b.String() + "\n"
}

// automatic returns the chart's policies for the example of the user's page, as joiner-webhook prints them.
func automatic(t *testing.T) string {
	t.Helper()
	text, err := charts.AutomaticPolicies("joiner-webhook", map[string]any{"emergencyOverride": "Automatic",
		"groups": []any{map[string]any{
			"name": "ControlPlane",
			"labelSelector": map[string]any{
				"matchLabels": map[string]any{"node-role.kubernetes.io/control-plane": ""},
			},
			"authorizedUsers": []any{"system:kube-scheduler", "group:system:masters", "openshift-console/default"},
		}}})
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(strings.TrimPrefix(string(text), "\n---\n")), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.ReplaceAll(strings.Join(lines, "\n")+"\n", "\n\n", "\n")
}

// the evaluator writes for which requests the API server calls the webhook: in the chart, on the page, and
// in the manifest for files. With -rewrite-conditions they are written again.
func TestA16_TheMatchConditionsAreTheEvaluators(t *testing.T) {
	t.Parallel()
	indented := "  " + strings.ReplaceAll(strings.TrimSuffix(conditions(evaluator.MatchConditions()), "\n"), "\n",
		"\n  ") + "\n"
	block := regexp.MustCompile(`(?s)(  matchConditions: [^\n]*\n).*?(- name: templates\.)`)
	policies := regexp.MustCompile("(?s)<!-- automatic policies -->\n```yaml\n.*?```\n")
	for file, want := range map[string]func(string) string{
		"joiner-webhook/rules/conditions.yaml": func(string) string { return conditions(evaluator.MatchConditions()) },
		"joiner-webhook/rules/automatic.yaml": func(string) string {
			return conditions(evaluator.AutomaticConditions())
		},
		"joiner-webhook/rules/automatic-mutation.yaml": func(string) string {
			return "expression: >-\n" + folded("  ", evaluator.AutomaticMutation())
		},
		"../docs/control-plane-protection.md": func(page string) string {
			page = policies.ReplaceAllLiteralString(page, "<!-- automatic policies -->\n```yaml\n"+automatic(t)+
				"```\n")
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
			t.Errorf("%s has other conditions than the evaluator: run go test ./charts -run A16 -rewrite-conditions",
				file)
			continue
		}
		if err := os.WriteFile(file, []byte(wanted), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var read []admissionv1.MatchCondition
	if err := yaml.UnmarshalStrict([]byte(conditions(evaluator.MatchConditions())), &read); err != nil {
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
