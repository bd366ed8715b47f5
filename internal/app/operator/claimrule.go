package operator

import (
	"context"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterawsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	kwokv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenterkwok/v1alpha1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/kube"
)

// ClaimRule is the name of the controller that maintains the rule for NodeClaims.
const ClaimRule = "nodeclaimrule"

// unwrapped returns the kinds of node classes without a wrapper: simulated nodes have no settings to protect.
func (c Config) unwrapped() []schema.GroupKind {
	if !slices.Contains(c.Platforms, PlatformKWOK) {
		return nil
	}
	return []schema.GroupKind{{Group: kwokv1alpha1.Group, Kind: "KWOKNodeClass"}}
}

// afterRule makes node classes wait for the rule for NodeClaims.
func afterRule(kinds []operator.Kind, board *operator.Board) []operator.Kind {
	kinds = slices.Clone(kinds)
	for i, kind := range kinds {
		if kind.Product == karpenterawsv1.EC2NodeClassKind {
			kinds[i] = operator.AfterRule(kind, board)
		}
	}
	return kinds
}

// claimRule returns the controller of that rule. The policy's feed wakes it too.
func (d operatorDeps) claimRule() kube.Controller {
	config := operator.ClaimRuleConfig{
		Guest: d.guest, Board: d.board, AnyOf: d.unwrapped, Wake: func(ctx context.Context) {
			d.policyChanged(ctx, true)
		},
		Events: d.events, Metrics: d.metrics, Now: d.now, Log: d.log.WithName(ClaimRule),
	}
	watches := []kube.Watch{
		{Object: &admissionv1.ValidatingAdmissionPolicy{}, Requests: ownRule},
		{Object: &admissionv1.ValidatingAdmissionPolicyBinding{}, Requests: ownRule},
	}
	for _, kind := range slices.Concat(d.kinds, d.others) {
		if kind.Product == karpenterawsv1.EC2NodeClassKind {
			config.Class = kind
			watches = append(watches, kube.Watch{Object: kind.NewWrapper(), Requests: bornOrGone})
		}
	}
	return kube.Controller{Name: ClaimRule, Workers: 1, Start: true,
		Reconciler: operator.NewClaimRuleController(config), Watches: watches}
}

// policyRead wakes the controllers that have to look again after the policy was read. If the rule for NodeClaims
// changes, its writer comes first; the others follow when the rule is there.
func (d operatorDeps) policyRead(ctx context.Context, forWrappers bool) {
	if forWrappers {
		d.bells.Ring(ClaimRule, kube.Singleton(), 0)
	}
	d.policyChanged(ctx, forWrappers && d.board.Reading().SameForWrappers(d.board.Latest()))
}

// ownRule wakes the controller for its own rule.
func ownRule(_ context.Context, old, fresh client.Object) []reconcile.Request {
	if fresh == nil {
		fresh = old
	}
	rule := operator.ClaimRule()
	if name := fresh.GetName(); name != rule.Policy.Name && name != rule.Binding.Name {
		return nil
	}
	return []reconcile.Request{kube.Singleton()}
}
