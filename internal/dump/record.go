package dump

// Records of a file. Their names in JSON are an API: fields are added, not renamed.

// Format names the format. A reader of version n reads versions 1 to n.
const Format = "dump.joiner.sh/v1"

// Header is the first line.
type Header struct {
	Format string `json:"format"`
	// Program is the version of the program that wrote the file.
	Program string `json:"program"`
	// Source says where the picture comes from.
	Source Source `json:"source"`
	// Redaction says what was taken away.
	Redaction Redaction `json:"redaction"`
	// NotRead says of a rebuilt picture what it lacks: kinds that nobody was allowed to read.
	NotRead []string `json:"notRead,omitempty"`
	// SHA256 is that of the lines after this one, in hexadecimal.
	SHA256 string `json:"sha256"`
}

// Source is where a picture comes from.
type Source string

// The sources: what a controller planned with, and what was made from the objects of an API server or of files.
const (
	FromController Source = "controller"
	Rebuilt        Source = "rebuilt"
)

// Redaction is what was taken away.
type Redaction string

// The redactions; docs/dump.md says what each takes away.
const (
	RedactNone  Redaction = "none"
	RedactNames Redaction = "names"
	RedactAll   Redaction = "all"
)

// line is a line after the first: one of its fields is set.
type line struct {
	Picture   *pictureRecord   `json:"picture,omitempty"`
	Catalogue *catalogueRecord `json:"catalogue,omitempty"`
	Namespace *namespaceRecord `json:"namespace,omitempty"`
	Pool      *poolRecord      `json:"pool,omitempty"`
	Shape     *shapeRecord     `json:"shape,omitempty"`
	Daemon    *daemonRecord    `json:"daemon,omitempty"`
	Node      *nodeRecord      `json:"node,omitempty"`
	Guard     *guardRecord     `json:"podDisruptionBudget,omitempty"`
	Hold      *holdRecord      `json:"hold,omitempty"`
	Plan      *planRecord      `json:"plan,omitempty"`
}

// pictureRecord is what a snapshot has once, and the options of planning.
type pictureRecord struct {
	Version   uint64   `json:"version"`
	Resources []string `json:"resources"` // the names behind each vector
	// Pending and Repelling are positions in the list of all pods, in the order of their lines.
	Pending   []int `json:"pending,omitempty"`
	Repelling []int `json:"repelling,omitempty"`
	// Buffers are positions like those of Pending: pods that stand for room of CapacityBuffers (K-37).
	Buffers []int         `json:"buffers,omitempty"`
	Options optionsRecord `json:"options"`
	// MaxNodes is --max-nodes, and Unseen counts the NodeClaims that count for it and have no line (K-53).
	MaxNodes int64 `json:"maxNodes,omitempty"`
	Unseen   int64 `json:"unseenClaims,omitempty"`
	// MaxClaims is the hard limit of the whole cluster, and Claims what counts for it (K-53).
	MaxClaims int64 `json:"maxClaims,omitempty"`
	Claims    int64 `json:"claims,omitempty"`
	// ClaimsUnknown is why the hard limit is not known.
	ClaimsUnknown string `json:"claimsUnknown,omitempty"`
	// Capacities and FreeVolumes are the storage for volumes that are still to come (K-58, K-59).
	Capacities  []capacityRecord   `json:"capacities,omitempty"`
	FreeVolumes []freeVolumeRecord `json:"freeVolumes,omitempty"`
	// Commitments are in the order of their use (K-55).
	Commitments []commitmentRecord `json:"commitments,omitempty"`
}

// commitmentRecord is capacity that is paid for whether nodes use it or not. Offers of catalogues do not repeat which
// of them it covers: that follows from Requirements.
type commitmentRecord struct {
	Name         string              `json:"name"`
	Requirements []requirementRecord `json:"requirements,omitempty"`
	PerHour      int64               `json:"perHour,omitempty"` // micro-dollars per hour at the price on demand
	Instances    int64               `json:"instances,omitempty"`
}

type optionsRecord struct {
	Now              int64                     `json:"now"` // Unix seconds
	MinSaving        int64                     `json:"minSaving,omitempty"`
	MinSavingPercent int                       `json:"minSavingPercent,omitempty"`
	SpotToSpot       bool                      `json:"spotToSpot,omitempty"`
	Budgets          map[string][]budgetRecord `json:"budgets,omitempty"` // by pool
	Passing          []string                  `json:"passing,omitempty"` // pools, sorted
	Turn             int                       `json:"turn,omitempty"`
	Again            bool                      `json:"again,omitempty"`
}

type budgetRecord struct {
	Reasons []string `json:"reasons,omitempty"`
	Max     int      `json:"max"`
}

type catalogueRecord struct {
	WellKnown []string      `json:"wellKnown,omitempty"`
	Types     []typeRecord  `json:"types,omitempty"`
	Offers    []offerRecord `json:"offers,omitempty"`
}

type typeRecord struct {
	Name        string  `json:"name"`
	Capacity    []int64 `json:"capacity,omitempty"`
	Allocatable []int64 `json:"allocatable,omitempty"`
	// Labels are those that all offers of the type have alike.
	Labels []requirementRecord `json:"labels,omitempty"`
}

type offerRecord struct {
	Type         int                 `json:"type"` // position in Types
	Zone         string              `json:"zone"`
	CapacityType string              `json:"capacityType"`
	Price        int64               `json:"price"` // micro-dollars per hour
	SoldOut      bool                `json:"soldOut,omitempty"`
	Reservation  int                 `json:"reservation,omitempty"`
	Labels       []requirementRecord `json:"labels,omitempty"` // beside those of the type
}

// requirementRecord is a set of values of a label. In lists the values. With Open every value is allowed except those
// of NotIn; with a bound only integers are.
type requirementRecord struct {
	Key    string   `json:"key"`
	Absent bool     `json:"absent,omitempty"`
	In     []string `json:"in,omitempty"`
	Open   bool     `json:"open,omitempty"`
	NotIn  []string `json:"notIn,omitempty"`
	Gte    *int64   `json:"gte,omitempty"`
	Lte    *int64   `json:"lte,omitempty"`
}

type namespaceRecord struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
}

type poolRecord struct {
	Name         string              `json:"name"`
	UID          string              `json:"uid,omitempty"`
	Weight       int32               `json:"weight,omitempty"`
	Blocked      string              `json:"blocked,omitempty"`
	BlockedBy    string              `json:"blockedBy,omitempty"`
	Requirements []requirementRecord `json:"requirements,omitempty"`
	Taints       []taintRecord       `json:"taints,omitempty"`
	// position of its line among those of catalogues
	Catalogue         *int              `json:"catalogue,omitempty"`
	Limits            limitsRecord      `json:"limits"`
	Used              usageRecord       `json:"used"`
	MinValues         []minValuesRecord `json:"minValues,omitempty"`
	RelaxMinValues    bool              `json:"relaxMinValues,omitempty"`
	FreeSlots         []int             `json:"freeSlots"`  // null: the pool has no slots
	SurgeSlots        []int             `json:"surgeSlots"` // the same
	Static            bool              `json:"static,omitempty"`
	Replicas          int64             `json:"replicas,omitempty"`
	MinNodes          int64             `json:"minNodes,omitempty"`
	Dormant           bool              `json:"dormant,omitempty"`
	Gentle            bool              `json:"gentle,omitempty"`
	Held              bool              `json:"held,omitempty"`
	Invalid           bool              `json:"invalid,omitempty"`
	ExpiresGracefully bool              `json:"expiresGracefully,omitempty"`
	NoneFirst         bool              `json:"noneFirst,omitempty"`
	TerminateFirst    bool              `json:"terminateFirst,omitempty"`
	Consolidates      int               `json:"consolidates,omitempty"`
	PriceTolerance    int               `json:"priceTolerance,omitempty"`
	LocalVolumes      bool              `json:"localVolumes,omitempty"`
	NodeOverheadPrice int64             `json:"nodeOverheadPrice,omitempty"` // micro-dollars per hour
	OnDemandPercent   int               `json:"onDemandPercent,omitempty"`   // percent that must not be spot
}

type limitsRecord struct {
	Resources []int64 `json:"resources,omitempty"`
	Limited   []bool  `json:"limited,omitempty"`
	SoftNodes int64   `json:"softNodes"`
	HardNodes int64   `json:"hardNodes"`
}

type usageRecord struct {
	Nodes    int64   `json:"nodes"`
	Capacity []int64 `json:"capacity,omitempty"`
}

type minValuesRecord struct {
	Key   string `json:"key"`
	Count int    `json:"count"`
}

type taintRecord struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
}

// shapeRecord is what a group of equal pods asks for, and these pods.
type shapeRecord struct {
	Namespace    string              `json:"namespace"`
	Labels       map[string]string   `json:"labels,omitempty"`
	Requests     []int64             `json:"requests,omitempty"`
	Alternatives []alternativeRecord `json:"alternatives,omitempty"`
	// Narrowed says that Alternatives are what volumes left of Own.
	Narrowed     bool                `json:"narrowed,omitempty"`
	Own          []alternativeRecord `json:"own,omitempty"`
	Blocked      string              `json:"blocked,omitempty"`
	BlockedBy    string              `json:"blockedBy,omitempty"`
	Volumes      []volumeRefRecord   `json:"volumes,omitempty"`
	NewVolumes   []newVolumeRecord   `json:"newVolumes,omitempty"`
	Drivers      []string            `json:"drivers,omitempty"` // CSI drivers
	Buffer       string              `json:"buffer,omitempty"`  // namespace/name of a CapacityBuffer
	Tolerations  []tolerationRecord  `json:"tolerations,omitempty"`
	HostPorts    []portRecord        `json:"hostPorts,omitempty"`
	Spread       []spreadRecord      `json:"spread,omitempty"`
	Affinity     []termRecord        `json:"affinity,omitempty"`
	AntiAffinity []termRecord        `json:"antiAffinity,omitempty"`
	Wishes       []wishRecord        `json:"wishes,omitempty"`
	SoftSpread   []spreadRecord      `json:"softSpread,omitempty"`
	Pods         []podRecord         `json:"pods,omitempty"`
}

type alternativeRecord struct {
	Labels []requirementRecord `json:"labels,omitempty"`
	Names  requirementRecord   `json:"names"`
}

type tolerationRecord struct {
	Key      string `json:"key,omitempty"`
	Operator string `json:"operator,omitempty"`
	Value    string `json:"value,omitempty"`
	Effect   string `json:"effect,omitempty"`
}

type portRecord struct {
	IP       string `json:"ip,omitempty"`
	Protocol string `json:"protocol,omitempty"`
	Port     int32  `json:"port"`
}

type selectorRecord struct {
	Enabled bool                `json:"enabled,omitempty"`
	Labels  []requirementRecord `json:"labels,omitempty"`
}

type spreadRecord struct {
	Key            string         `json:"key"`
	Pods           selectorRecord `json:"pods"`
	MaxSkew        int32          `json:"maxSkew"`
	MinDomains     int32          `json:"minDomains,omitempty"`
	IgnoreAffinity bool           `json:"ignoreAffinity,omitempty"`
	HonorTaints    bool           `json:"honorTaints,omitempty"`
}

type termRecord struct {
	Key               string         `json:"key,omitempty"`
	Pods              selectorRecord `json:"pods"`
	Namespaces        []string       `json:"namespaces,omitempty"`
	NamespaceSelector selectorRecord `json:"namespaceSelector"`
}

type wishRecord struct {
	Weight int32               `json:"weight"`
	Labels []requirementRecord `json:"labels,omitempty"`
	Term   termRecord          `json:"term"`
	Apart  bool                `json:"apart,omitempty"`
}

type podRecord struct {
	UID          string `json:"uid,omitempty"`
	Namespace    string `json:"namespace"`
	Name         string `json:"name"`
	Priority     int32  `json:"priority,omitempty"`
	DeletionCost int32  `json:"deletionCost,omitempty"`
	Created      int64  `json:"created,omitempty"`
	Node         string `json:"node,omitempty"`
	Promised     string `json:"promised,omitempty"`
	PassedOver   string `json:"passedOver,omitempty"`
	Daemon       string `json:"daemon,omitempty"`
	Fixed        bool   `json:"fixed,omitempty"`
	DoNotDisrupt bool   `json:"doNotDisrupt,omitempty"`
	Terminating  bool   `json:"terminating,omitempty"`
	Returns      bool   `json:"returns,omitempty"`
}

type daemonRecord struct {
	Name   string       `json:"name"`
	Shape  int          `json:"shape"` // position of its line among those of shapes
	Seen   []seenRecord `json:"seen,omitempty"`
	Learnt []seenRecord `json:"learnt,omitempty"`
}

type seenRecord struct {
	Pool     string  `json:"pool,omitempty"`
	Type     string  `json:"type,omitempty"`
	Requests []int64 `json:"requests"`
}

type nodeRecord struct {
	// List is "leaving" or "closed" for a node that a what-if has set aside, otherwise "".
	List             string              `json:"list,omitempty"`
	Name             string              `json:"name,omitempty"`
	Claim            string              `json:"claim,omitempty"`
	ClaimUID         string              `json:"claimUID,omitempty"`
	Pool             string              `json:"pool,omitempty"`
	Labels           map[string]string   `json:"labels,omitempty"`
	Open             []requirementRecord `json:"open,omitempty"`
	Taints           []taintRecord       `json:"taints,omitempty"`
	Allocatable      []int64             `json:"allocatable,omitempty"`
	Pods             []int               `json:"pods,omitempty"`   // positions in the list of all pods
	Coming           []int               `json:"coming,omitempty"` // the same
	Used             []int64             `json:"used,omitempty"`
	Ports            []portRecord        `json:"ports,omitempty"`
	Attached         []string            `json:"attached,omitempty"` // volumes
	Drivers          []string            `json:"drivers,omitempty"`  // CSI drivers
	Fresh            bool                `json:"fresh,omitempty"`
	Initialized      bool                `json:"initialized,omitempty"`
	Launched         bool                `json:"launched,omitempty"`
	Registered       bool                `json:"registered,omitempty"`
	RegisteredAt     int64               `json:"registeredAt,omitempty"`
	Foreign          bool                `json:"foreign,omitempty"`
	Drifted          bool                `json:"drifted,omitempty"`
	Expired          bool                `json:"expired,omitempty"`
	For              []string            `json:"for,omitempty"`
	Replaces         []string            `json:"replaces,omitempty"`
	Replaced         bool                `json:"replaced,omitempty"`
	Together         int                 `json:"together,omitempty"`
	Deleting         bool                `json:"deleting,omitempty"`
	Disrupting       bool                `json:"disrupting,omitempty"`
	Rebooting        bool                `json:"rebooting,omitempty"`
	NotReady         bool                `json:"notReady,omitempty"`
	DoNotDisrupt     bool                `json:"doNotDisrupt,omitempty"`
	DrainEnds        bool                `json:"drainEnds,omitempty"`
	Held             string              `json:"held,omitempty"`
	ConsolidatableAt int64               `json:"consolidatableAt,omitempty"`
	Created          int64               `json:"created,omitempty"`
	InstanceType     string              `json:"instanceType,omitempty"`
	Price            *int64              `json:"price,omitempty"` // micro-dollars per hour; missing when not known
}

type guardRecord struct {
	Namespace string         `json:"namespace"`
	Name      string         `json:"name"`
	Pods      selectorRecord `json:"pods"`
	AtOnce    int            `json:"atOnce"`
}

type holdRecord struct {
	Pool string `json:"pool"`
	Ask  string `json:"ask"`
	Why  string `json:"why"`
}

// planRecord is the engine's answer to one question.
type planRecord struct {
	Question    string           `json:"question"`
	BasedOn     uint64           `json:"basedOn"`
	Launches    []launchRecord   `json:"launches,omitempty"`
	Nominations []nominateRecord `json:"nominations,omitempty"`
	Unplaced    []unplacedRecord `json:"unplaced,omitempty"`
	Removes     []removeRecord   `json:"removes,omitempty"`
	Stays       []stayRecord     `json:"stays,omitempty"`
	Held        map[string]int   `json:"held,omitempty"`
	Order       []string         `json:"order,omitempty"`
	// Room and NoRoom are the results for the snapshot's Buffers.
	Room   []nominateRecord `json:"room,omitempty"`
	NoRoom []unplacedRecord `json:"noRoom,omitempty"`
}

type refRecord struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
}

type launchRecord struct {
	Pool          string              `json:"pool"`
	PoolUID       string              `json:"poolUID,omitempty"`
	Slot          int                 `json:"slot"`
	Requirements  []requirementRecord `json:"requirements,omitempty"`
	Types         []string            `json:"types,omitempty"`
	Relaxed       map[string]int      `json:"relaxed,omitempty"`
	Labels        map[string]string   `json:"labels,omitempty"`
	Requests      []int64             `json:"requests,omitempty"`
	Reserve       []int64             `json:"reserve,omitempty"`
	Pods          []refRecord         `json:"pods,omitempty"`
	Room          []refRecord         `json:"room,omitempty"` // of the picture's Buffers
	For           []string            `json:"for,omitempty"`
	Drivers       []string            `json:"drivers,omitempty"` // CSI drivers
	Replaces      []string            `json:"replaces,omitempty"`
	Together      int                 `json:"together,omitempty"`
	Cheapest      choiceRecord        `json:"cheapest"`
	Zones         []string            `json:"zones,omitempty"`
	CapacityTypes []string            `json:"capacityTypes,omitempty"`
}

type choiceRecord struct {
	Type         string `json:"type"`
	Zone         string `json:"zone"`
	CapacityType string `json:"capacityType"`
	Price        int64  `json:"price"`
	// Commitment pays this much in addition to the price.
	Commitment string `json:"commitment,omitempty"`
	Pays       int64  `json:"pays,omitempty"`
}

type nominateRecord struct {
	Pod  refRecord `json:"pod"`
	Node string    `json:"node"`
}

type unplacedRecord struct {
	Pod   refRecord       `json:"pod"`
	Pools []refusalRecord `json:"pools,omitempty"`
	Nodes int             `json:"nodes"`
}

type refusalRecord struct {
	Pool   string       `json:"pool"`
	Steps  []stepRecord `json:"steps,omitempty"`
	Beyond string       `json:"beyond,omitempty"`
}

type stepRecord struct {
	Demand string `json:"demand"`
	Cause  string `json:"cause"`
	Key    string `json:"key,omitempty"`
	Detail string `json:"detail,omitempty"`
	Before int    `json:"before"`
	Left   int    `json:"left"`
	Never  bool   `json:"never,omitempty"`
}

type removeRecord struct {
	Claim    string `json:"claim"`
	ClaimUID string `json:"claimUID,omitempty"`
	Node     string `json:"node,omitempty"`
	Pool     string `json:"pool"`
	Reason   string `json:"reason"`
	Price    *int64 `json:"price,omitempty"`
	First    string `json:"first,omitempty"`
	Why      string `json:"why,omitempty"`
}

type stayRecord struct {
	Claim    string `json:"claim"`
	ClaimUID string `json:"claimUID,omitempty"`
	Why      string `json:"why"`
	// Lead and Homeless are the parts of Why if a pod would find no place.
	Lead     string          `json:"lead,omitempty"`
	Homeless *unplacedRecord `json:"homeless,omitempty"`
}
