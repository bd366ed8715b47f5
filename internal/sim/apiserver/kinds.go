package apiserver

import (
	"slices"

	"reflect"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1beta1 "github.com/joiner-autoscaler/joiner/api/autoscaling/v1beta1"
	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1alpha1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	kwokv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenterkwok/v1alpha1"
)

// kind is what the server has to know of a kind. It is typed, so that no call needs JSON or reflection to copy.
type kind struct {
	gvk        schema.GroupVersionKind
	resource   schema.GroupResource
	namespaced bool
	rules      rules

	empty func() client.Object
	// returns a copy that shares everything the object points to
	shallow func(client.Object) client.Object
	into    func(target, source client.Object, deep bool)                 // a copy
	fill    func(list client.ObjectList, from []client.Object, deep bool) // copies
	// keepStatus and keepAllButStatus reset a part of target to old: its status, or all but its status.
	keepStatus, keepAllButStatus func(target, old client.Object)
	// sameRest compares all but metadata and status; sameStatus compares the status.
	sameRest, sameStatus func(a, b client.Object) bool
}

// rules are the differences between kinds.
type rules struct {
	// custom is for kinds of CustomResourceDefinitions with the status subresource: their status is dropped on create.
	custom bool
	// generations says that changes of the specification are counted; for some built-in kinds they are not.
	generations bool
}

// pointer is a pointer to the struct of an API object.
type pointer[T any] interface {
	*T
	client.Object
	DeepCopyInto(*T)
}

// parts gives access to the parts of an object that have types of their own.
type parts[T any] struct {
	rest   func(*T) any           // pointer to the specification; nil for a kind without parts
	status func(*T) any           // pointer to the status
	swap   func(target, other *T) // sets the status of target to that of other
}

// divided returns the parts of a kind with specification and status.
func divided[T, Spec, Status any](of func(*T) (*Spec, *Status)) parts[T] {
	status := func(o *T) *Status { _, status := of(o); return status }
	return parts[T]{
		rest:   func(o *T) any { spec, _ := of(o); return spec },
		status: func(o *T) any { return status(o) },
		swap:   func(target, other *T) { *status(target) = *status(other) },
	}
}

func define[T any, P pointer[T]](gvk schema.GroupVersionKind, resource string, namespaced bool, r rules, p parts[T],
	items func(client.ObjectList) *[]T) kind {
	typed := func(o client.Object) *T { return (*T)(o.(P)) }
	return kind{
		gvk: gvk, resource: schema.GroupResource{Group: gvk.Group, Resource: resource}, namespaced: namespaced,
		rules: r, empty: func() client.Object { return P(new(T)) }, shallow: func(o client.Object) client.Object {
			copied := *typed(o)
			return P(&copied)
		},
		into: func(target, source client.Object, deep bool) {
			if deep {
				P(typed(source)).DeepCopyInto(typed(target))
			} else {
				*typed(target) = *typed(source)
			}
		},
		fill: func(list client.ObjectList, from []client.Object, deep bool) {
			all := make([]T, len(from))
			for i, source := range from {
				if deep {
					P(typed(source)).DeepCopyInto(&all[i])
				} else {
					all[i] = *typed(source)
				}
			}
			*items(list) = all
		},
		keepStatus: func(target, old client.Object) {
			if p.swap != nil {
				p.swap(typed(target), typed(old)) // shared: stored values never change
			}
		},
		keepAllButStatus: func(target, old client.Object) {
			kept := *typed(old)
			if p.swap != nil {
				p.swap(&kept, typed(target))
			}
			*typed(target) = kept
		},
		sameRest: func(a, b client.Object) bool {
			if p.rest == nil {
				return equality.Semantic.DeepEqual(a, b)
			}
			return equality.Semantic.DeepEqual(p.rest(typed(a)), p.rest(typed(b)))
		},
		sameStatus: func(a, b client.Object) bool {
			return p.status == nil || equality.Semantic.DeepEqual(p.status(typed(a)), p.status(typed(b)))
		},
	}
}

// kinds returns the kinds that the controllers and their surroundings use.
func kinds() []kind {
	builtIn, counted, custom := rules{}, rules{generations: true}, rules{custom: true, generations: true}
	core := func(name string) schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind(name) }
	return slices.Concat(nodeClasses(custom), buffers(counted, custom), volumes(builtIn), karpenters(custom),
		policies(counted, custom), []kind{
			define(core("Pod"), "pods", true, counted,
				divided(func(p *corev1.Pod) (*corev1.PodSpec, *corev1.PodStatus) { return &p.Spec, &p.Status }),
				func(l client.ObjectList) *[]corev1.Pod { return &l.(*corev1.PodList).Items }),
			define(core("Node"), "nodes", false, builtIn,
				divided(func(n *corev1.Node) (*corev1.NodeSpec, *corev1.NodeStatus) { return &n.Spec, &n.Status }),
				func(l client.ObjectList) *[]corev1.Node { return &l.(*corev1.NodeList).Items }),
			define(core("Namespace"), "namespaces", false, builtIn, parts[corev1.Namespace]{},
				func(l client.ObjectList) *[]corev1.Namespace { return &l.(*corev1.NamespaceList).Items }),
			define(core("ConfigMap"), "configmaps", true, builtIn, parts[corev1.ConfigMap]{},
				func(l client.ObjectList) *[]corev1.ConfigMap { return &l.(*corev1.ConfigMapList).Items }),
			define(core("Secret"), "secrets", true, builtIn, parts[corev1.Secret]{},
				func(l client.ObjectList) *[]corev1.Secret { return &l.(*corev1.SecretList).Items }),
			define(core("LimitRange"), "limitranges", true, builtIn, parts[corev1.LimitRange]{},
				func(l client.ObjectList) *[]corev1.LimitRange { return &l.(*corev1.LimitRangeList).Items }),
			define(nodev1.SchemeGroupVersion.WithKind("RuntimeClass"), "runtimeclasses", false, builtIn,
				parts[nodev1.RuntimeClass]{},
				func(l client.ObjectList) *[]nodev1.RuntimeClass { return &l.(*nodev1.RuntimeClassList).Items }),
			define(appsv1.SchemeGroupVersion.WithKind("DaemonSet"), "daemonsets", true, counted,
				divided(func(d *appsv1.DaemonSet) (*appsv1.DaemonSetSpec, *appsv1.DaemonSetStatus) {
					return &d.Spec, &d.Status
				}),
				func(l client.ObjectList) *[]appsv1.DaemonSet { return &l.(*appsv1.DaemonSetList).Items }),
			define(policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), "poddisruptionbudgets", true, counted,
				divided(func(
					b *policyv1.PodDisruptionBudget) (*policyv1.PodDisruptionBudgetSpec,
					*policyv1.PodDisruptionBudgetStatus) {
					return &b.Spec, &b.Status
				}),
				func(l client.ObjectList) *[]policyv1.PodDisruptionBudget {
					return &l.(*policyv1.PodDisruptionBudgetList).Items
				}),
		})
}

// nodeClasses returns the node classes of the clouds that worlds may have.
func nodeClasses(custom rules) []kind {
	return []kind{
		define(awsv1.GroupVersion().WithKind(awsv1.EC2NodeClassKind), "ec2nodeclasses", false, custom,
			divided(func(c *awsv1.EC2NodeClass) (*awsv1.EC2NodeClassSpec, *awsv1.EC2NodeClassStatus) {
				return &c.Spec, &c.Status
			}),
			func(l client.ObjectList) *[]awsv1.EC2NodeClass { return &l.(*awsv1.EC2NodeClassList).Items }),
		define(kwokv1alpha1.GroupVersion().WithKind("KWOKNodeClass"), "kwoknodeclasses", false, custom,
			divided(func(
				c *kwokv1alpha1.KWOKNodeClass) (*kwokv1alpha1.KWOKNodeClassSpec, *kwokv1alpha1.KWOKNodeClassStatus) {
				return &c.Spec, &c.Status
			}),
			func(l client.ObjectList) *[]kwokv1alpha1.KWOKNodeClass {
				return &l.(*kwokv1alpha1.KWOKNodeClassList).Items
			}),
	}
}

// buffers returns CapacityBuffers, and the kinds that they refer to.
func buffers(counted, custom rules) []kind {
	return []kind{
		define(corev1.SchemeGroupVersion.WithKind("PodTemplate"), "podtemplates", true, counted,
			parts[corev1.PodTemplate]{},
			func(l client.ObjectList) *[]corev1.PodTemplate { return &l.(*corev1.PodTemplateList).Items }),
		define(appsv1.SchemeGroupVersion.WithKind("Deployment"), "deployments", true, counted,
			divided(func(d *appsv1.Deployment) (*appsv1.DeploymentSpec, *appsv1.DeploymentStatus) {
				return &d.Spec, &d.Status
			}),
			func(l client.ObjectList) *[]appsv1.Deployment { return &l.(*appsv1.DeploymentList).Items }),
		define(appsv1.SchemeGroupVersion.WithKind("StatefulSet"), "statefulsets", true, counted,
			divided(func(d *appsv1.StatefulSet) (*appsv1.StatefulSetSpec, *appsv1.StatefulSetStatus) {
				return &d.Spec, &d.Status
			}),
			func(l client.ObjectList) *[]appsv1.StatefulSet { return &l.(*appsv1.StatefulSetList).Items }),
		define(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), "replicasets", true, counted,
			divided(func(d *appsv1.ReplicaSet) (*appsv1.ReplicaSetSpec, *appsv1.ReplicaSetStatus) {
				return &d.Spec, &d.Status
			}),
			func(l client.ObjectList) *[]appsv1.ReplicaSet { return &l.(*appsv1.ReplicaSetList).Items }),
		define(autoscalingv1beta1.GroupVersion().WithKind("CapacityBuffer"), "capacitybuffers", true, custom,
			divided(func(
				b *autoscalingv1beta1.CapacityBuffer) (*autoscalingv1beta1.CapacityBufferSpec,
				*autoscalingv1beta1.CapacityBufferStatus) {
				return &b.Spec, &b.Status
			}),
			func(l client.ObjectList) *[]autoscalingv1beta1.CapacityBuffer {
				return &l.(*autoscalingv1beta1.CapacityBufferList).Items
			}),
	}
}

// Scheme returns a scheme with every kind that the server serves.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, nodev1.AddToScheme, policyv1.AddToScheme, storagev1.AddToScheme,
		karpenterv1.AddToScheme, karpenterv1alpha1.AddToScheme, autoscalingv1beta1.AddToScheme, awsv1.AddToScheme,
		kwokv1alpha1.AddToScheme, admissionv1.AddToScheme, hypershiftv1.AddToScheme, hypershiftv1beta1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

// Kinds are the served kinds, and the JSON layouts of their types. They never change, so all servers share them. Use
// [NewKinds].
type Kinds struct {
	byObject map[reflect.Type]*kind
	byName   map[string]*kind
	layouts  layouts
}

// NewKinds returns all kinds.
func NewKinds() *Kinds {
	c := &Kinds{byObject: map[reflect.Type]*kind{}, byName: map[string]*kind{}, layouts: layouts{}}
	for _, k := range kinds() {
		t := reflect.TypeOf(k.empty())
		c.byObject[t], c.byName[k.gvk.Kind] = &k, &k
		c.layouts.learn(t)
	}
	return c
}

// Has reports whether a kind of that name is served.
func (c *Kinds) Has(name string) bool { return c.byName[name] != nil }

// of returns the kind of an object, nil when it is not served.
func (c *Kinds) of(object runtime.Object) *kind { return c.byObject[reflect.TypeOf(object)] }

// ofList returns the kind of a list's items, nil when it is not served.
func (c *Kinds) ofList(list runtime.Object) *kind {
	name := reflect.TypeOf(list).Elem().Name()
	if len(name) <= len("List") {
		return nil
	}
	return c.byName[name[:len(name)-len("List")]]
}

// volumes returns the kinds of Kubernetes for volumes.
func volumes(builtIn rules) []kind {
	core := func(name string) schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind(name) }
	return []kind{
		define(core("PersistentVolume"), "persistentvolumes", false, builtIn, parts[corev1.PersistentVolume]{},
			func(l client.ObjectList) *[]corev1.PersistentVolume { return &l.(*corev1.PersistentVolumeList).Items }),
		define(core("PersistentVolumeClaim"), "persistentvolumeclaims", true, builtIn,
			parts[corev1.PersistentVolumeClaim]{}, func(l client.ObjectList) *[]corev1.PersistentVolumeClaim {
				return &l.(*corev1.PersistentVolumeClaimList).Items
			}),
		define(storagev1.SchemeGroupVersion.WithKind("StorageClass"), "storageclasses", false, builtIn,
			parts[storagev1.StorageClass]{},
			func(l client.ObjectList) *[]storagev1.StorageClass { return &l.(*storagev1.StorageClassList).Items }),
		define(storagev1.SchemeGroupVersion.WithKind("CSINode"), "csinodes", false, builtIn,
			parts[storagev1.CSINode]{},
			func(l client.ObjectList) *[]storagev1.CSINode { return &l.(*storagev1.CSINodeList).Items }),
		define(storagev1.SchemeGroupVersion.WithKind("CSIDriver"), "csidrivers", false, builtIn,
			parts[storagev1.CSIDriver]{},
			func(l client.ObjectList) *[]storagev1.CSIDriver { return &l.(*storagev1.CSIDriverList).Items }),
		define(storagev1.SchemeGroupVersion.WithKind("CSIStorageCapacity"), "csistoragecapacities", true, builtIn,
			parts[storagev1.CSIStorageCapacity]{},
			func(l client.ObjectList) *[]storagev1.CSIStorageCapacity {
				return &l.(*storagev1.CSIStorageCapacityList).Items
			}),
		define(storagev1.SchemeGroupVersion.WithKind("VolumeAttachment"), "volumeattachments", false, builtIn,
			parts[storagev1.VolumeAttachment]{}, func(l client.ObjectList) *[]storagev1.VolumeAttachment {
				return &l.(*storagev1.VolumeAttachmentList).Items
			}),
	}
}

// karpenters returns the kinds of karpenter.sh.
func karpenters(custom rules) []kind {
	return []kind{
		define(karpenterv1.GroupVersion().WithKind("NodePool"), "nodepools", false, custom,
			divided(func(p *karpenterv1.NodePool) (*karpenterv1.NodePoolSpec, *karpenterv1.NodePoolStatus) {
				return &p.Spec, &p.Status
			}),
			func(l client.ObjectList) *[]karpenterv1.NodePool { return &l.(*karpenterv1.NodePoolList).Items }),
		define(karpenterv1.GroupVersion().WithKind("NodeClaim"), "nodeclaims", false, custom,
			divided(func(c *karpenterv1.NodeClaim) (*karpenterv1.NodeClaimSpec, *karpenterv1.NodeClaimStatus) {
				return &c.Spec, &c.Status
			}),
			func(l client.ObjectList) *[]karpenterv1.NodeClaim { return &l.(*karpenterv1.NodeClaimList).Items }),
		define(karpenterv1alpha1.GroupVersion().WithKind("NodeOverlay"), "nodeoverlays", false, custom,
			divided(func(
				o *karpenterv1alpha1.NodeOverlay) (*karpenterv1alpha1.NodeOverlaySpec,
				*karpenterv1alpha1.NodeOverlayStatus) {
				return &o.Spec, &o.Status
			}),
			func(l client.ObjectList) *[]karpenterv1alpha1.NodeOverlay {
				return &l.(*karpenterv1alpha1.NodeOverlayList).Items
			}),
	}
}

// policies returns the kinds of joiner-operator: the policy, what users write, and what protects it.
func policies(counted, custom rules) []kind {
	return []kind{
		define(hypershiftv1beta1.GroupVersion().WithKind("AutoNodePolicy"), "autonodepolicies", true, custom,
			divided(func(
				p *hypershiftv1beta1.AutoNodePolicy) (*hypershiftv1beta1.AutoNodePolicySpec,
				*hypershiftv1beta1.AutoNodePolicyStatus) {
				return &p.Spec, &p.Status
			}),
			func(l client.ObjectList) *[]hypershiftv1beta1.AutoNodePolicy {
				return &l.(*hypershiftv1beta1.AutoNodePolicyList).Items
			}),
		define(hypershiftv1beta1.GroupVersion().WithKind("OpenshiftNodePool"), "openshiftnodepools", false, custom,
			divided(func(
				p *hypershiftv1beta1.OpenshiftNodePool) (*hypershiftv1beta1.OpenshiftNodePoolSpec,
				*hypershiftv1beta1.OpenshiftNodePoolStatus) {
				return &p.Spec, &p.Status
			}),
			func(l client.ObjectList) *[]hypershiftv1beta1.OpenshiftNodePool {
				return &l.(*hypershiftv1beta1.OpenshiftNodePoolList).Items
			}),
		define(hypershiftv1.GroupVersion().WithKind(hypershiftv1.OpenshiftEC2NodeClassKind), "openshiftec2nodeclasses",
			false, custom,
			divided(func(
				c *hypershiftv1.OpenshiftEC2NodeClass) (*hypershiftv1.OpenshiftEC2NodeClassSpec,
				*hypershiftv1.OpenshiftEC2NodeClassStatus) {
				return &c.Spec, &c.Status
			}),
			func(l client.ObjectList) *[]hypershiftv1.OpenshiftEC2NodeClass {
				return &l.(*hypershiftv1.OpenshiftEC2NodeClassList).Items
			}),
		define(admissionv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicy"), "validatingadmissionpolicies",
			false, counted,
			divided(func(
				p *admissionv1.ValidatingAdmissionPolicy) (*admissionv1.ValidatingAdmissionPolicySpec,
				*admissionv1.ValidatingAdmissionPolicyStatus) {
				return &p.Spec, &p.Status
			}),
			func(l client.ObjectList) *[]admissionv1.ValidatingAdmissionPolicy {
				return &l.(*admissionv1.ValidatingAdmissionPolicyList).Items
			}),
		define(admissionv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicyBinding"),
			"validatingadmissionpolicybindings", false, rules{}, parts[admissionv1.ValidatingAdmissionPolicyBinding]{},
			func(l client.ObjectList) *[]admissionv1.ValidatingAdmissionPolicyBinding {
				return &l.(*admissionv1.ValidatingAdmissionPolicyBindingList).Items
			}),
	}
}
