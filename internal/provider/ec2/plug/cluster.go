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
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/class"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launchid"
)

// cluster is the provider's view of the API server. It reads from caches where possible; the provider can cope with
// stale reads.
type cluster struct {
	client client.Client
	live   client.Reader
}

// NewCluster returns the provider's view of the cluster. client may read from caches; live reads from the API server
// itself.
func NewCluster(client client.Client, live client.Reader) ec2.Cluster { return cluster{client, live} }

// NodeClass implements ec2.Cluster.
func (c cluster) NodeClass(ctx context.Context, name string) (*awsv1.EC2NodeClass, error) {
	var class awsv1.EC2NodeClass
	return &class, c.client.Get(ctx, types.NamespacedName{Name: name}, &class)
}

// NodePool implements ec2.Cluster.
func (c cluster) NodePool(ctx context.Context, name string) (*karpenterv1.NodePool, error) {
	var pool karpenterv1.NodePool
	return &pool, c.client.Get(ctx, types.NamespacedName{Name: name}, &pool)
}

// Claims implements ec2.Cluster. It returns the objects of the cache itself: nobody may change them.
func (c cluster) Claims(ctx context.Context) ([]*karpenterv1.NodeClaim, error) {
	return listed(ctx, c.client, client.UnsafeDisableDeepCopy)
}

// LiveClaims implements ec2.Cluster.
func (c cluster) LiveClaims(ctx context.Context) ([]*karpenterv1.NodeClaim, error) {
	return listed(ctx, c.live)
}

func listed(ctx context.Context, from client.Reader, options ...client.ListOption) ([]*karpenterv1.NodeClaim, error) {
	var list karpenterv1.NodeClaimList
	if err := from.List(ctx, &list, options...); err != nil {
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

// profileKey is Karpenter's annotation of a claim with the instance profile of its machine. If Karpenter runs again,
// it deletes every profile of the cluster that neither a class's status nor such an annotation names. Without it, our
// machines would lose their role.
const profileKey = awsv1.Group + "/instance-profile-name"

// Intend implements ec2.Cluster. It also writes the class's drift hash (E-05) and instance profile, since the machine
// is launched with these.
func (c cluster) Intend(ctx context.Context, claim *karpenterv1.NodeClaim, launch launchid.ID, mark string) error {
	notes := map[string]string{launchid.Key: string(launch), launchid.DealerKey: mark}
	nodeClass, err := c.NodeClass(ctx, claim.Spec.NodeClassRef.Name)
	if err != nil {
		return fmt.Errorf("getting EC2NodeClass %s: %w", claim.Spec.NodeClassRef.Name, err)
	}
	for _, key := range []string{class.HashKey, class.HashVersionKey} {
		if value := nodeClass.Annotations[key]; value != "" {
			notes[key] = value
		}
	}
	if name := nodeClass.Status.InstanceProfile; name != "" {
		notes[profileKey] = name
	}
	written, err := c.note(ctx, claim, notes)
	if err != nil {
		return err
	}
	if has := written.Status.ProviderID; has != "" {
		return fmt.Errorf("it has got machine %s meanwhile", has)
	}
	return nil
}

// Mark implements ec2.Cluster.
func (c cluster) Mark(ctx context.Context, claim *karpenterv1.NodeClaim, mark string) (*karpenterv1.NodeClaim, error) {
	return c.note(ctx, claim, map[string]string{launchid.DealerKey: mark})
}

// note writes annotations, provided that the claim's launch and dealer have not changed.
func (c cluster) note(ctx context.Context, claim *karpenterv1.NodeClaim,
	notes map[string]string) (*karpenterv1.NodeClaim, error) {
	after := &karpenterv1.NodeClaim{ObjectMeta: metaOf(claim)}
	after.Annotations = maps.Clone(claim.Annotations)
	if after.Annotations == nil {
		after.Annotations = map[string]string{}
	}
	maps.Copy(after.Annotations, notes)
	change := patch.MetaUnlessChanged(claim, after, launchid.Key, launchid.DealerKey)
	return after, c.client.Patch(ctx, after, change)
}
