// Package apiserver is an API server in memory, for the simulation: the kinds that the controllers use, with the
// semantics that they rely on. It stores immutable values and hands out typed deep copies, so that a call costs
// microseconds. It has no goroutine, and takes all randomness from the caller's source.
//
//	kinds.go     what the kinds are, and how they differ
//	server.go    create, update, delete; resource versions, generations, finalizers
//	patch.go     merge patches and JSON patches on typed objects
//	admission.go what a pod is given when it is created
//	eviction.go  pods/eviction against PodDisruptionBudgets
//	watch.go     the log of events, and watches on it
//	client.go    the server as a client.Client
//	cache.go     a cache that follows the log as late as it is told to
//
// The suite in internal/sim/apisemantics runs against this server and the real kube-apiserver, to keep both alike. The
// server does not validate objects against the schema of their kind. Start with [New].
package apiserver

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Config configures a Server; all fields are required.
type Config struct {
	Kinds *Kinds
	Now   func() time.Time
	Rand  *rand.Rand
}

// Server is the API server. It is not safe for concurrent use: the simulation makes one call at a time.
type Server struct {
	config   Config
	kinds    *Kinds
	version  uint64
	uids     uint64
	stores   map[*kind]*store
	log      []Event
	watchers []*watcher
	observer func(Event)
	forbids  func(client.Object) string
}

// store holds the objects of one kind. keys are sorted, so that lists are.
type store struct {
	objects map[client.ObjectKey]client.Object
	keys    []client.ObjectKey
}

// New returns an empty server.
func New(config Config) *Server {
	s := &Server{config: config, kinds: config.Kinds, stores: map[*kind]*store{}}
	for _, k := range s.kinds.byName {
		s.stores[k] = &store{objects: map[client.ObjectKey]client.Object{}}
	}
	return s
}

// Observe makes the server call observe after each change, within the call that made the change.
func (s *Server) Observe(observe func(Event)) { s.observer = observe }

// Forbid installs an admission policy of users: it says why an object must not be created, or "".
func (s *Server) Forbid(why func(client.Object) string) { s.forbids = why }

func compareKeys(a, b client.ObjectKey) int {
	if a.Namespace != b.Namespace {
		if a.Namespace < b.Namespace {
			return -1
		}
		return 1
	}
	switch {
	case a.Name < b.Name:
		return -1
	case a.Name > b.Name:
		return 1
	}
	return 0
}

func (t *store) put(key client.ObjectKey, object client.Object) {
	if _, known := t.objects[key]; !known {
		i, _ := slices.BinarySearchFunc(t.keys, key, compareKeys)
		t.keys = slices.Insert(t.keys, i, key)
	}
	t.objects[key] = object
}

func (t *store) drop(key client.ObjectKey) {
	delete(t.objects, key)
	if i, found := slices.BinarySearchFunc(t.keys, key, compareKeys); found {
		t.keys = slices.Delete(t.keys, i, i+1)
	}
}

// kindOf returns the kind of an object. It fails for kinds that the server does not serve.
func (s *Server) kindOf(object client.Object) (*kind, error) {
	if k := s.kinds.of(object); k != nil {
		return k, nil
	}
	return nil, fmt.Errorf("the simulated API server does not serve %T", object)
}

// Peek returns the stored object itself, or nil. It must not be changed.
func (s *Server) Peek(like client.Object, key client.ObjectKey) client.Object {
	k, err := s.kindOf(like)
	if err != nil {
		return nil
	}
	return s.stores[k].objects[key]
}

// All calls visit with each stored object of a kind, in the order of keys. The objects must not be changed.
func (s *Server) All(like client.Object, visit func(client.Object)) {
	k, err := s.kindOf(like)
	if err != nil {
		return
	}
	t := s.stores[k]
	for _, key := range slices.Clone(t.keys) {
		if object, stands := t.objects[key]; stands {
			visit(object)
		}
	}
}

// Any reports whether an object of the kind is stored.
func (s *Server) Any(like client.Object) bool {
	k, err := s.kindOf(like)
	return err == nil && len(s.stores[k].keys) > 0
}

// Create stores the object. From then on it belongs to the server.
func (s *Server) Create(object client.Object) error {
	k, err := s.kindOf(object)
	if err != nil {
		return err
	}
	if object.GetResourceVersion() != "" {
		return apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	if object.GetName() == "" {
		if object.GetGenerateName() == "" {
			return apierrors.NewInvalid(k.gvk.GroupKind(), "",
				field.ErrorList{field.Required(field.NewPath("metadata", "name"), "name or generateName is required")})
		}
		object.SetName(object.GetGenerateName() + s.suffix())
	}
	key := client.ObjectKeyFromObject(object)
	if s.stores[k].objects[key] != nil {
		return apierrors.NewAlreadyExists(k.resource, key.Name)
	}
	if s.forbids != nil {
		if why := s.forbids(object); why != "" {
			return apierrors.NewForbidden(k.resource, key.Name, errors.New(why))
		}
	}
	if k.rules.custom {
		k.keepStatus(object, k.empty())
	}
	if pod, ok := object.(*corev1.Pod); ok {
		s.admit(pod)
	}
	if limits, ok := object.(*corev1.LimitRange); ok {
		complete(limits)
	}
	s.uids++
	object.SetUID(types.UID(fmt.Sprintf("%08x-%04x-4000-8000-%012x", s.config.Rand.Uint32(), s.uids&0xffff, s.uids)))
	object.SetCreationTimestamp(s.now())
	object.SetDeletionTimestamp(nil)
	object.SetDeletionGracePeriodSeconds(nil)
	object.SetGeneration(0)
	if k.rules.generations {
		object.SetGeneration(1)
	}
	s.commit(k, Added, nil, object)
	return nil
}

// now returns the time with the precision of the API: whole seconds.
func (s *Server) now() metav1.Time { return metav1.NewTime(s.config.Now().Truncate(time.Second)) }

// suffix returns a random suffix for generateName.
func (s *Server) suffix() string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	text := make([]byte, 5)
	for i := range text {
		text[i] = letters[s.config.Rand.IntN(len(letters))]
	}
	return string(text)
}

// commit stores an object with a new resource version, and publishes the event. From then on the object belongs to the
// server.
func (s *Server) commit(k *kind, what EventType, old, object client.Object) {
	s.version++
	object.SetResourceVersion(strconv.FormatUint(s.version, 10))
	key := client.ObjectKeyFromObject(object)
	if what == Deleted {
		s.stores[k].drop(key)
	} else {
		s.stores[k].put(key, object)
	}
	s.publish(Event{Version: s.version, Type: what, Object: object, Old: old, kind: k})
}

// Part is the part of an object that a write may change.
type Part int

// The main resource, and its status subresource.
const (
	Main Part = iota
	Status
)

// Update replaces a part of the object. From then on the object belongs to the server.
func (s *Server) Update(object client.Object, part Part) error {
	_, err := s.update(object, part)
	return err
}

// update is Update; it also returns what is stored then.
func (s *Server) update(object client.Object, part Part) (client.Object, error) {
	k, err := s.kindOf(object)
	if err != nil {
		return nil, err
	}
	old := s.stores[k].objects[client.ObjectKeyFromObject(object)]
	if old == nil {
		return nil, apierrors.NewNotFound(k.resource, object.GetName())
	}
	if object.GetResourceVersion() == "" && k.rules.custom {
		return nil, apierrors.NewInvalid(k.gvk.GroupKind(), object.GetName(), field.ErrorList{
			field.Invalid(field.NewPath("metadata", "resourceVersion"), "", "must be specified for an update")})
	}
	return s.write(k, old, object, part)
}

// write stores the new state of an existing object, and returns what is stored then. fresh belongs to the server.
func (s *Server) write(k *kind, old, fresh client.Object, part Part) (client.Object, error) {
	if version := fresh.GetResourceVersion(); version != "" && version != old.GetResourceVersion() {
		return nil, apierrors.NewConflict(k.resource, old.GetName(),
			errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	}
	if uid := fresh.GetUID(); uid != "" && uid != old.GetUID() {
		return nil, apierrors.NewConflict(k.resource, old.GetName(),
			fmt.Errorf("precondition failed: UID in precondition: %v, UID in object meta: %v", uid, old.GetUID()))
	}
	if part == Status {
		k.keepAllButStatus(fresh, old)
	} else {
		k.keepStatus(fresh, old)
	}
	keepMeta(fresh, old)
	if err := s.checkFinalizers(k, old, fresh); err != nil {
		return nil, err
	}
	same := part == Status && k.sameStatus(old, fresh) || part == Main && k.sameRest(old, fresh)
	if part == Main && !same && k.rules.generations {
		fresh.SetGeneration(old.GetGeneration() + 1)
	}
	if fresh.GetDeletionTimestamp() != nil && len(fresh.GetFinalizers()) == 0 && graceOver(fresh) {
		s.commit(k, Deleted, old, fresh)
		return fresh, nil
	}
	if same && (part == Status || sameMeta(old, fresh)) {
		return old, nil
	}
	s.commit(k, Modified, old, fresh)
	return fresh, nil
}

// keepMeta resets the metadata that no writer may change.
func keepMeta(fresh, old client.Object) {
	fresh.SetUID(old.GetUID())
	fresh.SetResourceVersion(old.GetResourceVersion())
	fresh.SetCreationTimestamp(old.GetCreationTimestamp())
	fresh.SetDeletionTimestamp(old.GetDeletionTimestamp().DeepCopy())
	fresh.SetGeneration(old.GetGeneration())
	if grace := old.GetDeletionGracePeriodSeconds(); grace != nil {
		fresh.SetDeletionGracePeriodSeconds(new(*grace))
	} else {
		fresh.SetDeletionGracePeriodSeconds(nil)
	}
}

// sameMeta compares the metadata that writers may change.
func sameMeta(a, b client.Object) bool {
	grace, other := a.GetDeletionGracePeriodSeconds(), b.GetDeletionGracePeriodSeconds()
	return maps.Equal(a.GetLabels(), b.GetLabels()) && maps.Equal(a.GetAnnotations(), b.GetAnnotations()) &&
		slices.Equal(a.GetFinalizers(), b.GetFinalizers()) && a.GetGenerateName() == b.GetGenerateName() &&
		a.GetGeneration() == b.GetGeneration() &&
		a.GetDeletionTimestamp().Equal(b.GetDeletionTimestamp()) &&
		(grace == other || grace != nil && other != nil && *grace == *other) &&
		equality.Semantic.DeepEqual(a.GetOwnerReferences(), b.GetOwnerReferences()) &&
		equality.Semantic.DeepEqual(a.GetManagedFields(), b.GetManagedFields())
}

// graceOver reports whether only finalizers keep an object that is being deleted.
func graceOver(object client.Object) bool {
	grace := object.GetDeletionGracePeriodSeconds()
	return grace == nil || *grace == 0
}

func (s *Server) checkFinalizers(k *kind, old, fresh client.Object) error {
	if old.GetDeletionTimestamp() == nil {
		return nil
	}
	for _, finalizer := range fresh.GetFinalizers() {
		if !slices.Contains(old.GetFinalizers(), finalizer) {
			return apierrors.NewInvalid(k.gvk.GroupKind(), old.GetName(), field.ErrorList{
				field.Forbidden(field.NewPath("metadata", "finalizers"),
					"no new finalizers can be added if the object is being deleted, found new finalizer "+finalizer)})
		}
	}
	return nil
}

// DeleteOptions are preconditions and the grace period of a deletion; nil means none.
type DeleteOptions struct {
	UID, ResourceVersion *string
	GraceSeconds         *int64 // pods only
}

// Delete deletes an object. If finalizers or a grace period keep it, the deletion only begins.
func (s *Server) Delete(like client.Object, key client.ObjectKey, options DeleteOptions) error {
	k, err := s.kindOf(like)
	if err != nil {
		return err
	}
	old := s.stores[k].objects[key]
	if old == nil {
		return apierrors.NewNotFound(k.resource, key.Name)
	}
	if options.UID != nil && *options.UID != string(old.GetUID()) {
		return apierrors.NewConflict(k.resource, key.Name,
			fmt.Errorf("precondition failed: UID in precondition: %v, UID in object meta: %v", *options.UID,
				old.GetUID()))
	}
	if options.ResourceVersion != nil && *options.ResourceVersion != old.GetResourceVersion() {
		return apierrors.NewConflict(k.resource, key.Name,
			fmt.Errorf("precondition failed: resourceVersion %v is not %v", *options.ResourceVersion,
				old.GetResourceVersion()))
	}
	fresh := k.shallow(old)
	grace := graceOf(fresh, options.GraceSeconds)
	if since := old.GetDeletionTimestamp(); since != nil {
		if left := old.GetDeletionGracePeriodSeconds(); left != nil && grace < *left { // it can only become shorter
			begun := since.Add(-time.Duration(*left) * time.Second)
			fresh.SetDeletionTimestamp(new(metav1.NewTime(begun.Add(time.Duration(grace) * time.Second))))
			fresh.SetDeletionGracePeriodSeconds(&grace)
		}
	} else {
		fresh.SetDeletionTimestamp(new(metav1.NewTime(s.now().Add(time.Duration(grace) * time.Second))))
		fresh.SetDeletionGracePeriodSeconds(&grace)
		if fresh.GetGeneration() > 0 {
			fresh.SetGeneration(fresh.GetGeneration() + 1)
		}
	}
	switch {
	case len(fresh.GetFinalizers()) == 0 && grace == 0:
		s.commit(k, Deleted, old, fresh)
	case !sameMeta(old, fresh):
		s.commit(k, Modified, old, fresh)
	}
	return nil
}

// graceOf returns the grace period of a deletion in seconds. Only pods on a node have one.
func graceOf(object client.Object, asked *int64) int64 {
	pod, ok := object.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded ||
		pod.Status.Phase == corev1.PodFailed {
		return 0
	}
	if asked != nil {
		return max(0, *asked)
	}
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		return *pod.Spec.TerminationGracePeriodSeconds
	}
	return corev1.DefaultTerminationGracePeriodSeconds
}
