package view

import (
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// Entry describes a cause in the catalogue of causes (U-16).
type Entry struct {
	Code cause.Code
	// Says is the pattern of its sentence, for documentation: POOL, LABEL and the like stand for names.
	Says string
	// Remedies are what users can do, best first. POOL stands for the pool's name, KEY for the label, resource or
	// taint.
	Remedies []string
	// ByItself is what ends the cause without anybody acting; "" when nothing does.
	ByItself string
	// distance orders the causes of several pools: the pool with the least is nearest to taking the pod (U, part 3).
	distance int
	// sentence makes the sentence about a pool; nil for "pool POOL: DETAIL".
	sentence func(pool string, s plan.Step) string
}

// Distances of a pool from taking a pod, the nearest first: causes in the pod itself, limits, capacity, places of
// other pods, readiness, taints, labels, resources, replicas.
const (
	ofThePod = iota
	ofALimit
	ofCapacity
	ofPlaces
	ofReadiness
	ofATaint
	ofALabel
	ofAResource
	ofReplicas
)

const goes = "when a node of the pool is removed"

// never is the text for cases where waiting does not help: the limit leaves room for no node at all.
const never = "never, as the limit has no room for such a node even without any other"

// Texts about the limit of the whole cluster (K-53).
const (
	goesAnywhere  = "when a node is removed, of whatever pool"
	raiseMaxNodes = "raise --KEY of the controller"
	freeAny       = "remove a node, of whatever pool, or make room on one"
)

// entries returns the causes of waiting pods, in the order of cause.WaitingCodes.
func entries() []Entry {
	return slices.Concat(ofCluster(), ofPods(), ofDevices(), ofPools(), ofLimits(), ofOffers())
}

// nothing is the remedy for a cause that ends by itself.
const nothing = "nothing"

func ofCluster() []Entry {
	own := func(code cause.Code, says, byItself, remedy string) Entry {
		return Entry{Code: code, Says: says, ByItself: byItself, Remedies: []string{remedy}, sentence: detail}
	}
	return []Entry{
		own(cause.SchedulingGated, "it has the scheduling gate NAME", "when the gate is removed",
			"let the controller that set the gate remove it, or remove it from spec.schedulingGates of the pod"),
		own(cause.NotMarkedUnschedulable, "kube-scheduler has not marked it unschedulable",
			"when its scheduler has tried it, usually within seconds",
			"if it stays so for a minute, see that the scheduler named in its spec.schedulerName runs"),
		own(cause.WaitsForVictims, "kube-scheduler preempts other pods on node NAME for it", "when those have ended",
			nothing),
		own(cause.NodeOnTheWay, "it should run on the node of NodeClaim NAME, which is on its way",
			"when that node is there", "if it takes long, see what holds it: joinerctl explain nodeclaim NAME"),
		own(cause.NodeFits, "it should run on node NAME, which has room", "when kube-scheduler tries again",
			"if it stays so, look at the log of kube-scheduler"),
		own(cause.LaunchPlanned, "a node of pool POOL would be launched for it: TYPES", "when Joiner has launched it",
			"if it stays so, look at the log of Joiner's leader"),
	}
}

// inThePod makes the entry of a cause in the pod itself, whose sentence is its detail.
func inThePod(code cause.Code, says, byItself string, remedies ...string) Entry {
	return Entry{Code: code, Says: says, ByItself: byItself, Remedies: remedies, distance: ofThePod, sentence: detail}
}

func ofPods() []Entry {
	return []Entry{
		inThePod(cause.PodMalformed, "its specification cannot be understood: FIELD: what is allowed", "",
			"correct the field in the pod's template"),
		inThePod(cause.ContradictsItself, "the pod's requirements on LABEL contradict each other", "",
			"remove what it asks of KEY from the nodeSelector or from the node affinity of the pod's workload: "+
				"one node must match both"),
		inThePod(cause.OnlyOneNode, "the pod requires one particular node: LABEL=NAME", "when that node has room",
			"make room on that node, or take its name out of the pod's workload"),
		inThePod(cause.VolumeMissing, "PersistentVolumeClaim NAME does not exist", "when it is created",
			"create the PersistentVolumeClaim, or correct its name in the pod's workload"),
		inThePod(cause.VolumeUnbindable, "PersistentVolumeClaim NAME is not bound, and nothing makes its volume",
			"when a volume is bound",
			"create a PersistentVolume for the claim, or use a StorageClass that does, with volumeBindingMode "+
				"WaitForFirstConsumer"),
		inThePod(cause.VolumeElsewhere,
			"PersistentVolumeClaim NAME can be used on PLACES only, where the pod cannot run", "",
			"remove the zone or node selector from the pod's workload, so that the pod follows its volume; "+
				"or use another volume"),
		{Code: cause.VolumeLimit, Says: "no node attaches as many volumes as the pod needs", distance: ofThePod,
			Remedies: []string{"use fewer volumes in one pod", "allow larger instance types in NodePool POOL"},
			ByItself: "when volumes are detached", sentence: func(pool string, s plan.Step) string {
				if s.Before == 0 {
					return s.Detail
				}
				return "pool " + pool + ": no instance type attaches that many volumes: " + s.Detail
			}},
		inThePod(cause.VolumeInUse, "PersistentVolumeClaim NAME is ReadWriteOncePod, and pod NAME uses it",
			"when that pod ends", "end the other pod, or give this one a claim of its own"),
		inThePod(cause.VolumeNotFree,
			"StorageClass CLASS makes no volumes, and no free PersistentVolume of it has SIZE where the pod can run",
			"when a volume is free on a node with room",
			"make a PersistentVolume of the class that fits, on a node with room for the pod",
			"where new nodes bring such volumes, say so: kubectl label nodepool POOL joiner.sh/local-volumes=true"),
		{Code: cause.StorageCapacity, Says: "the driver of StorageClass CLASS has not SIZE left for a volume",
			distance: ofThePod,
			Remedies: []string{"add storage behind the class, or ask for less in the PersistentVolumeClaim",
				"see what is left: kubectl get csistoragecapacities -A"},
			ByItself: "when a volume of the class is deleted", sentence: func(pool string, s plan.Step) string {
				if s.Before == 0 {
					return s.Detail
				}
				return "pool " + pool + ": no instance type that is left has " + s.Detail
			}},
	}
}

// ofDevices returns the causes of pods that ask for devices by ResourceClaims.
func ofDevices() []Entry {
	return []Entry{
		inThePod(cause.DevicesUnknown, "it asks for devices by ResourceClaims, and which nodes have them is not known",
			"when kube-scheduler finds the devices on a node that is there",
			"keep nodes with such devices in a NodePool with spec.replicas",
			"ask for the devices by a resource of an instance type, such as nvidia.com/gpu"),
		inThePod(cause.DeviceClaimMissing, "ResourceClaim NAME (spec.resourceClaims ENTRY) does not exist",
			"when it is created", "create the ResourceClaim, or correct its name in the pod's workload",
			"where it is made from a template, see that the ResourceClaimTemplate exists and that kube-controller-manager runs"),
		inThePod(cause.DeviceClassMissing,
			"request NAME of ResourceClaim NAME wants DeviceClass CLASS, which does not exist",
			"when the class is created",
			"install the driver of the devices, or correct the name of the class in the claim"),
		inThePod(cause.DeviceClaimInvalid,
			"request NAME of ResourceClaim NAME (DeviceClass CLASS): the selector EXPRESSION of the request is "+
				"no valid CEL: what is wrong", "",
			"correct the selector in the DeviceClass, or in a new ResourceClaim: the specification of one does not change"),
		inThePod(cause.DevicesNotFound,
			"request NAME of ResourceClaim NAME (DeviceClass CLASS): no published device passes the selector "+
				"of the request: EXPRESSION", "when a driver publishes such a device",
			"start a node with such devices in a NodePool with spec.replicas: none is launched for claims",
			"ask for devices that a node has: kubectl get resourceslices"),
		inThePod(cause.DevicesInUse,
			"ResourceClaim NAME with request NAME (COUNT of DeviceClass CLASS): no initialized node has them left",
			"when a pod with such devices ends",
			"raise spec.replicas of a NodePool whose nodes have the devices: none is launched for claims",
			"end a pod that has them"),
		inThePod(cause.DevicesOutOfReach,
			"ResourceClaim NAME with request NAME (COUNT of DeviceClass CLASS): node NAME has them, and the "+
				"pod cannot run there for another reason", "when that node has room",
			"make room on that node, or see what the pod asks for beside the devices: resources, taints, node selector"),
	}
}

func ofPools() []Entry {
	return []Entry{
		{Code: cause.NoNodePool, Says: "there is no NodePool", Remedies: []string{"apply a NodePool"},
			distance: ofReadiness, sentence: detail},
		{Code: cause.PoolPaused, Says: "pool POOL: it is paused: annotation joiner.sh/paused is VALUE",
			distance: ofReadiness, Remedies: []string{"remove the annotation joiner.sh/paused from NodePool POOL",
				"let the pod run in another pool"}},
		{Code: cause.PoolNotReady, Says: "pool POOL: it is not Ready: REASON", distance: ofReadiness,
			Remedies: []string{"see what is wrong with it: joinerctl explain nodepool POOL"},
			ByItself: "when the pool is Ready"},
		{Code: cause.StaticPool,
			Says:     "pool POOL: it is static: spec.replicas sets its number of nodes, waiting pods do not",
			distance: ofReplicas,
			Remedies: []string{"raise spec.replicas of NodePool POOL", "use a pool without spec.replicas"}},
		{Code: cause.PoolContradictsItself,
			Says: "pool POOL: its own requirement LABEL=VALUES leaves no instance type", distance: ofALabel,
			Remedies: []string{"allow more values of KEY in spec.template.spec.requirements of NodePool POOL, " +
				"or remove that requirement"},
			sentence: func(pool string, s plan.Step) string {
				if s.Before == 0 {
					return "pool " + pool + ": " + s.Detail
				}
				return "pool " + pool + ": its own requirement " + s.Detail + " leaves no instance type"
			}},
		{Code: cause.TaintNotTolerated, Says: "pool POOL: taint KEY=VALUE:EFFECT is not tolerated", distance: ofATaint,
			Remedies: []string{"give the pod's workload a toleration of KEY if it belongs on NodePool POOL",
				"change what its nodeSelector and affinity require, so that another NodePool takes it"}},
		{Code: cause.LabelMismatch,
			Says: "pool POOL: no suitable instance type has LABEL=VALUES, which the pod requires", distance: ofALabel,
			Remedies: []string{"change KEY in the nodeSelector or node affinity of the pod's workload",
				"allow more values of KEY in spec.template.spec of NodePool POOL, if there are such instance types"},
			sentence: func(pool string, s plan.Step) string {
				if s.Before == 0 {
					return "pool " + pool + ": " + s.Detail
				}
				return "pool " + pool + ": no suitable instance type has " + s.Detail + ", which the pod requires"
			}},
		{Code: cause.LabelUnknown, Says: "pool POOL: the pod requires LABEL=VALUES, which the pool does not define",
			distance: ofALabel,
			Remedies: []string{"correct or remove KEY in the nodeSelector or node affinity of the pod's workload",
				"add KEY to spec.template.metadata.labels or to the requirements of the NodePool that it belongs on"},
			sentence: func(pool string, s plan.Step) string {
				wants, _, _ := strings.Cut(s.Detail, ", the pool has ")
				return "pool " + pool + ": " + wants + ", which the pool does not define"
			}},
	}
}

// ofLimits returns the causes of pools that may launch nothing more, or not what the pod needs.
func ofLimits() []Entry {
	return []Entry{
		{Code: cause.HardLimitNodes, Says: "pool POOL: nodes N of N (hard limit)", distance: ofALimit, ByItself: goes,
			Remedies: []string{"raise spec.hardLimits.nodes of NodePool POOL",
				"remove a node of the pool, or make room on one"}},
		{Code: cause.SoftLimitNodes, Says: "pool POOL: nodes N of N (soft limit)", distance: ofALimit, ByItself: goes,
			Remedies: []string{"raise spec.limits.nodes of NodePool POOL",
				"remove a node of the pool, or make room on one"}},
		{Code: cause.ClusterLimitNodes,
			Says:     "pool POOL: nodes N of N in the whole cluster (--max-nodes), or NodeClaims N of N (--max-node-claims-hard)",
			distance: ofALimit,
			ByItself: goesAnywhere, Remedies: []string{raiseMaxNodes, freeAny}},
		{Code: cause.ClusterLimitUnknown,
			Says: "pool POOL: the hard limit of the whole cluster is not known, ConfigMap NAMESPACE/joiner-cluster-limit cannot be " +
				"read: REASON",
			distance: ofALimit, ByItself: "when the ConfigMap can be read",
			Remedies: []string{
				"delete the ConfigMap joiner-cluster-limit in the namespace of the controller: it is made anew",
				"correct what is named, or let the controller read and write it (deploy/rbac.yaml)"}},
		{Code: cause.ResourceLimit, Says: "pool POOL: RESOURCE N of N in use, another node adds N", distance: ofALimit,
			ByItself: goes,
			Remedies: []string{"raise spec.limits.KEY of NodePool POOL",
				"allow instance types that stay within it in NodePool POOL"}},
		{Code: cause.MinValues, Says: "pool POOL: minValues asks for N values of LABEL, with only N left for the pod",
			distance: ofPlaces,
			Remedies: []string{"lower minValues in NodePool POOL", "let the pod run on more instance types"}},
		{Code: cause.LaunchesInVain, Says: "pool POOL: launches for such pods were in vain", distance: ofALimit,
			ByItself: "at the time given",
			Remedies: []string{
				"find out why the pods were not scheduled onto the nodes that were launched for them: " +
					"docs/launches-in-vain.md"}},
	}
}

func ofOffers() []Entry {
	return []Entry{
		{Code: cause.PodTooLarge, Says: "pool POOL: RESOURCE=AMOUNT is more than any suitable instance type has",
			distance: ofAResource,
			Remedies: []string{"lower the KEY request of the pod's workload",
				"allow larger instance types in NodePool POOL"},
			sentence: func(pool string, s plan.Step) string {
				return "pool " + pool + ": " + s.Detail + " is more than any suitable instance type has"
			}},
		{Code: cause.DaemonsTakeTheRoom,
			Says:     "pool POOL: RESOURCE=AMOUNT fits no instance type beside the pods of DaemonSets",
			distance: ofAResource,
			Remedies: []string{"lower the KEY request of the pod's workload, or of the DaemonSets",
				"allow larger instance types in NodePool POOL"},
			sentence: func(pool string, s plan.Step) string {
				return "pool " + pool + ": " + s.Detail + " fits no instance type beside the pods of DaemonSets"
			}},
		{Code: cause.ExtendedResource, Says: "pool POOL: no instance type has RESOURCE", distance: ofAResource,
			Remedies: []string{"correct the resource's name in the pod's workload",
				"allow instance types with KEY in a NodePool, if there are any"},
			sentence: func(pool string, s plan.Step) string {
				return "pool " + pool + ": no instance type has " + s.Key
			}},
		{Code: cause.NoCapacity, Says: "pool POOL: every instance type that fits is sold out", distance: ofCapacity,
			ByItself: "when capacity comes back",
			Remedies: []string{"allow more instance types, zones or capacity types in NodePool POOL"},
			sentence: func(pool string, _ plan.Step) string {
				return "pool " + pool + ": every instance type that fits is sold out"
			}},
		{Code: cause.ReservationsUsedUp, Says: "pool POOL: the reservations that fit are used up",
			distance: ofCapacity, ByItself: "when an instance in the reservation ends",
			Remedies: []string{"allow on-demand or spot in NodePool POOL beside reserved", "free a reservation"},
			sentence: func(pool string, _ plan.Step) string {
				return "pool " + pool + ": the reservations that fit are used up"
			}},
		{Code: cause.SpreadNoDomain, Says: "pool POOL: topology spread over LABEL leaves no place for a new node",
			distance: ofPlaces,
			ByItself: "when other pods move",
			Remedies: []string{"raise maxSkew, or set whenUnsatisfiable: ScheduleAnyway",
				"let NodePool POOL launch in the zones, or other domains, that have too few pods"}},
		{Code: cause.AffinityNoTarget, Says: "pool POOL: pod affinity over LABEL leaves no place for a new node",
			distance: ofPlaces,
			ByItself: "when a pod that it must be near is placed",
			Remedies: []string{"start the pods that it must be near, where NodePool POOL launches",
				"make the affinity a preference"}},
		{Code: cause.AntiAffinityEverywhere,
			Says: "pool POOL: pod anti-affinity over LABEL leaves no place for a new node", distance: ofPlaces,
			ByItself: "when other pods move",
			Remedies: []string{"use kubernetes.io/hostname as topologyKey: each new node has its own",
				"make the anti-affinity a preference"}},
		{Code: cause.DaemonsCount,
			Says:     "pool POOL: CONSTRAINT counts DaemonSet NAME, whose pods come first on a new node",
			distance: ofPlaces, Remedies: []string{"let the constraint's selector leave the DaemonSet's pods out"}},
		{Code: cause.HostPortTaken, Says: "pool POOL: the pod's host ports are used by DaemonSets on every new node",
			distance: ofPlaces,
			Remedies: []string{"use another host port in the pod or in the DaemonSet"}},
		{Code: cause.NoPlaceFound,
			Says:     "pool POOL: each of its demands can be met, but no place was found that meets all of them",
			distance: ofPlaces,
			Remedies: []string{"relax the pod's host ports, topology spread or affinity"},
			ByItself: "when other pods move"},
	}
}

// ofNodes returns the causes of nodes that stay. POOL stands for the pool, NAME for the pod, CLAIM for a NodeClaim.
func ofNodes() []Entry {
	own := func(code cause.Code, says, byItself string, remedies ...string) Entry {
		return Entry{Code: code, Says: says, ByItself: byItself, Remedies: remedies, sentence: detail}
	}
	return append([]Entry{
		own(cause.NotManaged, "it has no NodeClaim: Joiner does not touch it", "",
			"leave it, or drain it and end its machine yourself"),
		own(cause.NotInitialized, "its machine is not launched, has not joined, or is not initialized yet",
			"when it is initialized",
			"see what holds it: joinerctl explain nodeclaim CLAIM"),
		own(cause.NodeNotReady, "it is not Ready", "when its kubelet is back, or when repair replaces it",
			"look at the node; docs/repair.md says when it is replaced"),
		own(cause.Rebooting, "its machine is rebooted to repair it, and takes no pods meanwhile",
			"when the machine is up again; if it is not, repair replaces it",
			"see how far the reboot is: joinerctl explain nodeclaim CLAIM"),
		own(cause.PoolGone, "its NodePool POOL is gone", "",
			"delete the NodeClaim to remove it, or apply the NodePool again"),
		own(cause.DoNotDisruptNode, "karpenter.sh/do-not-disrupt is set on the node or its NodeClaim", "",
			"remove the annotation from the node and from its NodeClaim"),
		own(cause.DoNotDisruptPod, "karpenter.sh/do-not-disrupt is set on pod NAME",
			"when the pod ends, or at the end of the duration, if the annotation has one",
			"remove the annotation from pod NAME, and from the template of its workload"),
		own(cause.PodDisruptionBudget, "a PodDisruptionBudget does not let a pod of the node go",
			"when more of its pods are healthy, if some are not",
			"bring its pods to health, raise their number, or allow more disruptions in the PodDisruptionBudget"),
		own(cause.IsReplacement, "it replaces CLAIM, whose pods will come here", "when those are gone", nothing),
		own(cause.ReplacementOnTheWay, "it was chosen to go, and waits for NodeClaim CLAIM",
			"when that NodeClaim is initialized; if it fails, this node stays",
			"if it takes long, see what holds that NodeClaim: joinerctl explain nodeclaim CLAIM"),
		own(cause.Draining, "it is being removed, and waits for pod NAME", "when its pods have ended",
			"see what the drain waits for: joinerctl explain nodeclaim CLAIM"),
		own(cause.PodsComing, "pods are planned onto it", "when they run, here or elsewhere", nothing),
		own(cause.KeepsRoom,
			"it has room for CapacityBuffer NAME, or for the headroom of NodePool NAME, and nothing else needs it",
			"when pods take the room, or there is room elsewhere",
			"make the CapacityBuffer smaller, or delete it; of headroom: joinerctl headroom set"),
		own(cause.Paused, "voluntary disruption is paused by ConfigMap NAME: REASON", "when the pause ends",
			"end the pause: joinerctl resume"),
		own(cause.PoolHeld, "NodePool POOL is paused: annotation joiner.sh/paused is VALUE", "",
			"remove the annotation joiner.sh/paused from NodePool POOL"),
		own(cause.BackingOff,
			"the last disruption in NodePool POOL was cancelled, and the pool is left alone for a while",
			"at the time given",
			"see why it was cancelled: events of the NodePool and of its NodeClaims"),
		own(cause.BudgetClosed, "the budgets of NodePool POOL let no node be disrupted now",
			"when a budget with a schedule begins or ends; without schedules, never",
			"raise each entry of spec.disruption.budgets of NodePool POOL that is 0 now, or wait for its end"),
		own(cause.BudgetUsedUp, "the budgets of NodePool POOL allow N at a time, and N are going or not ready",
			"when one of those is gone",
			"wait, or raise the budget in spec.disruption.budgets of NodePool POOL"),
	}, ofSaving()...)
}

// ofSaving returns those of them that are about saving money.
func ofSaving() []Entry {
	own := func(code cause.Code, says, byItself string, remedies ...string) Entry {
		return Entry{Code: code, Says: says, ByItself: byItself, Remedies: remedies, sentence: detail}
	}
	return []Entry{
		own(cause.StaticPoolNode, "NodePool POOL keeps N nodes, also empty ones", "",
			"lower spec.replicas of NodePool POOL"),
		own(cause.MinNodes,
			"NodePool POOL always keeps N nodes (annotation joiner.sh/min-nodes), and has no more to spare",
			"when the pool has more nodes", "lower the annotation joiner.sh/min-nodes of NodePool POOL, or remove it"),
		own(cause.ConsolidationOff, "NodePool POOL does not remove such nodes to save money",
			"when the node is empty, if the pool removes those",
			"set spec.disruption.consolidationPolicy: WhenEmptyOrUnderutilized in NodePool POOL, "+
				"and a consolidateAfter other than Never"),
		own(cause.QuietTime, "pods came or went, and NodePool POOL waits for its consolidateAfter",
			"at the time given",
			"wait, or lower spec.disruption.consolidateAfter of NodePool POOL"),
		own(cause.PriceUnknown, "its price is not known, so nothing can be called cheaper", "",
			"give its offering a price: in the catalogue, or by a NodeOverlay"),
		own(cause.PodFitsNowhereElse, "pod NAME would find no place elsewhere: REASON", "when there is a place",
			"do what helps a pod that waits for that cause"),
		own(cause.NothingCheaper, "its pods would cost $N/h elsewhere, and the node costs $N/h",
			"it may when prices or pods change", nothing),
		own(cause.SavingTooSmall, "replacing it would save $N/h of $N/h, less than is worth a move",
			"it may when prices or pods change",
			"if it is worth moving pods for: lower --consolidation-min-saving-percent, or --price-tolerance where more nodes would come"),
		own(cause.JustReplaced, "replacing it would save $N/h of $N/h, and it has just replaced other nodes",
			"at the time given", nothing),
		own(cause.SpotToSpotOff,
			"its pods would cost $N/h less on another spot node, and a spot node is not replaced by a spot node", "",
			"switch on the feature gate SpotToSpotConsolidation"),
		own(cause.SpotRatio, "a NodePool would have more spot nodes than its spot ratio allows",
			"when the NodePool has more on-demand nodes, or prices change",
			"raise the annotation joiner.sh/spot-ratio of that NodePool, or remove it"),
		own(cause.WaitingPodsFirst, "pods are waiting that no NodePool may launch a node for",
			"when those have a place", "make room for the pods that wait"),
		own(cause.NoReplacement, "N nodes of NodePool POOL are due to be replaced, and no room is left for what replaces "+
			"one", "when there is room", "see what makes room: joinerctl explain nodepool POOL"),
		own(cause.OthersFirst, "other nodes go first", "in a later round", nothing),
	}
}

func detail(_ string, s plan.Step) string { return s.Detail }

// Catalogue returns the causes of pods that wait, in the order of cause.WaitingCodes.
func Catalogue() []Entry { return entries() }

// NodeCatalogue returns the causes of nodes that stay, in the order of cause.StayingCodes.
func NodeCatalogue() []Entry { return ofNodes() }

// PoolCatalogue returns the causes of pools that launch nothing, in the order of cause.PoolCodes.
func PoolCatalogue() []Entry { return ofPoolsThemselves() }

// ClaimCatalogue returns the causes that hold NodeClaims, in the order of cause.ClaimCodes.
func ClaimCatalogue() []Entry { return ofClaims() }

func entryOf(code cause.Code) (Entry, bool) {
	for _, e := range slices.Concat(entries(), ofNodes(), ofPoolsThemselves(), ofClaims()) {
		if e.Code == code {
			return e, true
		}
	}
	return Entry{}, false
}
