package translate

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
)

// Key returns the name in use now for a label that may be written by an alias (features 1.10). CSI drivers have names
// of their own for the zone, which no provider knows to put on a node to come.
func Key(label string) requirement.Key {
	switch label {
	case "beta.kubernetes.io/arch":
		return corev1.LabelArchStable
	case "beta.kubernetes.io/os":
		return corev1.LabelOSStable
	case corev1.LabelInstanceType:
		return corev1.LabelInstanceTypeStable
	case corev1.LabelFailureDomainBetaZone,
		"topology.ebs.csi.aws.com/zone", "topology.gke.io/zone", "topology.disk.csi.azure.com/zone", "topology.cinder.csi.openstack.org/zone":
		return corev1.LabelTopologyZone
	case corev1.LabelFailureDomainBetaRegion:
		return corev1.LabelTopologyRegion
	}
	return requirement.Key(label)
}

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
