package whatif

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1beta1 "github.com/joiner-autoscaler/joiner/api/autoscaling/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	kwokv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenterkwok/v1alpha1"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/translate"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// DefaultPriceTolerance is joiner's percentage without --price-tolerance (P-22).
const DefaultPriceTolerance = engine.DefaultPriceTolerance

// Input is the input of planning.
type Input struct {
	Documents []Document
	// Catalogue is what every node class offers.
	Catalogue catalog.Catalog
	// Estimated says that the catalogue's prices are not those of the account or region.
	Estimated bool
	// PriceTolerance is by how many percent fewer nodes may cost more than the cheapest ones (P-22).
	PriceTolerance int
	// NodeOverheadPrice is what a node costs per hour in addition to its price, unless its pool says otherwise (B-20).
	NodeOverheadPrice Dollars
	// MaxNodes is the soft limit on nodes in the whole cluster, 0 for no limit (K-53).
	MaxNodes int64
	// MaxClaims is the hard limit on NodeClaims in the whole cluster, 0 for no limit (K-53).
	MaxClaims int64
	// Commitments is the text of the file of --commitments-file; empty for none (K-55).
	Commitments []byte
	// Devices considers claims for devices and what drivers publish, like a controller with
	// --ignore-dra-requests=false (K-42).
	Devices bool
	// Gates are the feature gates of the controller.
	Gates Gates
	// Now is the time that the plan is made for.
	Now time.Time
}

// Gates are the feature gates that plans depend on. They are zero for a controller without --feature-gates.
type Gates struct {
	Off        world.Off
	SpotToSpot bool // spot nodes may be replaced by cheaper spot nodes
}

// GatesOf returns the gates of a controller, by the names of those that are on.
func GatesOf(on map[string]bool) Gates {
	return Gates{Off: world.Off{Overlays: !on["NodeOverlay"], Static: !on["StaticCapacity"],
		Reserved: !on["ReservedCapacity"], Buffers: !on["CapacityBuffer"], First: !on["TerminateFirstDrift"]},
		SpotToSpot: on["SpotToSpotConsolidation"]}
}

// World is the cluster that an input describes. Create it with [New].
type World struct {
	store *world.Store
	// owners has the workload of each pod, KIND/NAME, by the pod's namespace/name.
	owners map[string]string
	// Ignored counts documents of kinds that planning ignores, by kind.
	Ignored map[string]int
	// Notes say what in the objects could not be understood, or has no effect; sorted.
	Notes []string

	// Unread says what could not be read from the cluster, so that it is not reported as missing.
	Unread []string
	// LeaseName is the name of the leader's Lease; "" means the usual one.
	LeaseName string

	// known are the pods, by namespace/name. nodes are the names of the nodes.
	known     map[string]*corev1.Pod
	nodes     map[string]bool
	estimated bool
	now       time.Time
	// config is that of store, and spotToSpot the gate that a store does not have.
	config     world.Config
	spotToSpot bool
	objects    []object
	catalogue  catalog.Catalog
	// told are all objects given to the store.
	told []client.Object
	// idle gives, by namespace/name, why nothing is planned for a pod without a node.
	idle map[string]string
	// plan is the result of planned, nil until it is made.
	plan *plan.Plan
	// states counts the object versions that were only tried.
	states uint64
}

// New builds a World from an input. The error names every document that an API server would refuse, or that cannot be
// read.
func New(in Input) (*World, error) {
	r, err := newReader()
	if err != nil {
		return nil, err
	}
	commitments, err := translate.Commitments(in.Commitments)
	if err != nil {
		return nil, fmt.Errorf("the commitments: %w", err)
	}
	w := empty(in, world.Config{Fleet: both{}, PriceTolerance: in.PriceTolerance,
		NodeOverheadPrice: resources.Money(in.NodeOverheadPrice), MaxNodes: in.MaxNodes, MaxClaims: in.MaxClaims,
		Devices: in.Devices, Off: in.Gates.Off, Commitments: commitments})
	w.spotToSpot = in.Gates.SpotToSpot
	var faults []error
	seen := map[string]string{}
	for _, d := range in.Documents {
		o, err := r.read(d)
		switch {
		case err != nil:
			faults = append(faults, err)
		case o == nil:
			kind, _ := d.Content["kind"].(string)
			w.Ignored[kind]++
		default:
			name := o.GetObjectKind().GroupVersionKind().GroupKind().String() + " " + o.GetNamespace() + "/" +
				o.GetName()
			if first := seen[name]; first != "" {
				faults = append(faults, fmt.Errorf("%s: %s stands in %s already", d.Where, name, first))
			}
			seen[name] = d.Where
			w.objects = append(w.objects, *o)
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return w, w.fill(in)
}

// empty returns a World without objects, whose store has the configuration.
func empty(in Input, config world.Config) *World {
	config.Now = func() time.Time { return in.Now }
	return &World{
		store: world.New(config), config: config,
		owners: map[string]string{}, Ignored: map[string]int{}, idle: map[string]string{}, catalogue: in.Catalogue,
		known: map[string]*corev1.Pod{}, nodes: map[string]bool{}, estimated: in.Estimated, now: in.Now,
	}
}

// fill gives all objects to the store, in an order in which each finds what it refers to.
func (w *World) fill(in Input) error {
	for i, o := range w.objects {
		o.SetResourceVersion(strconv.Itoa(i + 1))
		o.SetUID(uidOf(o.Object))
		if namespaced(o.Object) && o.GetNamespace() == "" {
			o.SetNamespace(metav1.NamespaceDefault)
		}
	}
	pods, claims, err := w.pods()
	if err != nil {
		return err
	}
	for class := range w.classes() {
		if err := w.store.SetCatalog(class, in.Catalogue); err != nil {
			return fmt.Errorf("the catalogue: %w", err)
		}
	}
	for _, o := range w.objects {
		switch o := o.Object.(type) {
		case *corev1.Pod:
		case *corev1.Node:
			w.nodes[o.Name] = true
			w.tell(o)
		case *karpenterv1.NodePool:
			if !(both{}).OwnsPool(o) {
				ref := o.Spec.Template.Spec.NodeClassRef
				w.Notes = append(w.Notes,
					fmt.Sprintf(
						"NodePool %s: nothing is planned for node classes of the kind %s.%s: "+
							"planned are EC2NodeClass.%s and KWOKNodeClass.%s",
						o.Name, ref.Kind, ref.Group, awsv1.Group, kwokv1alpha1.Group))
			}
			w.judge(o, in.Now)
			w.tell(o)
		default:
			w.tell(o)
		}
	}
	for _, claim := range claims {
		w.tell(claim)
	}
	for _, pod := range pods {
		w.known[pod.Namespace+"/"+pod.Name] = pod
		w.tell(pod)
	}
	slices.Sort(w.Notes)
	w.Notes = slices.Compact(w.Notes)
	return nil
}

func (w *World) tell(o client.Object) {
	w.told = append(w.told, o)
	if err := w.store.Apply(o); err != nil {
		w.Notes = append(w.Notes, err.Error())
	}
}

func namespaced(o client.Object) bool {
	return Namespaced(o.GetObjectKind().GroupVersionKind())
}

// Namespaced reports whether objects of a kind that planning uses have a namespace.
func Namespaced(gvk schema.GroupVersionKind) bool {
	if slices.Contains([]string{"Node", "Namespace", "PersistentVolume"}, gvk.Kind) {
		return false
	}
	if gvk.Group == resourcev1.GroupName {
		return gvk.Kind == "ResourceClaim"
	}
	return slices.Contains([]string{"", "apps", "batch", "policy", "coordination.k8s.io", autoscalingv1beta1.Group},
		gvk.Group)
}

// both are the two providers whose pools are planned for, whichever of them a process would run.
type both struct{}

func (both) serves(ref *karpenterv1.NodeClassReference) bool { return Serves(ref) }

// Serves reports whether a provider exists for that kind of node class; false for nil.
func Serves(ref *karpenterv1.NodeClassReference) bool {
	return ref != nil && (ref.Group == awsv1.Group && ref.Kind == "EC2NodeClass" || ref.Group == kwokv1alpha1.Group &&
		ref.Kind == "KWOKNodeClass")
}

// OwnsPool reports whether a pool's node class belongs to one of the two.
func (b both) OwnsPool(pool *karpenterv1.NodePool) bool {
	return b.serves(pool.Spec.Template.Spec.NodeClassRef)
}

// OwnsClaim is OwnsPool for a claim.
func (b both) OwnsClaim(claim *karpenterv1.NodeClaim) bool { return b.serves(claim.Spec.NodeClassRef) }

// OwnsNode reports whether a node's claim is owned. Without a claim it reports whether the node belongs to a pool.
func (b both) OwnsNode(node *corev1.Node, claim *karpenterv1.NodeClaim, _ *karpenterv1.NodePool) bool {
	if claim != nil {
		return b.OwnsClaim(claim)
	}
	return node.Labels[karpenterv1.NodePoolLabelKey] != ""
}

// classes returns the existing node classes. It includes the class of a pool that a controller calls Ready, even if
// the class could not be read.
func (w *World) classes() map[world.ClassRef]bool {
	found := map[world.ClassRef]bool{}
	for _, o := range w.objects {
		switch o.Object.(type) {
		case *awsv1.EC2NodeClass, *kwokv1alpha1.KWOKNodeClass:
			gvk := o.GetObjectKind().GroupVersionKind()
			found[world.ClassRef{Group: gvk.Group, Kind: gvk.Kind, Name: o.GetName()}] = true
		}
		if pool, isPool := o.Object.(*karpenterv1.NodePool); isPool && pool.Spec.Template.Spec.NodeClassRef != nil &&
			isReady(pool) {
			ref := pool.Spec.Template.Spec.NodeClassRef
			found[world.ClassRef{Group: ref.Group, Kind: ref.Kind, Name: ref.Name}] = true
		}
	}
	return found
}

func isReady(pool *karpenterv1.NodePool) bool {
	return slices.ContainsFunc(pool.Status.Conditions, func(c karpenterv1.Condition) bool {
		return c.Type == karpenterv1.ConditionTypeReady && c.Status == metav1.ConditionTrue
	})
}

// judge gives a pool that no controller has checked the condition Ready, as a controller would if the class were
// ready. If the class is missing, Ready is False.
func (w *World) judge(pool *karpenterv1.NodePool, now time.Time) {
	for _, c := range pool.Status.Conditions {
		if c.Type == karpenterv1.ConditionTypeReady {
			return
		}
	}
	ready := karpenterv1.Condition{Type: karpenterv1.ConditionTypeReady, Status: metav1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(now)}
	ref := pool.Spec.Template.Spec.NodeClassRef
	if ref != nil && !w.classes()[world.ClassRef{Group: ref.Group, Kind: ref.Kind, Name: ref.Name}] {
		ready.Status, ready.Reason = metav1.ConditionFalse, reasonNoClass
		ready.Message = fmt.Sprintf("%s %s is not among the files", ref.Kind, ref.Name)
	}
	pool.Status.Conditions = append(pool.Status.Conditions, ready)
}

// replicaSets returns the Deployment of each ReplicaSet that has one.
func (w *World) replicaSets() map[string]string {
	sets := map[string]string{}
	for _, o := range w.objects {
		if set, isSet := o.Object.(*appsv1.ReplicaSet); isSet {
			if owner := metav1.GetControllerOf(set); owner != nil && owner.Kind == "Deployment" {
				sets[set.Namespace+"/"+set.Name] = owner.Name
			}
		}
	}
	return sets
}

// pods returns the existing pods and those that workloads lack, as an API server would store them, and the claims that
// come with them.
func (w *World) pods() (pods []*corev1.Pod, claims []*corev1.PersistentVolumeClaim, err error) {
	sets, have, known, taken := w.replicaSets(), map[string]int64{}, map[string]bool{}, map[string]bool{}
	for _, o := range w.objects {
		if claim, isClaim := o.Object.(*corev1.PersistentVolumeClaim); isClaim {
			known[claim.Namespace+"/"+claim.Name] = true
		}
	}
	for _, o := range w.objects {
		if pod, isPod := o.Object.(*corev1.Pod); isPod {
			pods, taken[pod.Namespace+"/"+pod.Name] = append(pods, pod), true
			if !translate.Finished(pod) {
				have[pod.Namespace+"/"+ownerOf(pod, sets)]++
			}
		}
	}
	var faults []error
	for _, o := range w.objects {
		d, makes, err := demandOf(o)
		if err != nil {
			faults = append(faults, err)
		}
		if !makes || err != nil || o.stored {
			continue // the cluster's own controllers create these pods
		}
		fresh, with := d.expand(have[o.GetNamespace()+"/"+d.kind+"/"+o.GetName()], taken)
		if pods = append(pods, fresh...); len(pods) > maxPods {
			return nil, nil, fmt.Errorf("the workloads make more than %d pods together", maxPods)
		}
		for _, claim := range with {
			if !known[claim.Namespace+"/"+claim.Name] {
				claims = append(claims, claim)
			}
		}
	}
	a := w.admission()
	for i, pod := range pods {
		w.admit(a, pod, i)
		w.owners[pod.Namespace+"/"+pod.Name] = ownerOf(pod, sets)
	}
	for i, claim := range claims {
		claim.ResourceVersion, claim.UID = strconv.Itoa(i+1), uidOf(claim)
	}
	w.classify(claims)
	return pods, claims, errors.Join(faults...)
}

// classify gives claims without a StorageClass the cluster's default one, as its API server would.
func (w *World) classify(made []*corev1.PersistentVolumeClaim) {
	usual := ""
	for _, o := range w.objects {
		if class, isClass := o.Object.(*storagev1.StorageClass); isClass && class.Annotations[usualClass] == "true" {
			usual = class.Name
		}
	}
	claims := slices.Clone(made)
	for _, o := range w.objects {
		if claim, isClaim := o.Object.(*corev1.PersistentVolumeClaim); isClaim {
			claims = append(claims, claim)
		}
	}
	for _, claim := range claims {
		if claim.Spec.StorageClassName == nil && claim.Spec.VolumeName == "" && usual != "" {
			claim.Spec.StorageClassName = &usual
		}
	}
}

// usualClass is the annotation of the default StorageClass.
const usualClass = "storageclass.kubernetes.io/is-default-class"

// admission is what other objects add to each created pod.
type admission struct {
	limits     map[string][]*corev1.LimitRange // by namespace
	classes    map[string]*nodev1.RuntimeClass
	priorities map[string]int32
	usual      string // the PriorityClass of pods that name none
}

func (w *World) admission() admission {
	a := admission{
		limits: map[string][]*corev1.LimitRange{}, classes: map[string]*nodev1.RuntimeClass{},
		// Every cluster has these.
		priorities: map[string]int32{"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000},
	}
	for _, o := range w.objects {
		switch o := o.Object.(type) {
		case *corev1.LimitRange:
			a.limits[o.Namespace] = append(a.limits[o.Namespace], o)
		case *nodev1.RuntimeClass:
			a.classes[o.Name] = o
		case *schedulingv1.PriorityClass:
			a.priorities[o.Name] = o.Value
			if o.GlobalDefault {
				a.usual = o.Name
			}
		}
	}
	return a
}

// admit changes a pod of the files to what the API server would store. A pod without a node becomes what
// kube-scheduler would make of it in a cluster without room.
func (w *World) admit(a admission, pod *corev1.Pod, number int) {
	if pod.UID == "" {
		pod.UID = uidOf(pod)
	}
	if pod.ResourceVersion == "" {
		pod.ResourceVersion = strconv.Itoa(number + 1)
	}
	if pod.Status.Phase != "" || pod.Spec.NodeName != "" {
		if pod.Spec.NodeName == "" && !translate.Provisionable(pod) && !translate.Finished(pod) {
			w.idle[pod.Namespace+"/"+pod.Name] = "kube-scheduler has not marked it unschedulable"
		}
		return // a cluster has admitted it
	}
	given := translate.Admission{Limits: a.limits[pod.Namespace]}
	if name := pod.Spec.RuntimeClassName; name != nil {
		given.Class = a.classes[*name]
		if given.Class == nil {
			w.Notes = append(w.Notes,
				fmt.Sprintf("pod %s/%s: RuntimeClass %s is not among the files: its overhead is not counted",
					pod.Namespace, pod.Name, *name))
		}
	}
	given.Admit(&pod.Spec)
	if name := cmp.Or(pod.Spec.PriorityClassName, a.usual); name != "" && pod.Spec.Priority == nil {
		value, known := a.priorities[name]
		if !known {
			w.Notes = append(w.Notes,
				fmt.Sprintf("pod %s/%s: PriorityClass %s is not among the files: its priority counts as 0",
					pod.Namespace, pod.Name, name))
		}
		pod.Spec.Priority = &value
	}
	if gates := pod.Spec.SchedulingGates; len(gates) > 0 {
		w.idle[pod.Namespace+"/"+pod.Name] = "it has the scheduling gate " + gates[0].Name
		return
	}
	pod.Status.Phase = corev1.PodPending
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: corev1.PodReasonUnschedulable}}
}

// OverlayVerdict returns the verdict about a NodeOverlay; false if none has that name.
func (w *World) OverlayVerdict(name string) (translate.Verdict, bool) {
	verdict, _, known := w.store.OverlayVerdict(name)
	return verdict, known
}

// Kinds returns how many objects of each kind were read.
func (w *World) Kinds() map[string]int {
	counts := map[string]int{}
	for _, o := range w.objects {
		counts[o.GetObjectKind().GroupVersionKind().Kind]++
	}
	return counts
}

// IgnoredKinds returns the kinds of Ignored, sorted.
func (w *World) IgnoredKinds() []string { return slices.Sorted(maps.Keys(w.Ignored)) }
