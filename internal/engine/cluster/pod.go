package cluster

import (
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Pod is a pod that needs a node or has one. Pods that are finished are not in a snapshot.
type Pod struct {
	UID       string
	Namespace string
	Name      string
	Shape     *Shape
	Priority  int32
	// DeletionCost is the pod's own word on what its eviction costs (karpenter.sh/disruption-cost, or
	// controller.kubernetes.io/pod-deletion-cost).
	DeletionCost int32
	Created      int64  // Unix seconds; orders pods that are otherwise alike
	Node         string // name of the node it is bound to, "" while pending
	// Promised is the node or, while that has no node yet, the claim on which an earlier plan placed this pending pod;
	// "" when none did. Planning keeps the promise while it still holds, so that a round does not undo another.
	Promised string
	// PassedOver names the nodes, joined by commas, on which this pending pod was expected, and where kube-scheduler
	// bound others and not this one. Whatever the reason, the plan was wrong there.
	PassedOver string
	// Kept is the node on which room is kept for this pending pod from all others of its priority; "" for none (B-16).
	Kept string
	// Daemon is set for pods of a DaemonSet: the namespace/name of it.
	Daemon string
	// Fixed is set for pods that are never placed anew when their node goes, and that keep no node: daemons, static
	// and finished pods, and those that nobody ends (translate.StuckFrom).
	Fixed bool
	// DoNotDisrupt is set while an annotation forbids voluntary disruption of the pod's node (V-15).
	DoNotDisrupt bool
	Terminating  bool
	// Returns is set for a terminating pod whose successor comes once it is gone, and not before: one of a
	// StatefulSet. When its node goes, it needs another one like a pod that runs (P-01).
	Returns bool
}

// Moves reports whether the pod, or its successor, needs another node when its own goes.
func (p *Pod) Moves() bool { return !p.Fixed && (!p.Terminating || p.Returns) }

// Ref returns namespace/name.
func (p *Pod) Ref() string { return p.Namespace + "/" + p.Name }

// HeadroomNamespace is the namespace of pods that stand for the room of a NodePool's headroom (K-54). No real
// namespace has this name.
const HeadroomNamespace = "NodePool"

const headroom = HeadroomNamespace + "/"

// HeadroomOf returns the Shape.Buffer of the room that a NodePool's headroom keeps free.
func HeadroomOf(pool string) string { return headroom + pool }

// PoolOfHeadroom returns the NodePool whose headroom a Shape.Buffer stands for; false for a CapacityBuffer.
func PoolOfHeadroom(buffer string) (pool string, is bool) { return strings.CutPrefix(buffer, headroom) }

// IsBuffer reports whether the pod is not a real one, but room that a CapacityBuffer or a NodePool's headroom keeps
// free (K-37).
func (p *Pod) IsBuffer() bool { return p.Shape != nil && p.Shape.Buffer != "" }

// IsPassedOver reports whether kube-scheduler has passed the pod over on the node of this name.
func (p *Pod) IsPassedOver(node string) bool {
	return p.PassedOver != "" && slices.Contains(strings.Split(p.PassedOver, ","), node)
}

// Shape is everything about a pod that decides where it can run, and nothing that tells it from its siblings.
// A Shape made by [Shapes.Intern] is immutable and unique: equal shapes are one pointer.
type Shape struct {
	Namespace string
	Labels    map[string]string
	Requests  resources.Vector // by the kubelet's rule (P-06), with 1 for pods; none below 0
	// Alternatives are the ways to satisfy the node selector, the required node affinity and the places where the
	// pod's volumes can be used: an OR of terms, each with all the others. Empty: any node will do. A pod that no node
	// can satisfy has one alternative that contradicts itself.
	Alternatives []Alternative
	// Blocked says what must come first before any node can be right, such as a volume that does not exist yet; ""
	// when nothing must. While it is set, Alternatives contradict themselves.
	Blocked string
	// BlockedBy is the code of Blocked, which follows from its text.
	BlockedBy    cause.Code
	Tolerations  []Toleration
	HostPorts    []HostPort
	Spread       []Spread
	Affinity     []AffinityTerm // required: all of them
	AntiAffinity []AffinityTerm // required: none of them
	// Claims are the ResourceClaims by which the pod asks for devices, in the order of its specification (K-42).
	Claims []DeviceClaim
	// Volumes count once on a node, whoever uses them there; NewVolumes are still to come (K-58, K-59).
	Volumes    []VolumeRef
	NewVolumes []NewVolume // in the order in which kube-scheduler finds them: the smallest first
	// Drivers are the CSI drivers, sorted, without which kube-scheduler binds no pod of the shape to a node.
	Drivers []string
	// Buffer is the namespace/name of the CapacityBuffer that a pod of this shape holds room for, or HeadroomOf a
	// NodePool; "" for a real pod.
	Buffer string
	// Wishes and SoftSpread are what the pod prefers (P-05). They shape nodes that are launched anyway, and never keep
	// a pod from a place.
	Wishes     []Wish
	SoftSpread []Spread // whenUnsatisfiable: ScheduleAnyway

	key string
	ask string // see Ask
	own *Shape // of a shape that volumes have narrowed: the selection before that
}

// Wish is a preferred term of node affinity, or of pod affinity or anti-affinity when Term has a key.
type Wish struct {
	Weight int32           // 1 to 100
	Labels requirement.Set // of the node
	Term   AffinityTerm
	Apart  bool // the term is one of anti-affinity
}

// Alternative is one way to satisfy a pod's node selection.
type Alternative struct {
	Labels requirement.Set
	// Names restricts the node's name (matchFields on metadata.name); Any when it does not.
	Names requirement.Requirement
}

// Toleration is as in the pod's specification. An empty Key with Exists tolerates every taint; an empty Effect every
// effect.
type Toleration struct {
	Key, Operator, Value, Effect string
}

// Taint is as in the node's specification.
type Taint struct {
	Key, Value, Effect string
}

// The effects of taints, and the operators of tolerations.
const (
	NoSchedule       = "NoSchedule"
	NoExecute        = "NoExecute"
	PreferNoSchedule = "PreferNoSchedule"

	TolerationExists = "Exists"
	TolerationEqual  = "Equal"
	TolerationLt     = "Lt"
	TolerationGt     = "Gt"
)

// HostPort is a port of the node that a pod needs for itself. IP "" is every address.
type HostPort struct {
	IP       string
	Protocol string
	Port     int32
}

// Conflicts reports whether two pods with these ports cannot share a node.
func (p HostPort) Conflicts(other HostPort) bool {
	return p.Port == other.Port && p.Protocol == other.Protocol && (p.IP == other.IP || p.IP == "" || other.IP == "")
}

// Selector chooses pods by their labels. The zero value chooses none.
type Selector struct {
	// Enabled is false for a selector that was not given: it chooses nothing. An enabled one without requirements
	// chooses everything.
	Enabled bool
	Labels  requirement.Set
}

// Matches reports whether the selector chooses a pod with these labels.
func (s Selector) Matches(labels map[string]string) bool {
	return s.Enabled && s.Labels.Matches(labels)
}

// Spread is a topology spread constraint with whenUnsatisfiable: DoNotSchedule (P-03). matchLabelKeys are already
// part of Pods.
type Spread struct {
	Key        string // node label
	Pods       Selector
	MaxSkew    int32
	MinDomains int32 // 1 when not given
	// IgnoreAffinity and HonorTaints are the node inclusion policies where they differ from the default.
	IgnoreAffinity bool
	HonorTaints    bool
}

// AffinityTerm is a required term of pod affinity or anti-affinity (P-04). matchLabelKeys and mismatchLabelKeys are
// already part of Pods.
type AffinityTerm struct {
	Key        string // node label
	Pods       Selector
	Namespaces []string // sorted; the pod's own when the term gave neither names nor a selector
	// NamespaceSelector chooses namespaces by label beside those named.
	NamespaceSelector Selector
}
