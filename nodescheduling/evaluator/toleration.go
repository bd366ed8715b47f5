package evaluator

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// The operators that compare numbers. The oldest Kubernetes that this module is built with has no constants for them.
const (
	tolerationLt corev1.TolerationOperator = "Lt"
	tolerationGt corev1.TolerationOperator = "Gt"
)

// toleratesTaint says whether a toleration lets a pod past a taint. It is Kubernetes' own rule, which has another signature in each
// release; a test holds it to that of the newest. Comparisons count: where they are not enabled, the API server lets no pod have them.
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

// wholeNumber reads a number that is written as it is printed: no sign before a positive one, no zeros in front. What is no
// number reads as one that is printed otherwise.
func wholeNumber(text string) (int64, bool) {
	number, _ := strconv.ParseInt(text, 10, 64)
	return number, strconv.FormatInt(number, 10) == text
}
