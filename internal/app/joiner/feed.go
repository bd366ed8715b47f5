package joiner

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	autoscalingv1beta1 "github.com/joiner-autoscaler/joiner/api/autoscaling/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1alpha1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/claim"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
	"github.com/joiner-autoscaler/joiner/internal/controller/provisioning"
	"github.com/joiner-autoscaler/joiner/internal/kube"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
	"github.com/joiner-autoscaler/joiner/internal/translate"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// disruptAfter is how long changes of the cluster are gathered before the disruption singleton looks at them.
const disruptAfter = 2 * time.Second

// stampAfter is how long pod events of a node are gathered before they are written to its claim.
const stampAfter = time.Second

// Feed passes watch events to the store, and to whatever else remembers them. Then it wakes the singletons: in this
// order, so that no controller plans on a snapshot older than the event that woke it. It is safe for concurrent use as
// long as events of one kind arrive one after the other.
type Feed struct {
	store     *world.Store
	window    *provisioning.Window
	podEvents *claim.PodEvents
	brake     *provisioning.Brake
	times     *metrics.PodTimes
	// conditions measures conditions of objects, nil for not at all. tells says that their changes are events too.
	conditions *metrics.Conditions
	tells      bool
	events     event.Recorder
	fleet      *fleet.Fleet
	idle       time.Duration
	wake       func(controller string, request reconcile.Request, after time.Duration)
	claimOf    func(node string) (claim string, found bool) // from a cache
	now        func() time.Time
	log        logr.Logger
}

// Kinds returns one empty object of each kind that the feed has to watch.
func (f *Feed) Kinds() []client.Object {
	kinds := append(f.store.Workloads(),
		&corev1.Namespace{}, &storagev1.StorageClass{}, &corev1.PersistentVolume{}, &corev1.PersistentVolumeClaim{},
		&storagev1.CSINode{}, &storagev1.VolumeAttachment{}, &storagev1.CSIDriver{}, &storagev1.CSIStorageCapacity{},
		&corev1.LimitRange{}, &nodev1.RuntimeClass{},
		&appsv1.DaemonSet{}, &policyv1.PodDisruptionBudget{}, &karpenterv1alpha1.NodeOverlay{},
		&karpenterv1.NodePool{}, &karpenterv1.NodeClaim{}, &corev1.Node{}, &corev1.Pod{},
	)
	kinds = append(kinds, f.store.DeviceKinds()...)
	for _, kind := range f.store.BufferKinds() { // some may be there already, for another reason
		if !slices.ContainsFunc(kinds, func(other client.Object) bool {
			return reflect.TypeOf(other) == reflect.TypeOf(kind)
		}) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// Apply takes in the current state of an object.
func (f *Feed) Apply(object client.Object) {
	f.measure(object)
	before := f.store.Version()
	if err := f.store.Apply(object); err != nil {
		f.log.V(1).Info("an object cannot be understood in full", "kind", fmt.Sprintf("%T", object),
			"namespace", object.GetNamespace(), "name", object.GetName(), "reason", err.Error())
	}
	if pod, ok := object.(*corev1.Pod); ok {
		f.applyPod(pod)
		return
	}
	if f.store.Version() != before {
		f.wake(Provisioning, kube.Singleton(), f.idle)
		f.wake(Disruption, kube.Singleton(), disruptAfter)
	}
}

func (f *Feed) applyPod(pod *corev1.Pod) {
	now := f.now()
	f.window.Apply(pod, now)
	f.times.Apply(pod, now)
	if pod.DeletionTimestamp != nil || translate.Finished(pod) {
		f.brake.Gone(pod)
	}
	if pod.Spec.NodeName == "" {
		f.wake(Provisioning, kube.Singleton(), f.waitFor(pod))
		return
	}
	if translate.Placed(pod) {
		f.brake.Bound(pod)
	}
	if f.podEvents.Apply(pod, now) {
		f.podEvent(pod)
	}
}

// waitFor returns after what time a pod without a node wakes planning. A pod that kube-scheduler has not tried, and
// that no plan has either, brings nothing to plan: it may be bound in a moment. It comes to count when another one of
// its queue is passed over, and that one wakes planning at once (ADR 0034). Most pods come this way where there is
// room.
func (f *Feed) waitFor(pod *corev1.Pod) time.Duration {
	if translate.Untried(pod) {
		if planned, _ := f.store.Untried(pod); !planned {
			return f.idle
		}
	}
	return 0
}

// Remove takes in that an object is gone.
func (f *Feed) Remove(object client.Object) {
	f.store.Remove(object)
	f.ended(object)
	switch object := object.(type) {
	case *corev1.Pod:
		f.window.Remove(object)
		f.times.Remove(object)
		f.brake.Gone(object)
		if object.Spec.NodeName == "" { // what the last plan said of it holds no more
			f.wake(Provisioning, kube.Singleton(), f.idle)
		}
		if f.podEvents.Remove(object, f.now()) {
			f.podEvent(object)
		}
		return
	case *corev1.Node:
		f.podEvents.RemoveNode(object.Name)
		f.brake.RemoveNode(object.Name)
	case *karpenterv1.NodeClaim:
		if !condition.IsTrue(object.Status.Conditions, karpenterv1.ConditionTypeInitialized) {
			f.window.Urge() // the claim failed: its pods have waited long enough (P-31)
			f.wake(Provisioning, kube.Singleton(), 0)
		}
	}
	f.wake(Provisioning, kube.Singleton(), f.idle)
	f.wake(Disruption, kube.Singleton(), disruptAfter)
}

// measure takes in the conditions of an object, and sends events for those that changed (K-14).
func (f *Feed) measure(object client.Object) {
	if f.conditions == nil {
		return
	}
	for _, changed := range f.conditions.Apply(object) {
		if !f.tells || !f.ours(object) || changed.From == "" { // a first value is not worth an event
			continue
		}
		text := fmt.Sprintf("Status condition %s was %s and is %s", changed.Type, changed.From, changed.Status)
		if changed.Reason != "" && changed.Reason != changed.Type {
			text += ": " + changed.Reason
		}
		if changed.Message != "" {
			text += ": " + changed.Message
		}
		f.events.Event(object, event.Normal, changed.Type, text)
	}
}

// ended ends the measurement of an object that is gone, and sends an event about that.
func (f *Feed) ended(object client.Object) {
	if f.conditions != nil && f.conditions.Remove(object, f.now()) && f.tells && f.ours(object) {
		f.events.Event(object, event.Normal, event.Finalized, "It is gone: its last finalizer was taken off")
	}
}

// ours reports whether events may tell of an object's conditions. Nodes without one of our pools have many conditions,
// and other programs care for them.
func (f *Feed) ours(object client.Object) bool {
	switch o := object.(type) {
	case *corev1.Node:
		return f.store.HasPool(o.Labels[karpenterv1.NodePoolLabelKey])
	case *karpenterv1.NodeClaim:
		return f.fleet.OwnsClaim(o)
	case *karpenterv1.NodePool:
		return f.fleet.OwnsPool(o)
	case *autoscalingv1beta1.CapacityBuffer:
		return true
	}
	return false
}

// podEvent wakes the controllers that care that a pod came to a node or left it.
func (f *Feed) podEvent(pod *corev1.Pod) {
	if f.store.HasBuffers() { // it may have taken room of a buffer, or have left some (K-37)
		f.wake(Provisioning, kube.Singleton(), f.idle)
	}
	if name, found := f.claimOf(pod.Spec.NodeName); found {
		f.wake(Claims, reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}, stampAfter)
	}
	f.wake(Disruption, kube.Singleton(), disruptAfter)
}
