package operator

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/kube/patch"
)

// PoolFinalizer is on every OpenshiftNodePool whose NodePool may exist.
const PoolFinalizer = hypershiftv1beta1.Group + "/nodepool"

// NodePools returns the kind of OpenshiftNodePools and NodePools, which every platform has (R9 to R27).
func NodePools(settings merge.NodePoolSettings) Kind {
	defaults := karpenterv1.NodePoolSpecDefaults()
	// The labels of the template fold like the requirements (K1). Limits, taints and budgets are the user's own.
	decided := under("spec.template.spec.requirements", "spec.template.spec.nodeClassRef",
		"spec.template.metadata.labels")
	return Kind{
		Wrapper: "OpenshiftNodePool", Product: "NodePool", Finalizer: PoolFinalizer,
		NewWrapper:     func() client.Object { return &hypershiftv1beta1.OpenshiftNodePool{} },
		NewWrapperList: func() client.ObjectList { return &hypershiftv1beta1.OpenshiftNodePoolList{} },
		NewProduct:     func() client.Object { return &karpenterv1.NodePool{} },
		NewProductList: func() client.ObjectList {
			return &karpenterv1.NodePoolList{}
		},
		Make: func(_ context.Context, policy *hypershiftv1beta1.AutoNodePolicy, wrapper client.Object) (Made, error) {
			return madePool(merge.NodePool(policy, wrapper.(*hypershiftv1beta1.OpenshiftNodePool), settings)), nil
		},
		Overwrite: func(product, wanted client.Object) {
			wanted.(*karpenterv1.NodePool).Spec.DeepCopyInto(&product.(*karpenterv1.NodePool).Spec)
		},
		Quarantine: quarantine,
		Altered: func(product, wanted client.Object) Difference {
			return differing(&product.(*karpenterv1.NodePool).Spec, &wanted.(*karpenterv1.NodePool).Spec, defaults,
				decided)
		},
		State: func(wrapper client.Object) State {
			status := &wrapper.(*hypershiftv1beta1.OpenshiftNodePool).Status
			return State{Conditions: &status.Conditions, ObservedPolicy: &status.ObservedPolicy}
		},
		Mirror: func(wrapper, product client.Object) []karpenterv1.Condition {
			status, said := &wrapper.(*hypershiftv1beta1.OpenshiftNodePool).Status,
				product.(*karpenterv1.NodePool).Status.DeepCopy()
			status.Resources, status.Nodes = said.Resources, said.Nodes
			return said.Conditions
		},
		PatchStatus: func(before, after client.Object) client.Patch {
			was, is := before.(*hypershiftv1beta1.OpenshiftNodePool), after.(*hypershiftv1beta1.OpenshiftNodePool)
			if patch.SameStatus(&was.Status, &is.Status) {
				return nil
			}
			return patch.Status(is, &was.Status, &is.Status)
		},
		Target: func(wrapper client.Object) merge.Target {
			return merge.PoolTarget(wrapper.(*hypershiftv1beta1.OpenshiftNodePool))
		},
	}
}

// madePool converts the merge of a pool to a Made. A pool that nothing can satisfy is written, and its user warned
// (G9).
func madePool(result merge.NodePoolResult) Made {
	made := Made{Problems: result.Problems, Conditions: []condition.Value{result.Compatible()}}
	if result.NodePool != nil {
		made.Product = result.NodePool
	}
	if i := slices.IndexFunc(made.Conditions, func(v condition.Value) bool {
		return v.Status == metav1.ConditionFalse
	}); i >= 0 {
		made.Warning, made.WarningReason = made.Conditions[i].Message, made.Conditions[i].Reason
	}
	return made
}
