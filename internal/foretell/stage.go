package foretell

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/translate"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// Input is a cluster at a moment. Nothing of it is changed.
type Input struct {
	// Objects are as an API server has them: complete, with names, namespaces and UIDs.
	Objects []client.Object
	// Catalogue is what each of Classes offers. Offers, by class, takes their place where classes differ.
	Catalogue catalog.Catalog
	Classes   []world.ClassRef
	Offers    map[world.ClassRef]catalog.Catalog
	Fleet     world.Owners
	// Now is the moment. Budgets are those of this moment throughout.
	Now time.Time
	// MinSavingPercent is that of engine.Terms.
	MinSavingPercent int
	// PriceTolerance is that of cluster.Pool, in percent.
	PriceTolerance int
	// NodeOverheadPrice is that of world.Config.
	NodeOverheadPrice resources.Money
	// MaxNodes is that of world.Config.
	MaxNodes int64
	// MaxClaims is that of world.Config.
	MaxClaims int64
	// Commitments are those of world.Config.
	Commitments []cluster.Commitment
	// Going says of claims that are being deleted, by name, why: what a report says of them.
	Going map[string]plan.DisruptionReason
}

// Stage is the copy on which the play takes place. Use [New].
type Stage struct {
	in    Input
	store *world.Store
	clock time.Time
	round int

	pods    map[types.NamespacedName]*corev1.Pod
	nodes   map[string]*corev1.Node
	claims  map[string]*karpenterv1.NodeClaim
	pools   map[string]*karpenterv1.NodePool
	classes map[string]*awsv1.EC2NodeClass
	budgets map[types.NamespacedName]*policyv1.PodDisruptionBudget
	daemons map[types.NamespacedName]*appsv1.DaemonSet
	others  []client.Object

	versions, names int
	// moved are the pods that have left a node which goes, by its claim: the workloads' own names for them are the
	// caller's.
	moved  map[string][]types.NamespacedName
	going  map[string]Gone
	record Record
}

// Record is what happened.
type Record struct {
	// Rounds counts the rounds in which something did, and Quiet says that nothing would happen any more.
	Rounds int
	Quiet  bool
	// Gone are the nodes that went, in the order in which they did, and Launched those that came.
	Gone     []Gone
	Launched []Launched
	// Lost are the pods that nobody makes again.
	Lost []types.NamespacedName
	// Unlaunched says of pools what was planned and could not be launched; "" when everything could.
	Unlaunched string
}

// Gone is a node that went.
type Gone struct {
	// UID is that of the claim: names are used again where a pool has slots.
	UID               types.UID
	Claim, Node, Pool string
	// Reason and Why are those of the plan; Drift says what a drifted node is not any more.
	Reason           plan.DisruptionReason
	Why, Drift       string
	Type, Zone, Kind string // Kind is the capacity type
	// Round is when it was chosen.
	Round int
	Pods  []types.NamespacedName
}

// Deleted is why a node goes that was being deleted before, and of which nobody said why.
const Deleted plan.DisruptionReason = "Deleted"

// Launched is a node that came.
type Launched struct {
	UID              types.UID // of the claim
	Claim, Node      string
	Pool             string
	Pods             int // for how many pods; none for one that replaces others, or for a replica of a static pool
	Type, Zone, Kind string
	Replaces         []string
	Round            int
}

// New makes a copy. The error says what of the catalogue is wrong.
func New(in Input) (*Stage, error) {
	in.Going = maps.Clone(in.Going)
	s := &Stage{in: in, clock: in.Now, pods: map[types.NamespacedName]*corev1.Pod{}, nodes: map[string]*corev1.Node{},
		claims: map[string]*karpenterv1.NodeClaim{}, pools: map[string]*karpenterv1.NodePool{},
		classes: map[string]*awsv1.EC2NodeClass{}, budgets: map[types.NamespacedName]*policyv1.PodDisruptionBudget{},
		daemons: map[types.NamespacedName]*appsv1.DaemonSet{}, moved: map[string][]types.NamespacedName{},
		going: map[string]Gone{}}
	s.store = world.New(world.Config{Now: func() time.Time { return s.clock }, Fleet: in.Fleet,
		PriceTolerance: in.PriceTolerance, NodeOverheadPrice: in.NodeOverheadPrice, MaxNodes: in.MaxNodes,
		MaxClaims: in.MaxClaims, Commitments: in.Commitments})
	if in.Offers == nil {
		s.in.Offers = map[world.ClassRef]catalog.Catalog{}
		for _, class := range in.Classes {
			s.in.Offers[class] = in.Catalogue
		}
	}
	for class, offered := range s.in.Offers {
		if err := s.store.SetCatalog(class, offered); err != nil {
			return nil, fmt.Errorf("the catalogue: %w", err)
		}
	}
	objects := slices.Clone(in.Objects)
	slices.SortStableFunc(objects, func(a, b client.Object) int {
		return cmp.Or(strings.Compare(kindOf(a), kindOf(b)), strings.Compare(a.GetNamespace(), b.GetNamespace()),
			strings.Compare(a.GetName(), b.GetName()))
	})
	for _, o := range objects {
		s.put(o.DeepCopyObject().(client.Object))
	}
	s.pastNames()
	for _, key := range sortedKeys(s.pods) {
		switch pod := s.pods[key]; {
		case translate.Finished(pod):
			s.remove(pod)
		case pod.DeletionTimestamp != nil:
			s.release(pod)
		}
	}
	return s, nil
}

func kindOf(o client.Object) string { return fmt.Sprintf("%T", o) }

func keyOf(o client.Object) types.NamespacedName { return client.ObjectKeyFromObject(o) }

// put makes an object what the copy has. The caller does not change it afterwards.
func (s *Stage) put(o client.Object) {
	s.versions++
	o.SetResourceVersion(strconv.Itoa(s.versions))
	switch o := o.(type) {
	case *corev1.Pod:
		s.pods[keyOf(o)] = o
	case *corev1.Node:
		s.nodes[o.Name] = o
	case *karpenterv1.NodeClaim:
		s.claims[o.Name] = o
	case *karpenterv1.NodePool:
		s.pools[o.Name] = o
	case *awsv1.EC2NodeClass:
		s.classes[o.Name] = o
	case *policyv1.PodDisruptionBudget:
		s.budgets[keyOf(o)] = o
	case *appsv1.DaemonSet:
		s.daemons[keyOf(o)] = o
	default:
		s.others = append(s.others, o)
	}
	// What cannot be understood was told by who made the input; the store holds it in a form that is safe.
	_ = s.store.Apply(o)
}

func (s *Stage) remove(o client.Object) {
	switch o := o.(type) {
	case *corev1.Pod:
		delete(s.pods, keyOf(o))
	case *corev1.Node:
		delete(s.nodes, o.Name)
	case *karpenterv1.NodeClaim:
		delete(s.claims, o.Name)
	}
	s.store.Remove(o)
}

// Snapshot is the copy as the engine sees it.
func (s *Stage) Snapshot() *cluster.Snapshot { return s.store.Snapshot() }

// Record is what happened so far.
func (s *Stage) Record() Record { return s.record }

// Terms are the budgets of the moment, and that all quiet time has passed which had by then.
func (s *Stage) Terms() engine.Terms {
	snapshot := s.Snapshot()
	terms := engine.Terms{Now: s.clock.Unix(), Budgets: map[string][]engine.Budget{},
		MinSavingPercent: s.in.MinSavingPercent}
	sizes := engine.Sizes(snapshot)
	for _, name := range sortedNames(s.pools) {
		// A budget that cannot be read counts as one of 0, as the controller has it.
		terms.Budgets[name], _ = translate.ActiveBudgets(s.pools[name], s.in.Now, sizes[name])
	}
	return terms
}

// Objects are what the copy consists of by now, ordered by kind, namespace and name. Nobody changes them.
func (s *Stage) Objects() []client.Object {
	list := slices.Clone(s.others)
	list = appendAll(list, s.pods)
	list = appendAll(list, s.nodes)
	list = appendAll(list, s.claims)
	list = appendAll(list, s.pools)
	list = appendAll(list, s.classes)
	list = appendAll(list, s.budgets)
	list = appendAll(list, s.daemons)
	slices.SortStableFunc(list, func(a, b client.Object) int {
		return cmp.Or(strings.Compare(kindOf(a), kindOf(b)), strings.Compare(a.GetNamespace(), b.GetNamespace()),
			strings.Compare(a.GetName(), b.GetName()))
	})
	return list
}

func appendAll[K comparable, O client.Object](list []client.Object, more map[K]O) []client.Object {
	for _, o := range more {
		list = append(list, o)
	}
	return list
}

func sortedKeys[O any](m map[types.NamespacedName]O) []types.NamespacedName {
	return slices.SortedFunc(maps.Keys(m), func(a, b types.NamespacedName) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
}

func sortedNames[O any](m map[string]O) []string { return slices.Sorted(maps.Keys(m)) }

// fresh returns a UID that no object has.
func (s *Stage) fresh(of string) types.UID {
	s.versions++
	return types.UID(fmt.Sprintf("foretold-%s-%d", of, s.versions))
}

// at is the time of the play, as objects have it.
func (s *Stage) at() metav1.Time { return metav1.NewTime(s.clock).Rfc3339Copy() }
