package pack

import "github.com/joiner-autoscaler/joiner/internal/engine/requirement"

// mergeCustom joins a pod's demands on the pool's custom labels to those of a node; false when nothing would be left.
func mergeCustom(custom, demands requirement.Set) (requirement.Set, bool) {
	if demands.Len() == 0 {
		return custom, true
	}
	merged := custom.And(demands)
	return merged, len(merged.EmptyKeys()) == 0
}
