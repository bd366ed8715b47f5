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

// Input is a cluster at one moment. It is never changed.
type Input struct {
	// Objects are complete, as an API server returns them, with names, namespaces and UIDs.
	Objects []client.Object
	// Catalogue is what each of Classes offers. If classes differ, Offers has the catalogue of each class instead.
	Catalogue catalog.Catalog
	Classes   []world.ClassRef
	Offers    map[world.ClassRef]catalog.Catalog
	Fleet     world.Owners
	// Now is the moment. The budgets active now apply throughout.
	Now time.Time
	// Config is that of the store which a controller plans with. Its Now and Fleet do not count, see above, nor its
	// Devices: nobody allocates devices on the copy, so the next pod would get them again.
	Config world.Config
	// MinSaving, MinSavingPercent and SpotToSpot are those of engine.Terms.
	MinSaving        resources.Money
	MinSavingPercent int
	SpotToSpot       bool
	// Going gives, by name, why claims are being deleted, for the report.
	Going map[string]plan.DisruptionReason
}

// Stage is the copy on which the play takes place. Create it with [New].
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
	// moved are the pods that have left a node being removed, by its claim. The caller knows which names their
	// workloads use.
	moved  map[string][]types.NamespacedName
	going  map[string]Gone
	record Record
}

// Record is what has happened.
type Record struct {
	// Rounds counts the rounds in which something happened. Quiet says that nothing more would happen.
	Rounds int
	Quiet  bool
	// Gone are the removed nodes and Launched the new ones, each in order.
	Gone     []Gone
	Launched []Launched
	// Lost are the pods that nobody recreates.
	Lost []types.NamespacedName
	// Unlaunched says which planned launch failed; "" when all succeeded.
	Unlaunched string
}

// Gone is a removed node.
type Gone struct {
	// UID is the claim's UID: a pool with slots reuses names.
	UID               types.UID
	Claim, Node, Pool string
	// Reason and Why are the plan's. Drift is the message of a drifted claim.
	Reason           plan.DisruptionReason
	Why, Drift       string
	Type, Zone, Kind string // Kind is the capacity type
	// Round is the round in which it was chosen.
	Round int
	Pods  []types.NamespacedName
}

// Deleted is the reason of a node that was already being deleted, when no other reason is known.
const Deleted plan.DisruptionReason = "Deleted"

// Launched is a new node.
type Launched struct {
	UID              types.UID // of the claim
	Claim, Node      string
	Pool             string
	Pods             int // pods it was launched for; 0 for a replacement or a static pool's replica
	Type, Zone, Kind string
	Replaces         []string
	Round            int
}

// New returns a copy of the cluster. The error says what is wrong with the catalogue.
func New(in Input) (*Stage, error) {
	in.Going = maps.Clone(in.Going)
	s := &Stage{in: in, clock: in.Now, pods: map[types.NamespacedName]*corev1.Pod{}, nodes: map[string]*corev1.Node{},
		claims: map[string]*karpenterv1.NodeClaim{}, pools: map[string]*karpenterv1.NodePool{},
		classes: map[string]*awsv1.EC2NodeClass{}, budgets: map[types.NamespacedName]*policyv1.PodDisruptionBudget{},
		daemons: map[types.NamespacedName]*appsv1.DaemonSet{}, moved: map[string][]types.NamespacedName{},
		going: map[string]Gone{}}
	config := in.Config
	config.Now, config.Fleet, config.Devices = func() time.Time { return s.clock }, owners{in.Fleet}, false
	s.store = world.New(config)
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

// put adds or replaces an object. The caller does not change it afterwards.
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
	// Whoever made the input has reported what cannot be understood; the store holds it in a safe form.
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

// Snapshot returns the copy as the engine sees it.
func (s *Stage) Snapshot() *cluster.Snapshot { return s.store.Snapshot() }

// Record returns what has happened so far.
func (s *Stage) Record() Record { return s.record }

// Terms returns the budgets at Input.Now with the time of the play.
func (s *Stage) Terms() engine.Terms {
	snapshot := s.Snapshot()
	terms := engine.Terms{Now: s.clock.Unix(), Budgets: map[string][]engine.Budget{}, MinSaving: s.in.MinSaving,
		MinSavingPercent: s.in.MinSavingPercent, SpotToSpot: s.in.SpotToSpot}
	sizes := engine.Sizes(snapshot)
	for _, name := range sortedNames(s.pools) {
		// An unreadable budget counts as 0, as in the controller.
		terms.Budgets[name], _ = translate.ActiveBudgets(s.pools[name], s.in.Now, sizes[name])
	}
	return terms
}

// Objects returns the copy's current objects, ordered by kind, namespace and name. Do not change them.
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

// at returns the time of the play in the precision of API objects.
func (s *Stage) at() metav1.Time { return metav1.NewTime(s.clock).Rfc3339Copy() }
