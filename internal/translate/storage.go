package translate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// This file reads what decides on volumes that do not exist yet (K-58, K-59): what capacity drivers have left, which
// volumes are free, and which drivers nodes must have.

// capacityPrefix begins the names of the resources in which a provider states the storage of its machines for volumes
// that a CSI driver creates on them.
const capacityPrefix = "storage-capacity-csi-"

// UnlimitedStorage is the room for volumes of a driver on machines that do not state it, if others do; see
// UnlimitedVolumes.
const UnlimitedStorage int64 = 1 << 50

// StorageFresh is how long after initialization a node is expected to publish more storage.
const StorageFresh = time.Minute

// CapacityResource returns the name of the resource in which types state their nodes' storage for volumes of a CSI
// driver.
func CapacityResource(driver string) string { return capacityPrefix + driver }

// VolumeResources returns the names in amounts that are volume resources (AttachResource, CapacityResource), sorted.
func VolumeResources(amounts resources.Amounts) []string {
	return slices.Sorted(maps.Keys(maps.Collect(func(yield func(string, bool) bool) {
		for name := range amounts {
			if isVolumeResource(name) && !yield(name, true) {
				return
			}
		}
	})))
}

func isVolumeResource(name string) bool {
	return strings.HasPrefix(name, attachPrefix) || strings.HasPrefix(name, capacityPrefix)
}

// UnlimitedOf returns the room of a machine that does not state such a volume resource.
func UnlimitedOf(resource string) int64 {
	if strings.HasPrefix(resource, capacityPrefix) {
		return UnlimitedStorage
	}
	return UnlimitedVolumes
}

// DriverOf returns the driver of a resource name made by prefixOf, which is AttachResource or CapacityResource; "" for
// other names.
func DriverOf(resource string, prefixOf func(driver string) string) string {
	driver, found := strings.CutPrefix(resource, prefixOf(""))
	if !found {
		return ""
	}
	return driver
}

// Counts reports whether a driver publishes the capacity it has left (CSIDriver.spec.storageCapacity).
func Counts(driver *storagev1.CSIDriver) bool {
	return driver != nil && driver.Spec.StorageCapacity != nil && *driver.Spec.StorageCapacity
}

// MakesNone reports whether a class has no provisioner.
func MakesNone(class *storagev1.StorageClass) bool { return class.Provisioner == noProvisioner }

// Needed reports whether pods with volumes of a driver are not bound to nodes that lack it
// (CSIDriver.spec.preventPodSchedulingIfMissing).
func Needed(driver *storagev1.CSIDriver) bool {
	return driver != nil && driver.Spec.PreventPodSchedulingIfMissing != nil &&
		*driver.Spec.PreventPodSchedulingIfMissing
}

// newVolume returns what a claim without a volume needs from its node. It is nil when any node will do: the class has
// a provisioner, and its driver does not publish capacity.
func (s Storage) newVolume(claim *corev1.PersistentVolumeClaim,
	class *storagev1.StorageClass) (*cluster.NewVolume, error) {
	size, asks := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	isMade := !MakesNone(class)
	if isMade && (!asks || !Counts(s.Drivers[class.Provisioner])) {
		return nil, nil
	}
	v := &cluster.NewVolume{Class: class.Name, Size: max(0, size.Value()), Made: isMade,
		Block: isBlock(claim.Spec.VolumeMode), Modes: modesOf(claim.Spec.AccessModes)}
	var err error
	if claim.Spec.Selector != nil {
		if v.Labels, err = selector(claim.Spec.Selector); err != nil { // then no volume serves it
			v.Labels = cluster.Selector{
				Enabled: true, Labels: requirement.NewSet(requirement.Nothing(corev1.LabelHostname)),
			}
		}
	}
	return v, err
}

func isBlock(mode *corev1.PersistentVolumeMode) bool {
	return mode != nil && *mode == corev1.PersistentVolumeBlock
}

func modesOf(modes []corev1.PersistentVolumeAccessMode) []string {
	var list []string
	for _, mode := range modes {
		list = append(list, string(mode))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// addNew adds the volumes that do not exist yet to the shape, in the order in which kube-scheduler finds them.
func (s Storage) addNew(space *resources.Space, shape *cluster.Shape, list []cluster.NewVolume) {
	for i := range list {
		v := &list[i]
		driver := ""
		if class := s.Classes[v.Class]; class != nil {
			driver = class.Provisioner
		}
		if v.Made && slices.Contains(s.Stated, driver) {
			v.Stated = resources.Vector(nil).With(space.Index(CapacityResource(driver)), v.Size)
		}
	}
	slices.SortStableFunc(list, func(a, b cluster.NewVolume) int { return cmp.Compare(a.Size, b.Size) })
	shape.NewVolumes = list
}

// keptFor returns the volume that is kept for a claim which is not bound yet, nil for none: of those that name it, the
// first by name that kube-scheduler and the volume controller would take. They take none that names another UID. It
// was that of a former claim of this name; it is Released, and nobody gets it.
func (s Storage) keptFor(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	for _, name := range s.Reserved[claim.Namespace+"/"+claim.Name] {
		volume := s.Volumes[name]
		if volume == nil || volume.Spec.ClaimRef == nil || volume.DeletionTimestamp != nil {
			continue
		}
		has := volume.Spec.Capacity[corev1.ResourceStorage]
		if uid := volume.Spec.ClaimRef.UID; (uid == "" || uid == claim.UID) && has.Cmp(size) >= 0 &&
			classOfVolume(volume) == VolumeClass(claim) &&
			isBlock(volume.Spec.VolumeMode) == isBlock(claim.Spec.VolumeMode) &&
			named(volume.Spec.VolumeAttributesClassName) == named(claim.Spec.VolumeAttributesClassName) {
			return volume
		}
	}
	return nil
}

// classOfVolume returns the name of a volume's StorageClass, "" for none.
func classOfVolume(volume *corev1.PersistentVolume) string {
	if name, given := volume.Annotations[corev1.BetaStorageClassAnnotation]; given {
		return name
	}
	return volume.Spec.StorageClassName
}

func named(name *string) string {
	if name == nil {
		return ""
	}
	return *name
}

// FreeVolume converts a PersistentVolume that claims of its class may take; nil if it is not free. The error is for
// reporting: places that cannot be understood are left out.
func (s Storage) FreeVolume(volume *corev1.PersistentVolume) (*cluster.FreeVolume, error) {
	class := s.Classes[volume.Spec.StorageClassName]
	if volume.Status.Phase != corev1.VolumeAvailable || volume.Spec.ClaimRef != nil ||
		volume.DeletionTimestamp != nil || class == nil ||
		volume.Spec.VolumeAttributesClassName != nil && *volume.Spec.VolumeAttributesClassName != "" {
		return nil, nil
	}
	if !MakesNone(class) && !Counts(s.Drivers[class.Provisioner]) {
		return nil, nil // the driver can create one too
	}
	size := volume.Spec.Capacity[corev1.ResourceStorage]
	places, err := placesOf(volume)
	return &cluster.FreeVolume{Name: volume.Name, Class: class.Name, Size: size.Value(),
		Block: isBlock(volume.Spec.VolumeMode),
		Modes: modesOf(volume.Spec.AccessModes), Labels: volume.Labels, Places: places}, err
}

// Capacity converts a CSIStorageCapacity; nil if the driver of its class does not publish capacity. The error is for
// reporting: then no node reaches this capacity.
func (s Storage) Capacity(c *storagev1.CSIStorageCapacity) (*cluster.StorageCapacity, error) {
	class := s.Classes[c.StorageClassName]
	if class == nil || !Counts(s.Drivers[class.Provisioner]) {
		return nil, nil
	}
	result := &cluster.StorageCapacity{Name: c.Namespace + "/" + c.Name, Class: class.Name, Capacity: -1, Most: -1}
	if c.Capacity != nil {
		result.Capacity = max(0, c.Capacity.Value())
	}
	if c.MaximumVolumeSize != nil {
		result.Most = max(0, c.MaximumVolumeSize.Value())
	}
	if c.NodeTopology == nil {
		return result, nil
	}
	nodes, err := selector(withKeys(c.NodeTopology))
	if err != nil {
		return result, fmt.Errorf("CSIStorageCapacity %s: nodeTopology: %w", result.Name, err)
	}
	result.Nodes = nodes
	return result, nil
}

// withKeys returns the node selector with the current names of its labels, see [Key].
func withKeys(from *metav1.LabelSelector) *metav1.LabelSelector {
	own := from.DeepCopy()
	own.MatchLabels = nil
	for label, value := range from.MatchLabels {
		own.MatchExpressions = append(own.MatchExpressions, metav1.LabelSelectorRequirement{Key: label,
			Operator: metav1.LabelSelectorOpIn, Values: []string{value}})
	}
	for i := range own.MatchExpressions {
		own.MatchExpressions[i].Key = string(Key(own.MatchExpressions[i].Key))
	}
	return own
}

// driversOn returns the needed drivers that a node has, in their order.
func driversOn(node *storagev1.CSINode, needed []string) []string {
	var list []string
	for _, driver := range needed {
		if hasDriver(node, driver) {
			list = append(list, driver)
		}
	}
	return list
}

func hasDriver(node *storagev1.CSINode, driver string) bool {
	return node != nil &&
		slices.ContainsFunc(node.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == driver })
}

// MissingDriver returns the first driver that the claim needs (see [DriversNeeded]) and its node lacks; "" for none.
// node may be nil.
func MissingDriver(claim *karpenterv1.NodeClaim, node *storagev1.CSINode) string {
	for _, driver := range DriversNeeded(claim) {
		if !hasDriver(node, driver) {
			return driver
		}
	}
	return ""
}

// DriversNeeded returns the CSI drivers that the pods of the claim's launch need to be bound.
func DriversNeeded(claim *karpenterv1.NodeClaim) []string {
	text := claim.Annotations[karpenterv1.NeedsDriversAnnotationKey]
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// FreshUntil returns until when the claim's node is expected to publish more storage; zero if it is not initialized.
func FreshUntil(claim *karpenterv1.NodeClaim) time.Time {
	done, found := condition(claim.Status.Conditions, karpenterv1.ConditionTypeInitialized)
	if !found || !isTrue(claim, karpenterv1.ConditionTypeInitialized) {
		return time.Time{}
	}
	return done.LastTransitionTime.Add(StorageFresh)
}

// AddDaemonVolumes makes the shape of a DaemonSet's pods request room for each of its volumes of a driver with limits:
// they take it on every node where the pods run (K-59). It ignores where the volumes can be used. The shape must not
// be interned yet.
func AddDaemonVolumes(space *resources.Space, to *cluster.Shape, namespace string, spec *corev1.PodSpec,
	storage Storage) error {
	var errs []error
	seen := map[string]bool{}
	for i := range spec.Volumes {
		from, driver := &spec.Volumes[i], ""
		switch {
		case from.PersistentVolumeClaim != nil && !seen[from.PersistentVolumeClaim.ClaimName]:
			seen[from.PersistentVolumeClaim.ClaimName] = true
			pod := &corev1.Pod{}
			pod.Namespace = namespace
			need, err := storage.need(pod, namespace+"/"+from.PersistentVolumeClaim.ClaimName, false)
			driver, errs = need.driver, append(errs, err)
		case from.Ephemeral != nil && from.Ephemeral.VolumeClaimTemplate != nil:
			driver = storage.driverOfClass(from.Ephemeral.VolumeClaimTemplate.Spec.StorageClassName)
		}
		if driver != "" && slices.Contains(storage.Limited, driver) {
			at := space.Index(AttachResource(driver))
			to.Requests = to.Requests.With(at, to.Requests.At(at)+1)
		}
	}
	return errors.Join(errs...)
}

// defaultClass is the annotation of the default StorageClass, for claims that name none.
const defaultClass = "storageclass.kubernetes.io/is-default-class"

// driverOfClass returns the driver of a class, or with nil of the default class; "" when unknown.
func (s Storage) driverOfClass(name *string) string {
	if name != nil {
		if class := s.Classes[*name]; class != nil {
			return csiName(class.Provisioner)
		}
		return ""
	}
	for _, each := range slices.Sorted(maps.Keys(s.Classes)) {
		if class := s.Classes[each]; class.Annotations[defaultClass] == "true" {
			return csiName(class.Provisioner)
		}
	}
	return ""
}

// HasVolumes reports whether pods of the specification have volume claims, by name or ephemeral.
func HasVolumes(spec *corev1.PodSpec) bool {
	return slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil || v.Ephemeral != nil
	})
}

// onlyNode returns the one node that a claim's volume is being created for.
func onlyNode(name string) []cluster.Alternative {
	return []cluster.Alternative{{Names: requirement.OneOf("metadata.name", name)}}
}
