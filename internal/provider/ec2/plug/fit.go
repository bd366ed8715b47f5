package plug

import (
	"context"
	"slices"
	"strings"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
)

// Reasons of events on a NodePool that has no instance type: because the class asks for Nitro enclaves (E-01), or
// because only some pools of the class ask for dedicated machines (E-18).
const (
	EventNoEnclaves = "EnclavesUnsupported"
	EventTenancy    = "TenancyUnsupported"
)

// fit reports conflicts between a class and its NodePools. Reservations that no pool uses go into the result's
// condition (E-77). A pool gets an event if no type has the enclaves, or the tenancy, that are needed; only once while
// the text is the same.
func (k *classes) fit(ctx context.Context, c *connection, each *awsv1.EC2NodeClass, r resolve.Result) resolve.Result {
	pools, err := k.poolsOf(ctx, each.Name)
	if err != nil {
		return r // the next reconcile reports it
	}
	as := each.DeepCopy()
	as.Status = r.Status
	wanted, shared := c.machines.Tenancy(as, pools)
	if wanted {
		k.deps.Wake(Offers) // to ask for their prices
	}
	lacking := c.machines.WithoutEnclaves(as, pools)
	for i := range pools {
		reason, text := EventNoEnclaves, lacking[pools[i].Name]
		if text == "" {
			reason, text = EventTenancy, shared[pools[i].Name]
		}
		if text != "" && k.lacks[pools[i].UID] != text {
			k.deps.Events.Event(&pools[i], event.Warning, reason, text)
		}
		if k.lacks[pools[i].UID] = text; text == "" {
			delete(k.lacks, pools[i].UID)
		}
	}
	return c.resolver.Untaken(each, r, c.machines.Untaken(as, pools))
}

// poolsOf returns the NodePools that refer to a class, by name.
func (k *classes) poolsOf(ctx context.Context, name string) ([]karpenterv1.NodePool, error) {
	var pools karpenterv1.NodePoolList
	if err := k.deps.Client.List(ctx, &pools); err != nil {
		return nil, err
	}
	kind := (ec2.Kind{}).NodeClass()
	list := slices.DeleteFunc(pools.Items, func(p karpenterv1.NodePool) bool {
		ref := p.Spec.Template.Spec.NodeClassRef
		return p.DeletionTimestamp != nil || ref == nil || ref.Kind != kind.Kind || ref.Name != name
	})
	slices.SortFunc(list, func(a, b karpenterv1.NodePool) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// expire checks the reservations in which machines run: machines in a capacity block that ends soon are drained
// (E-13). It does not ask again for reservations that classes have resolved.
func (k *classes) expire(ctx context.Context, c *connection, results map[string]resolve.Result) {
	known := map[string]resolve.Reservation{}
	for _, r := range results {
		for _, each := range r.Reservations {
			known[each.ID] = each
		}
	}
	var list []resolve.Reservation
	var others []string
	for _, id := range c.machines.InReservations() {
		if r, is := known[id]; is {
			list = append(list, r)
		} else {
			others = append(others, id)
		}
	}
	if c.machines.Expiring(append(list, c.resolver.Reservations(ctx, others)...)) {
		k.deps.Wake("") // the controller that reads notices
	}
}
