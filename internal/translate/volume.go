package translate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// maxAlternatives bounds the ways to satisfy a pod's own selection and all its volumes together: their numbers
// multiply. A pod with more ways keeps the first ones. Each of them is right, so planning may miss a place but finds
// no wrong one.
const maxAlternatives = 64

// Annotations with which the volume binder and the scheduler tell each other the progress of a claim.
const (
	annotationBindCompleted = "pv.kubernetes.io/bind-completed"
	annotationSelectedNode  = "volume.kubernetes.io/selected-node"
)

// noProvisioner is the provisioner of classes whose volumes are created beforehand.
const noProvisioner = "kubernetes.io/no-provisioner"

// Storage is what is known of volumes. This package only reads it.
type Storage struct {
	Claims  map[string]*corev1.PersistentVolumeClaim // by namespace/name
	Volumes map[string]*corev1.PersistentVolume      // by name
	Classes map[string]*storagev1.StorageClass       // by name
	Drivers map[string]*storagev1.CSIDriver          // by name
	// Reserved are the names, sorted, of the volumes that name a claim (spec.claimRef), by namespace/name of the
	// claim. They may be of a former claim of that name.
	Reserved map[string][]string
	// Stated are the CSI drivers for which some offered type states its nodes' storage for volumes, sorted.
	Stated []string
	// Others reports whether other pods use a claim too. Elsewhere reports whether a node other than the pod's has the
	// volume already. nil means never.
	Others    func(pod *corev1.Pod, claim string) bool
	Elsewhere func(pod *corev1.Pod, volume AttachedVolume) bool
	// Limited are the CSI drivers with a limit on some node, existing or offered.
	Limited []string
	// Most is the highest number of volumes of a CSI driver that any node could attach, if no provider states it.
	Most map[string]int64
}

// VolumeClaims returns the namespace/name of the PersistentVolumeClaims that a pod uses, sorted, each once: those it
// names and those of its generic ephemeral volumes.
func VolumeClaims(pod *corev1.Pod) []string {
	return slices.Sorted(maps.Keys(volumeClaims(pod)))
}

// volumeClaims returns the pod's claims; the value is true if the claim is made for the pod alone.
func volumeClaims(pod *corev1.Pod) map[string]bool {
	names := map[string]bool{}
	for _, volume := range pod.Spec.Volumes {
		switch {
		case volume.PersistentVolumeClaim != nil:
			key := pod.Namespace + "/" + volume.PersistentVolumeClaim.ClaimName
			if _, known := names[key]; !known {
				names[key] = false
			}
		case volume.Ephemeral != nil:
			names[pod.Namespace+"/"+pod.Name+"-"+volume.Name] = true
		}
	}
	return names
}

// VolumeClass returns the name of a claim's StorageClass, "" for none.
func VolumeClass(claim *corev1.PersistentVolumeClaim) string {
	if name, given := claim.Annotations[corev1.BetaStorageClassAnnotation]; given {
		return name
	}
	if claim.Spec.StorageClassName != nil {
		return *claim.Spec.StorageClassName
	}
	return ""
}

// VolumeBound reports whether the claim is bound to its volume for good.
func VolumeBound(claim *corev1.PersistentVolumeClaim) bool {
	_, completed := claim.Annotations[annotationBindCompleted]
	return completed && claim.Spec.VolumeName != ""
}

// volumeNeed is what one claim of a pod needs from the pod's node.
type volumeNeed struct {
	places  []cluster.Alternative // where the volume can be used: an OR; nil for anywhere
	driver  string                // CSI driver that attaches it; "" when unknown
	volume  string                // identifies it: the volume, or the claim while it has none
	fresh   *cluster.NewVolume    // nil when there is a volume, or any node will do
	blocked string                // why no node can be right; "" when one may be
	code    cause.Code            // of blocked
}

// AddVolumes makes a pod's shape ask for what its volumes need (P-07): a node where all of them can be used, and room
// to attach those of drivers with limits. to was converted from from, and its shape must not be interned yet. If
// something keeps the pod from being planned, such as a missing claim, Shape.Blocked says so; this is not an error.
// The error is for reporting: something cannot be understood or is too much, and the shape then fits fewer nodes.
//
// A volume that other pods use too, or that another node has already, goes into Shape.Volumes: it counts once on a
// node (K-59).
func AddVolumes(space *resources.Space, to *cluster.Pod, from *corev1.Pod, storage Storage) error {
	own := volumeClaims(from)
	if len(own) == 0 {
		return nil
	}
	shape := to.Shape
	attached, alone := map[string]int64{}, map[string]int64{} // by driver; alone are those that no other pod brings
	var fresh []cluster.NewVolume
	ways, narrowed := shape.Alternatives, false
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(own)) {
		need, err := storage.need(from, key, own[key])
		if err != nil {
			errs = append(errs, fmt.Errorf("PersistentVolumeClaim %s: %w", key, err))
		}
		if need.blocked != "" {
			block(shape, need.code, need.blocked)
			return wrap(to, errs)
		}
		attached[need.driver]++
		if !storage.share(space, from, key, need, shape) {
			alone[need.driver]++
		}
		if Needed(storage.Drivers[need.driver]) && !slices.Contains(shape.Drivers, need.driver) {
			shape.Drivers = append(shape.Drivers, need.driver)
		}
		if need.fresh != nil {
			if storage.Others != nil && storage.Others(from, key) {
				need.fresh.Claim = key
			}
			fresh = append(fresh, *need.fresh)
		}
		both, cut := narrow(ways, need.places)
		if cut {
			errs = append(errs,
				fmt.Errorf("PersistentVolumeClaim %s: more than %d ways to choose a node, the others are left out",
					key, maxAlternatives))
		}
		if len(both) == 0 && len(need.places) > 0 && (len(ways) == 0 || !contradictory(ways)) {
			block(shape, cause.VolumeElsewhere,
				fmt.Sprintf("PersistentVolumeClaim %s can be used on %s only, where the pod cannot run", key,
					places(need.places)))
			return wrap(to, errs)
		}
		if len(both) > 0 {
			ways, narrowed = both, narrowed || len(need.places) > 0
		}
	}
	if narrowed {
		shape.Narrow(ways)
	}
	slices.Sort(shape.Drivers)
	storage.addNew(space, shape, fresh)
	for _, driver := range slices.Sorted(maps.Keys(attached)) {
		if most, known := storage.Most[driver]; known && attached[driver] > most && driver != "" {
			block(shape, cause.VolumeLimit,
				fmt.Sprintf("it has %d volumes of CSI driver %s, and no node has been able to "+
					"attach more than %d: use fewer volumes, or start a node that attaches more", attached[driver],
					driver, most))
			return wrap(to, errs)
		}
		if !slices.Contains(storage.Limited, driver) {
			continue
		}
		if alone[driver] > 0 {
			shape.Requests = shape.Requests.With(space.Index(AttachResource(driver)), alone[driver])
		}
	}
	return wrap(to, errs)
}

// share adds a volume to Shape.Volumes if other pods use it too or another node has it already, and reports whether it
// did. Such a volume counts once on a node.
func (s Storage) share(space *resources.Space, pod *corev1.Pod, claim string, need volumeNeed,
	shape *cluster.Shape) bool {
	if !slices.Contains(s.Limited, need.driver) || s.Others == nil || s.Elsewhere == nil {
		return false
	}
	volume := AttachedVolume{Driver: need.driver, Volume: need.volume}
	if !s.Others(pod, claim) && !s.Elsewhere(pod, volume) {
		return false
	}
	shape.Volumes = append(shape.Volumes, cluster.VolumeRef{Name: volume.Name(),
		Takes: resources.Vector(nil).With(space.Index(AttachResource(need.driver)), 1)})
	return true
}

// Exclusive reports whether only one pod at a time may use a claim (ReadWriteOncePod).
func Exclusive(claim *corev1.PersistentVolumeClaim) bool {
	return claim != nil && slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod)
}

// AddRival blocks a shape because another pod has a claim that only one pod at a time may use. The shape must not be
// interned yet.
func AddRival(shape *cluster.Shape, claim, rival string) {
	block(shape, cause.VolumeInUse, fmt.Sprintf("PersistentVolumeClaim %s is ReadWriteOncePod, and pod %s uses it",
		claim, rival))
}

func wrap(pod *cluster.Pod, errs []error) error {
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("pod %s: %w", pod.Ref(), err)
	}
	return nil
}

func block(shape *cluster.Shape, code cause.Code, why string) {
	if shape.BlockedBy == cause.DevicesUnknown {
		return // it is not planned for anyway, whatever its volumes need
	}
	shape.Blocked, shape.BlockedBy = why, code
	shape.Narrow([]cluster.Alternative{impossible()})
}

// need returns what one claim needs, like kube-scheduler's plugins VolumeBinding and VolumeZone.
func (s Storage) need(pod *corev1.Pod, key string, ephemeral bool) (volumeNeed, error) {
	claim := s.Claims[key]
	blocked := func(code cause.Code, format string, args ...any) (volumeNeed, error) {
		return volumeNeed{code: code, blocked: "PersistentVolumeClaim " + key + " " + fmt.Sprintf(format, args...)},
			nil
	}
	switch {
	case claim == nil:
		return blocked(cause.VolumeMissing, "does not exist")
	case claim.DeletionTimestamp != nil:
		return blocked(cause.VolumeMissing, "is being deleted")
	case claim.Status.Phase == corev1.ClaimLost:
		return blocked(cause.VolumeMissing, "has lost its PersistentVolume %s", claim.Spec.VolumeName)
	case ephemeral && !metav1.IsControlledBy(claim, pod):
		return blocked(cause.VolumeInUse, "was not made for this pod")
	}
	if VolumeBound(claim) {
		volume := s.Volumes[claim.Spec.VolumeName]
		if volume == nil {
			return blocked(cause.VolumeMissing, "is bound to PersistentVolume %s, which does not exist",
				claim.Spec.VolumeName)
		}
		need, err := needOf(volume)
		if places, anew := s.madeAnew(pod, claim, ephemeral); anew {
			need.places, err = places, nil
		}
		return need, err
	}
	name := VolumeClass(claim)
	class := s.Classes[name]
	switch {
	case claim.Spec.VolumeName != "":
		return blocked(cause.VolumeUnbindable, "is not bound to PersistentVolume %s yet", claim.Spec.VolumeName)
	case name == "":
		return blocked(cause.VolumeUnbindable, "is not bound and has no StorageClass")
	case class == nil:
		return blocked(cause.VolumeMissing, "is not bound, and its StorageClass %s does not exist", name)
	case class.VolumeBindingMode == nil || *class.VolumeBindingMode != storagev1.VolumeBindingWaitForFirstConsumer:
		return blocked(cause.VolumeUnbindable,
			"is not bound yet, which its StorageClass %s wants before pods are scheduled", name)
	case class.Provisioner == "":
		return blocked(cause.VolumeUnbindable, "is not bound, and its StorageClass %s makes no volumes", name)
	}
	if volume := s.keptFor(claim); volume != nil {
		return needOf(volume)
	}
	need := volumeNeed{volume: key}
	if !MakesNone(class) {
		need.places, need.driver = allowed(class), csiName(class.Provisioner)
	}
	if node := claim.Annotations[annotationSelectedNode]; node != "" {
		// The volume is being created for this node. If that fails, the annotation is removed.
		need.places, _ = narrow(need.places, onlyNode(node))
		if len(need.places) == 0 {
			need.places = []cluster.Alternative{impossible()}
		}
		return need, nil
	}
	var err error
	need.fresh, err = s.newVolume(claim, class)
	return need, err
}

// madeAnew returns where the volume of a running pod's successor can be, if that is a new one: a generic ephemeral
// volume goes with its pod. If the driver reports free capacity, the place of the present volume counts: nobody knows
// whether there is room elsewhere.
func (s Storage) madeAnew(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim, ephemeral bool) (
	places []cluster.Alternative, anew bool) {
	class := s.Classes[VolumeClass(claim)]
	if !ephemeral || pod.Spec.NodeName == "" || class == nil || MakesNone(class) ||
		Counts(s.Drivers[class.Provisioner]) {
		return nil, false
	}
	mode := class.VolumeBindingMode
	if mode == nil || *mode != storagev1.VolumeBindingWaitForFirstConsumer {
		return nil, false
	}
	return allowed(class), true
}

// needOf returns the need of a claim that has, or will get, this volume.
func needOf(volume *corev1.PersistentVolume) (volumeNeed, error) {
	places, err := placesOf(volume)
	return volumeNeed{places: places, driver: driverOf(volume), volume: volume.Name}, err
}

// placesOf returns where a volume can be used: by its node affinity, and its labels of zone and region. The scheduler
// ignores these labels for nodes that have none of them. We always require them, and can only miss such a node.
func placesOf(volume *corev1.PersistentVolume) ([]cluster.Alternative, error) {
	var labels []requirement.Requirement
	for label, value := range volume.Labels {
		switch key := Key(label); key {
		case corev1.LabelTopologyZone, corev1.LabelTopologyRegion:
			labels = append(labels, requirement.OneOf(key, strings.Split(value, "__")...))
		}
	}
	base := cluster.Alternative{Labels: requirement.NewSet(labels...), Names: requirement.Any(metav1.ObjectNameField)}
	if volume.Spec.NodeAffinity == nil || volume.Spec.NodeAffinity.Required == nil {
		if len(labels) == 0 {
			return nil, nil
		}
		return []cluster.Alternative{base}, nil
	}
	list := []cluster.Alternative{}
	var errs []error
	for _, term := range volume.Spec.NodeAffinity.Required.NodeSelectorTerms {
		place, err := nodeTerm(term)
		if err != nil {
			errs = append(errs, fmt.Errorf("PersistentVolume %s: node affinity: %w", volume.Name, err))
			continue
		}
		place.Labels = place.Labels.And(base.Labels)
		list = append(list, place)
	}
	if len(list) == 0 {
		list = append(list, impossible())
	}
	return list, errors.Join(errs...)
}

// allowed returns where a class creates volumes; nil for anywhere.
func allowed(class *storagev1.StorageClass) []cluster.Alternative {
	var list []cluster.Alternative
	for _, term := range class.AllowedTopologies {
		var demands []requirement.Requirement
		for _, expression := range term.MatchLabelExpressions {
			demands = append(demands, requirement.OneOf(Key(expression.Key), expression.Values...))
		}
		if len(demands) == 0 { // matches no node, as in Kubernetes
			list = append(list, impossible())
			continue
		}
		list = append(list, cluster.Alternative{Labels: requirement.NewSet(demands...),
			Names: requirement.Any(metav1.ObjectNameField)})
	}
	return list
}

// narrow returns the combinations of one way and one place, without contradictions and duplicates. An empty list
// demands nothing. cut is true when there were more than maxAlternatives.
func narrow(ways, places []cluster.Alternative) (result []cluster.Alternative, cut bool) {
	if len(places) == 0 {
		return ways, false
	}
	if len(ways) == 0 {
		ways = []cluster.Alternative{{Names: requirement.Any(metav1.ObjectNameField)}}
	}
	seen := map[string]bool{}
	for _, way := range ways {
		for _, place := range places {
			both := cluster.Alternative{Labels: way.Labels.And(place.Labels), Names: way.Names.And(place.Names)}
			key := both.Labels.String() + "@" + both.Names.String()
			if seen[key] || contradicts(both) {
				continue
			}
			if len(result) == maxAlternatives {
				return result, true
			}
			seen[key] = true
			result = append(result, both)
		}
	}
	return result, false
}

func contradicts(way cluster.Alternative) bool {
	return way.Names.Empty() || len(way.Labels.EmptyKeys()) > 0
}

func contradictory(ways []cluster.Alternative) bool { return !slices.ContainsFunc(ways, possible) }

func possible(way cluster.Alternative) bool { return !contradicts(way) }

// places prints where a volume can be used, for messages.
func places(list []cluster.Alternative) string {
	var parts []string
	for _, place := range list {
		switch {
		case contradicts(place):
		case place.Names.IsAny():
			parts = append(parts, place.Labels.String())
		default:
			parts = append(parts, "node "+place.Names.String())
		}
	}
	if len(parts) == 0 {
		return "no node"
	}
	return strings.Join(parts, " or ")
}
