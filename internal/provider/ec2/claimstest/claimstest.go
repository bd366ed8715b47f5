// Package claimstest simulates the NodeClaims and NodePools of an API server, for tests of the EC2 provider and for
// places without one. It is as strict as the real one: it does not overwrite concurrent changes.
package claimstest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launchid"
)

// Store holds NodeClaims and NodePools. The zero value has none. Safe for concurrent use.
type Store struct {
	mu    sync.Mutex
	byUID map[types.UID]*karpenterv1.NodeClaim
	pools map[string]*karpenterv1.NodePool
}

// Put stores a claim in place of the one with its UID.
func (c *Store) Put(claim *karpenterv1.NodeClaim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(claim.DeepCopy())
}

func (c *Store) put(claim *karpenterv1.NodeClaim) {
	if c.byUID == nil {
		c.byUID = map[types.UID]*karpenterv1.NodeClaim{}
	}
	c.byUID[claim.UID] = claim
}

// PutPool stores a pool in place of the one with its name.
func (c *Store) PutPool(pool *karpenterv1.NodePool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pools == nil {
		c.pools = map[string]*karpenterv1.NodePool{}
	}
	c.pools[pool.Name] = pool.DeepCopy()
}

// NodePool implements ec2.Cluster.
func (c *Store) NodePool(_ context.Context, name string) (*karpenterv1.NodePool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if pool := c.pools[name]; pool != nil {
		return pool.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: karpenterv1.Group, Resource: "nodepools"}, name)
}

// Of returns a copy of the claim with that UID, nil for none.
func (c *Store) Of(uid types.UID) *karpenterv1.NodeClaim {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byUID[uid].DeepCopy()
}

// Delete removes a claim.
func (c *Store) Delete(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byUID, uid)
}

// Claims implements ec2.Cluster; they are ordered by name.
func (c *Store) Claims(context.Context) ([]*karpenterv1.NodeClaim, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := slices.Collect(maps.Values(c.byUID))
	slices.SortFunc(list, func(a, b *karpenterv1.NodeClaim) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// LiveClaims implements ec2.Cluster.
func (c *Store) LiveClaims(ctx context.Context) ([]*karpenterv1.NodeClaim, error) {
	return c.Claims(ctx)
}

// Intend implements ec2.Cluster. It also stores a claim that is not there yet.
func (c *Store) Intend(_ context.Context, claim *karpenterv1.NodeClaim, launch launchid.ID, mark string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byUID[claim.UID] == nil {
		c.put(claim.DeepCopy())
	}
	stored, err := c.note(claim, map[string]string{launchid.Key: string(launch), launchid.DealerKey: mark})
	if err == nil && stored.Status.ProviderID != "" {
		err = fmt.Errorf("it has got machine %s meanwhile", stored.Status.ProviderID)
	}
	return err
}

// Mark implements ec2.Cluster.
func (c *Store) Mark(_ context.Context, claim *karpenterv1.NodeClaim, mark string) (*karpenterv1.NodeClaim, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.note(claim, map[string]string{launchid.DealerKey: mark})
}

func (c *Store) note(claim *karpenterv1.NodeClaim, notes map[string]string) (*karpenterv1.NodeClaim, error) {
	stored := c.byUID[claim.UID].DeepCopy()
	if stored == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: karpenterv1.Group, Resource: "nodeclaims"},
			claim.Name)
	}
	for _, key := range []string{launchid.Key, launchid.DealerKey} {
		if is, was := stored.Annotations[key], claim.Annotations[key]; is != was {
			return nil, fmt.Errorf("annotation %s is %q by now, and was read as %q", key, is, was)
		}
	}
	stored.Annotations = maps.Clone(stored.Annotations)
	if stored.Annotations == nil {
		stored.Annotations = map[string]string{}
	}
	maps.Copy(stored.Annotations, notes)
	c.put(stored)
	return stored, nil
}
