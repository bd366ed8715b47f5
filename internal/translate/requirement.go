package translate

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/autonodepolicy/fold"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
)

// Requirements converts the requirements of a pool or a claim. Entries for one key are intersected. Contradicting
// entries leave no value for the key (see requirement.Set.EmptyKeys), which is not an error. An entry that cannot be
// understood leaves no value either, and the error names it. The minimum counts are ordered by key; of several for one
// key the largest counts.
func Requirements(list []karpenterv1.NodeSelectorRequirementWithMinValues) (requirement.Set, []cluster.MinValues,
	error) {
	entries := make([]fold.Requirement, len(list))
	for i, entry := range list {
		entries[i] = fold.Requirement{
			Key: entry.Key, Operator: fold.Operator(entry.Operator), Values: entry.Values, MinValues: entry.MinValues,
		}
	}
	set, counts, err := fold.Of(entries)
	var minValues []cluster.MinValues
	for _, count := range counts {
		minValues = append(minValues, cluster.MinValues{Key: count.Key, Count: count.Count})
	}
	return set, minValues, err
}

// requirementToAPI writes a requirement in the API's vocabulary.
func requirementToAPI(r requirement.Requirement) []karpenterv1.NodeSelectorRequirementWithMinValues {
	var list []karpenterv1.NodeSelectorRequirementWithMinValues
	for _, term := range r.Terms() {
		list = append(list, karpenterv1.NodeSelectorRequirementWithMinValues{
			Key: string(r.Key()), Operator: corev1.NodeSelectorOperator(term.Operator), Values: term.Values,
		})
	}
	return list
}

// nodeTerm converts one term of a node selector. As in Kubernetes, no node satisfies an empty term.
func nodeTerm(term corev1.NodeSelectorTerm) (cluster.Alternative, error) {
	if len(term.MatchExpressions) == 0 && len(term.MatchFields) == 0 {
		return impossible(), nil
	}
	var errs []error
	parsed := make([]requirement.Requirement, 0, len(term.MatchExpressions))
	for _, expression := range term.MatchExpressions {
		r, err := requirement.New(Key(expression.Key), requirement.Operator(expression.Operator), expression.Values...)
		errs = append(errs, err)
		parsed = append(parsed, r)
	}
	names := requirement.Any(metav1.ObjectNameField)
	for _, field := range term.MatchFields {
		r, err := requirement.New(metav1.ObjectNameField, requirement.Operator(field.Operator), field.Values...)
		if err == nil && field.Key != metav1.ObjectNameField {
			err = fmt.Errorf("matchFields key %q: only %s is known", field.Key, metav1.ObjectNameField)
		}
		errs = append(errs, err)
		names = names.And(r)
	}
	if err := errors.Join(errs...); err != nil {
		return impossible(), err
	}
	return cluster.Alternative{Labels: requirement.NewSet(parsed...), Names: names}, nil
}

// impossible is a node selection that no node satisfies.
func impossible() cluster.Alternative {
	return cluster.Alternative{
		Labels: requirement.NewSet(requirement.Nothing(cluster.LabelHostname)),
		Names:  requirement.Nothing(metav1.ObjectNameField),
	}
}

// selector converts a label selector on pods or namespaces. extra are further requirements, such as those of
// matchLabelKeys; repeating those of the selector changes nothing.
func selector(from *metav1.LabelSelector, extra ...requirement.Requirement) (cluster.Selector, error) {
	if from == nil {
		return cluster.Selector{}, nil
	}
	parsed := slices.Clone(extra)
	for label, value := range from.MatchLabels {
		parsed = append(parsed, requirement.OneOf(requirement.Key(label), value))
	}
	for _, expression := range from.MatchExpressions {
		switch expression.Operator {
		case metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists,
			metav1.LabelSelectorOpDoesNotExist:
		default:
			return cluster.Selector{},
				fmt.Errorf("label selector on %q: operator %q is none of In, NotIn, Exists, DoesNotExist",
					expression.Key, expression.Operator)
		}
		r, err := requirement.New(requirement.Key(expression.Key), requirement.Operator(expression.Operator),
			expression.Values...)
		if err != nil {
			return cluster.Selector{}, fmt.Errorf("label selector: %w", err)
		}
		parsed = append(parsed, r)
	}
	return cluster.Selector{Enabled: true, Labels: requirement.NewSet(parsed...)}, nil
}

// ownValues returns, for each of the keys that labels has, the requirement to have the same value, or with except
// any other one (matchLabelKeys and mismatchLabelKeys).
func ownValues(labels map[string]string, keys []string, except bool) []requirement.Requirement {
	var list []requirement.Requirement
	for _, key := range keys {
		value, present := labels[key]
		if !present {
			continue
		}
		r := requirement.OneOf(requirement.Key(key), value)
		if except {
			r, _ = requirement.New(requirement.Key(key), requirement.NotIn, value)
		}
		list = append(list, r)
	}
	return list
}
