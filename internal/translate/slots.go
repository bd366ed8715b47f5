package translate

import (
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// PoolOf returns the name of the pool that a claim belongs to, "" for none (L-13). It is the owning pool; the label
// does not count then, since a label changed by hand is put back. For a claim made by hand, the label decides.
func PoolOf(claim *karpenterv1.NodeClaim) string {
	if name, _, owned := OwningPool(claim); owned {
		return name
	}
	return claim.Labels[karpenterv1.NodePoolLabelKey]
}

// Belongs reports whether a claim counts for the pool of that name and UID (L-13): by its label, by its owner, or
// because its name is one of the pool's slots. Labels and owners can be changed by hand, names cannot. It is for
// creates and launches, where counting one claim too many does no harm. Removals use [PoolOf].
func Belongs(claim *karpenterv1.NodeClaim, pool, uid string) bool {
	if claim.Labels[karpenterv1.NodePoolLabelKey] == pool {
		return true
	}
	if _, ownerUID, owned := OwningPool(claim); owned && ownerUID == uid {
		return true
	}
	_, slot := limit.SlotOf(claim.Name, pool, uid)
	return slot
}

// LaunchKey returns the key of the launch that a claim in a slot of the cluster stands for, "" when it has none
// (K-53).
func LaunchKey(claim *karpenterv1.NodeClaim) string {
	return claim.Annotations[karpenterv1.LaunchedAsAnnotationKey]
}

// SetLaunchKey writes the launch key onto a claim.
func SetLaunchKey(claim *karpenterv1.NodeClaim, key string) {
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	claim.Annotations[karpenterv1.LaunchedAsAnnotationKey] = key
}

// HardNodes returns the pool's hard limit on nodes, limit.None when it has none.
func HardNodes(pool *karpenterv1.NodePool) (int64, error) {
	parsed, err := limits(resources.NewSpace(), pool)
	return parsed.HardNodes, err
}

// OwningPool returns the NodePool among a claim's owners. A claim made by hand has none.
func OwningPool(claim *karpenterv1.NodeClaim) (name, uid string, owned bool) {
	for _, owner := range claim.OwnerReferences {
		if owner.Kind == "NodePool" && owner.APIVersion == karpenterv1.GroupVersion().String() {
			return owner.Name, string(owner.UID), true
		}
	}
	return "", "", false
}
