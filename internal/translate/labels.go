package translate

import (
	"github.com/joiner-autoscaler/joiner/autonodepolicy/fold"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
)

// Key returns the name in use now for a label that may be written by an alias (features 1.10). CSI drivers have names
// of their own for the zone, which no provider knows to put on a node to come.
func Key(label string) requirement.Key { return fold.Canonical(label) }

// addLabels puts labels into the map under their names in use now. A label that stands there by that name already
// wins over its alias; otherwise the new value wins.
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
