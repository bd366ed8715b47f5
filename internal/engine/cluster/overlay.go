package cluster

import (
	"cmp"
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// This file makes what-ifs: a snapshot with a few nodes or pods more or less. What has not changed is shared. A
// what-if costs the changed values, and one copy of each changed list of pointers. [Snapshot.Change] says what has
// changed, so that a caller which has worked on the original need not look at the rest again.

// Change is how a what-if differs from the snapshot that it was made of.
type Change struct {
	// Of is the snapshot that the what-if was made of; nil for a snapshot that is no what-if.
	Of *Snapshot
	// Gone are nodes of Of that are left out, Added nodes that Of does not have.
	Gone, Added []*Node
}

// Change returns how the snapshot differs from the one that it was made of by [Snapshot.With] and [Snapshot.Without].
func (s *Snapshot) Change() Change { return s.change }

// Without returns the cluster as it will be when these nodes of s are gone. Pods on them that need another place are
// pending. Daemons, static pods, and pods that are ending already need none. The pods of a node that is going anyway
// are pending already. All of them run until they are evicted, so the nodes are Leaving.
//
// Limits are counted as for a replacement. A node that goes makes room under soft limits (L-31). It makes none under a
// hard limit, because its replacement is launched before it is gone (L-30), nor in a reservation (Reserving). Above
// the soft limit of the whole cluster, as many nodes come as go. Its hard limit counts nodes that go, as that of a
// pool does (K-53).
func (s *Snapshot) Without(nodes ...*Node) *Snapshot {
	own := s.derived()
	own.change.Gone, own.Reserving = slices.Clip(own.change.Gone), slices.Clip(own.Reserving)
	var moving, repelling []*Pod
	for _, node := range nodes {
		if added := slices.Index(own.change.Added, node); added >= 0 {
			own.change.Added = slices.Delete(slices.Clone(own.change.Added), added, added+1)
		} else {
			own.change.Gone = append(own.change.Gone, node)
		}
		if node.MayBeReserved() {
			own.Reserving = append(own.Reserving, node)
		}
		for _, pod := range node.Pods {
			if !node.Deleting && pod.Moves() {
				moving = append(moving, pod)
			}
			if len(pod.Shape.AntiAffinity) > 0 {
				repelling = append(repelling, pod)
			}
		}
	}
	if c := s.Ceiling(); c.Most != 0 && len(nodes) > 0 {
		own.MaxNodes = max(c.Most, c.Used)
	}
	own.Nodes = leaveOut(s.Nodes, nodes, compareNodes)
	own.Leaving = append(slices.Clip(s.Leaving), nodes...)
	own.Pending = insert(s.Pending, moving, ComparePods)
	own.Repelling = leaveOut(s.Repelling, repelling, ComparePods)
	own.Pools = used(s.Pools, nodes, -1)
	return own
}

// Freed returns the cluster with the room free that a node held under its pool's hard limit: as it will be when its
// claim is gone, unlike while its replacement is launched before. s is without the node already.
func (s *Snapshot) Freed(node *Node) *Snapshot {
	return s.withPools(func(pool *Pool) bool {
		if pool.Name != node.Pool || node.Claim == "" || pool.Limits.HardNodes == limit.None {
			return false
		}
		slot, own := limit.SlotOf(node.Claim, pool.Name, pool.UID)
		if !own { // its going frees some slot, and it does not matter which
			slot = int(pool.Limits.HardNodes)
		}
		pool.Used.Nodes--
		pool.FreeSlots = append(slices.Clip(pool.FreeSlots), slot)
		slices.Sort(pool.FreeSlots)
		return true
	})
}

// Vacated returns the cluster with the slot free that a node holds in a reservation: as it will be when its machine is
// gone. s is without the node already.
func (s *Snapshot) Vacated(node *Node) *Snapshot {
	own := s.derived()
	own.Reserving = slices.DeleteFunc(slices.Clone(s.Reserving),
		func(n *Node) bool { return compareNodes(n, node) == 0 })
	own.Vacant = append(slices.Clip(s.Vacant), node)
	return own
}

// Restocked returns the cluster with all that a pool may buy available, reservations aside: as it would be if no
// launch had failed.
func (s *Snapshot) Restocked(name string) *Snapshot {
	return s.withPools(func(pool *Pool) bool {
		if pool.Name != name || pool.Catalog == nil {
			return false
		}
		pool.Catalog = pool.Catalog.Restocked()
		return true
	})
}

// AtLeast returns the cluster with only those offers available whose types have this much room for pods and daemons.
func (s *Snapshot) AtLeast(room resources.Vector) *Snapshot {
	return s.withPools(func(pool *Pool) bool {
		if pool.Catalog == nil {
			return false
		}
		pool.Catalog = pool.Catalog.AtLeast(room)
		return true
	})
}

// With returns the cluster with more nodes, whose pods run on them, and more pending pods.
func (s *Snapshot) With(nodes []*Node, pending ...*Pod) *Snapshot {
	own := s.derived()
	own.change.Added = append(slices.Clip(own.change.Added), nodes...)
	var repelling []*Pod
	for _, node := range nodes {
		for _, pod := range node.Pods {
			if len(pod.Shape.AntiAffinity) > 0 {
				repelling = append(repelling, pod)
			}
		}
	}
	own.Nodes = insert(s.Nodes, nodes, compareNodes)
	for _, node := range nodes {
		if !slices.Contains(s.Leaving, node) { // one that is put back was counted all the time
			own.Claims++
		}
	}
	if len(s.Reserving) > 0 {
		own.Reserving = slices.DeleteFunc(slices.Clone(s.Reserving),
			func(n *Node) bool { return slices.Contains(nodes, n) })
	}
	if len(s.Leaving) > 0 {
		own.Leaving = slices.DeleteFunc(slices.Clone(s.Leaving),
			func(n *Node) bool { return slices.Contains(nodes, n) })
	}
	own.Pending = insert(s.Pending, pending, ComparePods)
	own.Repelling = insert(s.Repelling, repelling, ComparePods)
	own.Pools = used(s.Pools, nodes, 1)
	return own
}

// Bind returns the cluster once these pending pods of s run on these nodes of s and nowhere else. No pod is pending
// any more, only placed buffers keep room, and the nodes that were Leaving are gone.
func (s *Snapshot) Bind(placed map[*Node][]*Pod) *Snapshot {
	own := s.derived()
	own.Pending, own.Buffers, own.Leaving = nil, nil, nil
	if len(placed) == 0 {
		return own
	}
	own.Nodes = withoutMoved(s.Nodes, placed)
	own.change.Gone, own.change.Added = slices.Clip(own.change.Gone), slices.Clip(own.change.Added)
	var repelling []*Pod
	for i, node := range s.Nodes {
		pods := placed[node]
		if len(pods) == 0 {
			continue
		}
		fuller := *node
		fuller.Pods, fuller.Used, fuller.Ports = slices.Clone(node.Pods), slices.Clone(node.Used),
			slices.Clone(node.Ports)
		for _, pod := range pods {
			bound := *pod
			bound.Node, bound.Promised = node.Name, ""
			if len(pod.Shape.Claims) > 0 {
				bound.Shape = pod.Shape.Holding()
			}
			fuller.Pods = append(fuller.Pods, &bound)
			fuller.Used = fuller.Used.Plus(pod.Shape.Requests)
			fuller.Ports = append(fuller.Ports, pod.Shape.HostPorts...)
			if len(pod.Shape.AntiAffinity) > 0 {
				repelling = append(repelling, &bound)
			}
		}
		own.Nodes[i] = &fuller
		own.change.Gone, own.change.Added = append(own.change.Gone, node), append(own.change.Added, &fuller)
	}
	own.Repelling = insert(s.Repelling, repelling, ComparePods)
	return own
}

// withoutMoved returns a copy of the list in which nodes that go no longer have the pods that were placed elsewhere.
func withoutMoved(nodes []*Node, placed map[*Node][]*Pod) []*Node {
	list := slices.Clone(nodes)
	going := func(n *Node) bool { return n.Deleting && len(n.Pods) > 0 }
	if !slices.ContainsFunc(nodes, going) {
		return list
	}
	moved := map[string]bool{}
	for _, pods := range placed {
		for _, pod := range pods {
			moved[pod.UID] = moved[pod.UID] || pod.Node != ""
		}
	}
	for i, node := range list {
		if gone := func(p *Pod) bool { return moved[p.UID] }; going(node) && slices.ContainsFunc(node.Pods, gone) {
			emptier := *node
			emptier.Pods = slices.DeleteFunc(slices.Clone(node.Pods), gone)
			list[i] = &emptier
		}
	}
	return list
}

// Shut returns the cluster with these nodes of s closed: nothing is placed on them any more. It also returns these
// nodes as they are in it.
func (s *Snapshot) Shut(nodes ...*Node) (*Snapshot, []*Node) {
	own := s.derived()
	own.Nodes = slices.Clone(s.Nodes)
	own.change.Gone, own.change.Added = slices.Clip(own.change.Gone), slices.Clip(own.change.Added)
	var closed []*Node
	for _, node := range nodes {
		shut := *node
		shut.Disrupting, shut.Rebooting = true, false
		at, _ := slices.BinarySearchFunc(own.Nodes, node, compareNodes)
		own.Nodes[at] = &shut
		own.change.Gone, own.change.Added = append(own.change.Gone, node), append(own.change.Added, &shut)
		closed = append(closed, &shut)
	}
	return own, closed
}

// Closing returns the cluster with the picked nodes Closed.
func (s *Snapshot) Closing(picked func(*Node) bool) *Snapshot {
	own := s.derived()
	own.Nodes, own.Closed = nil, slices.Clone(s.Closed)
	for _, node := range s.Nodes {
		if picked(node) {
			own.Closed = append(own.Closed, node)
		} else {
			own.Nodes = append(own.Nodes, node)
		}
	}
	return own
}

// Unreserved returns the cluster with no room kept for buffers on its nodes, and the buffer pods that each had, by
// [Node.ID].
func (s *Snapshot) Unreserved() (*Snapshot, map[string][]*Pod) {
	room := map[string][]*Pod{}
	for _, node := range s.Nodes {
		for _, pod := range node.Pods {
			if pod.IsBuffer() {
				room[node.ID()] = append(room[node.ID()], pod)
			}
		}
	}
	if len(room) == 0 {
		return s, nil
	}
	own := s.derived()
	own.Nodes = slices.Clone(s.Nodes)
	for i, node := range s.Nodes {
		if len(room[node.ID()]) == 0 {
			continue
		}
		bare := *node
		bare.Pods = slices.DeleteFunc(slices.Clone(node.Pods), (*Pod).IsBuffer)
		bare.Ports, bare.Used = slices.Clone(node.Ports), slices.Clone(node.Used)
		for _, pod := range room[node.ID()] {
			bare.Used = bare.Used.Minus(pod.Shape.Requests)
			for _, port := range pod.Shape.HostPorts {
				if at := slices.Index(bare.Ports, port); at >= 0 {
					bare.Ports = slices.Delete(bare.Ports, at, at+1)
				}
			}
		}
		own.Nodes[i] = &bare
	}
	own.Repelling = slices.DeleteFunc(slices.Clone(s.Repelling), (*Pod).IsBuffer)
	return own, room
}

// WithoutBuffers returns the cluster with no room for buffers, neither kept nor asked for; s itself where there is
// none.
func (s *Snapshot) WithoutBuffers() *Snapshot {
	own, room := s.Unreserved()
	if len(room)+len(s.Buffers) == 0 && !slices.ContainsFunc(s.Pending, (*Pod).IsBuffer) {
		return s
	}
	if own == s {
		own = s.derived()
	}
	own.Buffers, own.Pending = nil, slices.DeleteFunc(slices.Clone(s.Pending), (*Pod).IsBuffer)
	return own
}

// Settled returns the cluster without pending pods. Nodes that are not initialized or not ready are Closed: nothing
// can be moved there yet, but kube-scheduler counts them, and what runs there. It knows nothing yet of a claim without
// a node: such a claim is Closed only for pods that are to run there.
func (s *Snapshot) Settled() *Snapshot {
	own := s.derived()
	own.Pending, own.Buffers = nil, nil
	unsettled := func(n *Node) bool { return !n.Initialized || n.NotReady }
	if slices.ContainsFunc(s.Nodes, unsettled) {
		own.Nodes, own.Closed = nil, slices.Clone(s.Closed)
		for _, node := range s.Nodes {
			switch {
			case !unsettled(node):
				own.Nodes = append(own.Nodes, node)
			case node.Name != "" || len(node.Pods) > 0:
				own.Closed = append(own.Closed, node)
			default:
				own.Drawing = append(slices.Clip(own.Drawing), node)
			}
		}
	}
	return own
}

// Launched returns the cluster with more nodes counted in its pools. slots has, by pool, the slot of each node, below
// 0 for a node without one.
func (s *Snapshot) Launched(slots map[string][]int) *Snapshot {
	own := s.TakeSlots(slots).withPools(func(pool *Pool) bool {
		pool.Used.Nodes += int64(len(slots[pool.Name]))
		return len(slots[pool.Name]) > 0
	})
	for _, taken := range slots {
		own.Claims += int64(len(taken))
	}
	return own
}

// Draws returns the cluster with further nodes that count for its commitments and the mixes of its pools, and in
// nothing else.
func (s *Snapshot) Draws(nodes ...*Node) *Snapshot {
	if len(nodes) == 0 {
		return s
	}
	own := s.derived()
	own.Drawing = append(slices.Clip(s.Drawing), nodes...)
	return own
}

// Undraws returns the cluster with these nodes of s no longer counted for its commitments and mixes, since they are to
// go.
func (s *Snapshot) Undraws(nodes ...*Node) *Snapshot {
	if len(nodes) == 0 {
		return s
	}
	own := s.derived()
	own.Undrawn = append(slices.Clip(s.Undrawn), nodes...)
	return own
}

// TakeSlots returns the cluster with fewer free slots in its pools.
func (s *Snapshot) TakeSlots(slots map[string][]int) *Snapshot {
	return s.withPools(func(pool *Pool) bool {
		taken := slots[pool.Name]
		if len(taken) == 0 || pool.FreeSlots == nil {
			return false
		}
		pool.FreeSlots = slices.DeleteFunc(slices.Clone(pool.FreeSlots),
			func(slot int) bool { return slices.Contains(taken, slot) })
		return true
	})
}

// Restriction is why a pool launches nothing, as Pool.Blocked and Pool.BlockedBy.
type Restriction struct {
	Why   string
	Cause cause.Code
}

// Restrict returns the cluster with pools that launch nothing; why has the reasons, by pool's name.
func (s *Snapshot) Restrict(why map[string]Restriction) *Snapshot {
	return s.withPools(func(pool *Pool) bool {
		r, found := why[pool.Name]
		if !found || pool.Blocked != "" {
			return false
		}
		pool.Blocked, pool.BlockedBy = r.Why, r.Cause
		return true
	})
}

// Count returns the cluster with more capacity counted against the resource limits of pools, by pool's name.
func (s *Snapshot) Count(more map[string]resources.Vector) *Snapshot {
	return s.withPools(func(pool *Pool) bool {
		pool.Used.Capacity = pool.Used.Capacity.Plus(more[pool.Name])
		return more[pool.Name] != nil
	})
}

// withPools returns the cluster with copies of the pools that change reports as changed.
func (s *Snapshot) withPools(change func(*Pool) bool) *Snapshot {
	own := s.derived()
	own.Pools = slices.Clone(s.Pools)
	for i, pool := range s.Pools {
		if fresh := *pool; change(&fresh) {
			own.Pools[i] = &fresh
		}
	}
	return own
}

// Node returns this snapshot's version of like, the node at the same place in the order of nodes; nil if it has none.
func (s *Snapshot) Node(like *Node) *Node {
	if at, found := slices.BinarySearchFunc(s.Nodes, like, compareNodes); found {
		return s.Nodes[at]
	}
	return nil
}

func (s *Snapshot) derived() *Snapshot {
	own := *s
	if own.change.Of == nil {
		own.change.Of = s
	}
	return &own
}

// used returns the pools with what nodes hold added to their usage, or taken off it.
func used(pools []*Pool, nodes []*Node, sign int64) []*Pool {
	result := pools
	for _, node := range nodes {
		i := slices.IndexFunc(pools, func(p *Pool) bool { return p.Name == node.Pool })
		if i < 0 || node.Claim == "" {
			continue
		}
		if result[i] == pools[i] {
			result = slices.Clone(result)
			own := *pools[i]
			own.Used.Capacity = slices.Clone(own.Used.Capacity)
			result[i] = &own
		}
		result[i].count(node, sign)
	}
	return result
}

func (p *Pool) count(node *Node, sign int64) {
	if sign > 0 || p.Limits.HardNodes == limit.None {
		p.Used.Nodes += sign
	}
	for component, amount := range p.CapacityOf(node) {
		if component < len(p.Used.Capacity) || sign > 0 {
			p.Used.Capacity = p.Used.Capacity.With(component,
				max(0, resources.Sum(p.Used.Capacity.At(component), sign*amount)))
		}
	}
}

// CapacityOf returns what a node counts against resource limits, as far as the pool's catalogue knows its type.
func (p *Pool) CapacityOf(node *Node) resources.Vector {
	if p.Catalog == nil {
		return nil
	}
	types := p.Catalog.Types
	for low, high := 0, len(types); low < high; {
		switch middle := (low + high) / 2; cmp.Compare(types[middle].Name, node.InstanceType) {
		case 0:
			return types[middle].Capacity
		case -1:
			low = middle + 1
		default:
			high = middle
		}
	}
	return nil
}
