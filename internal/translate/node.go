package translate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// NodeSource is the input of [Node]: the Node object, the NodeClaim, or both of one machine. At least one is set.
type NodeSource struct {
	Node  *corev1.Node           // nil while there is none
	Claim *karpenterv1.NodeClaim // nil for a node that is not ours
	// Others is set for a node that another program manages. It then has no Claim.
	Others bool
	// ConsolidateAfter is that of the claim's pool. The zero value means Never, also for a missing pool.
	ConsolidateAfter karpenterv1.NillableDuration
	// Catalog is what the claim's node class offers, for the price; nil when unknown.
	Catalog *catalog.Index
	// Prospect is what the claim may get; nil when unknown. It counts until the claim is launched.
	Prospect *Prospect
	// CSI says how many volumes the node takes; nil while unknown.
	CSI *storagev1.CSINode
	// Limited are the CSI drivers with a limit on some node (Storage.Limited).
	Limited []string
	// Attaches is how many volumes other nodes of its type take, by driver; unknown drivers are left out.
	Attaches map[string]int64
	// Stated are the drivers for which some type states the storage of its nodes (Storage.Stated).
	Stated []string
	// Needed are the drivers without which pods are not bound, sorted.
	Needed []string
}

// Node converts a machine. The caller adds its pods.
func Node(space *resources.Space, from NodeSource) *cluster.Node {
	n := &cluster.Node{Labels: map[string]string{}, ConsolidatableAt: cluster.Never, Price: resources.Unpriced}
	if from.Claim != nil {
		n.Claim, n.ClaimUID = from.Claim.Name, string(from.Claim.UID)
		n.Created = unix(from.Claim.CreationTimestamp)
		n.Launched, n.Registered = Launched(from.Claim), isTrue(from.Claim, karpenterv1.ConditionTypeRegistered)
		if joined, _ := condition(from.Claim.Status.Conditions, karpenterv1.ConditionTypeRegistered); n.Registered {
			n.RegisteredAt = unix(joined.LastTransitionTime)
		}
		n.Foreign, n.Drifted = !ownedByPool(from.Claim), isTrue(from.Claim, karpenterv1.ConditionTypeDrifted)
		n.Expired = isTrue(from.Claim, karpenterv1.ConditionTypeExpired)
		n.Replaces = Replaces(from.Claim)
		n.Replaced = from.Claim.Annotations[karpenterv1.ReplacedAnnotationKey] != ""
		if asks := from.Claim.Annotations[karpenterv1.LaunchedForAnnotationKey]; asks != "" {
			n.For = strings.Split(asks, ",")
		}
		n.Together = together(from.Claim)
		if !Launched(from.Claim) && from.Prospect != nil {
			addLabels(n.Labels, from.Prospect.Labels)
		}
		addLabels(n.Labels, from.Claim.Labels)
	}
	if from.Node != nil {
		n.Name = from.Node.Name
		n.NotReady = !ready(from.Node)
		addLabels(n.Labels, from.Node.Labels)
		if from.Claim == nil {
			n.Created = unix(from.Node.CreationTimestamp)
		}
	}
	n.Pool = n.Labels[cluster.LabelPool]
	if from.Claim != nil {
		n.Pool = PoolOf(from.Claim)
	}
	n.Initialized = initialized(from, n)
	markLeaving(n, from)
	n.Taints = taintsFor(from, n.Initialized)
	n.Allocatable = withAttachments(space, allocatable(space, from, n.Initialized), from)
	n.Drivers = driversOn(from.CSI, from.Needed)
	n.InstanceType = n.Labels[string(catalog.LabelInstanceType)]
	if from.Claim == nil {
		return n
	}
	n.ConsolidatableAt = ConsolidatableAt(from.Claim, from.ConsolidateAfter)
	if Launched(from.Claim) {
		n.Price = Price(from.Catalog, n.InstanceType, n.Labels[string(catalog.LabelZone)],
			n.Labels[string(catalog.LabelCapacityType)])
		return n
	}
	n.Open = open(from, n.Labels)
	return n
}

// open returns the labels that the claim and the offerings leave undecided.
func open(from NodeSource, labels map[string]string) requirement.Set {
	set, _, _ := Requirements(from.Claim.Spec.Requirements)
	if from.Prospect != nil {
		set = set.And(from.Prospect.Open)
	} else {
		set = set.And(anyPlace())
	}
	// the claim contradicts itself: only the presence of the label is certain
	for _, key := range set.EmptyKeys() {
		set = set.Without(key).With(requirement.Any(key))
	}
	for label := range labels {
		set = set.Without(requirement.Key(label))
	}
	return set
}

// anyPlace returns the labels that every instance has, with any value.
func anyPlace() requirement.Set {
	return requirement.NewSet(requirement.Any(catalog.LabelZone), requirement.Any(catalog.LabelCapacityType),
		requirement.Any(catalog.LabelInstanceType),
		requirement.Any(corev1.LabelArchStable), requirement.Any(corev1.LabelOSStable))
}

// ownedByPool reports whether the claim was made from a NodePool.
func ownedByPool(claim *karpenterv1.NodeClaim) bool {
	return slices.ContainsFunc(claim.OwnerReferences, func(owner metav1.OwnerReference) bool {
		return owner.Kind == "NodePool"
	})
}

// Replaces returns the names of the claims that this one was made to replace (D-10, L-31); nil when it replaces none.
func Replaces(claim *karpenterv1.NodeClaim) []string {
	text := claim.Annotations[karpenterv1.ReplacesAnnotationKey]
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// SetReplaces writes onto a claim the names of the claims it replaces, which [Replaces] reads, and how many claims
// replace these together.
func SetReplaces(claim *karpenterv1.NodeClaim, names []string, together int) {
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	claim.Annotations[karpenterv1.ReplacesAnnotationKey] = strings.Join(names, ",")
	claim.Annotations[karpenterv1.ReplacementsAnnotationKey] = strconv.Itoa(max(1, together))
}

// together returns how many claims replace the same ones as this claim, itself included: 1 if it does not say, 0 if it
// replaces none.
func together(claim *karpenterv1.NodeClaim) int {
	if Replaces(claim) == nil {
		return 0
	}
	n, err := strconv.Atoi(claim.Annotations[karpenterv1.ReplacementsAnnotationKey])
	if err != nil {
		return 1
	}
	return max(1, n)
}

// Launched reports whether the claim's instance is known.
func Launched(claim *karpenterv1.NodeClaim) bool { return len(claim.Status.Capacity) > 0 }

// ConsolidatableAt returns the Unix second in which the quiet time of a claim's node ends. It lasts for after
// (consolidateAfter), since a pod last came or left or since initialization, whichever is later. It is cluster.Never
// when the node is not initialized or after is Never.
func ConsolidatableAt(claim *karpenterv1.NodeClaim, after karpenterv1.NillableDuration) int64 {
	done, found := condition(claim.Status.Conditions, karpenterv1.ConditionTypeInitialized)
	if !found || done.Status != metav1.ConditionTrue || after.Duration == nil {
		return cluster.Never
	}
	from := done.LastTransitionTime.Time
	if last := claim.Status.LastPodEventTime; last.After(from) {
		from = last.Time
	}
	return from.Add(*after.Duration).Unix()
}

// initialized goes by the node's label, never by the claim's condition: they come by different watches. If the claim
// were ahead, the startup taints of the older node object would look permanent.
func initialized(from NodeSource, n *cluster.Node) bool {
	if from.Node == nil {
		return false
	}
	if from.Node.Labels[karpenterv1.NodeInitializedLabelKey] == "true" {
		return true
	}
	return from.Claim == nil && (n.Pool == "" || from.Others) // not ours: its owner has initialized it
}

// markLeaving sets the fields that say that the machine is being removed, will be, or must not be.
func markLeaving(n *cluster.Node, from NodeSource) {
	if claim := from.Claim; claim != nil {
		// The claim was registered and its node is gone: no pod can run there.
		lost := from.Node == nil && isTrue(claim, karpenterv1.ConditionTypeRegistered)
		n.Deleting = claim.DeletionTimestamp != nil || lost
		n.Disrupting = isTrue(claim, karpenterv1.ConditionTypeDisruptionReason)
		n.DrainEnds = claim.Spec.TerminationGracePeriod != nil
		n.DoNotDisrupt = claim.Annotations[karpenterv1.DoNotDisruptAnnotationKey] == "true"
	}
	if node := from.Node; node != nil {
		n.Deleting = n.Deleting || node.DeletionTimestamp != nil
		n.DoNotDisrupt = n.DoNotDisrupt || node.Annotations[karpenterv1.DoNotDisruptAnnotationKey] == "true"
		closedBy := func(key string) bool {
			return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
		}
		n.Disrupting = n.Disrupting || closedBy(karpenterv1.DisruptedTaintKey)
		n.Rebooting = !n.Disrupting && closedBy(karpenterv1.RebootingTaintKey)
		n.Disrupting = n.Disrupting || n.Rebooting
	}
}

// taintsFor returns the taints that count for planning (P-08). On our own nodes, startup taints and the taints of a
// new node do not count until initialization: they will go. Until registration the taints of the claim count: the node
// will get them.
func taintsFor(from NodeSource, initialized bool) []cluster.Taint {
	var all []cluster.Taint
	ours := from.Claim != nil
	if ours && (from.Node == nil || from.Node.Labels[karpenterv1.NodeRegisteredLabelKey] != "true") {
		all = Taints(from.Claim.Spec.Taints)
	}
	if from.Node != nil {
		all = append(all, Taints(from.Node.Spec.Taints)...)
		if from.Node.Spec.Unschedulable {
			all = append(all, cluster.Taint{Key: corev1.TaintNodeUnschedulable, Effect: cluster.NoSchedule})
		}
	}
	var startup []cluster.Taint
	if ours {
		startup = Taints(from.Claim.Spec.StartupTaints)
	}
	var kept []cluster.Taint
	for _, t := range all {
		passing := ours && !initialized && (slices.Contains(startup, t) || passes(t))
		if !passing && !slices.Contains(kept, t) {
			kept = append(kept, t)
		}
	}
	return kept
}

// passes reports whether Kubernetes or we take the taint off a new node before it counts as initialized.
func passes(t cluster.Taint) bool {
	switch t.Key {
	case corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeNetworkUnavailable,
		"node.cloudprovider.kubernetes.io/uninitialized", karpenterv1.UnregisteredTaintKey:
		return true
	}
	return false
}

// allocatable prefers what the kubelet says. Before initialization the kubelet may not know all resources yet. Then
// the claim gives those that are missing or 0.
func allocatable(space *resources.Space, from NodeSource, initialized bool) resources.Vector {
	var said resources.Vector
	if from.Node != nil {
		said = vector(space, from.Node.Status.Allocatable)
	}
	if initialized || from.Claim == nil {
		return said
	}
	var promised resources.Vector
	switch {
	case len(from.Claim.Status.Allocatable) > 0:
		promised = vector(space, from.Claim.Status.Allocatable)
	case from.Prospect != nil:
		promised = from.Prospect.Allocatable
	default:
		promised = vector(space, from.Claim.Spec.Resources.Requests)
	}
	result := slices.Clone(promised)
	for component, amount := range said {
		if amount > 0 {
			result = result.With(component, amount)
		}
	}
	return result
}

func ready(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func isTrue(claim *karpenterv1.NodeClaim, conditionType string) bool {
	c, found := condition(claim.Status.Conditions, conditionType)
	return found && c.Status == metav1.ConditionTrue
}

func condition(list []karpenterv1.Condition, conditionType string) (karpenterv1.Condition, bool) {
	for _, c := range list {
		if c.Type == conditionType {
			return c, true
		}
	}
	return karpenterv1.Condition{}, false
}

func unix(t metav1.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// ClaimCapacity returns what a claim counts against its pool's limits (L-13): the capacity of its instance, before
// launch the most that it may get.
func ClaimCapacity(space *resources.Space, claim *karpenterv1.NodeClaim, prospect *Prospect) resources.Vector {
	switch {
	case Launched(claim):
		return vector(space, claim.Status.Capacity)
	case prospect != nil:
		return prospect.Capacity
	}
	return vector(space, claim.Spec.Resources.Requests)
}

// ClaimError returns an error if a claim's requirements cannot be understood.
func ClaimError(claim *karpenterv1.NodeClaim) error {
	if _, _, err := Requirements(claim.Spec.Requirements); err != nil {
		return fmt.Errorf("NodeClaim %s: %w", claim.Name, err)
	}
	return nil
}

// NodeSwitchFaults returns a text for each invalid value of the annotations that protect a node or NodeClaim:
// do-not-disrupt and do-not-repair.
func NodeSwitchFaults(annotations map[string]string) (faults []string) {
	for _, key := range []string{karpenterv1.DoNotDisruptAnnotationKey, karpenterv1.DoNotRepairAnnotationKey} {
		if err := switchFault(annotations, key); err != nil {
			faults = append(faults, err.Error())
		}
	}
	return faults
}

// switchFault returns an error if an annotation that is a switch has an invalid value.
func switchFault(annotations map[string]string, key string) error {
	if value, found := annotations[key]; found && value != "true" && value != "false" {
		return fmt.Errorf("annotation %s is %q: want \"true\" or \"false\"; it counts as \"false\"", key, value)
	}
	return nil
}
