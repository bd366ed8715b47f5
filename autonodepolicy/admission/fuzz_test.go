package admission_test

import (
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/autonodepolicy/admission"
	"github.com/joiner-autoscaler/joiner/autonodepolicy/fold"
	"github.com/joiner-autoscaler/joiner/autonodepolicy/policy"
)

// FuzzClaimRule: for any policy, names of node classes and users, nothing panics, and none of their texts escapes from
// its literal. The meaning of the expressions is tested with the API server's own evaluation.
func FuzzClaimRule(f *testing.F) {
	f.Add("a", "In", "x", "default")
	f.Add("kubernetes.io/arch", "NotIn", "amd64", `'\`)
	f.Add("a", "Gt", "999999999999999999", "")
	f.Add("", "Near", "\x00'", "a' || true || 'b")
	f.Fuzz(func(t *testing.T, key, operator, value, name string) {
		entry := fold.Requirement{Key: key, Operator: fold.Operator(operator), Values: []string{value}}
		rule := admission.ClaimRule{Requirements: []fold.Requirement{entry},
			Classes: []policy.NodeClass{{Kind: "K", Name: name}}}
		protection, leftOut, err := rule.Protection()
		if valid := len(policy.Check(policy.Policy{Requirements: rule.Requirements})) == 0; valid != (err == nil) {
			t.Fatalf("the policy is valid: %t, error %v", valid, err)
		}
		if err != nil {
			return
		}
		if len(leftOut) > 0 {
			t.Fatalf("left out %v", leftOut)
		}
		var expressions []string
		for _, variable := range protection.Policy.Spec.Variables {
			expressions = append(expressions, variable.Expression)
		}
		for _, validation := range protection.Policy.Spec.Validations {
			expressions = append(expressions, validation.Expression)
		}
		for _, expression := range expressions {
			if rest := outsideOfLiterals(expression); strings.Contains(rest, "true || ") ||
				strings.Count(rest, "(") != strings.Count(rest, ")") {
				t.Fatalf("text got out of its literal: %s", expression)
			}
		}
		config := admission.Config{Operator: name, Operand: value, Strict: true}
		if list, err := admission.Policies(config); (err == nil) != (config.Validate() == nil) ||
			(err == nil) != (len(list) > 0) {
			t.Fatalf("%d policies, error %v", len(list), err)
		}
	})
}

// outsideOfLiterals returns an expression without the text between quotes.
func outsideOfLiterals(expression string) string {
	var b strings.Builder
	quoted, escaped := false, false
	for _, r := range expression {
		switch {
		case escaped:
			escaped = false
		case quoted && r == '\\':
			escaped = true
		case r == '\'':
			quoted = !quoted
		case !quoted:
			b.WriteRune(r)
		}
	}
	return b.String()
}
