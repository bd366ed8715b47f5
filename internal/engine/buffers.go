package engine

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/internal/pack"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// This file plans for the room that CapacityBuffers keep free (K-37 to K-40). Real pods come first, strictly: they are
// planned as if there were no buffers. Only then are buffer pods planned, into the cluster as it will be. So no buffer
// changes what a pod gets. A pod that comes later takes that room like any other, and the same round plans for what is
// missing then.

// afterwards is the prefix of names of planned nodes while buffer pods are planned: they come after all others.
const afterwards naming = "~planned-"

// withBuffers adds places for the buffer pods of s to p, a plan for its pending pods.
//
// Room on nodes that pods use comes first, so that the other nodes may go (K-38). A pool launches nothing for buffers
// while its limit, or the cluster's, keeps a pod waiting: the launch would take what that pod waits for (K-40). No
// pool launches for buffers while pods with spread constraints are on their way to a node. A new node in a domain of
// its own would make that domain the least full one, and keep them waiting.
func withBuffers(s *cluster.Snapshot, p plan.Plan) plan.Plan {
	if len(s.Buffers) == 0 {
		return p
	}
	held := spreading(s, p)
	if held == nil {
		held = pressed(p)
	}
	next := planned(s, p).Restrict(held)
	placed, rest := pack.Room(next.Closing(unused), s.Buffers)
	found := func(placed map[*cluster.Node][]*cluster.Pod) {
		for node, pods := range placed {
			for _, pod := range pods {
				p.Buffers.Places = append(p.Buffers.Places, plan.Nominate{Pod: ref(pod), Node: node.ID()})
			}
		}
	}
	found(placed)
	if len(rest) > 0 { // as roomStays looks for it, so that what it finds is not launched again (K-39)
		next = next.Bind(placed)
		if more, none := pack.Room(next, rest); len(none) == 0 {
			found(more)
			rest = nil
		}
	}
	var launches []plan.Launch
	if len(rest) > 0 {
		own := pack.Solve(next, rest)
		p.Buffers.Places = append(p.Buffers.Places, own.Nominations...)
		p.Buffers.Unplaced, launches = own.Unplaced, own.Launches
	}
	slices.SortFunc(p.Buffers.Places, func(a, b plan.Nominate) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), strings.Compare(a.Pod.Namespace, b.Pod.Namespace),
			strings.Compare(a.Pod.Name, b.Pod.Name), strings.Compare(a.Pod.UID, b.Pod.UID))
	})
	p.Launches, p.Buffers.Places = taken(p.Launches, p.Buffers.Places, afterwards)
	p.Launches = append(p.Launches, launches...)
	return p
}

// planned returns the cluster as the plan leaves it: with its launches as nodes, and pods where it places them. Limits
// count the most that a launch may bring.
func planned(s *cluster.Snapshot, p plan.Plan) *cluster.Snapshot {
	if len(p.Launches) == 0 {
		return s.Bind(placements(s, p))
	}
	with, nodes := withLaunches(s, p.Launches)
	placed, pods := placements(with, p), map[string]*cluster.Pod{}
	for _, pod := range s.Pending {
		pods[pod.UID] = pod
	}
	for i, l := range p.Launches {
		for _, ref := range l.Pods {
			placed[nodes[i]] = append(placed[nodes[i]], pods[ref.UID])
		}
	}
	return with.Bind(placed)
}

// withLaunches returns the cluster with the nodes of launches, and these nodes. Limits count the most that a launch
// may bring.
func withLaunches(s *cluster.Snapshot, launches []plan.Launch) (*cluster.Snapshot, []*cluster.Node) {
	nodes, more := virtuals(s, launches, afterwards), map[string]resources.Vector{}
	for i, l := range launches {
		more[l.Pool] = more[l.Pool].Plus(l.Reserve.Minus(s.Pool(l.Pool).CapacityOf(nodes[i])))
	}
	return s.With(nodes).TakeSlots(slotsOf(launches)).Count(more), nodes
}

// taken moves places on launched nodes into their launches, and returns both lists after that.
func taken(launches []plan.Launch, places []plan.Nominate, names naming) ([]plan.Launch, []plan.Nominate) {
	launches = slices.Clone(launches)
	var rest []plan.Nominate
	for _, place := range places {
		number, is := strings.CutPrefix(place.Node, string(names))
		if i, err := strconv.Atoi(number); is && err == nil && i < len(launches) {
			launches[i].Buffers = append(launches[i].Buffers[:len(launches[i].Buffers):len(launches[i].Buffers)],
				place.Pod)
			continue
		}
		rest = append(rest, place)
	}
	return launches, rest
}

// unused reports whether a node is initialized, and no pod on it would have to move: only buffer pods may keep it.
func unused(node *cluster.Node) bool {
	return node.Initialized && !slices.ContainsFunc(node.Pods, func(pod *cluster.Pod) bool { return !pod.Fixed })
}

// pressed returns, by name, the pools where a limit of the pool or the cluster keeps a pod waiting, with what it says.
func pressed(p plan.Plan) map[string]cluster.Restriction {
	var pools map[string]cluster.Restriction
	for _, u := range p.Unplaced {
		for _, refusal := range u.Pools {
			if last := refusal.Last(); last.Demand == plan.ByLimit {
				if pools == nil {
					pools = map[string]cluster.Restriction{}
				}
				pools[refusal.Pool] = cluster.Restriction{Why: last.Detail + ", and pods wait for it",
					Cause: last.Cause}
			}
		}
	}
	return pools
}

// spreading returns all pools if the plan has a place for a pending pod with spread constraints; nil otherwise.
func spreading(s *cluster.Snapshot, p plan.Plan) map[string]cluster.Restriction {
	unplaced := map[string]bool{}
	for _, u := range p.Unplaced {
		unplaced[u.Pod.UID] = true
	}
	if !slices.ContainsFunc(s.Pending, func(pod *cluster.Pod) bool {
		return len(pod.Shape.Spread) > 0 && !unplaced[pod.UID]
	}) {
		return nil
	}
	pools := map[string]cluster.Restriction{}
	for _, pool := range s.Pools {
		pools[pool.Name] = cluster.Restriction{Why: "pods with spread constraints come first", Cause: cause.PodsFirst}
	}
	return pools
}

// bufferPlaces adds, by node of s, the buffer pods for which it has room by the plan. It skips pools whose limit keeps
// a pod waiting: their nodes go like any other, since the pod may need another one (K-40). Buffer pods take room, but
// constraints of pods do not see them: kube-scheduler does not know them.
func bufferPlaces(s *cluster.Snapshot, p plan.Plan, into map[*cluster.Node][]*cluster.Pod) {
	if len(p.Buffers.Places) == 0 {
		return
	}
	waits, pods, plain := pressed(p), make(map[string]*cluster.Pod, len(s.Buffers)),
		map[*cluster.Shape]*cluster.Shape{}
	for _, pod := range s.Buffers {
		if plain[pod.Shape] == nil {
			plain[pod.Shape] = pod.Shape.WithoutTies()
		}
		own := *pod
		own.Shape = plain[pod.Shape]
		pods[pod.UID] = &own
	}
	for _, node := range s.Nodes {
		if _, is := waits[node.Pool]; is {
			continue
		}
		for _, place := range p.PlacesOf(node.ID()) {
			into[node] = append(into[node], pods[place.Pod.UID])
		}
	}
}
