package engine

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Terms are the bounds of voluntary disruption at a moment.
type Terms struct {
	Now int64 // Unix seconds
	// Budgets holds the active budgets of every pool by its name; a pool without an entry is not limited.
	Budgets map[string][]Budget
	// MinSaving is the least price per hour that a command with launches has to save; 0 means any.
	MinSaving resources.Money
	// MinSavingPercent is the same in percent of the price of the nodes that the command replaces; 0 means any. See
	// DefaultMinSavingPercent.
	MinSavingPercent int
	// Passing holds the pools where pods end although nobody made them leave: a workload shrinks, or rolls. Pods that
	// run now may be gone a moment later. So no pod of these pools is moved to save money: it would move twice, and
	// what is launched for it might not be needed (D-15).
	Passing map[string]bool
	// SpotToSpot lets spot nodes be replaced by cheaper spot nodes (D-05).
	SpotToSpot bool
	// Turn counts the searches for something cheaper that have found nothing: the next nodes are tried one by one then
	// (D-04).
	Turn int
	// Again says that the last search had the same [Question], and found nothing. Only the nodes whose turn it is are
	// tried then: the answer to all else is known (B-22).
	Again bool
}

// Holding returns the terms with a budget of zero for a reason in these pools.
func (t Terms) Holding(pools map[string]bool, reason plan.DisruptionReason) Terms {
	all := maps.Clone(t.Budgets)
	if all == nil {
		all = map[string][]Budget{}
	}
	for pool, held := range pools {
		if held {
			all[pool] = append(slices.Clone(all[pool]), Budget{Reasons: []plan.DisruptionReason{reason}})
		}
	}
	t.Budgets = all
	return t
}

// disruption is one round of choosing nodes to go: the cluster as it will be with what was chosen so far, and what the
// budgets have left.
type disruption struct {
	terms   Terms
	origin  *cluster.Snapshot // as it is, with nodes on which nothing may be placed
	base    *cluster.Snapshot // before anything was chosen
	future  *cluster.Snapshot
	taken   map[string]int // by pool: nodes that use up its budget
	broken  map[string]int // by pool: those of them that do not go, and are only not ready
	chosen  []command
	stays   []plan.Stay
	hungry  []*cluster.Pod // pending ones that no pool may launch a node for
	coming  plan.Plan      // for the pending pods
	markets map[marketKey]market
	far     bool     // the pool whose nodes are being replaced costs far more than a fresh plan
	heard   *hearing // of origin
	// costs and ledger belong to accounted: the future when they were last computed. Unused without commitments.
	accounted *cluster.Snapshot
	costs     func(...*cluster.Node) resources.Money
	ledger    *cluster.Ledger
	// usedUp is pack.UsedUp of origin; nil until it is asked for.
	usedUp func(*cluster.Pool, *cluster.Node) bool
}

// command is nodes that go together, and what replaces them.
type command struct {
	nodes    []*cluster.Node
	launches []plan.Launch
	reason   plan.DisruptionReason
	why      string
	first    plan.First // why nothing replaces the node before it goes; "" when something does (first.go)
}

// begin starts a round of new commands. Commands under way are taken for carried out, so that no room is counted on
// twice.
func begin(s *cluster.Snapshot, terms Terms) *disruption {
	return beginFrom(s, s.Without(underway(s)...), terms)
}

// underway lists the nodes that are marked to go and not deleted yet.
func underway(s *cluster.Snapshot) []*cluster.Node {
	var list []*cluster.Node
	for _, node := range s.Nodes {
		if node.Claim != "" && node.Disrupting && !node.Deleting {
			list = append(list, node)
		}
	}
	return list
}

// beginFrom starts a round on s, which is origin or a what-if of it. Pending pods of s are planned first: what they
// get is not free any more. Nodes on which nothing may be placed yet are no place for pods that have to move.
func beginFrom(origin, s *cluster.Snapshot, terms Terms) *disruption {
	d := &disruption{terms: terms, origin: origin, taken: Taken(origin), broken: broken(origin),
		markets: map[marketKey]market{}, heard: hear(origin, terms.Now)}
	d.future = s
	if len(s.Pending)+len(s.Buffers) > 0 {
		p := Provision(s)
		placed := placements(s, p)
		bufferPlaces(s, p, placed)
		d.future = s.Bind(placed).Draws(drawing(s, p.Launches, newLast, 0)...)
		d.hungry, d.coming = hungry(s, p), p
	}
	d.future = d.future.Settled()
	d.base = d.future
	return d
}

// hungry lists the pods that p, a plan for s, leaves unplaced although some node could take them: one of each shape.
func hungry(s *cluster.Snapshot, p plan.Plan) []*cluster.Pod {
	if len(p.Unplaced) == 0 {
		return nil
	}
	unplaced := make(map[string]bool, len(p.Unplaced))
	for _, u := range p.Unplaced {
		unplaced[u.Pod.UID] = true
	}
	var list []*cluster.Pod
	seen := map[*cluster.Shape]bool{}
	for _, pod := range s.Pending {
		if unplaced[pod.UID] && !seen[pod.Shape] && !fixedToNodes(pod.Shape) {
			seen[pod.Shape] = true
			list = append(list, pod)
		}
	}
	return list
}

// placements returns, by node of s, the pending pods that the plan places there.
func placements(s *cluster.Snapshot, p plan.Plan) map[*cluster.Node][]*cluster.Pod {
	pods := make(map[string]*cluster.Pod, len(s.Pending))
	for _, pod := range s.Pending {
		pods[pod.UID] = pod
	}
	placed := map[*cluster.Node][]*cluster.Pod{}
	for _, node := range s.Nodes {
		for _, n := range p.NominationsOf(node.ID()) {
			placed[node] = append(placed[node], pods[n.Pod.UID])
		}
	}
	return placed
}

// removal returns the entry of a plan for a node that goes.
func removal(node *cluster.Node, reason plan.DisruptionReason, why string) plan.Remove {
	return plan.Remove{Claim: node.Claim, ClaimUID: node.ClaimUID, Node: node.Name, Pool: node.Pool, Reason: reason,
		Price: node.Price, Why: why}
}

// Sizes counts, by pool, the initialized nodes: percentages of budgets refer to these (V-07).
func Sizes(s *cluster.Snapshot) map[string]int {
	count := map[string]int{}
	for _, node := range s.Nodes {
		if node.Claim != "" && node.Initialized {
			count[node.Pool]++
		}
	}
	return count
}

// Taken counts, by pool, the nodes that use up its budget: disrupting, or not ready (D-08).
func Taken(s *cluster.Snapshot) map[string]int {
	count := map[string]int{}
	for _, node := range s.Nodes {
		if usesBudget(node) {
			count[node.Pool]++
		}
	}
	return count
}

// usesBudget reports whether a node uses up the budget of its pool. A claim without a node does not: nothing runs
// there. [Sizes] does not count it either. So it would hold up others as soon as its node is gone, even in a pool
// whose nodes may all go at once.
func usesBudget(node *cluster.Node) bool {
	return node.Name != "" && node.Claim != "" && node.Pool != "" &&
		(node.Deleting || node.Disrupting || node.Initialized && node.NotReady)
}

// beside returns how many nodes other than this one use up the budget of its pool; taken counts all, by pool. A node
// that is not ready uses it up already, and uses no more when it goes. Otherwise it would keep itself, and with it the
// place of one that works.
func beside(taken map[string]int, node *cluster.Node) int {
	if node.Claim != "" && !node.Deleting && !node.Disrupting && node.Initialized && node.NotReady {
		return taken[node.Pool] - 1
	}
	return taken[node.Pool]
}

// broken counts, by pool, the nodes that use up its budget only because they are not ready. They use up none of what
// repair may do: it removes such nodes, and each would hold up the others (D-13).
func broken(s *cluster.Snapshot) map[string]int {
	count := map[string]int{}
	for _, node := range s.Nodes {
		if usesBudget(node) && !node.Deleting && !node.Disrupting {
			count[node.Pool]++
		}
	}
	return count
}

// left returns how many more nodes of the pool may be disrupted for the reason.
func (d *disruption) left(pool string, reason plan.DisruptionReason) int {
	taken := d.taken[pool]
	if reason == plan.Unhealthy {
		taken -= d.broken[pool]
	}
	return max(0, Allowed(d.terms.Budgets[pool], reason)-taken)
}

// Disruptable reports whether a node may be chosen to go at all (D-02). Its pool and its Node object exist, it is
// initialized and ready, and it does not go already. Neither users nor a claim that it replaces keep it.
func Disruptable(s *cluster.Snapshot, node *cluster.Node) bool {
	return unfit(s, node) == "" && hear(s, 0).kept(node, byReplaced|byUsers) == ""
}

// Eligible returns the nodes that may be chosen to go for a reason, apart from room and budgets, in the order of the
// snapshot. now is in Unix seconds. What nodes share is looked up once: each scrape of metrics asks for all of them.
func Eligible(s *cluster.Snapshot, now int64, reason plan.DisruptionReason) (nodes []*cluster.Node) {
	h := hear(s, now)
	for _, node := range s.Nodes {
		if h.mayGo(node, reason) {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// MightSave reports whether a node goes if that saves money, and for no other reason: it is quiet, fit, kept by
// nobody, and not to be renewed. Its price need not be known.
func MightSave(s *cluster.Snapshot, now int64, node *cluster.Node) bool {
	if !Disruptable(s, node) || renewal(s, node) != "" {
		return false
	}
	found := dueUnderutilized(subject{node: node, pool: s.Pool(node.Pool), now: now})
	return found.Text == "" || found.Cause == cause.PriceUnknown
}

// bound reports whether a pod would have to move, and no launched node can be right for it, for instance because of
// its devices (K-41, K-42: pods with claims are not moved). Trying its node together with others would only keep those
// others.
func bound(pod *cluster.Pod) bool { return pod.Moves() && fixedToNodes(pod.Shape) }

// fixedToNodes reports whether no node that is launched can be right for pods of the shape.
func fixedToNodes(shape *cluster.Shape) bool { return shape.Blocked != "" || len(shape.Claims) > 0 }

// candidates lists the nodes that may go, the most wasteful first, and of equals those that cost least to disrupt.
func (d *disruption) candidates(mayGo func(*cluster.Node) bool) []*cluster.Node {
	var list []*cluster.Node
	for _, node := range d.future.Nodes {
		if mayGo(node) {
			list = append(list, node)
		}
	}
	return d.byWaste(list)
}

// byWaste sorts nodes, the most wasteful first.
func (d *disruption) byWaste(nodes []*cluster.Node) []*cluster.Node {
	type rank struct {
		waste, cost int64
	}
	ranks := make(map[*cluster.Node]rank, len(nodes))
	for _, node := range nodes {
		cost, _ := DisruptionCost(node)
		ranks[node] = rank{waste(node, d.cost(node)), cost}
	}
	return slices.SortedFunc(slices.Values(nodes), func(a, b *cluster.Node) int {
		return cmp.Or(cmp.Compare(ranks[b].waste, ranks[a].waste), cmp.Compare(ranks[a].cost, ranks[b].cost),
			cmp.Compare(a.Created, b.Created), strings.Compare(a.Claim, b.Claim))
	})
}

// waste returns the part of a node's cost that its pods leave unused, in micro-dollars per hour. It goes by the
// resource of which they use the largest share: CPU or memory.
func waste(node *cluster.Node, cost resources.Money) int64 {
	const whole = 1000
	used := int64(0)
	for _, component := range []int{resources.CPU, resources.Memory} {
		if all := node.Allocatable.At(component); all > 0 {
			used = max(used, min(whole, int64(float64(node.Used.At(component))/float64(all)*whole)))
		}
	}
	return int64(cost) / whole * (whole - used)
}

// choose adds a command.
func (d *disruption) choose(c command) {
	for _, node := range c.nodes {
		d.taken[node.Pool]++
	}
	d.chosen = append(d.chosen, c)
}

// stay notes that a node which is due cannot go.
func (d *disruption) stay(node *cluster.Node, lead string, u plan.Unplaced) {
	d.stays = append(d.stays, plan.Stay{Claim: node.Claim, ClaimUID: node.ClaimUID, Why: lead + homeless(u),
		Lead: lead, Homeless: u})
}

// dropUntilTogether gives up the last commands until the rest can stand together. stand checks that on the cluster
// without their nodes, with their launches.
func (d *disruption) dropUntilTogether(stand func(*cluster.Snapshot, []plan.Launch) bool) {
	for n := len(d.chosen); ; n = n * 7 / 8 {
		d.chosen = d.chosen[:n]
		if n == 0 || stand(d.carriedOut()) {
			return
		}
	}
}

// carriedOut returns the cluster without the nodes that were chosen, and what is launched for them.
func (d *disruption) carriedOut() (without *cluster.Snapshot, launches []plan.Launch) {
	return d.base.Without(d.gone()...), d.launched()
}

// gone lists the nodes that were chosen, as they were at the beginning.
func (d *disruption) gone() []*cluster.Node {
	var list []*cluster.Node
	for _, c := range d.chosen {
		for _, node := range c.nodes {
			list = append(list, d.base.Node(node))
		}
	}
	return list
}

// done returns what was chosen as a plan based on s.
func (d *disruption) done(s *cluster.Snapshot) plan.Plan {
	result := plan.Plan{BasedOn: s.Version, Names: s.Names, Stays: d.stays}
	for _, c := range d.chosen {
		result.Launches = append(result.Launches, c.launches...)
		for _, node := range c.nodes {
			remove := removal(node, c.reason, c.why)
			remove.First = c.first
			result.Removes = append(result.Removes, remove)
		}
	}
	slices.SortFunc(result.Removes, func(a, b plan.Remove) int { return strings.Compare(a.Claim, b.Claim) })
	saveLess(s, result.Removes)
	slices.SortFunc(result.Stays, func(a, b plan.Stay) int { return strings.Compare(a.Claim, b.Claim) })
	return result
}

// names returns the claims of nodes, sorted.
func names(nodes []*cluster.Node) []string {
	var list []string
	for _, node := range nodes {
		list = append(list, node.Claim)
	}
	slices.Sort(list)
	return list
}

func capacityType(node *cluster.Node) string { return node.Labels[string(catalog.LabelCapacityType)] }
