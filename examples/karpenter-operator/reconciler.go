package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/joiner-autoscaler/joiner/autonodepolicy/api/v1beta1"
	"github.com/joiner-autoscaler/joiner/autonodepolicy/policy"
)

var (
	poolWrapper  = schema.GroupVersionKind{Group: v1beta1.Group, Version: "v1beta1", Kind: "OpenshiftNodePool"}
	classWrapper = schema.GroupVersionKind{Group: v1beta1.Group, Version: "v1", Kind: "OpenshiftEC2NodeClass"}
	classKind    = schema.GroupVersionKind{Group: "karpenter.k8s.aws", Version: "v1", Kind: "EC2NodeClass"}
)

// clusters are the two sides: what users write and what is made from it, and the provider's policy.
type clusters struct {
	guest, management client.Client
	namespace         string
}

// policy reads the one policy that counts, nil for none (R5).
func (c clusters) policy(ctx context.Context) (*v1beta1.AutoNodePolicy, error) {
	var object v1beta1.AutoNodePolicy
	err := c.management.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: v1beta1.PolicyName}, &object)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return &object, nil
}

// wrapper is what both kinds of wrappers have that this operator reads.
type wrapper struct {
	Spec struct {
		Template            karpenterv1.NodeClaimTemplate `json:"template"`
		Limits              karpenterv1.Limits            `json:"limits,omitempty"`
		Weight              *int32                        `json:"weight,omitempty"`
		BlockDeviceMappings []map[string]any              `json:"blockDeviceMappings,omitempty"`
	} `json:"spec"`
}

func (c clusters) wrapper(ctx context.Context, kind schema.GroupVersionKind,
	name string) (*unstructured.Unstructured, wrapper, error) {
	object, read := &unstructured.Unstructured{}, wrapper{}
	object.SetGroupVersionKind(kind)
	if err := c.guest.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
		return nil, read, client.IgnoreNotFound(err)
	}
	return object, read, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &read)
}

// reconcilePool makes the NodePool of an OpenshiftNodePool.
func (c clusters) reconcilePool(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	owner, own, err := c.wrapper(ctx, poolWrapper, request.Name)
	if err != nil || owner == nil || owner.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, err
	}
	object, err := c.policy(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	var ref *policy.NodeClass
	if r := own.Spec.Template.Spec.NodeClassRef; r != nil {
		ref = &policy.NodeClass{Group: r.Group, Kind: r.Kind, Name: r.Name}
	}
	class, problem := policy.ResolveNodeClass(ref)
	if problem != nil {
		ctrl.LoggerFrom(ctx).Info("not written", "problem", problem.String())
		return ctrl.Result{}, nil
	}
	merged := policy.MergeRequirements(policyOf(object), policy.Pool{
		Name: request.Name, NodeClass: class, Labels: own.Spec.Template.Labels,
		Requirements: fromKarpenter(own.Spec.Template.Spec.Requirements),
	}, nil)
	if said := merged.Compatible(); said.Status != policy.True { // an operator would say so on the wrapper
		ctrl.LoggerFrom(ctx).Info("the pool launches nothing", "reason", said.Reason, "message", said.Message)
	}
	if len(merged.Problems) > 0 { // what was written before stays (G12, G14)
		return ctrl.Result{}, nil
	}
	pool := &karpenterv1.NodePool{}
	pool.Name = request.Name
	_, err = controllerutil.CreateOrUpdate(ctx, c.guest, pool, func() error {
		pool.Spec.Template, pool.Spec.Limits, pool.Spec.Weight = own.Spec.Template, own.Spec.Limits, own.Spec.Weight
		pool.Spec.Template.Spec.NodeClassRef = &karpenterv1.NodeClassReference{Group: class.Group, Kind: class.Kind,
			Name: class.Name}
		pool.Spec.Template.Spec.Requirements = toKarpenter(merged.Requirements)
		return controllerutil.SetControllerReference(owner, pool, c.guest.Scheme())
	})
	return ctrl.Result{}, err
}

// reconcileClass makes the EC2NodeClass of an OpenshiftEC2NodeClass, as far as the policy concerns it: the root volume
// is the provider's, other disks are the user's (R28).
func (c clusters) reconcileClass(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	owner, own, err := c.wrapper(ctx, classWrapper, request.Name)
	if err != nil || owner == nil || owner.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, err
	}
	object, err := c.policy(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	volume := policy.DefaultRootVolume()
	if p := policyOf(object); p != nil {
		volume = volume.With(p.RootVolume)
	}
	if problems := append(policy.Invalid(policyOf(object)), volume.Check("root volume")...); len(problems) > 0 {
		return ctrl.Result{}, nil // what was written before stays (G14)
	}
	disks := []any{mapping(volume)}
	for _, disk := range own.Spec.BlockDeviceMappings {
		if disk["deviceName"] != policy.RootDevice && disk["rootVolume"] != "RootVolume" {
			disks = append(disks, map[string]any{"deviceName": disk["deviceName"]})
		}
	}
	class := &unstructured.Unstructured{}
	class.SetGroupVersionKind(classKind)
	class.SetName(request.Name)
	_, err = controllerutil.CreateOrUpdate(ctx, c.guest, class, func() error {
		// What HyperShift fills in from its own sources: images, user data, profile, networks.
		spec := map[string]any{
			"amiFamily": "Custom", "amiSelectorTerms": []any{map[string]any{"id": "ami-0"}},
			"instanceProfile": "nodes", "userData": "ignition",
			"subnetSelectorTerms": []any{map[string]any{"id": "subnet-0"}}, "securityGroupSelectorTerms": []any{
				map[string]any{"id": "sg-0"},
			},
			"blockDeviceMappings": disks,
		}
		for key, value := range spec {
			if err := unstructured.SetNestedField(class.Object, value, "spec", key); err != nil {
				return fmt.Errorf("spec.%s: %w", key, err)
			}
		}
		return controllerutil.SetControllerReference(owner, class, c.guest.Scheme())
	})
	return ctrl.Result{}, err
}

// reconcilePolicy says on the policy whether it is valid (R44).
func (c clusters) reconcilePolicy(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object, err := c.policy(ctx)
	if err != nil || object == nil || request.Name != v1beta1.PolicyName {
		return ctrl.Result{}, err
	}
	said := ready(object)
	if is := object.Status.Conditions; len(is) == 1 && is[0].ObservedGeneration == said.ObservedGeneration &&
		is[0].Reason == said.Reason {
		return ctrl.Result{}, nil
	}
	object.Status.Conditions = []v1beta1.Condition{said}
	return ctrl.Result{}, c.management.Status().Update(ctx, object)
}
