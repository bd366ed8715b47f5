package convert

import (
	"encoding/json"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterv1beta1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1beta1"
)

// The consolidation policies. whenEmpty is one of both versions.
const (
	whenEmpty                = karpenterv1beta1.ConsolidationPolicyWhenEmpty
	whenUnderutilized        = karpenterv1beta1.ConsolidationPolicyWhenUnderutilized
	whenEmptyOrUnderutilized = string(karpenterv1.ConsolidationPolicyWhenEmptyOrUnderutilized)
)

const (
	// defaultExpireAfter and defaultConsolidateAfter are those of the CRDs. They are written out, since an API server sets
	// defaults before it converts and not after.
	defaultExpireAfter      = "720h"
	defaultConsolidateAfter = "0s"
	never                   = "Never"
)

// nodePoolUp: expireAfter moves into the template, the policy gets its new name, budgets and template keep their place;
// resources of the template do nothing and have none (V-22).
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
	setDefault(disruption, "consolidateAfter", never) // an empty node without a time was left alone
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

// nodePoolDown is the way back. v1beta1 knows no consolidateAfter with WhenUnderutilized but Never.
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

// defaultBudgets writes out the budgets that both versions have by default.
func defaultBudgets(disruption object) {
	setDefault(disruption, "budgets", []any{object{"nodes": "10%"}})
	budgets, _ := disruption["budgets"].([]any)
	for _, item := range budgets {
		if budget, isObject := item.(object); isObject {
			setDefault(budget, "nodes", "10%")
		}
	}
}

// timedConditions gives conditions of v1beta1 the time that v1 demands of them: that of the object.
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
