package operator

import (
	"context"
	"maps"
	"reflect"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterawsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/conformance"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/kube"
)

// conformance returns the controller that compares everything in the guest with the policy.
func (d operatorDeps) conformance() kube.Controller {
	kinds := slices.Concat(d.kinds, d.others)
	classes := slices.ContainsFunc(kinds,
		func(kind operator.Kind) bool { return kind.Product == conformance.EC2NodeClass })
	controller := kube.Controller{
		Name: Conformance, Workers: 1, Start: true,
		Reconciler: operator.NewConformanceController(operator.ConformanceConfig{
			Guest: d.guest, Live: d.live, Classes: classes, Others: d.others, Profile: d.profile,
			Settings: conformance.DefaultSettings(),
			Board:    d.board, Wake: func() { d.bells.Ring(PolicyStatus, kube.Singleton(), policyAfter) },
			Events: d.events, Metrics: d.metrics, Now: d.now, Log: d.log.WithName(Conformance),
		}),
		Watches: []kube.Watch{
			{Object: &karpenterv1.NodePool{}, After: conformanceAfter, Requests: judgedAnew},
			{Object: &karpenterv1.NodeClaim{}, After: conformanceAfter, Requests: judgedAnew},
			{Object: &corev1.Node{}, After: conformanceAfter, Requests: judgedAnew},
		},
	}
	for _, kind := range kinds {
		if kind.Product == conformance.NodePool {
			continue
		}
		controller.Watches = append(controller.Watches, kube.Watch{Object: kind.NewProduct(), After: conformanceAfter,
			Requests: judgedAnew})
		if kind.ByOther {
			controller.Watches = append(controller.Watches,
				kube.Watch{Object: kind.NewWrapper(), After: conformanceAfter, Requests: bornOrGone})
		}
	}
	return controller
}

// sight returns the controller that finds out whether the operator may still read what it watches.
func (d operatorDeps) sight() kube.Controller {
	kinds := map[string]client.ObjectList{
		"ValidatingAdmissionPolicy":        &admissionv1.ValidatingAdmissionPolicyList{},
		"ValidatingAdmissionPolicyBinding": &admissionv1.ValidatingAdmissionPolicyBindingList{},
		conformance.NodeClaim:              &karpenterv1.NodeClaimList{}, conformance.Node: &corev1.NodeList{},
	}
	for _, kind := range slices.Concat(d.kinds, d.others) {
		kinds[kind.Wrapper], kinds[kind.Product] = kind.NewWrapperList(), kind.NewProductList()
	}
	return kube.Controller{Name: Sight, Workers: 1, Start: true,
		Reconciler: operator.NewSightController(operator.SightConfig{
			Live: d.live, Kinds: kinds, Board: d.board, Now: d.now,
		})}
}

// judgedAnew wakes for changes that may change whether an object conforms to the policy, not for heartbeats.
func judgedAnew(_ context.Context, old, fresh client.Object) []reconcile.Request {
	if old != nil && fresh != nil && maps.Equal(old.GetLabels(), fresh.GetLabels()) &&
		reflect.DeepEqual(decisive(old), decisive(fresh)) {
		return nil
	}
	return []reconcile.Request{kube.Singleton()}
}

// decisive returns the parts of an object, beside its labels, that the policy is about.
func decisive(object client.Object) any {
	switch o := object.(type) {
	case *corev1.Node:
		return o.Spec.ProviderID
	case *karpenterv1.NodeClaim:
		return [...]any{o.Generation, o.UID, o.OwnerReferences, o.Status.ProviderID, o.Status.ImageID}
	case *karpenterv1.NodePool:
		return [...]any{o.Generation, o.UID}
	case *karpenterawsv1.EC2NodeClass:
		return [...]any{o.Generation, o.UID}
	}
	return object
}
