package translate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// The reasons of drift that do not come from the provider, as Karpenter names them (D-06).
const (
	DriftNodePool     = "NodePoolDrifted"
	DriftRequirements = "RequirementsDrifted"
)

// Drift returns why a claim no longer matches its pool, as a reason and in words; "" if it matches, or nobody can
// tell. node is the claim's, nil while there is none. The provider's own checks are not part of this.
func Drift(pool *karpenterv1.NodePool, claim *karpenterv1.NodeClaim, node *corev1.Node) (reason, text string) {
	if pool.Annotations[karpenterv1.ConversionProblemAnnotationKey] != "" {
		return "", "" // a placeholder for a pool whose template cannot be read (V-24)
	}
	// A hash of another version says nothing; the pool's controller replaces it.
	hash, version := claim.Annotations[karpenterv1.NodePoolHashAnnotationKey],
		claim.Annotations[karpenterv1.NodePoolHashVersionAnnotationKey]
	if hash != "" && version == HashVersion && hash != Hash(pool) {
		return DriftNodePool, "the template of NodePool " + pool.Name + " has changed"
	}
	if text := outside(pool, claim, node); text != "" {
		return DriftRequirements, text
	}
	return "", ""
}

// outside says which label of the claim's machine its pool no longer allows, "" when it allows all. A missing label
// counts only once the node is initialized: the node may bring it.
func outside(pool *karpenterv1.NodePool, claim *karpenterv1.NodeClaim, node *corev1.Node) string {
	set, _, err := Requirements(pool.Spec.Template.Spec.Requirements) // labels and node class are in the hash
	if err != nil {
		return "" // the pool cannot be understood: no reason to replace nodes
	}
	for r := range set.All() {
		key := string(r.Key())
		value, found := claim.Labels[key]
		if !found && node != nil {
			value, found = node.Labels[key]
		}
		switch {
		case found && !r.Has(value):
			return fmt.Sprintf("%s=%s: NodePool %s asks for %s", key, value, pool.Name, r)
		case !found && node != nil && isTrue(claim, karpenterv1.ConditionTypeInitialized) && !r.AllowsAbsent():
			return fmt.Sprintf("the label %s is missing: NodePool %s asks for %s", key, pool.Name, r)
		}
	}
	return ""
}
