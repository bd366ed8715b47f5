package karpenter

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// reader is a client that knows pods, nodes and pools. It stands for the cache of Karpenter's own client: it has an
// index of pods by node, and copies objects when they are read. For other kinds it asks a client without objects.
type reader struct {
	client.Client
	pools  []*v1.NodePool
	nodes  map[string]*corev1.Node
	pods   map[types.NamespacedName]*corev1.Pod
	byNode map[string]map[types.NamespacedName]*corev1.Pod
}

func newReader(other client.Client, pools []*v1.NodePool) *reader {
	return &reader{
		Client: other, pools: pools, nodes: map[string]*corev1.Node{},
		pods: map[types.NamespacedName]*corev1.Pod{}, byNode: map[string]map[types.NamespacedName]*corev1.Pod{},
	}
}

// put adds a pod, and replaces an older version of it.
func (r *reader) put(pod *corev1.Pod) {
	r.remove(pod)
	key := client.ObjectKeyFromObject(pod)
	if r.byNode[pod.Spec.NodeName] == nil {
		r.byNode[pod.Spec.NodeName] = map[types.NamespacedName]*corev1.Pod{}
	}
	r.pods[key], r.byNode[pod.Spec.NodeName][key] = pod, pod
}

func (r *reader) remove(pod *corev1.Pod) {
	key := client.ObjectKeyFromObject(pod)
	if old := r.pods[key]; old != nil {
		delete(r.byNode[old.Spec.NodeName], key)
		delete(r.pods, key)
	}
}

// Get returns nodes from memory. For other kinds it asks the other client.
func (r *reader) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	if node, ok := object.(*corev1.Node); ok {
		known := r.nodes[key.Name]
		if known == nil {
			return errors.NewNotFound(corev1.Resource("nodes"), key.Name)
		}
		known.DeepCopyInto(node)
		return nil
	}
	return r.Client.Get(ctx, key, object, opts...)
}

// List returns pods, nodes and pools from memory, and no PodDisruptionBudgets. For other kinds it asks the other
// client.
func (r *reader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(opts)
	shared := o.UnsafeDisableDeepCopy != nil && *o.UnsafeDisableDeepCopy
	switch list := list.(type) {
	case *corev1.PodList:
		return r.listPods(list, o, shared)
	case *v1.NodePoolList:
		list.Items = nil
		for _, pool := range r.pools {
			list.Items = append(list.Items, *pool.DeepCopy())
		}
		return nil
	case *corev1.NodeList:
		list.Items = nil
		for _, node := range r.nodes {
			list.Items = append(list.Items, *node.DeepCopy())
		}
		return nil
	case *policyv1.PodDisruptionBudgetList:
		list.Items = nil
		return nil
	}
	return r.Client.List(ctx, list, opts...)
}

func (r *reader) listPods(list *corev1.PodList, o *client.ListOptions, shared bool) error {
	from := r.pods
	if o.FieldSelector != nil && !o.FieldSelector.Empty() {
		node, known := o.FieldSelector.RequiresExactMatch("spec.nodeName")
		if !known {
			return fmt.Errorf("listing pods by %q: only spec.nodeName is indexed", o.FieldSelector)
		}
		from = r.byNode[node]
	}
	list.Items = make([]corev1.Pod, 0, 16)
	for key, pod := range from {
		switch {
		case o.Namespace != "" && key.Namespace != o.Namespace, o.LabelSelector != nil &&
			!o.LabelSelector.Matches(labelsOf(pod)):
		case shared:
			list.Items = append(list.Items, *pod)
		default:
			list.Items = append(list.Items, *pod.DeepCopy())
		}
	}
	return nil
}
