package churn

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// neighbours are the objects of another program that manages nodes in the same cluster. It has a NodePool of a node
// class that no provider of ours serves, and two empty nodes with their NodeClaims. A user has deleted one of the
// nodes, and the other program takes its time. Nothing of ours may write to these objects.
const neighbours = "-other"

// isNeighbour reports whether an object belongs to the other program.
func isNeighbour(o client.Object) bool { return strings.Contains(o.GetName(), neighbours) }

func newNeighbours(prefix string) []client.Object {
	pool := newPool(prefix, neighbours[1:], "amd64")
	pool.Spec.Template.Spec.NodeClassRef = &karpenterv1.NodeClassReference{
		Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default",
	}
	pool.Spec.Template.Spec.ExpireAfter = karpenterv1.NillableDuration{}
	all := []client.Object{pool}
	for i := range 2 {
		name := fmt.Sprintf("%s-%d", pool.Name, i)
		claim := &karpenterv1.NodeClaim{
			TypeMeta: metav1.TypeMeta{APIVersion: karpenterv1.GroupVersion().String(), Kind: "NodeClaim"},
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Labels: map[string]string{karpenterv1.NodePoolLabelKey: pool.Name},
				Finalizers: []string{karpenterv1.TerminationFinalizer},
			},
			Spec: karpenterv1.NodeClaimSpec{
				NodeClassRef: pool.Spec.Template.Spec.NodeClassRef, Requirements: pool.Spec.Template.Spec.Requirements,
			},
		}
		node := &corev1.Node{
			TypeMeta: kind("v1", "Node"),
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Labels: map[string]string{
					karpenterv1.NodePoolLabelKey:       pool.Name,
					karpenterv1.NodeRegisteredLabelKey: "true", karpenterv1.NodeInitializedLabelKey: "true",
					corev1.LabelHostname: name,
				}, Finalizers: []string{karpenterv1.TerminationFinalizer},
				// so that daemons can run there
				Annotations: map[string]string{cluster.FakeNodeAnnotation: cluster.FakeNodeValue},
			},
			Spec: corev1.NodeSpec{ProviderID: "aws:///us-east-1a/i-" + name,
				Taints: []corev1.Taint{{Key: "example.com/other", Effect: corev1.TaintEffectNoSchedule}}},
		}
		all = append(all, claim, node)
	}
	return all
}

// settle creates the neighbours.
func (r *run) settle(ctx context.Context) error {
	for _, object := range r.script.Neighbours {
		if err := r.hands.apply(ctx, object); err != nil {
			return err
		}
		claim, is := object.(*karpenterv1.NodeClaim)
		if !is {
			continue
		}
		var now karpenterv1.NodeClaim
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(claim), &now); err != nil {
			return err
		}
		now.Status.ProviderID, now.Status.NodeName = "aws:///us-east-1a/i-"+claim.Name, claim.Name
		now.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
		for _, name := range []string{karpenterv1.ConditionTypeLaunched, karpenterv1.ConditionTypeRegistered,
			karpenterv1.ConditionTypeInitialized} {
			now.Status.Conditions = append(now.Status.Conditions, karpenterv1.Condition{
				Type: name, Status: metav1.ConditionTrue, Reason: name, LastTransitionTime: metav1.Now(),
			})
		}
		if err := r.Client.Status().Update(ctx, &now, client.FieldOwner(fieldManager)); err != nil {
			return err
		}
	}
	if n := len(r.script.Neighbours); n > 0 {
		// the node of the last claim
		return r.Client.Delete(ctx, r.script.Neighbours[n-1].DeepCopyObject().(client.Object))
	}
	return nil
}

// leave removes the neighbours.
func (r *run) leave(ctx context.Context) error {
	for _, object := range r.script.Neighbours {
		gone := object.DeepCopyObject().(client.Object)
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		if err := client.IgnoreNotFound(r.Client.Patch(ctx, gone, patch)); err != nil {
			return err
		}
		if err := client.IgnoreNotFound(r.Client.Delete(ctx, gone)); err != nil {
			return err
		}
	}
	return nil
}

// neighbours checks that joiner has neither written to the other program's objects nor removed them.
func (j *judge) neighbours(expected []client.Object) {
	here := map[string]bool{}
	look := func(what string, o client.Object) {
		here[what+o.GetName()], j.moved[what+o.GetName()] = true, true
		for _, entry := range o.GetManagedFields() {
			if entry.Manager == rig.User {
				j.remark("neighbour "+what+o.GetName(),
					"joiner has written to %s %s, which another program manages (%s %s)", what, o.GetName(),
					entry.Operation, entry.FieldsV1)
			}
		}
	}
	for _, node := range j.view.everyNode() {
		if isNeighbour(node) {
			look("Node", node)
		}
	}
	for _, claim := range j.view.everyClaim() {
		if isNeighbour(claim) {
			look("NodeClaim", claim)
		}
	}
	for _, pool := range j.view.everyPool() {
		if isNeighbour(pool) {
			look("NodePool", pool)
		}
	}
	for _, object := range expected {
		if what := object.GetObjectKind().GroupVersionKind().Kind; j.moved[what+object.GetName()] &&
			!here[what+object.GetName()] {
			j.remark("neighbour "+what+object.GetName(), "%s %s is gone, which another program manages", what,
				object.GetName())
		}
	}
}
