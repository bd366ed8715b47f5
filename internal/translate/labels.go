package translate

import (
	"github.com/joiner-autoscaler/joiner/autonodepolicy/fold"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
)

// Key returns the current name of a label that may be an alias (features 1.10). CSI drivers have labels of their own
// for the zone; no provider puts these on planned nodes.
func Key(label string) requirement.Key { return fold.Canonical(label) }

// addLabels puts labels into the map under their current names. An existing entry wins over an alias of it; otherwise
// the new value wins.
func addLabels(into, labels map[string]string) {
	for label, value := range labels {
		key := string(Key(label))
		if key != label {
			if _, given := labels[key]; given {
				continue
			}
		}
		into[key] = value
	}
}
