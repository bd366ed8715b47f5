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

// cluster is the API server as the provider sees it. It reads from caches where it may: what it reads may be late, and
// the provider counts on that.
type cluster struct {
	client client.Client
	live   client.Reader
}

// NewCluster returns what the provider reads and writes through client, which may read from caches, and through live,
// which reads from the API server itself.
func NewCluster(client client.Client, live client.Reader) ec2.Cluster { return cluster{client, live} }

// NodeClass implements ec2.Cluster.
func (c cluster) NodeClass(ctx context.Context, name string) (*awsv1.EC2NodeClass, error) {
	var class awsv1.EC2NodeClass
	return &class, c.client.Get(ctx, types.NamespacedName{Name: name}, &class)
}

// Claims implements ec2.Cluster. They are those of the cache itself: nobody changes them.
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

// profileKey is Karpenter's annotation of a claim with the instance profile that its machine was launched with. Once
// it runs again it deletes every profile of the cluster that neither a class's status nor such an annotation names: a
// machine of ours would lose its role without it.
const profileKey = awsv1.Group + "/instance-profile-name"

// Intend implements ec2.Cluster. It also notes the class's drift hash (E-05) and instance profile: what a machine is
// made by is known here.
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

// note writes annotations, provided that nobody has changed the claim's launch or dealer.
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
