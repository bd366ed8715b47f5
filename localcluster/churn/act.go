package churn

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/kwok"
)

// fieldManager is the name with which users apply objects.
const fieldManager = "users"

// hands execute a script.
type hands struct {
	client client.Client
	view   *view
	prefix string
	kill   func(context.Context) error // kills joiner, and starts it again
}

// do executes a step. It is no error if an object is gone already: users act at the same time as controllers.
func (h hands) do(ctx context.Context, step Step) error {
	switch step.Verb {
	case Apply:
		for _, object := range step.Objects {
			if err := h.apply(ctx, object); err != nil {
				return err
			}
		}
		return nil
	case Delete:
		for _, object := range step.Objects {
			err := h.client.Delete(ctx, object.DeepCopyObject().(client.Object),
				client.PropagationPolicy(metav1.DeletePropagationBackground))
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("deleting %s: %w", object.GetName(), err)
			}
		}
		return nil
	case DeleteAny:
		return h.deleteAny(ctx, step)
	case ProtectAny:
		if nodes := h.nodes(); len(nodes) > 0 {
			return h.annotate(ctx, nodes[at(step.Pick, len(nodes))], karpenterv1.DoNotDisruptAnnotationKey, "true")
		}
		return nil
	case InterruptAny:
		if nodes := h.nodes(); len(nodes) > 0 {
			node := nodes[at(step.Pick, len(nodes))]
			h.view.byHand(node.Name)
			return h.annotate(ctx, node, kwok.InterruptedAnnotationKey, "now")
		}
		return nil
	case UnprotectAll:
		for _, node := range h.nodes() {
			if node.Annotations[karpenterv1.DoNotDisruptAnnotationKey] != "" {
				if err := h.annotate(ctx, node, karpenterv1.DoNotDisruptAnnotationKey, nil); err != nil {
					return err
				}
			}
		}
		return nil
	case Kill:
		return h.kill(ctx)
	}
	return fmt.Errorf("no such verb: %q", step.Verb)
}

// apply writes an object, whatever its state was. It ignores that a terminating namespace accepts nothing.
func (h hands) apply(ctx context.Context, object client.Object) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return err
	}
	delete(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(content, "spec", "template", "metadata", "creationTimestamp")
	applied := &unstructured.Unstructured{Object: content}
	err = h.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner(fieldManager),
		client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("applying %s %s: %w", applied.GetKind(), applied.GetName(), err)
	}
	return nil
}

func (h hands) deleteAny(ctx context.Context, step Step) error {
	var objects []client.Object
	switch step.Kind {
	case Pod:
		for _, pod := range h.view.pods() {
			if pod.DeletionTimestamp == nil && strings.HasPrefix(pod.Namespace, h.prefix+"-") {
				objects = append(objects, pod)
			}
		}
	case Node:
		for _, node := range h.nodes() {
			objects = append(objects, node)
		}
	case NodeClaim:
		for _, claim := range h.view.claims() {
			if claim.DeletionTimestamp == nil {
				objects = append(objects, claim)
			}
		}
	}
	if len(objects) == 0 {
		return nil
	}
	slices.SortFunc(objects, func(a, b client.Object) int { return strings.Compare(a.GetName(), b.GetName()) })
	picked := objects[at(step.Pick, len(objects))]
	h.view.byHand(picked.GetName())
	err := h.client.Delete(ctx, picked)
	return client.IgnoreNotFound(err)
}

// nodes returns the nodes that nobody has deleted, by name.
func (h hands) nodes() []*corev1.Node {
	nodes := slices.DeleteFunc(h.view.nodes(), func(n *corev1.Node) bool { return n.DeletionTimestamp != nil })
	slices.SortFunc(nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	return nodes
}

// annotate writes an annotation of a node; nil removes it.
func (h hands) annotate(ctx context.Context, node *corev1.Node, key string, value any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
	if err != nil {
		return err
	}
	err = h.client.Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name}},
		client.RawPatch("application/merge-patch+json", patch))
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func at(pick float64, n int) int { return min(int(pick*float64(n)), n-1) }
