package evaluator

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// The operators that compare numbers. The oldest Kubernetes release that this module builds with has no constants for
// them.
const (
	tolerationLt corev1.TolerationOperator = "Lt"
	tolerationGt corev1.TolerationOperator = "Gt"
)

// toleratesTaint reports whether a toleration tolerates a taint. It is a copy of Kubernetes' own rule, whose signature
// differs between releases; a test compares it with the newest one. Comparisons of numbers count: where they are not
// enabled, the API server refuses pods with them.
func toleratesTaint(t *corev1.Toleration, taint *corev1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
		return false
	}
	switch t.Operator {
	case "", corev1.TolerationOpEqual:
		return t.Value == taint.Value
	case corev1.TolerationOpExists:
		return true
	case tolerationLt, tolerationGt:
		limit, isLimit := wholeNumber(t.Value)
		value, isValue := wholeNumber(taint.Value)
		if !isLimit || !isValue {
			return false
		}
		if t.Operator == tolerationLt {
			return value < limit
		}
		return value > limit
	}
	return false
}

// wholeNumber parses a number in its usual spelling: no plus sign, no leading zeros. For anything else, the spelling
// differs, and it returns false.
func wholeNumber(text string) (int64, bool) {
	number, _ := strconv.ParseInt(text, 10, 64)
	return number, strconv.FormatInt(number, 10) == text
}
