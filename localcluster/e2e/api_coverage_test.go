package e2e

import (
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// recognisable is how many bytes of a rule's text a case must repeat to count as a case for that rule.
const recognisable = 45

// The proof asked for in docs/spec/api.md: no CEL rule without a case that it refuses. A rule is known by
// the longest piece of fixed text in its message.
func TestEveryRuleOfTheCRDsHasACaseThatItRefuses(t *testing.T) {
	t.Parallel()
	refusals := map[string][]string{}
	for _, file := range apiFiles(t) {
		kind, _ := file.Base["kind"].(string)
		for _, tc := range file.Cases {
			refusals[kind] = append(refusals[kind], tc.Refused)
		}
	}
	manifests, err := allManifests()
	if err != nil {
		t.Fatal(err)
	}
	rules := 0
	for name, content := range manifests {
		var manifest map[string]any
		if err := yaml.Unmarshal(content, &manifest); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if manifest["kind"] != "CustomResourceDefinition" {
			continue
		}
		kind := manifest["spec"].(map[string]any)["names"].(map[string]any)["kind"].(string)
		if _, ours := apiKinds()[kind]; !ours {
			continue
		}
		for _, text := range ruleTexts(manifest) {
			rules++
			if !strings.Contains(strings.Join(refusals[kind], "\n"), text[:min(len(text), recognisable)]) {
				t.Errorf("%s: no case is refused with %q", kind, text)
			}
		}
	}
	if rules == 0 {
		t.Error("no rules were found in the CRDs")
	}
}

// ruleTexts returns the longest fixed text of the message of every CEL rule in a document.
func ruleTexts(value any) []string {
	var texts []string
	switch value := value.(type) {
	case []any:
		for _, child := range value {
			texts = append(texts, ruleTexts(child)...)
		}
	case map[string]any:
		for key, child := range value {
			if key != "x-kubernetes-validations" {
				texts = append(texts, ruleTexts(child)...)
				continue
			}
			for _, rule := range child.([]any) {
				texts = append(texts, longestText(rule.(map[string]any)))
			}
		}
	}
	return texts
}

// longestText returns the message, or the longest string literal with a space in the message's expression. Those
// without a space are keys and fields.
func longestText(rule map[string]any) string {
	if message, ok := rule["message"].(string); ok {
		return message
	}
	expression, _ := rule["messageExpression"].(string)
	longest := ""
	for _, literal := range regexp.MustCompile(`'([^']*)'`).FindAllStringSubmatch(expression, -1) {
		text := strings.Trim(literal[1], "\" ")
		if strings.Contains(text, " ") && len(text) > len(longest) {
			longest = text
		}
	}
	return longest
}
