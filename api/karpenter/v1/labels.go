package v1

import corev1 "k8s.io/api/core/v1"

// Labels on nodes and NodeClaims.
const (
	// NodePoolLabelKey names the NodePool a NodeClaim or node belongs to.
	NodePoolLabelKey = Group + "/nodepool"
	// CapacityTypeLabelKey says how the instance is paid for: on-demand, spot or reserved.
	CapacityTypeLabelKey = Group + "/capacity-type"
	// NodeRegisteredLabelKey is put on a node once it is matched with its NodeClaim.
	NodeRegisteredLabelKey = Group + "/registered"
	// NodeInitializedLabelKey is put on a node once it is ready to take pods.
	NodeInitializedLabelKey = Group + "/initialized"
	// NodeDoNotSyncTaintsLabelKey on a node keeps the controller from copying the NodeClaim's taints to it.
	NodeDoNotSyncTaintsLabelKey = Group + "/do-not-sync-taints"
	// ExcludeBalancersLabelKey takes a draining node out of external load balancers; its value is
	// ExcludeBalancersLabelValue.
	ExcludeBalancersLabelKey = corev1.LabelNodeExcludeBalancers
)

// Values of CapacityTypeLabelKey.
const (
	CapacityTypeOnDemand = "on-demand"
	CapacityTypeSpot     = "spot"
	CapacityTypeReserved = "reserved"
)

// ExcludeBalancersLabelValue is the value of ExcludeBalancersLabelKey on a draining node.
const ExcludeBalancersLabelValue = "karpenter"

// LocalVolumesLabelKey with the value "true" on a NodePool says that its nodes bring volumes of StorageClasses that
// nothing makes volumes of: then a node of it may be launched for a pod that wants one. It is ours.
const LocalVolumesLabelKey = "joiner.sh/local-volumes"

// Values of PausedAnnotationKey: one of them, or both with a comma. PausedLaunch: the pool launches nothing.
// PausedDisrupt: no node of it is removed that budgets bound, nor for a limit.
const (
	PausedLaunch  = "Launch"
	PausedDisrupt = "Disrupt"
)

// Values of AboveLimitAnnotationKey.
const (
	AboveLimitInherited = "Inherited"
	AboveLimitAtOnce    = "AtOnce"
)

// Annotations.
const (
	// DisruptionCostAnnotationKey on a pod says what its eviction costs, a whole number of 32 bits. It counts instead
	// of controller.kubernetes.io/pod-deletion-cost, which also decides what a ReplicaSet removes first.
	DisruptionCostAnnotationKey = Group + "/disruption-cost"
	// DoNotRepairAnnotationKey with the value "true" on a node or NodeClaim keeps node repair away, and nothing else.
	DoNotRepairAnnotationKey = Group + "/do-not-repair"
	// DoNotDisruptAnnotationKey with the value "true" on a pod, node or NodeClaim keeps voluntary
	// disruption away from it.
	DoNotDisruptAnnotationKey = Group + "/do-not-disrupt"
	// RebootPreBootIDAnnotationKey on a NodeClaim has the boot ID of its node from before the reboot that the provider
	// was asked for.
	RebootPreBootIDAnnotationKey = Group + "/reboot-pre-boot-id"
	// RebootTerminationGracePeriodAnnotationKey on a NodeClaim bounds the drain before that reboot.
	RebootTerminationGracePeriodAnnotationKey = Group + "/reboot-termination-grace-period"
	// RebootAskedAnnotationKey on a NodeClaim says when the provider was last asked for that reboot, a time in RFC
	// 3339. It is ours.
	RebootAskedAnnotationKey = "joiner.sh/reboot-asked"
	// RebootsAnnotationKey on a NodeClaim says when reboots of its node were decided in the last day, times in RFC
	// 3339 with commas between them. It is ours.
	RebootsAnnotationKey = "joiner.sh/reboots"
	// GracefulExpirationAnnotationKey with the value "true" on a NodePool lets its expired nodes be replaced within
	// the budgets, each after its replacement is there, instead of being removed at once. It is ours.
	GracefulExpirationAnnotationKey = Group + "/graceful-expiration"
	// DisruptionBackoffAnnotationKey on a NodePool says, after a disruption of it had to be taken back, until when and
	// for how long the pool is left alone: a time in RFC 3339 and a duration. It is ours.
	DisruptionBackoffAnnotationKey = Group + "/disruption-backoff"
	// AboveLimitAnnotationKey on a NodePool with more nodes than its soft node limit says how they are brought down to
	// it. The value AboveLimitInherited: within the disruption budgets, since the pool was above the limit when Joiner
	// first saw it. AboveLimitAtOnce, a space and the limit: at once, since Joiner saw the excess come about at this
	// limit. It is ours.
	AboveLimitAnnotationKey = "joiner.sh/above-limit"
	// PausedAnnotationKey on a NodePool pauses it without removing anything: see PausedLaunch and PausedDisrupt.
	PausedAnnotationKey = "joiner.sh/paused"
	// TerminateFirstAnnotationKey with the value "true" on a NodePool lets one node at a time, which is to be
	// replaced, go before what replaces it comes, where the hard limit leaves no room for that. It has no effect on a
	// static pool.
	TerminateFirstAnnotationKey = "joiner.sh/terminate-first"
	// HeadroomAnnotationKey on a NodePool says how much room it keeps free for pods to come: a share of what runs
	// there such as 10%, or amounts of resources such as cpu=20,memory=80Gi.
	HeadroomAnnotationKey = "joiner.sh/headroom"
	// HeadroomScheduleAnnotationKey on a NodePool with headroom says when it is kept: "0 7 * * 1-5 for 12h in
	// Europe/Berlin". Without it that is always. Several times stand one after the other, with semicolons.
	HeadroomScheduleAnnotationKey = "joiner.sh/headroom-schedule"
	// MinNodesAnnotationKey on a NodePool without spec.replicas says how many nodes it always keeps: a whole number.
	MinNodesAnnotationKey = "joiner.sh/min-nodes"
	// NodeOverheadPriceAnnotationKey on a NodePool says in dollars per hour what a node of it costs beside its price,
	// in place of Joiner's --node-overhead-price: a decimal number from 0 to 1000000.
	NodeOverheadPriceAnnotationKey = "joiner.sh/node-overhead-price"
	// SpotRatioAnnotationKey on a NodePool says how much of its nodes is spot at most, as a percentage: 70%.
	SpotRatioAnnotationKey = "joiner.sh/spot-ratio"
	// NodePoolHashAnnotationKey holds the drift hash of the NodePool's template.
	NodePoolHashAnnotationKey = Group + "/nodepool-hash"
	// NodePoolHashVersionAnnotationKey says how NodePoolHashAnnotationKey was computed.
	NodePoolHashVersionAnnotationKey = Group + "/nodepool-hash-version"
	// NodeClaimTerminationTimestampAnnotationKey holds the time, in RFC 3339, when the termination grace period
	// of a NodeClaim ends.
	NodeClaimTerminationTimestampAnnotationKey = Group + "/nodeclaim-termination-timestamp"
	// NodeClaimMinValuesRelaxedAnnotationKey is "true" on a NodeClaim that was launched with fewer distinct
	// values than minValues asks for.
	NodeClaimMinValuesRelaxedAnnotationKey = Group + "/nodeclaim-min-values-relaxed"
	// LaunchedForAnnotationKey on a NodeClaim that was made for pods says, in short, what they ask for, joined by
	// commas. By it is noticed that such nodes do not help their pods. It is ours.
	LaunchedForAnnotationKey = Group + "/launched-for"
	// NeedsDriversAnnotationKey on a NodeClaim names the CSI drivers, joined by commas, without which kube-scheduler
	// binds no pod that it was made for: its node is initialized once it has them. It is ours.
	NeedsDriversAnnotationKey = "joiner.sh/needs-csi-drivers"
	// LaunchedWithAnnotationKey on a NodeClaim says with how many others like it it was made: a group, a slash and
	// their number, this one among them. By it a provider knows whom to wait for. It is ours.
	LaunchedWithAnnotationKey = "joiner.sh/launched-with"
	// LaunchedAsAnnotationKey on a NodeClaim in a slot of the whole cluster says which launch it stands for (K-53). By
	// it a plan that is made twice is one NodeClaim. It is ours.
	LaunchedAsAnnotationKey = "joiner.sh/launched-as"
	// ReplacesAnnotationKey on a NodeClaim that was made to replace others holds their names, joined by commas. It
	// is ours: Karpenter keeps this in memory.
	ReplacesAnnotationKey = Group + "/replaces"
	// ReplacedAnnotationKey on a NodeClaim holds the names of the NodeClaims that it was made to replace and that are
	// gone, joined by commas. It is ours.
	ReplacedAnnotationKey = Group + "/replaced"
	// LaunchUntilAnnotationKey on a NodeClaim of a pool with a hard limit on nodes says until when a launch for it may
	// land, and which process may have one on its way (L-14). It is ours.
	LaunchUntilAnnotationKey = Group + "/launch-until"
	// ReplacementsAnnotationKey on such a NodeClaim holds how many replace the same ones.
	ReplacementsAnnotationKey = Group + "/replacements"
	// RequestedDRADriversAnnotationKey lists the device drivers whose resources the pods asked for.
	RequestedDRADriversAnnotationKey = Group + "/requested-dra-drivers"
	// PriceOverlayAppliedAnnotationKey is set on a NodeClaim whose price came from a NodeOverlay.
	PriceOverlayAppliedAnnotationKey = Group + "/price-overlay-applied"
	// CapacityOverlayAppliedAnnotationKey is set on a NodeClaim whose capacity came from a NodeOverlay.
	CapacityOverlayAppliedAnnotationKey = Group + "/capacity-overlay-applied"
	// ProviderCompatibilityAnnotationKey holds the provider block of an alpha-version object.
	ProviderCompatibilityAnnotationKey = "compatibility." + Group + "/provider"
)

// Annotations that keep what another version of an object cannot hold (V-21). internal/convert says how they are read.
const (
	// KubeletCompatibilityAnnotationKey holds the kubelet block of a NodePool or NodeClaim that was written in
	// v1beta1, as JSON. Conversion back needs it; no provider reads it (V-23).
	KubeletCompatibilityAnnotationKey = "compatibility." + Group + "/v1beta1-kubelet-conversion"
	// NodeClassReferenceAnnotationKey holds the nodeClassRef of such an object, as JSON: v1 has no place for its
	// version.
	NodeClassReferenceAnnotationKey = "compatibility." + Group + "/v1beta1-nodeclass-reference"
	// MisspelledKubeletCompatibilityAnnotationKey is read like KubeletCompatibilityAnnotationKey, and never written.
	MisspelledKubeletCompatibilityAnnotationKey = "compatability." + Group + "/v1beta1-kubelet-conversion"
	// MisspelledNodeClassReferenceAnnotationKey is read like NodeClassReferenceAnnotationKey, and never written.
	MisspelledNodeClassReferenceAnnotationKey = "compatability." + Group + "/v1beta1-nodeclass-reference"
	// V1beta1FieldsAnnotationKey on an object of v1 holds whatever else only v1beta1 can say, as JSON. It is ours.
	V1beta1FieldsAnnotationKey = "compatibility." + Group + "/v1beta1-fields"
	// V1FieldsAnnotationKey on an object of v1beta1 holds what only v1 can say, as JSON. It is ours.
	V1FieldsAnnotationKey = "compatibility." + Group + "/v1-fields"
	// UnconvertedAnnotationKey on an object that stands for one that could not be converted holds that one, as JSON
	// (V-24). It is ours.
	UnconvertedAnnotationKey = "compatibility." + Group + "/unconverted"
	// ConversionProblemAnnotationKey on such an object says which field is wrong, its value, and what is allowed. It
	// is ours.
	ConversionProblemAnnotationKey = "compatibility." + Group + "/conversion-problem"
)

// Annotations that v1 dropped. They do nothing; a user who still has one is told what to use
// instead.
const (
	// DroppedDoNotConsolidateAnnotationKey stood on nodes. Use DoNotDisruptAnnotationKey.
	DroppedDoNotConsolidateAnnotationKey = Group + "/do-not-consolidate"
	// DroppedDoNotEvictAnnotationKey stood on pods. Use DoNotDisruptAnnotationKey.
	DroppedDoNotEvictAnnotationKey = Group + "/do-not-evict"
)

// Taint keys.
const (
	// RebootingTaintKey, with the effect NoSchedule, is on a node that is to be rebooted, until it runs anew.
	RebootingTaintKey = Group + "/rebooting"
	// UnregisteredTaintKey, with the effect NoExecute, is put on a node by its bootstrap and taken off
	// when the node is matched with its NodeClaim.
	UnregisteredTaintKey = Group + "/unregistered"
	// DisruptedTaintKey, with the effect NoSchedule, is put on a node that is about to be removed.
	DisruptedTaintKey = Group + "/disrupted"
)

// TerminationFinalizer on NodeClaims and nodes holds the deletion until the instance is gone.
const TerminationFinalizer = Group + "/termination"
