package translate

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// attachPrefix begins the names of the resources that count volumes. A provider that knows how many volumes of a
// driver its machines take states it in their capacity.
const attachPrefix = "attachable-volumes-csi-"

// UnlimitedVolumes is the room for volumes of a driver on a node without a stated limit. It is needed because a
// missing component of a vector means no room. It is more than any node will ever attach, and sums over all nodes do
// not overflow.
const UnlimitedVolumes int64 = 1 << 30

// AttachResource returns the name of the resource that counts the volumes of a CSI driver on a node (P-07).
func AttachResource(driver string) string { return attachPrefix + driver }

// AttachLimited returns the CSI drivers for which amounts states a limit, sorted.
func AttachLimited(amounts resources.Amounts) []string {
	var drivers []string
	for name := range amounts {
		if driver, found := strings.CutPrefix(name, attachPrefix); found {
			drivers = append(drivers, driver)
		}
	}
	slices.Sort(drivers)
	return drivers
}

// AttachLimits returns how many volumes a node takes, by CSI driver; drivers without a limit are left out. node may be
// nil.
func AttachLimits(node *storagev1.CSINode) map[string]int64 {
	limits := map[string]int64{}
	if node == nil {
		return limits
	}
	for _, driver := range node.Spec.Drivers {
		if driver.Allocatable != nil && driver.Allocatable.Count != nil {
			limits[driver.Name] = max(0, int64(*driver.Allocatable.Count))
		}
	}
	return limits
}

// AttachedVolume is a volume that a node has attached: its driver, and what identifies the volume.
type AttachedVolume struct {
	Driver, Volume string
}

// Name returns the name for cluster.VolumeRef.
func (v AttachedVolume) Name() string { return v.Driver + "/" + v.Volume }

// AttachedBy returns the volumes that a pod makes its node attach, each once. A claim that is not bound stands for its
// volume.
func (s Storage) AttachedBy(pod *corev1.Pod) []AttachedVolume {
	var list []AttachedVolume
	own := volumeClaims(pod)
	for _, key := range slices.Sorted(maps.Keys(own)) {
		need, _ := s.need(pod, key, own[key]) // its error was reported with the pod
		if need.blocked != "" || need.driver == "" {
			continue
		}
		list = append(list, AttachedVolume{Driver: need.driver, Volume: need.volume})
	}
	return list
}

// withAttachments adds the machine's room for volumes of each driver that is limited anywhere. Its CSINode decides if
// it names the driver. Otherwise it is what the provider has stated, what other nodes of its type have, or no limit,
// in this order. It also adds the storage for volumes made on the machine, for drivers where types state it, unless v
// has it already.
func withAttachments(space *resources.Space, v resources.Vector, from NodeSource) resources.Vector {
	limits := AttachLimits(from.CSI)
	for _, driver := range from.Limited {
		component := space.Index(AttachResource(driver))
		if limit, stated := limits[driver]; stated {
			v = v.With(component, limit)
		} else if hasDriver(from.CSI, driver) {
			v = v.With(component, UnlimitedVolumes)
		} else if v.At(component) == 0 {
			v = v.With(component, from.attaches(driver))
		}
	}
	for _, driver := range from.Stated {
		if component := space.Index(CapacityResource(driver)); v.At(component) == 0 {
			v = v.With(component, statedOf(from.Claim, CapacityResource(driver)))
		}
	}
	return v
}

// attaches returns how many volumes of a driver a machine is expected to attach, if it does not say so itself.
func (from NodeSource) attaches(driver string) int64 {
	stated := statedOf(from.Claim, AttachResource(driver))
	if others, known := from.Attaches[driver]; known && stated == UnlimitedVolumes {
		return others
	}
	return stated
}

// statedOf returns what the provider has stated for a machine in a volume resource, no limit if it has not.
func statedOf(claim *karpenterv1.NodeClaim, resource string) int64 {
	if claim != nil {
		if amount, stated := claim.Status.Allocatable[corev1.ResourceName(resource)]; stated {
			return amount.Value()
		}
	}
	return UnlimitedOf(resource)
}

// driverOf returns the CSI driver that attaches a volume, "" when it is not known.
func driverOf(volume *corev1.PersistentVolume) string {
	from := volume.Spec.PersistentVolumeSource
	switch {
	case from.CSI != nil:
		return from.CSI.Driver
	case from.AWSElasticBlockStore != nil:
		return csiName("kubernetes.io/aws-ebs")
	case from.GCEPersistentDisk != nil:
		return csiName("kubernetes.io/gce-pd")
	case from.AzureDisk != nil:
		return csiName("kubernetes.io/azure-disk")
	case from.Cinder != nil:
		return csiName("kubernetes.io/cinder")
	case from.VsphereVolume != nil:
		return csiName("kubernetes.io/vsphere-volume")
	case from.PortworxVolume != nil:
		return csiName("kubernetes.io/portworx-volume")
	}
	return ""
}

// csiName returns the CSI driver that has replaced an in-tree provisioner. Any other provisioner is its own driver.
func csiName(provisioner string) string {
	switch provisioner {
	case "kubernetes.io/aws-ebs":
		return "ebs.csi.aws.com"
	case "kubernetes.io/gce-pd":
		return "pd.csi.storage.gke.io"
	case "kubernetes.io/azure-disk":
		return "disk.csi.azure.com"
	case "kubernetes.io/cinder":
		return "cinder.csi.openstack.org"
	case "kubernetes.io/vsphere-volume":
		return "csi.vsphere.vmware.com"
	case "kubernetes.io/portworx-volume":
		return "pxd.portworx.com"
	}
	return provisioner
}
