package devices

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// features are those that kube-scheduler 1.36 enables by default, so that both get the same result.
var features = structured.Features{AdminAccess: true, ConsumableCapacity: true, DeviceBindingAndStatus: true,
	DeviceTaints: true, PartitionableDevices: true, PrioritizedList: true}

// maxSteps bounds one search of the allocator, which tries all combinations. kube-scheduler has a time limit of 10 s
// instead, but a plan must not depend on the speed of a machine. A step takes some microseconds.
const maxSteps = 200_000

// maxSelectors bounds the cache of compiled selectors.
const maxSelectors = 1000

// Objects are the objects of a cluster that decide on devices. They are only read.
type Objects struct {
	Claims  []*resourcev1.ResourceClaim
	Classes []*resourcev1.DeviceClass
	Slices  []*resourcev1.ResourceSlice
}

// Selectors keeps compiled selectors from one [State] to the next. Use [NewSelectors].
type Selectors struct{ cache *cel.Cache }

// NewSelectors returns an empty cache.
func NewSelectors() *Selectors {
	return &Selectors{cel.NewCache(maxSelectors, cel.Features{EnableConsumableCapacity: features.ConsumableCapacity})}
}

// State is the devices of a cluster, and which of them are taken. Use [New].
type State struct {
	*facts
	// given are claims that the plan has allocated so far, by namespace/name.
	given map[string]*resourcev1.AllocationResult

	once      sync.Once
	allocator structured.Allocator
	failed    error

	mu      sync.Mutex
	refused map[question]string // why
}

// question is a search that failed. Equal claims, such as those of one template, are tried only once on a node.
type question struct {
	node  *cluster.Node
	specs string
}

var _ cluster.Devices = (*State)(nil)

// facts are the objects of a State, and what was computed from them.
type facts struct {
	claims    map[string]*resourcev1.ResourceClaim // by namespace/name
	classes   map[string]*resourcev1.DeviceClass
	slices    []*resourcev1.ResourceSlice // by name
	places    []place                     // of their devices, without older generations of a pool
	selectors *Selectors
	taken     structured.AllocatedState // by allocated claims; only read

	mu       sync.Mutex
	chosen   map[string]choice  // by expression
	problems map[string]problem // of the requests of claims, by namespace/name
	specs    map[string]string  // requests as text, by namespace/name
}

// New returns the State of these objects.
func New(objects Objects, selectors *Selectors) *State {
	f := &facts{claims: map[string]*resourcev1.ResourceClaim{}, classes: map[string]*resourcev1.DeviceClass{},
		slices: slices.Clone(objects.Slices), selectors: selectors, taken: nothingTaken(), chosen: map[string]choice{},
		problems: map[string]problem{}, specs: map[string]string{}}
	slices.SortFunc(f.slices, func(a, b *resourcev1.ResourceSlice) int { return cmp.Compare(a.Name, b.Name) })
	f.places = placesIn(f.slices)
	for _, class := range objects.Classes {
		f.classes[class.Name] = class
	}
	for _, claim := range objects.Claims {
		f.claims[claim.Namespace+"/"+claim.Name] = claim
		take(&f.taken, claim.Status.Allocation)
	}
	return (&State{facts: f}).Afresh()
}

// Afresh returns the State of the same objects for another snapshot of nodes: it forgets failed searches.
func (s *State) Afresh() *State { return &State{facts: s.facts, refused: map[question]string{}} }

func nothingTaken() structured.AllocatedState {
	return structured.AllocatedState{AllocatedDevices: sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection()}
}

// take counts the devices of an allocation, nil for none, as kube-scheduler does.
func take(taken *structured.AllocatedState, allocation *resourcev1.AllocationResult) {
	if allocation == nil {
		return
	}
	for _, result := range allocation.Devices.Results {
		id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
		switch {
		case result.AdminAccess != nil && *result.AdminAccess: // it only monitors the device, and others may have it
		case result.ShareID == nil:
			taken.AllocatedDevices.Insert(id)
		default:
			taken.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, result.ShareID))
			if result.ConsumedCapacity != nil {
				taken.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, result.ConsumedCapacity))
			}
		}
	}
}

// Place implements [cluster.Devices].
func (s *State) Place(shape *cluster.Shape, node *cluster.Node) (cluster.Devices, string) {
	if code, text := s.Problem(shape); code != "" {
		return nil, text
	}
	target := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: node.Labels}}
	var waiting []*resourcev1.ResourceClaim
	for _, claim := range s.claimsOf(shape) {
		allocation := s.allocationOf(claim)
		switch {
		case allocation == nil:
			waiting = append(waiting, claim)
		case !usable(allocation, target):
			return nil, s.pinned(claim)
		}
	}
	if len(waiting) == 0 {
		return s, ""
	}
	asked := question{node: node, specs: s.specsOf(waiting)}
	if why, known := s.refusal(asked); known {
		return nil, why
	}
	allocations, err := s.allocate(target, waiting)
	switch {
	case err != nil:
		return nil, s.refuse(asked, err.Error())
	case len(allocations) != len(waiting): // the allocator returns all or none
		return nil, s.refuse(asked, "")
	}
	left := s.Afresh()
	if left.given = maps.Clone(s.given); left.given == nil {
		left.given = map[string]*resourcev1.AllocationResult{}
	}
	for i, claim := range waiting {
		left.given[keyOf(claim)] = &allocations[i]
	}
	return left, ""
}

// Breaks implements [cluster.Devices]. If a claim asks for all devices of a class, the allocator fails on a node where
// they do not go together, or are not all published yet. If some are taken it only finds nothing. Its other failures
// are the same on all nodes, see [State.Problem].
func (s *State) Breaks(shape *cluster.Shape, nodes iter.Seq[*cluster.Node]) string {
	var waiting []*resourcev1.ResourceClaim
	all := false
	for _, claim := range s.claimsOf(shape) {
		if s.allocationOf(claim) == nil {
			waiting, all = append(waiting, claim), all || asksForAll(claim)
		}
	}
	if !all {
		return ""
	}
	for node := range nodes {
		target := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: node.Labels}}
		_, err := s.allocate(target, waiting)
		if err == nil || errors.Is(err, errSteps) || errors.Is(err, structured.ErrFailedAllocationOnNode) {
			continue
		}
		return fmt.Sprintf(
			"%s: kube-scheduler gives up on the pod when it looks at node %s, whatever other nodes have: %v",
			s.Wanted(shape), node.Name, err)
	}
	return ""
}

// asksForAll reports whether a claim asks for all devices of a class on a node.
func asksForAll(claim *resourcev1.ResourceClaim) bool {
	return slices.ContainsFunc(claim.Spec.Devices.Requests, func(r resourcev1.DeviceRequest) bool {
		return r.Exactly != nil && r.Exactly.AllocationMode == resourcev1.DeviceAllocationModeAll ||
			slices.ContainsFunc(r.FirstAvailable, func(sub resourcev1.DeviceSubRequest) bool {
				return sub.AllocationMode == resourcev1.DeviceAllocationModeAll
			})
	})
}

func (s *State) refusal(asked question) (why string, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	why, known = s.refused[asked]
	return why, known
}

func (s *State) refuse(asked question, why string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused[asked] = why
	return why
}

// specsOf returns the requests of claims as text.
func (f *facts) specsOf(claims []*resourcev1.ResourceClaim) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all strings.Builder
	for _, claim := range claims {
		key := keyOf(claim)
		if _, known := f.specs[key]; !known {
			text, _ := json.Marshal(claim.Spec.Devices) // it came as JSON
			f.specs[key] = string(text)
		}
		all.WriteString(f.specs[key])
	}
	return all.String()
}

func keyOf(claim *resourcev1.ResourceClaim) string { return claim.Namespace + "/" + claim.Name }

// claimsOf returns the existing claims of a shape, each once.
func (s *State) claimsOf(shape *cluster.Shape) []*resourcev1.ResourceClaim {
	var claims []*resourcev1.ResourceClaim
	for _, wanted := range shape.Claims {
		if claim := s.claims[shape.Namespace+"/"+wanted.Object]; claim != nil && !slices.Contains(claims, claim) {
			claims = append(claims, claim)
		}
	}
	return claims
}

// allocationOf returns the allocation of a claim, by kube-scheduler or by this plan; nil for none.
func (s *State) allocationOf(claim *resourcev1.ResourceClaim) *resourcev1.AllocationResult {
	if claim.Status.Allocation != nil {
		return claim.Status.Allocation
	}
	return s.given[keyOf(claim)]
}

// usable reports whether a pod on the node can use what was allocated.
func usable(allocation *resourcev1.AllocationResult, node *corev1.Node) bool {
	if allocation.NodeSelector == nil {
		return true
	}
	selector, err := nodeaffinity.NewNodeSelector(allocation.NodeSelector)
	return err == nil && selector.Match(node)
}

// errSteps marks a search that was given up after maxSteps.
var errSteps = errors.New("steps")

// allocate asks the allocator for devices of the claims on a node.
func (s *State) allocate(node *corev1.Node,
	claims []*resourcev1.ResourceClaim) ([]resourcev1.AllocationResult, error) {
	s.once.Do(func() {
		taken := structured.AllocatedState{AllocatedDevices: s.taken.AllocatedDevices.Clone(),
			AllocatedSharedDeviceIDs: s.taken.AllocatedSharedDeviceIDs.Clone(),
			AggregatedCapacity:       s.taken.AggregatedCapacity.Clone()}
		for _, allocation := range s.given {
			take(&taken, allocation)
		}
		s.allocator, s.failed = structured.NewAllocator(quiet(), features, taken, classes(s.classes), s.slices,
			s.selectors.cache)
	})
	if s.failed != nil {
		return nil, s.failed
	}
	allocations, err := s.allocator.Allocate(&bounded{Context: quiet()}, node, claims)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("node %s has so many devices that may be right that no allocation was found within %d %w",
			node.Name, maxSteps, errSteps)
	}
	return allocations, err
}

// quiet returns a context without a logger: the allocator's messages about each device are useless here.
func quiet() context.Context { return klog.NewContext(context.Background(), logr.Discard()) }

// bounded ends after maxSteps: the allocator calls Err before each step.
type bounded struct {
	context.Context
	steps atomic.Int64
}

// Err implements [context.Context].
func (b *bounded) Err() error {
	if b.steps.Add(1) > maxSteps {
		return context.DeadlineExceeded
	}
	return nil
}

// classes lists DeviceClasses for the allocator.
type classes map[string]*resourcev1.DeviceClass

// List implements [structured.DeviceClassLister].
func (c classes) List() ([]*resourcev1.DeviceClass, error) {
	return slices.Collect(maps.Values(c)), nil
}

// Get implements [structured.DeviceClassLister].
func (c classes) Get(name string) (*resourcev1.DeviceClass, error) {
	if class := c[name]; class != nil {
		return class, nil
	}
	return nil, fmt.Errorf("DeviceClass %s does not exist", name)
}
