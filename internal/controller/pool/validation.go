package pool

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// validate reports what is wrong with a pool's specification. The CRD refuses nearly all of it. This catches what an
// older CRD let through, and what only shows in combination. set is the pool's requirements, invalid what
// cannot be understood in them.
func validate(pool *karpenterv1.NodePool, set requirement.Set, invalid error,
	offered catalog.Catalog) condition.Value {
	template := pool.Spec.Template
	faults := []error{invalid, contradictions(set), translate.LimitsError(pool),
		fits("metadata.name", pool.Name, karpenterv1.NodePoolLabelKey)}
	if class := template.Spec.NodeClassRef; class != nil {
		faults = append(faults, fits("spec.template.spec.nodeClassRef.name", class.Name,
			translate.NodeClassLabel(class)))
	}
	for _, r := range template.Spec.Requirements {
		faults = append(faults, restricted("spec.template.spec.requirements: key", r.Key, offered))
	}
	for key := range template.ObjectMeta.Labels {
		faults = append(faults, restricted("spec.template.metadata.labels:", key, offered))
	}
	faults = append(faults, repeated("spec.template.spec.taints", template.Spec.Taints, nil),
		repeated("spec.template.spec.startupTaints", template.Spec.StartupTaints, template.Spec.Taints))
	var texts []string
	for _, fault := range faults {
		if fault != nil {
			texts = append(texts, strings.ReplaceAll(fault.Error(), "\n", "; "))
		}
	}
	if len(texts) == 0 {
		return condition.True(karpenterv1.ConditionTypeValidationSucceeded, "ValidationSucceeded", "")
	}
	slices.Sort(texts)
	return condition.False(karpenterv1.ConditionTypeValidationSucceeded, "NodePoolValidationFailed",
		strings.Join(slices.Compact(texts), "; "))
}

// within reports whether the limits of a static pool allow its replicas (L-17).
func within(pool *karpenterv1.NodePool) condition.Value {
	const kind = karpenterv1.ConditionTypeReplicasWithinLimits
	value, err := translate.Pool(resources.NewSpace(), pool)
	if err != nil {
		return condition.Unknown(kind, "LimitsInvalid", "the limits cannot be understood")
	}
	target, exceeded := value.Limits.Target(value.Replicas)
	if exceeded == nil {
		return condition.True(kind, "WithinLimits", "")
	}
	which := "soft"
	if exceeded.Hard {
		which = "hard"
	}
	return condition.False(kind, "NodeLimitExceeded",
		fmt.Sprintf("replicas %d, limit %d (%s limit): the pool runs %d nodes", value.Replicas, exceeded.Limit, which,
			target))
}

// fits refuses a name that is too long for the label in which nodes have it. Names may be longer than values of
// labels, and the API server would refuse each NodeClaim.
func fits(field, name, label string) error {
	if len(name) <= validation.LabelValueMaxLength {
		return nil
	}
	return fmt.Errorf("%s is %q, of %d characters: want at most %d, since nodes have it as their label %s", field,
		name, len(name), validation.LabelValueMaxLength, label)
}

// contradictions names the keys for which requirements and labels together allow no value.
func contradictions(set requirement.Set) error {
	keys := set.EmptyKeys()
	if len(keys) == 0 {
		return nil
	}
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = string(key)
	}
	return fmt.Errorf("requirements and labels contradict each other for %s: no value is allowed",
		strings.Join(names, ", "))
}

// restricted refuses labels that only the controller or the API server may set.
func restricted(field, key string, offered catalog.Catalog) error {
	domain, _, found := strings.Cut(key, "/")
	switch {
	case key == corev1.LabelHostname:
		return fmt.Errorf("%s %s is restricted: the name of a node is not known before it exists", field, key)
	case key == karpenterv1.CapacityTypeLabelKey, key == karpenterv1.NodePoolLabelKey,
		offered.WellKnown[requirement.Key(key)]:
		return nil
	case found && (domain == karpenterv1.Group || strings.HasSuffix(domain, "."+karpenterv1.Group)):
		return fmt.Errorf("%s %s is restricted: of the domain %s only %s may be used", field, key, karpenterv1.Group,
			karpenterv1.CapacityTypeLabelKey)
	}
	return nil
}

// repeated names taints whose key and effect occur twice, also across both lists.
func repeated(field string, taints, others []corev1.Taint) error {
	var faults []error
	for i, taint := range taints {
		same := func(t corev1.Taint) bool { return t.MatchTaint(&taint) }
		if slices.ContainsFunc(taints[:i], same) || slices.ContainsFunc(others, same) {
			faults = append(faults, fmt.Errorf("%s: taint %s stands twice with the effect %s", field, taint.Key,
				taint.Effect))
		}
	}
	return errors.Join(faults...)
}
