package convert

import (
	"encoding/json"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterv1beta1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1beta1"
)

// The consolidation policies. Both versions have whenEmpty.
const (
	whenEmpty                = karpenterv1beta1.ConsolidationPolicyWhenEmpty
	whenUnderutilized        = karpenterv1beta1.ConsolidationPolicyWhenUnderutilized
	whenEmptyOrUnderutilized = string(karpenterv1.ConsolidationPolicyWhenEmptyOrUnderutilized)
)

const (
	// defaultExpireAfter and defaultConsolidateAfter are the defaults of the CRDs. Conversion must write them out: an
	// API server sets defaults before it converts, not after.
	defaultExpireAfter      = "720h"
	defaultConsolidateAfter = "0s"
	never                   = "Never"
)

// nodePoolUp moves expireAfter into the template and renames the policy. Budgets and template keep their place.
// Resources of the template have no effect and no place in v1 (V-22).
func nodePoolUp(o, annotations object) *Problem {
	timedConditions(o)
	if status, isObject := child(o, "status"); isObject {
		setDefault(status, "nodes", json.Number("0"))
	}
	spec := at(o, "spec")
	disruption, isObject := child(spec, "disruption")
	if !isObject {
		return nil // the schema says what is wrong
	}
	setDefault(disruption, "consolidationPolicy", whenUnderutilized)
	if disruption["consolidationPolicy"] == whenUnderutilized {
		disruption["consolidationPolicy"] = whenEmptyOrUnderutilized
		setDefault(disruption, "consolidateAfter", defaultConsolidateAfter)
	}
	setDefault(disruption, "consolidateAfter", never) // v1beta1 leaves empty nodes alone without it
	defaultBudgets(disruption)
	template := at(spec, "template", "spec")
	if template == nil {
		return nil
	}
	setDefault(disruption, "expireAfter", defaultExpireAfter)
	template["expireAfter"] = disruption["expireAfter"]
	delete(disruption, "expireAfter")
	delete(template, "resources")
	return specUp("spec.template.spec", template, annotations)
}

// nodePoolDown is the reverse of nodePoolUp. With WhenUnderutilized, v1beta1 allows only Never as consolidateAfter.
func nodePoolDown(o, kept object) {
	spec := at(o, "spec")
	disruption, isObject := child(spec, "disruption")
	if !isObject {
		return
	}
	setDefault(disruption, "consolidateAfter", defaultConsolidateAfter)
	if disruption["consolidationPolicy"] != whenEmpty {
		disruption["consolidationPolicy"] = whenUnderutilized
		if disruption["consolidateAfter"] != never {
			delete(disruption, "consolidateAfter")
		}
	}
	defaultBudgets(disruption)
	budgets, _ := disruption["budgets"].([]any)
	for _, item := range budgets {
		budget, _ := item.(object)
		if number, isNumber := budget["nodes"].(json.Number); isNumber {
			budget["nodes"] = number.String()
		}
	}
	if template := at(spec, "template", "spec"); template != nil {
		setDefault(template, "expireAfter", defaultExpireAfter)
		disruption["expireAfter"] = template["expireAfter"]
		delete(template, "expireAfter")
		specDown(template, kept)
	}
}

// defaultBudgets writes out the default budgets of both versions.
func defaultBudgets(disruption object) {
	setDefault(disruption, "budgets", []any{object{"nodes": "10%"}})
	budgets, _ := disruption["budgets"].([]any)
	for _, item := range budgets {
		if budget, isObject := item.(object); isObject {
			setDefault(budget, "nodes", "10%")
		}
	}
}

// timedConditions sets the missing time of conditions, which v1 requires, to the creation time of the object.
func timedConditions(o object) {
	conditions, _ := at(o, "status")["conditions"].([]any)
	for _, item := range conditions {
		if condition, isObject := item.(object); isObject {
			created := text(at(o, "metadata"), "creationTimestamp")
			if created == "" {
				created = "1970-01-01T00:00:00Z"
			}
			setDefault(condition, "lastTransitionTime", created)
		}
	}
}
