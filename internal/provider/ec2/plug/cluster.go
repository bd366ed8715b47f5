package plug

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/kube/patch"
	"github.com/joiner-autoscaler/joiner/internal/plugin"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/class"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launchid"
)

// cluster is the API server as the provider sees it. It reads from caches; what it reads may be late, and the provider counts on that.
type cluster struct{ client client.Client }

var _ ec2.Cluster = cluster{}

func newCluster(deps plugin.Deps) cluster { return cluster{deps.Client} }

// NodeClass implements ec2.Cluster.
func (c cluster) NodeClass(ctx context.Context, name string) (*awsv1.EC2NodeClass, error) {
	var class awsv1.EC2NodeClass
	return &class, c.client.Get(ctx, types.NamespacedName{Name: name}, &class)
}

// Claims implements ec2.Cluster. They are those of the cache itself: nobody changes them.
func (c cluster) Claims(ctx context.Context) ([]*karpenterv1.NodeClaim, error) {
	var list karpenterv1.NodeClaimList
	if err := c.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var claims []*karpenterv1.NodeClaim
	for i := range list.Items {
		if refers(&list.Items[i]) {
			claims = append(claims, &list.Items[i])
		}
	}
	return claims, nil
}

// refers reports whether a claim is for EC2.
func refers(claim *karpenterv1.NodeClaim) bool {
	ref, kind := claim.Spec.NodeClassRef, ec2.Kind{}.NodeClass()
	return ref != nil && ref.Group == kind.Group && ref.Kind == kind.Kind
}

// profileKey is Karpenter's annotation of a claim with the instance profile that its machine was launched with. Once it runs again
// it deletes every profile of the cluster that neither a class's status nor such an annotation names: a machine of ours would lose
// its role without it.
const profileKey = awsv1.Group + "/instance-profile-name"

// Intend implements ec2.Cluster. It also notes the class's drift hash (E-05) and instance profile: what a machine is made by is
// known here.
func (c cluster) Intend(ctx context.Context, claim *karpenterv1.NodeClaim, launch launchid.ID) error {
	after := claim.DeepCopy()
	after.Annotations = maps.Clone(claim.Annotations)
	if after.Annotations == nil {
		after.Annotations = map[string]string{}
	}
	after.Annotations[launchid.Key] = string(launch)
	nodeClass, err := c.NodeClass(ctx, claim.Spec.NodeClassRef.Name)
	if err != nil {
		return fmt.Errorf("getting EC2NodeClass %s: %w", claim.Spec.NodeClassRef.Name, err)
	}
	for _, key := range []string{class.HashKey, class.HashVersionKey} {
		if value := nodeClass.Annotations[key]; value != "" {
			after.Annotations[key] = value
		}
	}
	if name := nodeClass.Status.InstanceProfile; name != "" {
		after.Annotations[profileKey] = name
	}
	return c.client.Patch(ctx, &karpenterv1.NodeClaim{ObjectMeta: metaOf(claim)}, patch.Meta(claim, after))
}
